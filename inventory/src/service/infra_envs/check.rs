//! Checks the settings of an infra-env.

use std::net::IpAddr;

use assisted::infra_env::{KernelArgument, KernelArgumentOperation};
use ignition::discovery::{ComposeError, DiscoveryImage};
use ignition::network::Cancel;
use ignition::network::check::NetworkFinding;
use rules::values::{
    RequiredRegistries, check_ntp_sources, check_proxies, check_pull_secret, check_ssh_keys,
};

use crate::catalogue::{CpuArchitecture, ImageType};
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::{ImageSource, static_network};
use crate::{Inventory, Secret, in_background};
use discovery::{DiscoveryError, OpenshiftVersion};

/// The use of a pull secret: for a new or an existing infra-env. Determines the prefix of the error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PullSecretOf {
    New,
    Existing,
}

impl Inventory {
    /// Checks the values of an image source that differ from `before`. Returns the network findings that are only
    /// warnings.
    ///
    /// The check may take long, because it generates the network files.
    pub(crate) fn check_image_source(
        &self,
        source: &ImageSource,
        before: &ImageSource,
        pull_secret: PullSecretOf,
        cancel: &Cancel,
    ) -> Result<Vec<NetworkFinding>, Error> {
        let settings = self.settings();
        if source.proxy != before.proxy {
            let text = |proxy: &Option<String>| proxy.clone().unwrap_or_default();
            let proxy = &source.proxy;
            check_proxies(&text(&proxy.http_proxy), &text(&proxy.https_proxy), &text(&proxy.no_proxy))?;
        }
        if (&source.additional_ntp_sources, &source.ntp_sources)
            != (&before.additional_ntp_sources, &before.ntp_sources)
        {
            check_ntp_sources(
                &source.additional_ntp_sources,
                &source.ntp_sources,
                &settings.default_ntp_source,
            )?;
        }
        if source.ssh_authorized_key != before.ssh_authorized_key {
            check_ssh_keys(&source.ssh_authorized_key)?;
        }
        if source.additional_trust_bundle != before.additional_trust_bundle {
            source.trust_bundle()?;
        }
        if let Some(mirrors) = &source.mirrors
            && source.mirrors != before.mirrors
        {
            mirrors.parse()?;
        }
        check_rendezvous_ip(source)?;
        if source.kernel_arguments != before.kernel_arguments {
            check_kernel_arguments(source)?;
        }
        if pull_secret == PullSecretOf::New || source.pull_secret != before.pull_secret {
            self.check_pull_secret(&source.pull_secret, pull_secret)?;
        }
        let mut warnings = Vec::new();
        if source.static_network_config != before.static_network_config {
            warnings = static_network::check(&source.static_network_config, self.keyfiles(), cancel)?;
        }
        if source.ignition_config_override != before.ignition_config_override {
            self.check_override(source, cancel)?;
        }
        Ok(warnings)
    }

    /// Runs [`check_image_source`](Self::check_image_source) on a background thread.
    pub(crate) async fn check_in_background(
        &self,
        source: &ImageSource,
        before: &ImageSource,
        (architecture, pull_secret): (CpuArchitecture, PullSecretOf),
    ) -> Result<Vec<NetworkFinding>, Error> {
        let (inventory, mut source, before) = (self.clone(), source.clone(), before.clone());
        // The check of an override needs the version, which determines the supported Ignition spec versions.
        if source.openshift_version.is_empty() && !source.ignition_config_override.is_empty() {
            source.openshift_version = self.os_image("", architecture).await?.openshift_version;
        }
        in_background(move |cancel| inventory.check_image_source(&source, &before, pull_secret, cancel)).await
    }

    fn check_pull_secret(&self, secret: &Secret, of: PullSecretOf) -> Result<(), Error> {
        let settings = self.settings();
        let images = [settings.agent_image.as_str(), &settings.installer_image, &settings.controller_image];
        let required = RequiredRegistries { images: &images, public: &settings.public_registries };
        check_pull_secret(secret.reveal(), required).map_err(|error| match of {
            PullSecretOf::New => Error::invalid(format!("pull secret for new infraEnv is invalid: {error}")),
            PullSecretOf::Existing => error.into(),
        })
    }

    /// Checks the Ignition override by generating the config.
    fn check_override(&self, source: &ImageSource, cancel: &Cancel) -> Result<(), Error> {
        if source.ignition_config_override.is_empty() {
            return Ok(());
        }
        let version = &source.openshift_version;
        if version.parse::<OpenshiftVersion>().is_err() {
            return Err(Error::invalid(format!("Openshift version {version:?} is not valid")));
        }
        let inputs =
            source.inputs(InfraEnvId::from(uuid::Uuid::nil()), &Secret::default(), self.settings())?;
        let inputs = inputs.assume_checked();
        let networks = inputs.networks_until(self.keyfiles(), cancel).map_err(config_error)?;
        inputs.config(DiscoveryImage::Full, &networks).map_err(config_error)?;
        Ok(())
    }
}

/// Converts an error of the config generator into an error of an operation.
pub(super) fn config_error(error: DiscoveryError) -> Error {
    match &error {
        DiscoveryError::Compose(
            ComposeError::Override { .. } | ComposeError::Merged { .. } | ComposeError::TooNew { .. },
        ) => Error::invalid(format!("error parsing ignition: {error}")),
        DiscoveryError::Compose(ComposeError::NetworkFileMode { .. })
        | DiscoveryError::Config(_)
        | DiscoveryError::Pack(_) => {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot build a config or an archive");
            Error::internal(error.to_string())
        }
        _ => Error::invalid(error.to_string()),
    }
}

fn check_rendezvous_ip(source: &ImageSource) -> Result<(), Error> {
    let Some(address) = &source.rendezvous_ip else { return Ok(()) };
    if source.image_type != ImageType::Disconnected {
        return Err(Error::invalid("RendezvousIP is only supported for disconnected ISO infra-envs"));
    }
    if address.parse::<IpAddr>().is_err() {
        return Err(Error::invalid(format!(
            "Invalid rendezvous IP: {address} (must be a valid IPv4 or IPv6 address)"
        )));
    }
    Ok(())
}

fn check_kernel_arguments(source: &ImageSource) -> Result<(), Error> {
    for KernelArgument { operation, .. } in &source.kernel_arguments {
        let name = match operation {
            Some(KernelArgumentOperation::Append) => continue,
            Some(KernelArgumentOperation::Replace) => "replace",
            Some(KernelArgumentOperation::Delete) => "delete",
            None => "",
        };
        return Err(Error::invalid(format!(
            "Only kernel argument operation append is supported.  Got {name}"
        )));
    }
    source.kernel_arguments()?;
    Ok(())
}

//! Converts an infra-env into the inputs from which its images are generated.

use discovery::{Inputs, InputsBuilder, OpenshiftVersion};
use ignition::discovery::kernel_arguments::KernelArguments;
use ignition::discovery::{
    AgentToken, CertificateBundle, CertificateCheck, ImageReference, InfraEnvId as DiscoveryId,
    InfraEnvSettings, InputError, InventoryService, Override, PullSecret, SshKeys, TimeSources,
};
use rules::values::check_proxies;

use super::mirror_registries::MirrorRegistries;
use super::record::{ImageSource, InfraEnvRecord};
use super::static_network;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::json::to_json_text;
use crate::{Secret, Settings};

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl InfraEnvRecord {
    /// Returns the inputs of the infra-env's images.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid. This is only possible if an older release accepted the value.
    pub fn inputs(&self, settings: &Settings) -> Result<Inputs, Error> {
        let inputs = self.image.inputs(self.id, &self.url_token, settings)?;
        Ok(inputs.assume_checked())
    }
}

impl ImageSource {
    /// Returns the inputs of an infra-env's images. The image source must have been checked with
    /// [`check_image_source`].
    ///
    /// [`check_image_source`]: crate::Inventory::check_image_source
    pub(crate) fn inputs(
        &self,
        id: InfraEnvId,
        token: &Secret,
        settings: &Settings,
    ) -> Result<InputsBuilder, Error> {
        let version = &self.openshift_version;
        let version: OpenshiftVersion = version.parse().map_err(|_| {
            Error::broken(format_args!("infra-env {id} has the invalid OpenShift version {version:?}"))
        })?;
        let delay = match self.network_discovery_delay_seconds {
            None => settings.discovery_delay_seconds,
            Some(delay) => u32::try_from(delay).map_err(|_| {
                Error::broken(format_args!("infra-env {id} has an invalid discovery delay of {delay} s"))
            })?,
        };
        Ok(Inputs::builder(service(token, settings)?, self.infra_env(id)?, version)
            .hosts(static_network::hosts(&self.static_network_config))
            .kernel_arguments(self.kernel_arguments()?)
            .first_nmstate_version(settings.first_nmstate_version.clone())
            .discovery_delay_seconds(delay))
    }

    fn infra_env(&self, id: InfraEnvId) -> Result<InfraEnvSettings, Error> {
        let id = DiscoveryId::parse(&id.to_string())?;
        let mut infra_env = InfraEnvSettings::new(id, PullSecret::parse(self.pull_secret.reveal())?);
        infra_env.ssh_keys = SshKeys::parse(&self.ssh_authorized_key)?;
        let text = |proxy: &Option<String>| proxy.clone().unwrap_or_default();
        let proxy = &self.proxy;
        infra_env.proxies =
            check_proxies(&text(&proxy.http_proxy), &text(&proxy.https_proxy), &text(&proxy.no_proxy))?;
        infra_env.time_sources = TimeSources::parse(&self.additional_ntp_sources, &self.ntp_sources)?;
        infra_env.trust_bundle = self.trust_bundle()?;
        infra_env.mirrors = self.mirrors.as_ref().map(MirrorRegistries::parse).transpose()?;
        if !self.ignition_config_override.is_empty() {
            infra_env.config_override = Some(Override::new(self.ignition_config_override.as_str()));
        }
        Ok(infra_env)
    }

    /// Returns the additional trusted certificates, or `None` if none are set.
    pub(crate) fn trust_bundle(&self) -> Result<Option<CertificateBundle>, InputError> {
        let pem = Some(self.additional_trust_bundle.as_str()).filter(|pem| !pem.is_empty());
        pem.map(|pem| CertificateBundle::parse("additional_trust_bundle", pem)).transpose()
    }

    /// Returns the changes to the kernel command line.
    pub(crate) fn kernel_arguments(&self) -> Result<KernelArguments, Error> {
        // An argument with an empty value has no effect.
        let arguments: Vec<_> = self.kernel_arguments.iter().filter(|one| !one.value.is_empty()).collect();
        Ok(KernelArguments::parse(&to_json_text("kernel_arguments", &arguments)?)?)
    }
}

fn service(token: &Secret, settings: &Settings) -> Result<InventoryService, InputError> {
    let agent_image = ImageReference::parse("agent_image", &settings.agent_image)?;
    let mut service = InventoryService::new(settings.service_base_url.clone(), agent_image);
    if settings.skip_certificate_verification {
        service.certificate_check = CertificateCheck::Skip;
    }
    let authority = settings.service_ca_certificates.as_deref();
    service.authority =
        authority.map(|pem| CertificateBundle::parse("service_ca_certificates", pem)).transpose()?;
    if !token.is_empty() {
        service.token = Some(AgentToken::new(token.reveal())?);
    }
    Ok(service)
}

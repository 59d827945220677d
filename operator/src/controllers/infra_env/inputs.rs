//! Builds the definition of an infra-env from an InfraEnv and the objects that it refers to.

use assisted::architecture::{CpuArchitecture, ImageType};
use assisted::infra_env::{InfraEnvCreateParams, KernelArgument, KernelArgumentOperation, Proxy};
use inventory::infra_env::{InfraEnvDefinition, InfraEnvRecord, MirrorRegistries, token_of_image_url};

use super::{Applied, InfraEnvController, owner};
use crate::crds::{InfraEnv, InfraEnvSpec, MirrorRef, ProxySettings};
use crate::errors::ReconcileError;
use crate::networks::{self, NamedConfig, SelectedNetworks};
use crate::object::ObjectKey;
use crate::record_id;
use crate::references::{self, AppliedReference, MirrorConfig, PullSecret};

/// The definition of an infra-env, and the names of the configs in it.
pub(super) struct InfraEnvInputs {
    pub(super) definition: InfraEnvDefinition,
    /// The names of the NMStateConfigs, in the order of the networks in `definition`.
    pub(super) config_names: Vec<String>,
    pub(super) applied: Applied,
}

impl InfraEnvController {
    /// Returns the definition of the infra-env. `stored` is the current infra-env, if it exists.
    pub(super) async fn inputs(
        &self,
        key: &ObjectKey,
        object: &InfraEnv,
        stored: Option<InfraEnvRecord>,
    ) -> Result<InfraEnvInputs, ReconcileError> {
        let (spec, stored) = (&object.spec, stored.as_ref());
        let SelectedNetworks { hosts, names } = self.selected_networks(key, spec)?;
        let mut params = params(&key.name, spec)?;
        params.static_network_config = Some(hosts);
        let PullSecret { text, applied: pull_secret } = self.pull_secret(key, spec, stored).await?;
        params.pull_secret = text;
        let (mirrors, config_map) = self.mirrors(key, spec, stored).await?.unzip();
        let url = object.status.as_ref().map(|status| status.iso_download_url.as_str());
        let definition = InfraEnvDefinition {
            params,
            mirrors: mirrors.flatten(),
            owner: Some(owner(key)),
            // After the loss of the database, only the status still contains the token.
            url_token: url.and_then(token_of_image_url),
        };
        let applied = Applied { pull_secret, mirrors: config_map };
        Ok(InfraEnvInputs { definition, config_names: names, applied })
    }

    fn selected_networks(
        &self,
        key: &ObjectKey,
        spec: &InfraEnvSpec,
    ) -> Result<SelectedNetworks, ReconcileError> {
        let configs = self.caches.networks.in_namespace(&key.namespace);
        let configs = configs.iter().filter(|(_, config)| config.metadata.deletion_timestamp.is_none());
        let configs = configs.map(|(key, config)| NamedConfig {
            name: &key.name,
            labels: config.metadata.labels.as_ref(),
            spec: &config.spec,
        });
        let selector = &spec.nm_state_config_label_selector;
        Ok(networks::select(selector, configs)?)
    }

    /// Returns the pull secret. Reads the Secret only if no InfraEnv has applied its current version.
    async fn pull_secret(
        &self,
        key: &ObjectKey,
        spec: &InfraEnvSpec,
        stored: Option<&InfraEnvRecord>,
    ) -> Result<PullSecret, ReconcileError> {
        let name = &spec.pull_secret_ref.name;
        if name.is_empty() {
            return Err(ReconcileError::Reference("missing pull secret reference".to_owned()));
        }
        let secret = ObjectKey::new(&key.namespace, name);
        let is_current = |applied: &Applied| applied.pull_secret.is_current(&self.caches.secrets, &secret);
        if let (Some(stored), Some(applied)) = (stored, self.applied.find(key))
            && is_current(&applied)
        {
            return Ok(PullSecret { text: stored.image.pull_secret.clone(), applied: applied.pull_secret });
        }
        if let Some((applied, record)) = self.find_applied(is_current).await {
            return Ok(PullSecret { text: record.image.pull_secret, applied: applied.pull_secret });
        }
        references::pull_secret(&self.writer, &secret).await
    }

    /// Returns an InfraEnv's applied references that satisfy a condition, and its infra-env.
    async fn find_applied(&self, condition: impl Fn(&Applied) -> bool) -> Option<(Applied, InfraEnvRecord)> {
        let (key, applied) = self.applied.find_by(condition)?;
        let object = self.caches.infra_envs.get(&key)?;
        let id = record_id::of_infra_env(&object.metadata).ok()?;
        // An error has the same effect as a missing infra-env: the caller reads the objects.
        let record = self.stored(id, &key).await.ok()??;
        Some((applied, record))
    }

    /// Returns the mirrors of container registries. Reads the ConfigMap only if no InfraEnv has applied its current
    /// version. Returns `None` if the spec does not refer to a ConfigMap.
    async fn mirrors(
        &self,
        key: &ObjectKey,
        spec: &InfraEnvSpec,
        stored: Option<&InfraEnvRecord>,
    ) -> Result<Option<(Option<MirrorRegistries>, AppliedReference)>, ReconcileError> {
        let Some(MirrorRef { name, namespace }) = &spec.mirror_registry_ref else { return Ok(None) };
        if name.is_empty() || namespace.is_empty() {
            let reason = "spec.mirrorRegistryRef requires a name and a namespace";
            return Err(ReconcileError::Input(reason.to_owned()));
        }
        let config_map = ObjectKey::new(namespace, name);
        let current = |applied: Applied| {
            applied.mirrors.filter(|it| it.is_current(&self.caches.config_maps, &config_map))
        };
        if let (Some(stored), Some(mirrors)) = (stored, self.applied.find(key).and_then(current)) {
            return Ok(Some((stored.image.mirrors.clone(), mirrors)));
        }
        let is_current = |applied: &Applied| current(applied.clone()).is_some();
        if let Some((Applied { mirrors: Some(mirrors), .. }, record)) = self.find_applied(is_current).await {
            return Ok(Some((record.image.mirrors, mirrors)));
        }
        let config = references::mirror_config(&self.writer, &config_map).await?;
        let MirrorConfig { registries, certificates, applied } = config;
        let mirrors = MirrorRegistries { registries_conf: registries, ca_bundle: certificates };
        Ok(Some((Some(mirrors).filter(|it| !it.registries_conf.trim().is_empty()), applied)))
    }
}

/// Returns the parameters that depend only on the spec. The pull secret is left empty.
///
/// # Errors
///
/// Returns an error if the image type or the CPU architecture is unknown.
pub(crate) fn params(name: &str, spec: &InfraEnvSpec) -> Result<InfraEnvCreateParams, ReconcileError> {
    let list = |items: &[String]| (!items.is_empty()).then(|| items.join(","));
    Ok(InfraEnvCreateParams {
        proxy: spec.proxy.as_ref().map(proxy),
        additional_ntp_sources: list(&spec.additional_ntp_sources),
        ntp_sources: list(&spec.ntp_sources),
        ssh_authorized_key: spec.ssh_authorized_key.clone(),
        image_type: image_type(spec.image_type.as_deref())?,
        ignition_config_override: spec.ignition_config_override.clone(),
        openshift_version: spec.os_image_version.clone(),
        cpu_architecture: architecture(spec.cpu_architecture.as_deref())?,
        kernel_arguments: Some(spec.kernel_arguments.iter().map(kernel_argument).collect()),
        additional_trust_bundle: spec.additional_trust_bundle.clone(),
        network_discovery_delay_seconds: spec.network_discovery_delay_seconds,
        ..InfraEnvCreateParams::new(name.to_owned(), inventory::Secret::default())
    })
}

fn proxy(settings: &ProxySettings) -> Proxy {
    Proxy {
        http_proxy: settings.http_proxy.clone(),
        https_proxy: settings.https_proxy.clone(),
        no_proxy: settings.no_proxy.clone(),
    }
}

fn image_type(name: Option<&str>) -> Result<Option<ImageType>, ReconcileError> {
    let Some(name) = name else { return Ok(None) };
    let types = [ImageType::Full, ImageType::Minimal, ImageType::Disconnected];
    let image_type = types.into_iter().find(|image_type| image_type.as_str() == name);
    let error = || ReconcileError::Input(format!("spec.imageType {name:?} is not full-iso or minimal-iso"));
    image_type.ok_or_else(error).map(Some)
}

fn architecture(name: Option<&str>) -> Result<Option<CpuArchitecture>, ReconcileError> {
    let Some(name) = name else { return Ok(None) };
    let error = || {
        ReconcileError::Input(format!(
            "spec.cpuArchitecture {name:?} is not x86_64, aarch64, arm64, ppc64le or s390x"
        ))
    };
    CpuArchitecture::from_name(name).ok_or_else(error).map(Some)
}

fn kernel_argument(argument: &crate::crds::KernelArgument) -> KernelArgument {
    let operation = match argument.operation.as_deref() {
        Some("append") => Some(KernelArgumentOperation::Append),
        Some("replace") => Some(KernelArgumentOperation::Replace),
        Some("delete") => Some(KernelArgumentOperation::Delete),
        _ => None,
    };
    KernelArgument { operation, value: argument.value.clone().unwrap_or_default() }
}

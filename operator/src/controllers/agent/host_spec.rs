//! Applies the spec of an Agent to its host.

use assisted::host::Header;
use inventory::host::HostSpec;
use inventory::infra_env::ResourceOwner;
use inventory::{ErrorKind, Secret};
use k8s_openapi::api::core::v1::Secret as KubeSecret;

use super::{AgentController, OwnedHost};
use crate::crds::{AgentSpec, MirrorRef};
use crate::errors::ReconcileError;
use crate::object::ObjectKey;
use crate::projection::SpecSync;
use crate::projection::agent::sync_error;

/// The key of the token in a Secret.
const TOKEN: &str = "ignition-token";

impl AgentController {
    /// Applies the spec to the host. Returns the result, and `true` if the host has changed. The approval is applied
    /// even if another value is invalid, because the user may have withdrawn it.
    pub(super) async fn apply_spec(
        &self,
        spec: &AgentSpec,
        host: &OwnedHost,
    ) -> Result<(SpecSync, bool), ReconcileError> {
        let sync = match self.host_spec(spec, host).await? {
            Ok(spec) => match self.inventory.update_host_from_agent(host.key, spec, None).await {
                Ok(ensured) => return Ok((SpecSync::Synced, ensured.is_changed())),
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(error.into()),
                Err(error) => sync_error(&error),
            },
            Err(sync) => sync,
        };
        let ensured = self.inventory.approve_host(host.key, spec.approved).await?;
        Ok((sync, ensured.is_changed()))
    }

    /// Converts the spec into the settings of the host. The inner `Err` is the error that the conditions show for an
    /// invalid spec.
    async fn host_spec(
        &self,
        spec: &AgentSpec,
        host: &OwnedHost,
    ) -> Result<Result<HostSpec, SpecSync>, ReconcileError> {
        if let Some(cluster) = &spec.cluster_deployment_name {
            return Ok(Err(SpecSync::InputError(format!(
                "failed to get clusterDeployment with name {} in namespace {}: this service does not support \
                 ClusterDeployments yet",
                cluster.name, cluster.namespace
            ))));
        }
        let token = match &spec.ignition_endpoint_token_reference {
            Some(reference) => match self.token(reference).await? {
                Ok(token) => token,
                Err(sync) => return Ok(Err(sync)),
            },
            None => Secret::default(),
        };
        Ok(choices(spec, token, host))
    }

    async fn token(&self, reference: &MirrorRef) -> Result<Result<Secret, SpecSync>, ReconcileError> {
        let key = ObjectKey::new(&reference.namespace, &reference.name);
        let fault = |problem: &str| SpecSync::BackendError(format!("secret {key} {problem}"));
        let secret: Option<KubeSecret> = self.writer.get(&key).await?;
        let Some(secret) = secret else { return Ok(Err(fault("does not exist"))) };
        let bytes = secret.data.as_ref().and_then(|data| data.get(TOKEN));
        let Some(bytes) = bytes else { return Ok(Err(fault("has no key ignition-token"))) };
        let text = String::from_utf8(bytes.0.clone());
        Ok(text.map(Secret::new).map_err(|_| fault("has a key ignition-token that is not UTF-8")))
    }
}

fn choices(spec: &AgentSpec, token: Secret, host: &OwnedHost) -> Result<HostSpec, SpecSync> {
    let (host_id, infra_env) = (host.key.host_id, host.key.infra_env_id);
    let installer_args = match spec.installer_args.as_deref() {
        None => Vec::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            SpecSync::InputError(format!(
                "Fail to unmarshal installer args for host {host_id} in infraEnv {infra_env}: {error}"
            ))
        })?,
    };
    let headers = spec.ignition_endpoint_http_headers.iter();
    let namespace = host.infra_env.metadata.namespace.clone().unwrap_or_default();
    Ok(HostSpec {
        owner: Some(ResourceOwner::new("Agent", namespace, host_id.to_string())),
        approved: spec.approved,
        hostname: spec.hostname.clone(),
        role: Some(spec.role.clone()).filter(|role| !role.is_empty()),
        machine_config_pool: spec.machine_config_pool.clone(),
        installation_disk: spec.installation_disk_path.clone().or_else(|| spec.installation_disk_id.clone()),
        installer_args,
        ignition_config_override: spec.ignition_config_overrides.clone().unwrap_or_default(),
        ignition_endpoint_token: token,
        ignition_endpoint_headers: headers
            .map(|(key, value)| Header { key: key.clone(), value: Secret::new(value) })
            .collect(),
        node_labels: spec.node_labels.clone(),
    })
}

//! Stored infra-envs.

use assisted::infra_env::{HostStaticNetwork, KernelArgument, Proxy};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::mirror_registries::MirrorRegistries;
use super::owner::ResourceOwner;
use crate::Secret;
use crate::catalogue::{CpuArchitecture, ImageType};
use crate::error::Error;
use crate::id::{ClusterId, InfraEnvId};
use crate::store::{Columns, Kind, Record};
use crate::time::Micros;

/// A stored infra-env.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfraEnvRecord {
    /// The id.
    pub id: InfraEnvId,
    /// The name.
    pub name: String,
    /// User name of the owner.
    pub user_name: String,
    /// Domain of the owner's mail address.
    pub email_domain: String,
    /// The cluster that its hosts join.
    pub cluster_id: Option<ClusterId>,
    /// CPU architecture of its hosts.
    pub cpu_architecture: CpuArchitecture,
    /// The settings that determine its images.
    pub image: ImageSource,
    /// Increases by 1 with each change of `image`, starting at 1. Images of the same generation have the same contents.
    pub image_generation: u64,
    /// When `image` last changed.
    pub image_changed_at: Micros,
    /// The key that signs tokens for its images only.
    pub signing_key: Secret,
    /// The token in its image URLs. Empty if the policy requires none.
    #[serde(default)]
    pub url_token: Secret,
    /// The key that `url_token` is signed with.
    #[serde(default)]
    pub token_key: Option<Uuid>,
    /// The resource that defines it. `None`: a client of the API does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ResourceOwner>,
    /// When it was created.
    pub created_at: Micros,
    /// When it last changed.
    pub updated_at: Micros,
}

impl InfraEnvRecord {
    /// Returns an error if the infra-env has another owner than the caller. `verb` is what the caller must do to the
    /// owner instead.
    ///
    /// # Errors
    ///
    /// Returns a conflict that names the owner.
    pub(crate) fn require_owner(&self, caller: Option<&ResourceOwner>, verb: &str) -> Result<(), Error> {
        match &self.owner {
            Some(owner) if caller != Some(owner) => Err(Error::conflict(format!(
                "infra-env {} is defined by {owner}; {verb} that object instead",
                self.id
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the time of a change of `image` that happens now.
    ///
    /// # Errors
    ///
    /// Returns an error if no valid time is later than the last change.
    pub(crate) fn time_of_next_change(&self, now: DateTime<Utc>) -> Result<Micros, Error> {
        self.image_changed_at.later_than(now).ok_or_else(|| {
            let (id, last) = (self.id, self.image_changed_at);
            Error::broken(format_args!("no time is later than the last change of infra-env {id}: {last:?}"))
        })
    }
}

/// The settings that determine an infra-env's images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSource {
    /// The requested OpenShift version.
    pub openshift_version: String,
    /// The version of the base image in the catalogue.
    pub os_image: String,
    /// The kind of image.
    pub image_type: ImageType,
    /// Registry credentials.
    pub pull_secret: Secret,
    /// SSH public keys that may log in.
    pub ssh_authorized_key: String,
    /// The proxies.
    pub proxy: Proxy,
    /// Additional time servers.
    pub additional_ntp_sources: String,
    /// The only time servers.
    pub ntp_sources: String,
    /// The static networks of its hosts, sorted.
    pub static_network_config: Vec<HostStaticNetwork>,
    /// User-supplied Ignition override.
    pub ignition_config_override: String,
    /// Changes to the kernel arguments.
    pub kernel_arguments: Vec<KernelArgument>,
    /// Additional trusted certificates.
    pub additional_trust_bundle: String,
    /// Address of the rendezvous host of a disconnected cluster.
    pub rendezvous_ip: Option<String>,
    /// Seconds that the live system waits before it looks for network interfaces.
    pub network_discovery_delay_seconds: Option<i64>,
    /// Mirrors of container registries, which only operators set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirrors: Option<MirrorRegistries>,
}

impl ImageSource {
    /// Returns an error if the delay is outside of the range that the live system accepts. The API checks it against the
    /// schema of the body.
    pub(crate) fn check_delay(&self) -> Result<(), Error> {
        match self.network_discovery_delay_seconds.map(u32::try_from) {
            Some(Err(_)) => Err(Error::invalid(format!(
                "network_discovery_delay_seconds must be between 0 and {}",
                u32::MAX
            ))),
            Some(Ok(_)) | None => Ok(()),
        }
    }
}

impl Record for InfraEnvRecord {
    const KIND: Kind = Kind::InfraEnv;

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn columns(&self) -> Columns {
        Columns { cluster: self.cluster_id.map(|id| id.0), token_key: self.token_key, ..Columns::default() }
    }
}

//! The stored record of an infra-env.

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

/// The stored record of an infra-env.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfraEnvRecord {
    /// Id of the infra-env, chosen by the service or by an operator.
    pub id: InfraEnvId,
    /// Name of the infra-env, which need not be unique.
    pub name: String,
    /// User name of the owner.
    pub user_name: String,
    /// Domain of the owner's email address.
    pub email_domain: String,
    /// The cluster that hosts of the infra-env join. `None` if each host is bound separately.
    pub cluster_id: Option<ClusterId>,
    /// CPU architecture of the hosts.
    pub cpu_architecture: CpuArchitecture,
    /// The settings that determine the content of the images.
    pub image: ImageSource,
    /// Generation of `image`, which starts at 1 and increases by 1 with each change. Images of the same generation have
    /// the same content.
    pub image_generation: u64,
    /// Time of the last change to `image`.
    pub image_changed_at: Micros,
    /// Key for signing tokens whose access is limited to the images of this infra-env.
    pub signing_key: Secret,
    /// Token in the image URLs. Empty if the authentication policy requires no token.
    #[serde(default)]
    pub url_token: Secret,
    /// Id of the key that signed `url_token`. `None` without a token.
    #[serde(default)]
    pub token_key: Option<Uuid>,
    /// The resource that defines the infra-env. `None` if a client of the API has created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ResourceOwner>,
    /// Time when the infra-env was registered.
    pub created_at: Micros,
    /// Time of the last change to the record.
    pub updated_at: Micros,
}

impl InfraEnvRecord {
    /// Returns an error if the infra-env has an owner other than the caller. `verb` names what the caller must do to
    /// the owner instead.
    ///
    /// # Errors
    ///
    /// Returns a [`Conflict`](crate::ErrorKind::Conflict) that names the owner.
    pub(crate) fn require_owner(&self, caller: Option<&ResourceOwner>, verb: &str) -> Result<(), Error> {
        match &self.owner {
            Some(owner) if caller != Some(owner) => Err(Error::conflict(format!(
                "infra-env {} is defined by {owner}; {verb} that object instead",
                self.id
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the time to record for a change to `image` at `now`. The time is later than the last change.
    ///
    /// # Errors
    ///
    /// Returns an error if no later time can be represented.
    pub(crate) fn time_of_next_change(&self, now: DateTime<Utc>) -> Result<Micros, Error> {
        self.image_changed_at.later_than(now).ok_or_else(|| {
            let (id, last) = (self.id, self.image_changed_at);
            Error::broken(format_args!("no time is later than the last change of infra-env {id}: {last:?}"))
        })
    }
}

/// The settings that determine the content of an infra-env's images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSource {
    /// The requested OpenShift version, or the newest version if none was requested.
    pub openshift_version: String,
    /// Version of the selected base image in the catalogue.
    pub os_image: String,
    /// Whether the ISO is full or minimal.
    pub image_type: ImageType,
    /// Registry credentials, in the JSON format of a pull secret.
    pub pull_secret: Secret,
    /// Public SSH keys that can log in to the live system.
    pub ssh_authorized_key: String,
    /// Proxies for the live system.
    pub proxy: Proxy,
    /// Additional time servers, separated by commas.
    pub additional_ntp_sources: String,
    /// Time servers that replace all others, separated by commas.
    pub ntp_sources: String,
    /// Static network configurations of the hosts, sorted by their content.
    pub static_network_config: Vec<HostStaticNetwork>,
    /// User-supplied Ignition override, as JSON. Empty for no override.
    pub ignition_config_override: String,
    /// Changes to the kernel arguments of the live system.
    pub kernel_arguments: Vec<KernelArgument>,
    /// Additional trusted certificates, in PEM format.
    pub additional_trust_bundle: String,
    /// IP address of the rendezvous host of a disconnected cluster.
    pub rendezvous_ip: Option<String>,
    /// Delay before the live system looks for network interfaces, in seconds.
    pub network_discovery_delay_seconds: Option<i64>,
    /// Container registry mirrors, which only operators can set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirrors: Option<MirrorRegistries>,
}

impl ImageSource {
    /// Returns an error if the delay is outside of the range that the live system accepts. API requests are already
    /// checked by their schema.
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

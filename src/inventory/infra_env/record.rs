//! Infra-envs as they are kept.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::model::{HostStaticNetwork, KernelArgument, Proxy};
use crate::images::{CpuArchitecture, ImageType};
use crate::inventory::Secret;
use crate::inventory::id::{ClusterId, InfraEnvId};
use crate::inventory::store::{Kind, Record};
use crate::inventory::time::Micros;

/// An infra-env with all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfraEnvRecord {
    /// Its id.
    pub id: InfraEnvId,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub user_name: String,
    /// The domain of the owner's mail address.
    pub email_domain: String,
    /// The cluster that its machines become part of.
    pub cluster_id: Option<ClusterId>,
    /// The processor of its machines.
    pub cpu_architecture: CpuArchitecture,
    /// What its images are made from.
    pub image: ImageSource,
    /// How often `image` changed, from 1 on: whoever has seen a generation knows what is in its images.
    pub image_generation: u64,
    /// When `image` changed last.
    pub image_changed_at: Micros,
    /// The key of tokens for its images alone.
    pub signing_key: Secret,
    /// The token in the URLs of its images, where the policy wants one.
    #[serde(default)]
    pub url_token: Secret,
    /// The key that `url_token` is signed with.
    #[serde(default)]
    pub token_key: Option<Uuid>,
    /// When it was made.
    pub created_at: Micros,
    /// When it changed last.
    pub updated_at: Micros,
}

/// What images of an infra-env are made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSource {
    /// The version of OpenShift, as it was asked for.
    pub openshift_version: String,
    /// The version that the list of live images has for it.
    pub os_image: String,
    /// The kind of image.
    pub image_type: ImageType,
    /// Credentials of registries.
    pub pull_secret: Secret,
    /// Who may log in.
    pub ssh_authorized_key: String,
    /// Proxies.
    pub proxy: Proxy,
    /// Time servers beside others.
    pub additional_ntp_sources: String,
    /// The only time servers.
    pub ntp_sources: String,
    /// The networks of its machines, in an order of their own.
    pub static_network_config: Vec<HostStaticNetwork>,
    /// What shall be otherwise in the Ignition config.
    pub ignition_config_override: String,
    /// Changes of the kernel arguments.
    pub kernel_arguments: Vec<KernelArgument>,
    /// More certificates to trust.
    pub additional_trust_bundle: String,
    /// The address of the machine that the others of a disconnected cluster meet at.
    pub rendezvous_ip: Option<String>,
    /// How long a machine waits before it looks at its network.
    pub network_discovery_delay_seconds: Option<i64>,
}

impl Record for InfraEnvRecord {
    const KIND: Kind = Kind::InfraEnv;

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn cluster(&self) -> Option<Uuid> {
        self.cluster_id.map(|id| id.0)
    }

    fn token_key(&self) -> Option<Uuid> {
        self.token_key
    }
}

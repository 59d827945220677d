//! Unchecked infra-envs: texts with their locations. If all texts are valid, they become [`Inputs`].

mod inputs;
pub(crate) mod values;

use ignition::discovery::InventoryService;
use ignition::discovery::kernel_arguments::KernelArgumentOperation;
use ignition::network::check::ClusterNetworks;

use crate::finding::{Located, SourceLocation};
use crate::host::Host;
use crate::version::OpenshiftVersion;

/// A text and its location. `"...".into()` creates a text without a location.
pub type Text = Located<String>;

/// An infra-env as the user wrote it, before any check.
#[derive(Clone, Default)]
pub struct Draft {
    /// The name of the infra-env.
    pub name: Option<Text>,
    /// The id of the infra-env in the inventory, as a UUID.
    pub id: Option<Text>,
    /// The pull secret, as JSON.
    pub pull_secret: Option<Text>,
    /// The SSH public keys that may log in, one per line.
    pub ssh_keys: Option<Text>,
    /// The proxy for `http:` URLs.
    pub http_proxy: Option<Text>,
    /// The proxy for `https:` URLs.
    pub https_proxy: Option<Text>,
    /// Destinations to reach without a proxy, separated by commas.
    pub no_proxy: Option<Text>,
    /// NTP servers to add to the system's own, separated by commas.
    pub additional_ntp_sources: Option<Text>,
    /// NTP servers that replace the system's own, separated by commas.
    pub ntp_sources: Option<Text>,
    /// Additional CA certificates to trust, in PEM format.
    pub trust_bundle: Option<Text>,
    /// The text of a `registries.conf` that configures mirror registries.
    pub registries: Option<Text>,
    /// The CA certificates for the mirror registries, in PEM format.
    pub registries_authority: Option<Text>,
    /// An Ignition config to merge over the generated one, as JSON.
    pub config_override: Option<Text>,
    /// Changes to the kernel arguments.
    pub kernel_arguments: Vec<Located<(KernelArgumentOperation, String)>>,
    /// The static networks of the hosts.
    pub hosts: Vec<Host>,
    /// The networks of the cluster that the hosts will join.
    pub cluster: ClusterNetworks,
    /// The OpenShift version whose base image the hosts boot.
    pub version: Option<Text>,
    /// The location of a release image whose tag contains no version. Used in the finding about a missing version.
    pub version_hint: Option<SourceLocation>,
    /// The CPU architecture of the hosts.
    pub architecture: Option<Text>,
    /// The image type, as in the API: `full-iso` or `minimal-iso`.
    pub image_type: Option<Text>,
    /// How long a host waits before it inspects its network, in seconds.
    pub discovery_delay_seconds: Option<Located<u32>>,
    /// Manifest fields that a request to a service cannot contain. Each text states the reason or the consequence.
    pub unsent_fields: Vec<Located<&'static str>>,
}

/// Settings that all infra-envs of a service share.
#[derive(Clone, Debug)]
pub struct ServiceContext {
    /// The service that the agents report to.
    pub service: InventoryService,
    /// The OpenShift version of the base image, if known. Used if the draft contains no version.
    pub version: Option<OpenshiftVersion>,
}

impl Draft {
    /// Replaces values of this draft by the values that are set in `overrides`.
    #[must_use]
    pub fn with(self, overrides: Self) -> Self {
        let join = |mut one: Vec<_>, mut other: Vec<_>| {
            one.append(&mut other);
            one
        };
        Self {
            name: overrides.name.or(self.name),
            id: overrides.id.or(self.id),
            pull_secret: overrides.pull_secret.or(self.pull_secret),
            ssh_keys: overrides.ssh_keys.or(self.ssh_keys),
            http_proxy: overrides.http_proxy.or(self.http_proxy),
            https_proxy: overrides.https_proxy.or(self.https_proxy),
            no_proxy: overrides.no_proxy.or(self.no_proxy),
            // The two settings exclude each other: setting one kind of NTP source clears the other.
            additional_ntp_sources: match (&overrides.additional_ntp_sources, &overrides.ntp_sources) {
                (None, Some(_)) => None,
                _ => overrides.additional_ntp_sources.clone().or(self.additional_ntp_sources),
            },
            ntp_sources: match (&overrides.ntp_sources, &overrides.additional_ntp_sources) {
                (None, Some(_)) => None,
                _ => overrides.ntp_sources.or(self.ntp_sources),
            },
            trust_bundle: overrides.trust_bundle.or(self.trust_bundle),
            registries: overrides.registries.or(self.registries),
            registries_authority: overrides.registries_authority.or(self.registries_authority),
            config_override: overrides.config_override.or(self.config_override),
            kernel_arguments: join(self.kernel_arguments, overrides.kernel_arguments),
            hosts: if overrides.hosts.is_empty() { self.hosts } else { overrides.hosts },
            cluster: if overrides.cluster.is_empty() { self.cluster } else { overrides.cluster },
            version: overrides.version.or(self.version),
            version_hint: overrides.version_hint.or(self.version_hint),
            architecture: overrides.architecture.or(self.architecture),
            image_type: overrides.image_type.or(self.image_type),
            discovery_delay_seconds: overrides.discovery_delay_seconds.or(self.discovery_delay_seconds),
            unsent_fields: self.unsent_fields.into_iter().chain(overrides.unsent_fields).collect(),
        }
    }
}

/// Leaves out the config override and the credentials.
impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("hosts", &self.hosts.len())
            .finish_non_exhaustive()
    }
}

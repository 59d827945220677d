//! Discovery configs: Ignition configs for the live system of a discovery image.
//!
//! A machine that boots a discovery image runs an agent. The agent registers the machine as a host with a service and
//! runs the service's steps. The config contains the agent, its connection to the service (proxies, certificates,
//! mirrors, time, network), the users who may log in, and a user's override. `docs/discovery.md` describes the config
//! file by file.
//!
//! Inputs are typed. If a value could break the syntax of its file, parsing it returns an error with the name of its
//! field. All other values are escaped for the program that reads them. Composing a config does not access the network,
//! and the same inputs result in the same bytes.
//!
//! * [`Discovery`] composes the config.
//! * [`ipxe`] generates the scripts for a boot over the network.
//! * [`service_url`] extracts the URL of the service from a config.
//! * [`kernel_arguments`] are not part of the config, but belong to the same infra-env.
//!
//! # Examples
//!
//! ```
//! use ignition::discovery::{Discovery, HttpUrl, ImageReference, InfraEnvId, InfraEnvSettings, InventoryService};
//! use ignition::discovery::{PullSecret, SshKeys};
//!
//! let service = InventoryService::new(
//!     HttpUrl::parse("base_url", "https://assisted.example.com")?,
//!     ImageReference::parse("agent_image", "quay.io/example/agent:v1")?,
//! );
//! let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666")?;
//! let mut infra_env = InfraEnvSettings::new(id, PullSecret::parse(r#"{"auths": {"quay.io": {}}}"#)?);
//! infra_env.ssh_keys = SshKeys::parse("")?;
//! let composed = Discovery::new(service, infra_env).compose()?;
//! assert_eq!(composed.config.spec().to_string(), "3.1.0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod agent;
mod certificate;
pub(crate) mod escape;
mod input;
pub mod ipxe;
pub mod kernel_arguments;
mod mirror;
#[cfg(feature = "network")]
pub(crate) mod network;
mod okd;
pub(crate) mod overrides;

mod proxy;
mod registries;
mod secret;
mod service_url;
mod ssh;
mod time;
mod url;

pub use agent::{CertificateCheck, InventoryService};
pub use certificate::CertificateBundle;
pub(crate) use input::is_host_name;
pub use input::{HostName, ImageReference, InfraEnvId, InputError};
pub use mirror::Mirrors;
pub use overrides::{ComposeError, ComposedConfig, MergedFinding, Override};
pub use proxy::Proxies;
pub use secret::{AgentToken, PasswordHash, PullSecret};
pub use service_url::service_url;
pub use ssh::SshKeys;
pub use time::{NtpSource, TimeSources};
pub use url::{HttpUrl, masked_url};

use crate::builder::{ConfigBuilder, FileMode, UnitState};
use crate::config::Config;
use crate::ironic::{Ironic, IronicAgentContext};
use crate::json::Json;
#[cfg(feature = "network")]
use crate::network::IgnitionFiles;
use crate::report::ConfigReport;
use crate::spec::Spec;

/// The spec version of a discovery config, unless an override has a newer version. OpenShift 4.7 and later support it.
pub(crate) const SPEC: Spec = Spec::V3_1;

/// The name of the API field with the override of an infra-env.
const OVERRIDE_FIELD: &str = "ignition_config_override";

/// With these settings, the live system and the installed system use the same DHCPv6 identity, so that the host keeps
/// its address.
pub(crate) const DHCP_IDENTITY: &str = include_str!("content/01-ipv6.conf");

/// The kind of image that a machine boots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscoveryImage {
    /// The full ISO, which contains the root file system. The static network is in the config.
    #[default]
    Full,
    /// The minimal ISO, which downloads the root file system. The download needs the network, so the static network is
    /// in the initrd.
    Minimal,
}

/// The policy for container images that podman runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImagePolicy {
    /// The policy of the live system.
    #[default]
    System,
    /// If mirrors are configured, podman accepts any image, signed or not. Mirrors of old registries have no
    /// signatures.
    AcceptAnything,
}

/// An infra-env: the settings that a group of machines shares.
#[derive(Clone, Debug)]
pub struct InfraEnvSettings {
    /// The id of the infra-env, which the agent sends to the service.
    pub id: InfraEnvId,
    /// The registry credentials.
    pub pull_secret: PullSecret,
    /// The SSH keys with which users log in as `core`.
    pub ssh_keys: SshKeys,
    /// The password hash of the user `core` for logins at the console. If `None`, password login is disabled.
    pub password_hash: Option<PasswordHash>,
    /// The proxies that Ignition, the agent and other programs of the machines use.
    pub proxies: Proxies,
    /// The time servers of the machines.
    pub time_sources: TimeSources,
    /// Certificates to trust in addition to the system's certificates.
    pub trust_bundle: Option<CertificateBundle>,
    /// The mirrors of container registries.
    pub mirrors: Option<Mirrors>,
    /// The kind of image that the config is for.
    pub image_type: DiscoveryImage,
    /// The user's change to the generated config.
    pub config_override: Option<Override>,
}

impl InfraEnvSettings {
    /// Creates an infra-env with only the mandatory settings.
    #[must_use]
    pub fn new(id: InfraEnvId, pull_secret: PullSecret) -> Self {
        Self {
            id,
            pull_secret,
            ssh_keys: SshKeys::default(),
            password_hash: None,
            proxies: Proxies::default(),
            time_sources: TimeSources::System,
            trust_bundle: None,
            mirrors: None,
            image_type: DiscoveryImage::Full,
            config_override: None,
        }
    }
}

/// The inputs of a discovery config.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Discovery {
    /// The service with which machines register.
    pub service: InventoryService,
    /// The settings of the infra-env.
    pub infra_env: InfraEnvSettings,
    /// The static network of the machines, from [`HostNetworkFiles`](crate::network::HostNetworkFiles::ignition_files).
    #[cfg(feature = "network")]
    pub static_network: Option<IgnitionFiles>,
    /// The container image with the RPMs of OKD, if the cluster runs OKD.
    pub okd_rpms_image: Option<ImageReference>,
    /// Ironic, if Metal3 manages the machines.
    pub ironic: Option<Ironic>,
    /// The newest spec version that the live system supports. An override with a newer version is rejected.
    pub newest_spec: Spec,
}

impl Discovery {
    /// Creates the inputs for a config without a static network, OKD or Ironic. The live system is assumed to support
    /// all spec versions.
    #[must_use]
    pub fn new(service: InventoryService, infra_env: InfraEnvSettings) -> Self {
        Self {
            service,
            infra_env,
            #[cfg(feature = "network")]
            static_network: None,
            okd_rpms_image: None,
            ironic: None,
            newest_spec: Spec::LATEST,
        }
    }

    /// Composes the config and merges the override over it.
    ///
    /// # Errors
    ///
    /// * [`ComposeError::Override`] if the override is not a valid config.
    /// * [`ComposeError::Merged`] if the override is valid, but the merged config is not.
    /// * [`ComposeError::TooNew`] if the result needs a newer spec than the live system supports.
    /// * [`ComposeError::NetworkFileMode`] if a file of the static network has special permission bits.
    /// * [`ComposeError::Invalid`] if a file of the static network has the path of another file.
    /// * [`ComposeError::Input`] if Ironic's IP options contain a control character.
    pub fn compose(&self) -> Result<ComposedConfig, ComposeError> {
        let config = self.generated_config()?;
        let Some(over) = &self.infra_env.config_override else {
            return Ok(ComposedConfig { config, warnings: ConfigReport::default() });
        };
        let composed = overrides::apply_override(&config, OVERRIDE_FIELD, over)?;
        let (found, newest) = (composed.config.spec(), self.newest_spec);
        if found > newest.max(SPEC) {
            return Err(ComposeError::TooNew { field: OVERRIDE_FIELD, found, newest });
        }
        Ok(composed)
    }

    /// Returns the config without the override.
    fn generated_config(&self) -> Result<Config, ComposeError> {
        let mut builder = ConfigBuilder::new();
        let state = if self.ironic.is_some() { UnitState::Disabled } else { UnitState::Enabled };
        self.service.add_agent(&mut builder, &self.infra_env.id, state, self.environment_file());
        add_common_files(&mut builder);
        if self.okd_rpms_image.is_none() {
            add_storage_support(&mut builder);
            add_oracle_cloud(&mut builder);
        }
        self.add_credentials(&mut builder);
        self.add_proxies(&mut builder);
        self.add_trusted_certificates(&mut builder);
        self.add_mirrors(&mut builder);
        self.infra_env.time_sources.add_to(&mut builder);
        #[cfg(feature = "network")]
        if let Some(network) = self.network_in_config() {
            network::add_static_network(network, &mut builder)?;
        }
        if let Some(image) = &self.okd_rpms_image {
            okd::add_okd(&mut builder, image, self.environment_file());
        }
        if let Some(ironic) = &self.ironic {
            let machine = IronicAgentContext {
                has_static_network: self.has_static_network(),
                environment: self.environment_file(),
                ..IronicAgentContext::default()
            };
            ironic.add_agent(&mut builder, &machine)?;
        }
        overrides::validated(builder.into_config(SPEC)?)
    }

    fn has_static_network(&self) -> bool {
        #[cfg(feature = "network")]
        {
            self.static_network.is_some()
        }
        #[cfg(not(feature = "network"))]
        {
            false
        }
    }

    /// Returns the static network, unless the initrd contains it instead of the config.
    #[cfg(feature = "network")]
    fn network_in_config(&self) -> Option<&IgnitionFiles> {
        self.static_network.as_ref().filter(|_| self.infra_env.image_type == DiscoveryImage::Full)
    }

    /// Returns the path of the file with environment variables for units, or `None` if no proxy and no exception is
    /// set.
    fn environment_file(&self) -> Option<&'static str> {
        self.infra_env.proxies.environment_file()
    }

    fn add_credentials(&self, builder: &mut ConfigBuilder) {
        let InfraEnvSettings { pull_secret, ssh_keys, password_hash, .. } = &self.infra_env;
        builder.replace_file("/root/.docker/config.json", FileMode::PRIVATE, pull_secret.reveal());
        if ssh_keys.as_slice().is_empty() && password_hash.is_none() {
            return;
        }
        /// A hash that matches no password.
        const LOCKED_HASH: &str = "!";
        let hash = password_hash.as_ref().map_or(LOCKED_HASH, PasswordHash::reveal);
        builder.add_user(Json::object([
            ("name", "core".into()),
            ("passwordHash", hash.to_owned().into()),
            ("sshAuthorizedKeys", Json::texts(ssh_keys.as_slice())),
            ("groups", Json::List(vec!["sudo".into()])),
        ]));
    }

    fn add_proxies(&self, builder: &mut ConfigBuilder) {
        let proxies = &self.infra_env.proxies;
        if proxies.is_empty() {
            return;
        }
        proxies.add_environment_file(builder);
        builder.replace_file("/etc/profile.d/proxy.sh", FileMode::PUBLIC, proxies.to_profile_script());
        if proxies.has_proxy() {
            builder.set_proxy(proxies.to_ignition_json());
        }
    }

    /// Adds the certificates that all programs trust.
    fn add_trusted_certificates(&self, builder: &mut ConfigBuilder) {
        let bundles = [
            ("rh-it-root-ca.crt", &self.service.organisation_authority),
            ("assisted-infraenv-additional-trust-bundle.pem", &self.infra_env.trust_bundle),
        ];
        for (name, bundle) in bundles {
            if let Some(bundle) = bundle {
                builder.add_trust_anchor(name, bundle.as_pem());
            }
        }
        if let Some(mirrors) = &self.infra_env.mirrors {
            mirrors.add_authority(builder);
        }
    }

    fn add_mirrors(&self, builder: &mut ConfigBuilder) {
        let Some(mirrors) = &self.infra_env.mirrors else { return };
        mirrors.add_registries(builder);
        if self.service.image_policy == ImagePolicy::AcceptAnything {
            let policy = include_str!("content/policy.json");
            builder.replace_file("/etc/containers/policy.json", FileMode::PUBLIC, policy);
        }
    }
}

/// Adds the files and units that every machine needs.
fn add_common_files(builder: &mut ConfigBuilder) {
    builder.replace_unit("selinux.service", UnitState::Enabled, include_str!("content/selinux.service"));
    let files = [
        ("/etc/motd", include_str!("content/motd")),
        ("/etc/NetworkManager/conf.d/01-ipv6.conf", DHCP_IDENTITY),
        ("/root/assisted.te", include_str!("content/assisted.te")),
    ];
    for (path, contents) in files {
        builder.replace_file(path, FileMode::PUBLIC, contents);
    }
}

/// Adds support for multipath and iSCSI disks. The caller omits it for OKD, whose live system does not have the
/// programs.
fn add_storage_support(builder: &mut ConfigBuilder) {
    builder.enable_unit("multipathd.service");
    builder.replace_file("/etc/multipath.conf", FileMode::PUBLIC, include_str!("content/multipath.conf"));
    let unit = include_str!("content/iscsistart.service");
    builder.replace_unit("iscsistart.service", UnitState::Enabled, unit);
}

/// Adds the unit that runs the script in the user data of an Oracle Cloud instance.
fn add_oracle_cloud(builder: &mut ConfigBuilder) {
    let unit = include_str!("content/oci-eval-user-data.service");
    builder.replace_unit("oci-eval-user-data.service", UnitState::Enabled, unit);
    let script = include_str!("content/oci-eval-user-data.sh");
    builder.replace_file("/usr/local/bin/oci-eval-user-data.sh", FileMode::EXECUTABLE, script);
}

//! The discovery config: what turns a live system into a machine that waits to be installed.
//!
//! A machine that boots a discovery image runs an agent, which reports the machine to a service and does what that tells
//! it. The config brings the agent, how it reaches the service (proxies, certificates, mirrors, time, network), who may log
//! in, and what somebody wants to have otherwise. `docs/discovery.md` goes through it file by file.
//!
//! Inputs are typed: what could break out of the file it goes to is refused where it is read, with the name of its field.
//! The rest is escaped for its reader. Building fetches nothing and asks nobody: the same inputs give the same bytes.
//!
//! * [`Discovery`] builds the config.
//! * [`StandaloneIronic`] builds one for machines that Ironic manages without a service.
//! * [`ipxe`] writes the scripts with which machines boot over the network.
//! * [`kernel_arguments`] are no part of the config, but of the same infra-env.
//!
//! # Examples
//!
//! ```
//! use ignition::discovery::{Discovery, HttpUrl, ImageReference, InfraEnv, InfraEnvId, PullSecret, Service, SshKeys};
//!
//! let service = Service::new(
//!     HttpUrl::parse("base_url", "https://assisted.example.com")?,
//!     ImageReference::parse("agent_image", "quay.io/example/agent:v1")?,
//! );
//! let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666")?;
//! let mut infra_env = InfraEnv::new(id, PullSecret::parse(r#"{"auths": {"quay.io": {}}}"#)?);
//! infra_env.ssh_keys = SshKeys::parse("")?;
//! let composed = Discovery::new(service, infra_env).compose()?;
//! assert_eq!(composed.config.spec().to_string(), "3.1.0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod certificate;
pub(crate) mod escape;
mod input;
pub mod ipxe;
mod ironic;
pub mod kernel_arguments;
mod mirror;
mod network;
mod okd;
pub(crate) mod overrides;
pub(crate) mod parts;
mod proxy;
mod registries;
mod secret;
mod ssh;
mod time;
mod url;

pub use agent::{AGENT_UNIT, CertificateCheck, Service};
pub use certificate::CertificateBundle;
pub(crate) use input::is_host_name;
pub use input::{HostName, ImageReference, InfraEnvId, InputError};
pub use ironic::{Ironic, StandaloneIronic, VlanInterfaces};
pub use mirror::Mirrors;
pub use overrides::{ComposeError, Composed, Override};
pub use proxy::Proxies;
pub use secret::{PasswordHash, PullSecret, Token};
pub use ssh::SshKeys;
pub use time::{NtpSource, TimeSources};
pub use url::{HttpUrl, masked_url};

use agent::AgentStart;
use ironic::IronicMachine;
use parts::Parts;

use crate::builder::{FileMode, UnitState};
use crate::document::Document;
use crate::json::Json;
use crate::network::IgnitionFiles;
use crate::report::Report;
use crate::spec::Spec;

/// The spec version of a discovery config, unless an override has a newer one. All systems since OpenShift 4.7 read it.
pub const SPEC: Spec = Spec::V3_1;

/// The field that holds the override of an infra-env.
const OVERRIDE: &str = "ignition_config_override";

/// One DHCPv6 identity for the live system and the one that is installed, so that the address stays.
const DHCP_IDENTITY: &str = include_str!("content/01-ipv6.conf");

/// Which kind of image a machine boots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageType {
    /// Everything is in the image. The static network is in the config.
    #[default]
    Full,
    /// The root file system is fetched over the network, so the static network has to be in the initrd already.
    Minimal,
}

/// Which images podman runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImagePolicy {
    /// What the system's policy says.
    #[default]
    System,
    /// Where mirrors are given, any image, whether it is signed or not: mirrors of old registries have no signatures.
    AcceptAnything,
}

/// An infra-env: what a group of machines has in common.
#[derive(Clone, Debug)]
pub struct InfraEnv {
    /// Its id.
    pub id: InfraEnvId,
    /// Credentials of registries.
    pub pull_secret: PullSecret,
    /// Who may log in.
    pub ssh_keys: SshKeys,
    /// The password of the user `core` at the console. Without one, there is none that fits.
    pub password_hash: Option<PasswordHash>,
    /// Proxies.
    pub proxies: Proxies,
    /// Time servers.
    pub time_sources: TimeSources,
    /// More certificates to trust.
    pub trust_bundle: Option<CertificateBundle>,
    /// Mirrors of registries.
    pub mirrors: Option<Mirrors>,
    /// The kind of image that is asked for.
    pub image_type: ImageType,
    /// What shall be otherwise.
    pub config_override: Option<Override>,
}

impl InfraEnv {
    /// An infra-env that has only what it must have.
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
            image_type: ImageType::Full,
            config_override: None,
        }
    }
}

/// All that a discovery config is made of.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// The service to report to.
    pub service: Service,
    /// The infra-env.
    pub infra_env: InfraEnv,
    /// The static network of its machines: what [`Networks`](crate::network::Networks::ignition) makes of them.
    pub static_network: Option<IgnitionFiles>,
    /// The image with the RPMs of OKD, where the cluster is one of OKD.
    pub okd_rpms_image: Option<ImageReference>,
    /// Ironic, where Metal3 manages the machines.
    pub ironic: Option<Ironic>,
    /// The newest spec version that the system of the image reads; an override beyond it is refused.
    pub newest_spec: Spec,
}

impl Discovery {
    /// A config without static network, OKD and Ironic, for a system that reads all spec versions.
    #[must_use]
    pub fn new(service: Service, infra_env: InfraEnv) -> Self {
        Self {
            service,
            infra_env,
            static_network: None,
            okd_rpms_image: None,
            ironic: None,
            newest_spec: Spec::LATEST,
        }
    }

    /// Builds the config, with the override over it.
    ///
    /// # Errors
    ///
    /// When the override is no valid config, makes one that is none, or needs a newer spec than may be; and when files of
    /// the static network have the path of another file.
    pub fn compose(&self) -> Result<Composed, ComposeError> {
        let config = self.base()?;
        let Some(over) = &self.infra_env.config_override else {
            return Ok(Composed { config, warnings: Report::default() });
        };
        let composed = overrides::apply(&config, OVERRIDE, over)?;
        let (found, newest) = (composed.config.spec(), self.newest_spec);
        if found > newest.max(SPEC) {
            return Err(ComposeError::TooNew { field: OVERRIDE, found, newest });
        }
        Ok(composed)
    }

    /// The config without the override.
    fn base(&self) -> Result<Document, ComposeError> {
        let mut parts = Parts::default();
        let start = if self.ironic.is_some() { UnitState::Disabled } else { UnitState::Enabled };
        self.service.add_agent(
            &mut parts,
            &self.infra_env.id,
            AgentStart { state: start, environment: self.environment() },
        );
        add_system(&mut parts);
        if self.okd_rpms_image.is_none() {
            add_storage(&mut parts);
            add_oracle_cloud(&mut parts);
        }
        self.add_access(&mut parts);
        self.add_proxies(&mut parts);
        self.add_trust(&mut parts);
        self.add_mirrors(&mut parts);
        self.infra_env.time_sources.add(&mut parts);
        if let Some(network) = self.network_in_config() {
            network::add(network, &mut parts);
        }
        if let Some(image) = &self.okd_rpms_image {
            okd::add(&mut parts, image, self.environment());
        }
        if let Some(ironic) = &self.ironic {
            let machine = IronicMachine {
                has_static_network: self.static_network.is_some(),
                environment: self.environment(),
                ..IronicMachine::default()
            };
            ironic.add(&mut parts, &machine)?;
        }
        overrides::assembled(parts, SPEC)
    }

    /// The static network, unless the initrd has it.
    fn network_in_config(&self) -> Option<&IgnitionFiles> {
        self.static_network.as_ref().filter(|_| self.infra_env.image_type == ImageType::Full)
    }

    /// The file with variables for units, if there are any.
    fn environment(&self) -> Option<&'static str> {
        self.infra_env.proxies.environment()
    }

    /// Credentials, and who may log in.
    fn add_access(&self, parts: &mut Parts) {
        let InfraEnv { pull_secret, ssh_keys, password_hash, .. } = &self.infra_env;
        parts.file("/root/.docker/config.json", FileMode::PRIVATE, pull_secret.reveal());
        if ssh_keys.as_slice().is_empty() && password_hash.is_none() {
            return;
        }
        /// What no password hashes to.
        const LOCKED: &str = "!";
        let hash = password_hash.as_ref().map_or(LOCKED, PasswordHash::reveal);
        parts.users.push(Json::object([
            ("name", "core".into()),
            ("passwordHash", hash.to_owned().into()),
            ("sshAuthorizedKeys", Json::texts(ssh_keys.as_slice())),
            ("groups", Json::List(vec!["sudo".into()])),
        ]));
    }

    fn add_proxies(&self, parts: &mut Parts) {
        let proxies = &self.infra_env.proxies;
        if proxies.is_empty() {
            return;
        }
        proxies.add_environment(parts);
        parts.file("/etc/profile.d/proxy.sh", FileMode::PUBLIC, proxies.to_profile());
        if proxies.is_used() {
            parts.ignition.set("proxy", proxies.to_ignition());
        }
    }

    /// Certificates for all programs.
    fn add_trust(&self, parts: &mut Parts) {
        let bundles = [
            ("rh-it-root-ca.crt", &self.service.organisation_authority),
            ("assisted-infraenv-additional-trust-bundle.pem", &self.infra_env.trust_bundle),
        ];
        for (name, bundle) in bundles {
            if let Some(bundle) = bundle {
                parts.anchor(name, bundle);
            }
        }
        if let Some(mirrors) = &self.infra_env.mirrors {
            mirrors.add_authority(parts);
        }
    }

    fn add_mirrors(&self, parts: &mut Parts) {
        let Some(mirrors) = &self.infra_env.mirrors else { return };
        mirrors.add_registries(parts);
        if self.service.image_policy == ImagePolicy::AcceptAnything {
            let policy = include_str!("content/policy.json");
            parts.file("/etc/containers/policy.json", FileMode::PUBLIC, policy);
        }
    }
}

/// What every machine gets.
fn add_system(parts: &mut Parts) {
    parts.unit("selinux.service", UnitState::Enabled, include_str!("content/selinux.service"));
    let files = [
        ("/etc/motd", include_str!("content/motd")),
        ("/etc/NetworkManager/conf.d/01-ipv6.conf", DHCP_IDENTITY),
        ("/root/assisted.te", include_str!("content/assisted.te")),
    ];
    for (path, contents) in files {
        parts.file(path, FileMode::PUBLIC, contents);
    }
}

/// Disks that are reached over several paths, or over a network. The system of OKD does not have the programs.
fn add_storage(parts: &mut Parts) {
    parts.enable("multipathd.service");
    parts.file("/etc/multipath.conf", FileMode::PUBLIC, include_str!("content/multipath.conf"));
    parts.unit("iscsistart.service", UnitState::Enabled, include_str!("content/iscsistart.service"));
}

/// A cloud whose machines get a script from their owner.
fn add_oracle_cloud(parts: &mut Parts) {
    let unit = include_str!("content/oci-eval-user-data.service");
    parts.unit("oci-eval-user-data.service", UnitState::Enabled, unit);
    let script = include_str!("content/oci-eval-user-data.sh");
    parts.file("/usr/local/bin/oci-eval-user-data.sh", FileMode::EXECUTABLE, script);
}

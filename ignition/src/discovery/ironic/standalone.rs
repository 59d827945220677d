//! Ironic's agent alone: Metal3 inspects and installs machines by itself, and there is no service to report to.
//!
//! Such a config mostly is for one machine, whose name and network are in it. `docs/discovery.md` goes through it file by
//! file, and tells what the controller does otherwise that makes such configs elsewhere.

use super::{Ironic, IronicMachine};
use crate::builder::FileMode;
use crate::discovery::agent::add_pull_script;
use crate::discovery::certificate::CertificateBundle;
use crate::discovery::escape::shell;
use crate::discovery::input::HostName;
use crate::discovery::mirror::Mirrors;
use crate::discovery::overrides::{ComposeError, Composed, assembled};
use crate::discovery::parts::Parts;
use crate::discovery::proxy::Proxies;
use crate::discovery::secret::PullSecret;
use crate::discovery::ssh::SshKeys;
use crate::discovery::time::TimeSources;
use crate::discovery::url::{HttpUrl, masked_url};
use crate::discovery::{DHCP_IDENTITY, network};
use crate::json::Json;
use crate::network::IgnitionFiles;
use crate::report::Report;
use crate::spec::Spec;

/// Credentials of registries for podman, which runs the agent.
const CREDENTIALS: &str = "/etc/authfile.json";

/// All that the config of a machine is made of that Ironic manages without a service.
///
/// # Examples
///
/// ```
/// use ignition::discovery::{HostName, ImageReference, Ironic, StandaloneIronic};
///
/// let agent_image = ImageReference::parse("ironic_agent_image", "quay.io/example/ipa:v1")?;
/// let ironic = Ironic::parse("https://192.0.2.5", "", agent_image)?;
/// let mut standalone = StandaloneIronic::new(ironic);
/// standalone.hostname = Some(HostName::parse("hostname", "node-0")?);
/// let composed = standalone.compose()?;
/// assert_eq!(composed.config.spec().to_string(), "3.2.0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct StandaloneIronic {
    /// Ironic.
    pub ironic: Ironic,
    /// Credentials of registries.
    pub pull_secret: Option<PullSecret>,
    /// Who may log in.
    pub ssh_keys: SshKeys,
    /// Proxies between the agent and the world.
    pub proxies: Proxies,
    /// Time servers.
    pub time_sources: TimeSources,
    /// More certificates to trust.
    pub trust_bundle: Option<CertificateBundle>,
    /// Mirrors of registries.
    pub mirrors: Option<Mirrors>,
    /// The name of the machine if neither DHCP nor DNS names it.
    pub hostname: Option<HostName>,
    /// The static network: what [`IgnitionFiles::for_one_host`] makes for the machine, or for an image of several what
    /// [`Networks`](crate::network::Networks::ignition) makes. The system that Ironic installs gets it too.
    pub static_network: Option<IgnitionFiles>,
}

impl StandaloneIronic {
    /// The spec version of such a config.
    pub const SPEC: Spec = Spec::V3_2;

    /// A config that has only what it must have.
    #[must_use]
    pub fn new(ironic: Ironic) -> Self {
        Self {
            ironic,
            pull_secret: None,
            ssh_keys: SshKeys::default(),
            proxies: Proxies::default(),
            time_sources: TimeSources::System,
            trust_bundle: None,
            mirrors: None,
            hostname: None,
            static_network: None,
        }
    }

    /// Builds the config. There are no warnings, since there is no override.
    ///
    /// # Errors
    ///
    /// When the agent's IP options do not fit into a unit, and when files of the static network have the path of
    /// another file.
    pub fn compose(&self) -> Result<Composed, ComposeError> {
        let mut parts = Parts::default();
        self.ironic.add(&mut parts, &self.machine())?;
        if let Some(network) = &self.static_network {
            network::add(network, &mut parts);
        }
        self.add_access(&mut parts);
        self.add_trust(&mut parts);
        parts.file("/etc/NetworkManager/conf.d/clientid.conf", FileMode::PUBLIC, DHCP_IDENTITY);
        self.time_sources.add(&mut parts);
        self.add_hostname(&mut parts);
        if let Some(mirrors) = &self.mirrors {
            mirrors.add_registries(&mut parts);
        }
        self.add_banners(&mut parts);
        add_pull_script(&mut parts);
        self.proxies.add_environment(&mut parts);
        Ok(Composed { config: assembled(parts, Self::SPEC)?, warnings: Report::default() })
    }

    fn machine(&self) -> IronicMachine<'_> {
        let has_static_network = self.has_static_network();
        IronicMachine {
            has_static_network,
            copies_network: has_static_network,
            hostname: self.hostname.as_ref(),
            environment: self.proxies.environment(),
            credentials: self.pull_secret.as_ref().map(|_| CREDENTIALS),
        }
    }

    fn has_static_network(&self) -> bool {
        self.static_network.as_ref().is_some_and(|network| !network.files.is_empty())
    }

    /// Credentials, and who may log in. The system has the user; nobody gets a password.
    fn add_access(&self, parts: &mut Parts) {
        if let Some(secret) = &self.pull_secret {
            parts.file(CREDENTIALS, FileMode::PRIVATE, secret.reveal());
        }
        let keys = self.ssh_keys.as_slice();
        if !keys.is_empty() {
            let user = [("name", "core".into()), ("sshAuthorizedKeys", Json::texts(keys))];
            parts.users.push(Json::object(user));
        }
    }

    fn add_trust(&self, parts: &mut Parts) {
        if let Some(bundle) = &self.trust_bundle {
            parts.anchor("ca.crt", bundle);
        }
        if let Some(mirrors) = &self.mirrors {
            mirrors.add_authority(parts);
        }
    }

    fn add_hostname(&self, parts: &mut Parts) {
        if let Some(name) = &self.hostname {
            let script = include_str!("../content/01-hostname").replace("@HOSTNAME@", &shell(name.as_str()));
            let path = "/etc/NetworkManager/dispatcher.d/01-hostname";
            parts.file(path, FileMode::OWNER_EXECUTABLE, script);
        }
    }

    /// What the console shows before a login, and what it shows after.
    fn add_banners(&self, parts: &mut Parts) {
        parts.file("/etc/issue.d/ipa.issue", FileMode::PUBLIC, include_str!("../content/ipa.issue"));
        let text = include_str!("../content/ipa.motd").replace("@FACTS@\n", &self.facts());
        parts.file("/etc/motd.d/ipa.motd", FileMode::PUBLIC, text);
    }

    /// What somebody who looks for a fault wants to know. Passwords in URLs are left out.
    fn facts(&self) -> String {
        let list = |urls: &[HttpUrl]| {
            let shown: Vec<String> = urls.iter().map(|url| masked_url(url.as_str())).collect();
            (!shown.is_empty()).then(|| shown.join(","))
        };
        let network = if self.has_static_network() { "static" } else { "automatic" };
        [
            ("Ironic:", list(&self.ironic.urls)),
            ("Inspector:", list(&self.ironic.inspector_urls)),
            ("Agent:", Some(self.ironic.agent_image.to_string())),
            ("Name:", self.hostname.as_ref().map(HostName::to_string)),
            ("Network:", Some(network.to_owned())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some(format!("    {name:<11}{}\n", value?)))
        .collect::<String>()
            + "\n"
    }
}

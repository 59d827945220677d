//! Configs for Ironic's agent without a discovery service. Metal3 inspects and installs the hosts.
//!
//! Such a config is usually for one host and contains the host's name and network. `docs/discovery.md` describes the
//! config file by file and compares it with the configs of Metal3's own image customization controller.

use super::{Ironic, IronicAgentContext};
use crate::builder::{ConfigBuilder, FileMode};
use crate::discovery::agent::add_pull_script;
use crate::discovery::escape::shell_word;
#[cfg(feature = "network")]
use crate::discovery::network;
use crate::discovery::overrides::validated;
use crate::discovery::{
    CertificateBundle, ComposeError, ComposedConfig, DHCP_IDENTITY, HostName, HttpUrl, Mirrors, Proxies,
    PullSecret, SshKeys, TimeSources, masked_url,
};
use crate::json::Json;
#[cfg(feature = "network")]
use crate::network::IgnitionFiles;
use crate::report::ConfigReport;
use crate::spec::Spec;

/// The file with registry credentials. Podman uses it to run the agent.
const CREDENTIALS_PATH: &str = "/etc/authfile.json";

/// The inputs for the config of a host that Ironic manages without a discovery service.
///
/// # Examples
///
/// ```
/// use ignition::discovery::{HostName, ImageReference};
/// use ignition::ironic::{Ironic, StandaloneIronic};
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
#[non_exhaustive]
pub struct StandaloneIronic {
    /// The URLs of Ironic and the settings of its agent.
    pub ironic: Ironic,
    /// The registry credentials, if the agent's image needs them.
    pub pull_secret: Option<PullSecret>,
    /// The SSH keys with which users log in as `core`.
    pub ssh_keys: SshKeys,
    /// The proxies that the agent uses.
    pub proxies: Proxies,
    /// The time servers of the host.
    pub time_sources: TimeSources,
    /// Certificates to trust in addition to the system's certificates.
    pub trust_bundle: Option<CertificateBundle>,
    /// The mirrors of container registries.
    pub mirrors: Option<Mirrors>,
    /// The host name to use if neither DHCP nor DNS provides one.
    pub hostname: Option<HostName>,
    /// The static network: from [`IgnitionFiles::for_one_host`] for one machine, or from
    /// [`HostNetworkFiles`](crate::network::HostNetworkFiles::ignition_files) for an image of several machines. The
    /// system that Ironic installs gets a copy of it.
    ///
    /// # Examples
    ///
    /// A host with its own name and network:
    ///
    /// ```
    /// use ignition::discovery::{HostName, ImageReference};
    /// use ignition::ironic::{Ironic, StandaloneIronic};
    /// use ignition::network::{HostNetwork, IgnitionFiles};
    ///
    /// let agent_image = ImageReference::parse("ironic_agent_image", "quay.io/example/ipa")?;
    /// let mut standalone = StandaloneIronic::new(Ironic::parse("https://192.0.2.5", "", agent_image)?);
    /// standalone.hostname = Some(HostName::parse("hostname", "node-0")?);
    /// let network = HostNetwork::without_macs("interfaces: [{name: eno1, type: ethernet, state: up}]");
    /// standalone.static_network = Some(IgnitionFiles::for_one_host(&network)?);
    ///
    /// let config = standalone.compose()?.config.to_string();
    /// assert!(config.contains("/etc/NetworkManager/system-connections/eno1.nmconnection"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "network")]
    pub static_network: Option<IgnitionFiles>,
}

impl StandaloneIronic {
    /// The spec version of the config.
    pub(crate) const SPEC: Spec = Spec::V3_2;

    /// Creates the inputs with only the mandatory settings.
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
            #[cfg(feature = "network")]
            static_network: None,
        }
    }

    /// Composes the config. The result has no warnings, because these inputs contain no override.
    ///
    /// # Errors
    ///
    /// * [`ComposeError::Input`] if the agent's IP options contain a control character.
    /// * [`ComposeError::NetworkFileMode`] if a file of the static network has special permission bits.
    /// * [`ComposeError::Invalid`] if a file of the static network has the path of another file.
    pub fn compose(&self) -> Result<ComposedConfig, ComposeError> {
        let mut builder = ConfigBuilder::new();
        self.ironic.add_agent(&mut builder, &self.agent_context())?;
        #[cfg(feature = "network")]
        if let Some(network) = &self.static_network {
            network::add_static_network(network, &mut builder)?;
        }
        self.add_credentials(&mut builder);
        self.add_trusted_certificates(&mut builder);
        builder.replace_file("/etc/NetworkManager/conf.d/clientid.conf", FileMode::PUBLIC, DHCP_IDENTITY);
        self.time_sources.add_to(&mut builder);
        self.add_hostname(&mut builder);
        if let Some(mirrors) = &self.mirrors {
            mirrors.add_registries(&mut builder);
        }
        self.add_banners(&mut builder);
        add_pull_script(&mut builder);
        self.proxies.add_environment_file(&mut builder);
        let config = validated(builder.into_config(Self::SPEC)?)?;
        Ok(ComposedConfig { config, warnings: ConfigReport::default() })
    }

    fn agent_context(&self) -> IronicAgentContext<'_> {
        let has_static_network = self.has_static_network();
        IronicAgentContext {
            has_static_network,
            copies_network: has_static_network,
            hostname: self.hostname.as_ref(),
            environment: self.proxies.environment_file(),
            credentials: self.pull_secret.as_ref().map(|_| CREDENTIALS_PATH),
        }
    }

    fn has_static_network(&self) -> bool {
        #[cfg(feature = "network")]
        {
            self.static_network.as_ref().is_some_and(|network| !network.files.is_empty())
        }
        #[cfg(not(feature = "network"))]
        {
            false
        }
    }

    /// Adds registry credentials and SSH keys. The system already has the user `core`, who gets no password.
    fn add_credentials(&self, builder: &mut ConfigBuilder) {
        if let Some(secret) = &self.pull_secret {
            builder.replace_file(CREDENTIALS_PATH, FileMode::PRIVATE, secret.reveal());
        }
        let keys = self.ssh_keys.as_slice();
        if !keys.is_empty() {
            let user = [("name", "core".into()), ("sshAuthorizedKeys", Json::texts(keys))];
            builder.add_user(Json::object(user));
        }
    }

    fn add_trusted_certificates(&self, builder: &mut ConfigBuilder) {
        if let Some(bundle) = &self.trust_bundle {
            builder.add_trust_anchor("ca.crt", bundle.as_pem());
        }
        if let Some(mirrors) = &self.mirrors {
            mirrors.add_authority(builder);
        }
    }

    fn add_hostname(&self, builder: &mut ConfigBuilder) {
        if let Some(name) = &self.hostname {
            let script =
                include_str!("content/01-hostname").replace("@HOSTNAME@", &shell_word(name.as_str()));
            let path = "/etc/NetworkManager/dispatcher.d/01-hostname";
            builder.replace_file(path, FileMode::OWNER_EXECUTABLE, script);
        }
    }

    /// Adds the texts that the console prints before and after a login.
    fn add_banners(&self, builder: &mut ConfigBuilder) {
        builder.replace_file("/etc/issue.d/ipa.issue", FileMode::PUBLIC, include_str!("content/ipa.issue"));
        let text = include_str!("content/ipa.motd").replace("@FACTS@\n", &self.diagnostic_lines());
        builder.replace_file("/etc/motd.d/ipa.motd", FileMode::PUBLIC, text);
    }

    /// Returns lines with settings that help to diagnose problems. Passwords in URLs are masked.
    fn diagnostic_lines(&self) -> String {
        let list = |urls: &[HttpUrl]| {
            let texts: Vec<String> = urls.iter().map(|url| masked_url(url.as_str())).collect();
            (!texts.is_empty()).then(|| texts.join(","))
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

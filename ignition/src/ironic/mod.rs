//! Configs of hosts that Metal3 manages. Their live system runs Ironic's agent.
//!
//! If a [`Discovery`](crate::discovery::Discovery) contains [`Ironic`], the config also contains the agent of the
//! service, which does not start at boot. Ironic starts it with its deploy step `start_assisted_install`. Without a
//! service, [`StandaloneIronic`] builds a config with only Ironic's agent.
//!
//! # Examples
//!
//! A Metal3 host that also registers with the inventory:
//!
//! ```
//! use ignition::discovery::{Discovery, HttpUrl, ImageReference, InfraEnvId, InfraEnvSettings, InventoryService};
//! use ignition::discovery::PullSecret;
//! use ignition::ironic::{Ironic, VlanInterfaces};
//!
//! let image = |text| ImageReference::parse("image", text);
//! let base_url = HttpUrl::parse("base_url", "https://assisted.example.com")?;
//! let service = InventoryService::new(base_url, image("quay.io/example/agent")?);
//! let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666")?;
//! let infra_env = InfraEnvSettings::new(id, PullSecret::parse(r#"{"auths": {"quay.io": {}}}"#)?);
//!
//! let mut ironic = Ironic::parse("https://192.0.2.5", "https://192.0.2.5", image("quay.io/example/ipa")?)?;
//! ironic.vlan_interfaces = VlanInterfaces::Never;
//!
//! let mut discovery = Discovery::new(service, infra_env);
//! discovery.ironic = Some(ironic);
//! let config = discovery.compose()?.config.to_string();
//! assert!(config.contains(r#""name":"ironic-agent.service""#));
//! assert!(config.contains("api_url%20=%20https://192.0.2.5:6385"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Planned caller: the operator, which generates these configs for the `BareMetalHost` and `PreprovisioningImage`
//! resources of Metal3.

mod standalone;

pub use standalone::StandaloneIronic;

use crate::builder::{ConfigBuilder, FileMode, UnitState};
use crate::discovery::escape::{unit_argument, unit_environment};
use crate::discovery::{CertificateCheck, HostName, HttpUrl, ImageReference, InputError, masked_url};

const CONFIG_PATH: &str = "/etc/ironic-python-agent.conf";
const UNIT_NAME: &str = "ironic-agent.service";

/// The default ports of Ironic and of its inspector.
const IRONIC_PORT: u16 = 6385;
const INSPECTOR_PORT: u16 = 5050;

/// The VLANs that Ironic's agent inspects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VlanInterfaces {
    /// All VLANs, unless the host has a static network.
    #[default]
    Automatic,
    /// All VLANs.
    Always,
    /// No VLANs.
    Never,
}

/// The URLs of Ironic and the settings of its agent.
#[derive(Clone, Debug)]
pub struct Ironic {
    urls: Vec<HttpUrl>,
    inspector_urls: Vec<HttpUrl>,
    /// The container image of Ironic's agent.
    pub agent_image: ImageReference,
    /// The VLANs that the agent inspects.
    pub vlan_interfaces: VlanInterfaces,
    /// Kernel arguments (`ip=` options) for the agent's network.
    pub ip_options: String,
    /// The agent's check of certificates. It is off by default, because Metal3 uses self-signed certificates.
    pub certificate_check: CertificateCheck,
}

impl Ironic {
    /// Parses lists of URLs, separated by commas.
    ///
    /// A URL without a port gets the default port of Ironic or of its inspector. The path of the inspector's callback
    /// is appended to an inspector URL, unless the URL already ends with it.
    ///
    /// # Errors
    ///
    /// Returns an error if the list of Ironic URLs is empty, or if a URL is not valid or has a query or a fragment.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::ImageReference;
    /// use ignition::ironic::Ironic;
    ///
    /// let agent_image = ImageReference::parse("ironic_agent_image", "quay.io/example/ipa")?;
    /// assert!(Ironic::parse("https://192.0.2.5,https://192.0.2.6:6385", "", agent_image.clone()).is_ok());
    /// assert!(Ironic::parse("", "https://192.0.2.5", agent_image).is_err());
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn parse(urls: &str, inspector_urls: &str, agent_image: ImageReference) -> Result<Self, InputError> {
        let parsed = parse_urls("ironic_base_url", urls, IRONIC_PORT, "")?;
        if parsed.is_empty() {
            return Err(InputError::new("ironic_base_url", urls, "contains no URL"));
        }
        let inspector_urls =
            parse_urls("ironic_inspector_url", inspector_urls, INSPECTOR_PORT, "/v1/continue")?;
        Ok(Self {
            urls: parsed,
            inspector_urls,
            agent_image,
            vlan_interfaces: VlanInterfaces::Automatic,
            ip_options: String::new(),
            certificate_check: CertificateCheck::Skip,
        })
    }

    pub(crate) fn add_agent(
        &self,
        builder: &mut ConfigBuilder,
        machine: &IronicAgentContext,
    ) -> Result<(), InputError> {
        builder.replace_file(CONFIG_PATH, FileMode::PUBLIC, self.agent_config(machine.has_static_network));
        builder.replace_unit(UNIT_NAME, UnitState::Enabled, &self.agent_unit(machine)?);
        Ok(())
    }

    fn agent_config(&self, has_static_network: bool) -> String {
        let list = |urls: &[HttpUrl]| urls.iter().map(HttpUrl::as_str).collect::<Vec<_>>().join(",");
        let vlans = match (self.vlan_interfaces, has_static_network) {
            (VlanInterfaces::Always, _) | (VlanInterfaces::Automatic, false) => "all",
            (VlanInterfaces::Never, _) | (VlanInterfaces::Automatic, true) => "",
        };
        let insecure = match self.certificate_check {
            CertificateCheck::Verify => "False",
            CertificateCheck::Skip => "True",
        };
        let inspector = match list(&self.inspector_urls) {
            urls if urls.is_empty() => String::new(),
            urls => format!("inspection_callback_url = {}\n", escape_dollars(&urls)),
        };
        format!(
            "[DEFAULT]\napi_url = {}\n{inspector}insecure = {insecure}\nenable_vlan_interfaces = {vlans}\n",
            escape_dollars(&list(&self.urls)),
        )
    }

    fn agent_unit(&self, machine: &IronicAgentContext) -> Result<String, InputError> {
        if let Some(bad) = self.ip_options.chars().find(|it| it.is_control()) {
            let reason = format!("has the character {bad:?}");
            return Err(InputError::new("ip_options", &self.ip_options, reason));
        }
        let file = machine.environment.map(|file| format!("EnvironmentFile={file}\n"));
        let credentials = machine.credentials.map(|file| unit_environment("REGISTRY_AUTH_FILE", file));
        let hostname = machine.hostname.map(|name| format!("    --env IPA_DEFAULT_HOSTNAME={name} \\\n"));
        Ok(format!(
            "\
[Unit]
Description=Agent of Ironic
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
TimeoutStartSec=0
Restart=on-failure
RestartSec=5
{variables}ExecStartPre=/usr/local/bin/agent-pull-image {image}
ExecStart=/usr/bin/podman run --rm --replace --privileged --name ironic-agent \\
    --network host --ipc host --uts host \\
    --volume {CONFIG_PATH}:/etc/ironic-python-agent/ignition.conf \\
    --volume /dev:/dev \\
    --volume /sys:/sys \\
    --volume /run/dbus/system_bus_socket:/run/dbus/system_bus_socket \\
    --volume /run/udev:/run/udev \\
    --volume /:/mnt/coreos \\
    --env {ip_options} \\
    --env IPA_COREOS_COPY_NETWORK={copies_network} \\
{hostname}    {image}

[Install]
WantedBy=multi-user.target
",
            variables = file.into_iter().chain(credentials).collect::<String>(),
            image = unit_argument(self.agent_image.as_str()),
            copies_network = machine.copies_network,
            hostname = hostname.unwrap_or_default(),
            ip_options = unit_argument(&format!("IPA_COREOS_IP_OPTIONS={}", self.ip_options)),
        ))
    }
}

/// The parts of the config that the unit of Ironic's agent depends on.
#[derive(Default)]
pub(crate) struct IronicAgentContext<'a> {
    pub(crate) has_static_network: bool,
    /// Whether the installed system gets a copy of the live system's network configuration.
    pub(crate) copies_network: bool,
    /// The host name to use if neither DHCP nor DNS provides one.
    pub(crate) hostname: Option<&'a HostName>,
    /// The path of a file with environment variables, if any.
    pub(crate) environment: Option<&'a str>,
    /// The path of a file with registry credentials, if podman does not find them by default.
    pub(crate) credentials: Option<&'a str>,
}

/// Escapes dollar signs, which start a reference in OpenStack's config files.
fn escape_dollars(value: &str) -> String {
    value.replace('$', "$$")
}

fn parse_urls(field: &'static str, list: &str, port: u16, path: &str) -> Result<Vec<HttpUrl>, InputError> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(|entry| parse_url(field, entry, port, path)).collect()
}

fn parse_url(field: &'static str, entry: &str, port: u16, path: &str) -> Result<HttpUrl, InputError> {
    let url = HttpUrl::parse(field, entry)?;
    if url.as_str().contains(['?', '#']) {
        return Err(InputError::new(field, &masked_url(url.as_str()), "has a query or a fragment"));
    }
    let text = url.as_str().trim_end_matches('/');
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(InputError::new(field, &masked_url(text), "is not a URL with a scheme and a host"));
    };
    let (host, old_path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains([']', '@']));
    let port = if has_port { String::new() } else { format!(":{port}") };
    let path = if old_path.ends_with(path) { "" } else { path };
    HttpUrl::parse(field, &format!("{scheme}://{host}{port}{old_path}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ironic(urls: &str, inspector_urls: &str) -> Result<Ironic, InputError> {
        Ironic::parse(urls, inspector_urls, ImageReference::parse("image", "quay.io/ipa").unwrap())
    }

    #[test]
    fn urls_get_default_ports_and_paths() {
        let ironic =
            ironic("https://a, ,http://[::1]:1/x/", "http://[fd00::1],https://b:2/v1/continue").unwrap();
        let config = "\
[DEFAULT]
api_url = https://a:6385,http://[::1]:1/x
inspection_callback_url = http://[fd00::1]:5050/v1/continue,https://b:2/v1/continue
insecure = True
enable_vlan_interfaces = all
";
        assert_eq!(ironic.agent_config(false), config);
        assert_eq!(ironic.agent_config(true), config.replace("= all", "= "));
    }

    #[test]
    fn rejects_invalid_values() {
        for (urls, inspector_urls, field) in [
            ("", "", "ironic_base_url"),
            ("a", "", "ironic_base_url"),
            (",", "", "ironic_base_url"),
            ("http://a,b", "", "ironic_base_url"),
            ("http://a?b=hunter2", "", "ironic_base_url"),
            ("http://a/#b", "", "ironic_base_url"),
            ("http://a", "b", "ironic_inspector_url"),
        ] {
            let error = ironic(urls, inspector_urls).unwrap_err().to_string();
            assert!(error.starts_with(field) && !error.contains("hunter2"), "{error}");
        }
        let mut ironic = ironic("http://a", "").unwrap();
        let machine = IronicAgentContext::default();
        ironic.ip_options = "ip=dhcp %i \"$x\"".to_owned();
        let unit = ironic.agent_unit(&machine).unwrap();
        assert!(unit.contains(r#"--env "IPA_COREOS_IP_OPTIONS=ip=dhcp %%i \"$$x\"" \"#), "{unit}");
        ironic.ip_options = "a\nExecStart=/evil".to_owned();
        assert!(ironic.agent_unit(&machine).unwrap_err().to_string().starts_with("ip_options \"a\\nExec"));
    }
}

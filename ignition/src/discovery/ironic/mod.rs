//! Ironic's agent beside ours: machines that Metal3 manages boot the discovery image under Ironic's control.
//!
//! The agent of the service is there as well but does not start by itself. Ironic starts it with its deploy step
//! `start_assisted_install`.
//!
//! Where there is no service, it is alone: that config is [`StandaloneIronic`]'s.

mod standalone;

pub use standalone::StandaloneIronic;

use super::agent::CertificateCheck;
use super::escape::{argument, environment};
use super::input::{HostName, ImageReference, InputError};
use super::parts::Parts;
use super::url::{HttpUrl, masked_url};
use crate::builder::{FileMode, UnitState};

const CONFIG: &str = "/etc/ironic-python-agent.conf";
const UNIT: &str = "ironic-agent.service";

/// The default ports of Ironic and its inspector.
const PORT: u16 = 6385;
const INSPECTOR_PORT: u16 = 5050;

/// Which VLANs the agent looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VlanInterfaces {
    /// All, unless the network is configured statically.
    #[default]
    Automatic,
    /// All.
    Always,
    /// None.
    Never,
}

/// Ironic, as machines see it.
#[derive(Clone, Debug)]
pub struct Ironic {
    urls: Vec<HttpUrl>,
    inspector_urls: Vec<HttpUrl>,
    /// The image of its agent.
    pub agent_image: ImageReference,
    /// Which VLANs the agent looks at.
    pub vlan_interfaces: VlanInterfaces,
    /// How the agent's network is configured on the kernel's command line: `ip=` options.
    pub ip_options: String,
    /// Whether the agent checks certificates. Metal3 signs its own, so it does not.
    pub certificate_check: CertificateCheck,
}

impl Ironic {
    /// Reads lists of URLs, separated by commas.
    ///
    /// A URL without a port gets Ironic's, and one of the inspector without a path gets that of its callback.
    ///
    /// # Errors
    ///
    /// When there is no URL of Ironic, when one is none, and when one has a query or a fragment.
    pub fn parse(urls: &str, inspector_urls: &str, agent_image: ImageReference) -> Result<Self, InputError> {
        let parsed = parse_urls("ironic_base_url", urls, PORT, "")?;
        if parsed.is_empty() {
            return Err(InputError::new("ironic_base_url", urls, "names no URL"));
        }
        Ok(Self {
            urls: parsed,
            inspector_urls: parse_urls(
                "ironic_inspector_url",
                inspector_urls,
                INSPECTOR_PORT,
                "/v1/continue",
            )?,
            agent_image,
            vlan_interfaces: VlanInterfaces::Automatic,
            ip_options: String::new(),
            certificate_check: CertificateCheck::Skip,
        })
    }

    pub(super) fn add(&self, parts: &mut Parts, machine: &IronicMachine) -> Result<(), InputError> {
        parts.file(CONFIG, FileMode::PUBLIC, self.config(machine.has_static_network));
        parts.unit(UNIT, UnitState::Enabled, &self.unit(machine)?);
        Ok(())
    }

    fn config(&self, has_static_network: bool) -> String {
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
            urls => format!("inspection_callback_url = {}\n", dollars_doubled(&urls)),
        };
        format!(
            "[DEFAULT]\napi_url = {}\n{inspector}insecure = {insecure}\nenable_vlan_interfaces = {vlans}\n",
            dollars_doubled(&list(&self.urls)),
        )
    }

    fn unit(&self, machine: &IronicMachine) -> Result<String, InputError> {
        if let Some(bad) = self.ip_options.chars().find(|it| it.is_control()) {
            let reason = format!("has the character {bad:?}");
            return Err(InputError::new("ip_options", &self.ip_options, reason));
        }
        let file = machine.environment.map(|file| format!("EnvironmentFile={file}\n"));
        let credentials = machine.credentials.map(|file| environment("REGISTRY_AUTH_FILE", file));
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
    --volume {CONFIG}:/etc/ironic-python-agent/ignition.conf \\
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
            image = argument(self.agent_image.as_str()),
            copies_network = machine.copies_network,
            hostname = hostname.unwrap_or_default(),
            ip_options = argument(&format!("IPA_COREOS_IP_OPTIONS={}", self.ip_options)),
        ))
    }
}

/// What Ironic's agent has to know of the rest of the config.
#[derive(Default)]
pub(super) struct IronicMachine<'a> {
    pub(super) has_static_network: bool,
    /// Whether the system that the agent installs gets the live system's network configuration.
    pub(super) copies_network: bool,
    /// The name of a machine that nobody else names.
    pub(super) hostname: Option<&'a HostName>,
    /// A file with variables.
    pub(super) environment: Option<&'a str>,
    /// A file with credentials of registries, where podman would not look by itself.
    pub(super) credentials: Option<&'a str>,
}

/// The config reader of OpenStack takes a dollar sign for the start of a reference.
fn dollars_doubled(value: &str) -> String {
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
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let (host, old_path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or_default();
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
    fn urls_get_their_ports_and_paths() {
        let ironic =
            ironic("https://a, ,http://[::1]:1/x/", "http://[fd00::1],https://b:2/v1/continue").unwrap();
        let config = "\
[DEFAULT]
api_url = https://a:6385,http://[::1]:1/x
inspection_callback_url = http://[fd00::1]:5050/v1/continue,https://b:2/v1/continue
insecure = True
enable_vlan_interfaces = all
";
        assert_eq!(ironic.config(false), config);
        assert_eq!(ironic.config(true), config.replace("= all", "= "));
    }

    #[test]
    fn bad_values_are_named() {
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
        let machine = IronicMachine::default();
        ironic.ip_options = "ip=dhcp %i \"$x\"".to_owned();
        let unit = ironic.unit(&machine).unwrap();
        assert!(unit.contains(r#"--env "IPA_COREOS_IP_OPTIONS=ip=dhcp %%i \"$$x\"" \"#), "{unit}");
        ironic.ip_options = "a\nExecStart=/evil".to_owned();
        assert!(ironic.unit(&machine).unwrap_err().to_string().starts_with("ip_options \"a\\nExec"));
    }
}

//! The config of Ironic without a service: all combinations of inputs, its golden file, its documentation, and hostile
//! values.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod resources;
mod setups;

use std::collections::BTreeSet;

use ignition::config::Config;
use ignition::discovery::{CertificateCheck, ComposeError, HostName, HttpUrl, ImageReference, TimeSources};
use ignition::ironic::{Ironic, StandaloneIronic, VlanInterfaces};
use ignition::network::{EntryKind, HostNetwork, IgnitionFiles, NetworkEntry};
use ignition::spec::Spec;
use ignition::validate::validate;
use proptest::prelude::*;
use resources::contents;
use serde_json::{Value, json};
use setups::{
    assert_golden, entries, full_standalone, hostile, list, mode, page, standalone, standalone_matrix, unit,
};

const CONF: &str = "/etc/ironic-python-agent.conf";
const UNIT: &str = "ironic-agent.service";
const CONNECTIONS: &str = "/etc/NetworkManager/system-connections/";

fn compose(standalone: &StandaloneIronic) -> Config {
    standalone.compose().unwrap().config
}

fn text(config: &Config, path: &str) -> String {
    String::from_utf8(contents(config, path).unwrap()).unwrap()
}

fn root(config: &Config) -> Value {
    config.to_value()
}

#[test]
fn every_combination_is_valid_in_its_spec_version() {
    let mut configs = BTreeSet::new();
    let all = standalone_matrix();
    for (name, standalone) in &all {
        let composed = standalone.compose().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(composed.warnings.is_empty(), "{name}");
        let report = validate(&composed.config);
        assert!(report.is_empty(), "{name}: {}", report.to_text("config"));
        assert_eq!(composed.config.spec(), Spec::V3_2, "{name}");
        let text = composed.config.to_string();
        let again = Config::parse(text.as_bytes()).unwrap();
        assert!(again.warnings.is_empty(), "{name}: {}", again.warnings.to_text("config"));
        assert_eq!(compose(standalone).to_string(), text, "{name}: the same bytes every time");
        configs.insert(text);
    }
    assert_eq!(configs.len(), all.len(), "every input makes a difference");
}

#[test]
fn config_matches_the_golden() {
    assert_golden("ironic.json", &compose(&full_standalone()));
}

/// Returns the documentation's row for a file, without the user-defined part of the path.
fn row(file: &Value) -> String {
    let path = file["path"].as_str().unwrap();
    let path = match path.strip_prefix(CONNECTIONS) {
        Some(_) => format!("{CONNECTIONS}<name>.nmconnection"),
        None => path.to_owned(),
    };
    format!("| `{path}` | {} |", mode(file))
}

/// The documentation page lists exactly the files and units of the configs.
#[test]
fn documentation_lists_exactly_the_files_and_units() {
    let page = page().standalone;
    let rows: BTreeSet<&str> = page.lines().filter(|line| line.starts_with("| `/")).collect();
    let unit_rows: BTreeSet<&str> =
        page.lines().filter(|line| line.starts_with("| `") && line.contains(".service` |")).collect();
    let (mut seen, mut units) = (BTreeSet::new(), BTreeSet::new());
    for (name, standalone) in standalone_matrix() {
        let config = compose(&standalone);
        for file in config.to_value()["storage"]["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap();
            if path.starts_with("/etc/assisted/network/")
                || path == "/usr/local/bin/pre-network-manager-config.sh"
            {
                continue;
            }
            let start = row(file);
            let row = rows.iter().find(|row| row.starts_with(&start));
            seen.insert(*row.unwrap_or_else(|| panic!("{name}: {start}")));
        }
        for unit in list(&config, "/systemd/units", "name") {
            let row = unit_rows.iter().find(|row| row.starts_with(&format!("| `{unit}` |")));
            units.insert(*row.unwrap_or_else(|| panic!("{name}: {unit}")));
        }
    }
    assert_eq!(seen, rows);
    assert_eq!(units, unit_rows);
}

#[test]
fn smallest_config_has_only_the_agent() {
    let config = compose(&standalone());
    assert_eq!(list(&config, "/systemd/units", "name"), [UNIT]);
    assert_eq!(
        list(&config, "/storage/files", "path"),
        [
            CONF,
            "/etc/NetworkManager/conf.d/clientid.conf",
            "/etc/issue.d/ipa.issue",
            "/etc/motd.d/ipa.motd",
            "/usr/local/bin/agent-pull-image",
        ]
    );
    let root = root(&config);
    assert_eq!(root["ignition"], json!({"version": "3.2.0"}));
    assert!(root.get("passwd").is_none());
    assert_eq!(root["systemd"]["units"][0]["enabled"], true);
    let unit = unit(&config, UNIT);
    assert!(
        unit.contains("    --env IPA_COREOS_COPY_NETWORK=false \\\n    quay.io/example/ipa:v1\n"),
        "{unit}"
    );
    assert!(!unit.contains("Environment") && !unit.contains("IPA_DEFAULT_HOSTNAME"), "{unit}");
    assert!(text(&config, CONF).ends_with("\ninsecure = True\nenable_vlan_interfaces = all\n"));
    assert_eq!(
        text(&config, "/etc/NetworkManager/conf.d/clientid.conf"),
        "[connection]\nipv6.dhcp-iaid=mac\nipv6.dhcp-duid=ll\n"
    );
}

#[test]
fn full_config_passes_every_setting_to_the_agent() {
    let config = compose(&full_standalone());
    let unit = unit(&config, UNIT);
    for line in [
        "EnvironmentFile=/etc/assisted/proxy.env",
        "Environment=\"REGISTRY_AUTH_FILE=/etc/authfile.json\"",
        "TimeoutStartSec=0",
        "Restart=on-failure",
        "RestartSec=5",
        "StartLimitIntervalSec=0",
        "    --env IPA_COREOS_IP_OPTIONS=ip=dhcp,dhcp6 \\",
        "    --env IPA_COREOS_COPY_NETWORK=true \\",
        "    --env IPA_DEFAULT_HOSTNAME=node-0.lab.example.com \\",
        "    --volume /etc/ironic-python-agent.conf:/etc/ironic-python-agent/ignition.conf \\",
        "    --volume /:/mnt/coreos \\",
    ] {
        assert!(unit.lines().any(|it| it == line), "{line}: {unit}");
    }
    let conf = "\
[DEFAULT]
api_url = https://192.0.2.5:6385,https://user:hunter6@[2001:db8::5]:443/prefix
inspection_callback_url = https://192.0.2.5:5050/v1/continue
insecure = True
enable_vlan_interfaces = 
";
    assert_eq!(text(&config, CONF), conf);
    assert_eq!(text(&config, "/etc/authfile.json"), r#"{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIx"}}}"#);
    let user = json!({"name": "core", "sshAuthorizedKeys": [format!("{} me@example.com", setups::KEY)]});
    assert_eq!(root(&config)["passwd"]["users"], json!([user]));
    let motd = text(&config, "/etc/motd.d/ipa.motd");
    let facts = "
    Ironic:    https://192.0.2.5:6385,https://*****@[2001:db8::5]:443/prefix
    Inspector: https://192.0.2.5:5050/v1/continue
    Agent:     quay.io/example/ipa@sha256:00
    Name:      node-0.lab.example.com
    Network:   static

";
    assert!(motd.contains(facts) && !motd.contains("FACTS"), "{motd}");
}

#[test]
fn file_modes_and_owners_are_expected() {
    for (name, standalone) in standalone_matrix() {
        for file in compose(&standalone).to_value()["storage"]["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap();
            if file.get("append").is_some() {
                assert!(path == "/etc/chrony.conf" && file.get("mode").is_none(), "{name}: {file}");
                continue;
            }
            let is_secret = ["/etc/authfile.json", "/etc/assisted/proxy.env"].contains(&path);
            let is_network = path.starts_with(CONNECTIONS) || path.starts_with("/etc/assisted/network/");
            let expected = match path {
                _ if path.starts_with("/usr/local/bin/") => 0o755,
                _ if path.contains("/dispatcher.d/") => 0o744,
                _ if is_secret || is_network => 0o600,
                _ => 0o644,
            };
            assert_eq!(file["mode"], expected, "{name}: {path}");
            assert_eq!((&file["user"]["name"], &file["overwrite"]), (&json!("root"), &json!(true)), "{path}");
        }
    }
}

#[test]
fn vlan_scan_is_off_for_static_networks() {
    let vlans = |setting, is_static: bool| {
        let mut standalone = standalone();
        standalone.ironic.vlan_interfaces = setting;
        standalone.ironic.certificate_check = CertificateCheck::Verify;
        standalone.static_network = is_static.then(|| full_standalone().static_network.unwrap());
        let conf = text(&compose(&standalone), CONF);
        assert!(conf.contains("\ninsecure = False\n"), "{conf}");
        conf.rsplit_once("enable_vlan_interfaces = ").unwrap().1.trim().to_owned()
    };
    for (setting, automatic, with_static) in [
        (VlanInterfaces::Automatic, "all", ""),
        (VlanInterfaces::Always, "all", "all"),
        (VlanInterfaces::Never, "", ""),
    ] {
        assert_eq!((vlans(setting, false).as_str(), vlans(setting, true).as_str()), (automatic, with_static));
    }
}

#[test]
fn network_without_files_is_ignored() {
    let mut without_files = standalone();
    without_files.static_network = Some(IgnitionFiles { files: Vec::new(), unit: None });
    assert_eq!(compose(&without_files), compose(&standalone()));
}

#[test]
fn generated_keyfiles_are_unchanged() {
    let host = HostNetwork::without_macs(
        "interfaces:\n- {name: eno2, type: ethernet, state: down}\n- {name: eno1, type: ethernet, state: up}\n",
    );
    let mut standalone = standalone();
    standalone.static_network = Some(IgnitionFiles::for_one_host(&host).unwrap());
    let config = compose(&standalone);
    let keyfiles = ignition::network::keyfiles(host.document().as_bytes()).unwrap();
    assert_eq!(keyfiles.len(), 2);
    for keyfile in keyfiles {
        assert_eq!(text(&config, &format!("{CONNECTIONS}{}", keyfile.name)), keyfile.contents);
    }
}

#[test]
fn rejects_network_without_keyfiles_and_names_its_host() {
    let twice = "interfaces:\n- {name: a, profile-name: x, type: ethernet, state: up}\n\
                 - {name: b, profile-name: x, type: ethernet, state: up}\n";
    for (document, expected) in [
        ("{}", "the network of node-0 has no interfaces"),
        ("", "the network of node-0 has no interfaces"),
        ("colour: blue", "network of node-0"),
        (twice, "the network of node-0 produces two keyfiles with the name \"x.nmconnection\""),
    ] {
        let host = HostNetwork::without_macs(document).with_name("node-0");
        assert_eq!(IgnitionFiles::for_one_host(&host).unwrap_err().to_string(), expected, "{document}");
    }
}

#[test]
fn rejects_contradictory_settings() {
    let refused = |change: fn(&mut StandaloneIronic)| {
        let mut standalone = full_standalone();
        change(&mut standalone);
        standalone.compose().unwrap_err()
    };
    let error = refused(|it| it.ironic.ip_options = "ip=dhcp\nExecStart=/evil".to_owned());
    assert!(matches!(&error, ComposeError::Input(error) if error.field == "ip_options"), "{error}");
    // Ignition rejects lines longer than 2047 bytes.
    let error = refused(|it| it.ironic.ip_options = "x".repeat(2048));
    let ComposeError::Invalid { findings } = &error else { panic!("{error}") };
    assert_eq!(findings[0].pointer, "/systemd/units/0/contents", "{error}");
    let error = refused(|it| {
        let kind = EntryKind::File { mode: 0o600, contents: b"x".to_vec().into() };
        let entry = NetworkEntry { path: CONF.to_owned(), kind };
        it.static_network = Some(IgnitionFiles { files: vec![entry], unit: None });
    });
    let ComposeError::Invalid { findings } = &error else { panic!("{error}") };
    assert!(findings[0].pointer.starts_with("/storage/files/1"), "{error}");
}

#[test]
fn secrets_do_not_show_in_debug() {
    let standalone = full_standalone();
    let config = compose(&standalone).to_string();
    let output = format!("{standalone:?} {:?}", standalone.compose());
    for secret in ["dXNlcjpodW50ZXIx", "hunter4", "hunter5", "hunter6"] {
        assert!(!output.contains(secret), "{secret}: {output}");
        assert!(config.contains(secret), "{secret} is in the config");
    }
}

/// Returns the arguments of the unit's `podman run`, as systemd splits and expands them.
fn arguments(unit: &str) -> Vec<String> {
    let start = unit.find("ExecStart=").unwrap();
    let command = &unit[start..start + unit[start..].find("\n\n").unwrap()];
    let lines = command.lines().map(|line| line.strip_suffix(" \\").unwrap_or(line).trim_start());
    lines.flat_map(words).collect()
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars();
    while let Some(it) = chars.next() {
        match it {
            '"' => is_quoted = !is_quoted,
            '\\' => word.push(chars.next().unwrap()),
            '%' | '$' => {
                assert_eq!(chars.next(), Some(it), "{line}");
                word.push(it);
            }
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(it),
        }
    }
    assert!(!is_quoted, "{line}");
    words.push(word);
    words
}

proptest! {
    #[test]
    fn ip_options_are_refused_or_become_one_argument(options in hostile("ip=dhcp")) {
        let mut standalone = full_standalone();
        standalone.ironic.ip_options.clone_from(&options);
        let Ok(composed) = standalone.compose() else {
            prop_assert!(options.chars().any(char::is_control));
            return Ok(());
        };
        let actual = arguments(&unit(&composed.config, UNIT));
        let expected = format!("IPA_COREOS_IP_OPTIONS={options}");
        prop_assert!(actual.contains(&expected), "{actual:?}");
        prop_assert_eq!(actual.len(), arguments(&unit(&compose(&full_standalone()), UNIT)).len());
    }

    #[test]
    fn host_name_is_refused_or_unchanged(name in hostile("node-0")) {
        let Ok(hostname) = HostName::parse("hostname", &name) else { return Ok(()) };
        let mut standalone = standalone();
        standalone.hostname = Some(hostname);
        let config = compose(&standalone);
        let variable = format!("IPA_DEFAULT_HOSTNAME={name}");
        prop_assert!(arguments(&unit(&config, UNIT)).contains(&variable));
        let script = text(&config, "/etc/NetworkManager/dispatcher.d/01-hostname");
        let (line, fact) = (format!("\nknown_as='{name}'\n"), format!("\n    Name:      {name}\n"));
        prop_assert!(script.contains(&line), "{script}");
        prop_assert!(text(&config, "/etc/motd.d/ipa.motd").contains(&fact));
    }

    #[test]
    fn url_is_refused_or_unchanged(path in hostile("b")) {
        let url = format!("https://a:1/{path}");
        let image = ImageReference::parse("image", "quay.io/example/ipa:v1").unwrap();
        let Ok(ironic) = Ironic::parse(&url, &url, image) else { return Ok(()) };
        let config = compose(&StandaloneIronic::new(ironic));
        let conf = text(&config, CONF);
        prop_assert_eq!(conf.lines().count(), 5);
        let line = conf.lines().find_map(|line| line.strip_prefix("api_url = ")).unwrap();
        // The agent reads two dollar signs as one, so there must be no single dollar sign.
        prop_assert_eq!(line.replace("$$", "").matches('$').count(), 0);
        for url in line.replace("$$", "$").split(',') {
            prop_assert!(HttpUrl::parse("f", url).is_ok(), "{url}");
        }
    }

    #[test]
    fn time_server_is_refused_or_unchanged(server in hostile("ntp.example.com")) {
        let Ok(sources) = TimeSources::parse(&server, "") else { return Ok(()) };
        let mut standalone = standalone();
        standalone.time_sources = sources.clone();
        let config = compose(&standalone);
        let TimeSources::Additional(_) = sources else { return Ok(()) };
        let appended = text(&config, "/etc/chrony.conf");
        let servers: Vec<&str> = appended.lines().filter_map(|line| line.strip_prefix("server ")).collect();
        let expected: Vec<String> = entries(&server).iter().map(|it| format!("{it} iburst")).collect();
        prop_assert_eq!(servers, expected);
    }
}

//! The discovery config: all combinations of inputs, its golden file, and hostile values.

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
use ignition::discovery::{
    ComposeError, Discovery, DiscoveryImage, HttpUrl, Override, Proxies, SshKeys, TimeSources,
};
use ignition::network::{EntryKind, HostNetworkFiles, InitrdOptions, KeyfileCache, NetworkGeneration};
use ignition::spec::Spec;
use ignition::validate::validate;
use proptest::prelude::*;
use resources::contents;
use serde_json::{Value, json};
use setups::{assert_golden, entries, full, hostile, list, matrix, minimal, mode, page, unit};

#[test]
fn every_combination_is_valid_in_its_spec_version() {
    let all = matrix();
    assert!(all.len() >= 24, "{}", all.len());
    let mut configs = BTreeSet::new();
    for (name, discovery) in all {
        let composed = discovery.compose().unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = validate(&composed.config);
        assert!(report.is_empty(), "{name}: {}", report.to_text("config"));
        assert_eq!(composed.config.spec(), Spec::V3_1, "{name}");
        let text = composed.config.to_string();
        let again = Config::parse(text.as_bytes()).unwrap();
        assert!(again.warnings.is_empty(), "{name}: {}", again.warnings.to_text("config"));
        assert_eq!(
            discovery.compose().unwrap().config.to_string(),
            text,
            "{name}: the same bytes every time"
        );
        configs.insert(text);
    }
    assert!(configs.len() >= 24, "most inputs make a difference: {}", configs.len());
}

#[test]
fn config_matches_the_golden() {
    assert_golden("discovery.json", &full().compose().unwrap().config);
}

/// Every file of the config must be on the documentation page, and every file on the page must be in the config.
#[test]
fn documentation_lists_every_file_and_unit() {
    let page = page().rest;
    for (name, discovery) in matrix() {
        let config = discovery.compose().unwrap().config;
        for file in config.to_value()["storage"]["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap();
            let mode = mode(file);
            let is_network = path.starts_with("/etc/assisted/network/")
                || path == "/usr/local/bin/pre-network-manager-config.sh";
            assert!(
                is_network || page.contains(&format!("\n| `{path}` | {mode} |")),
                "{name}: {path} {mode}"
            );
        }
        for unit in list(&config, "/systemd/units", "name") {
            let is_there = page.contains(&format!("\n| `{unit}` |"));
            assert!(is_there || unit == "release-image-pivot.service", "{name}: {unit}");
        }
    }
}

/// The example is on the documentation page.
#[test]
fn conflict_error_matches_the_documentation() {
    let page = page().rest;
    let over = r#"{"ignition": {"version": "3.1.0"},
 "storage": {"links": [{"path": "/tmp/a", "target": "/x"},
                       {"path": "/etc", "target": "/x"}]}}"#;
    let mut discovery = minimal();
    discovery.infra_env.config_override = Some(Override::new(over));
    let error = discovery.compose().unwrap_err().to_string();
    assert!(page.contains(&format!("\n{error}\n")), "{error}");
}

#[test]
fn smallest_config_is_complete() {
    let config = minimal().compose().unwrap().config;
    assert_eq!(
        list(&config, "/systemd/units", "name"),
        [
            "agent.service",
            "selinux.service",
            "multipathd.service",
            "iscsistart.service",
            "oci-eval-user-data.service"
        ]
    );
    let files = list(&config, "/storage/files", "path");
    assert_eq!(
        files,
        [
            "/usr/local/bin/agent-fix-bz1964591",
            "/usr/local/bin/agent-pull-image",
            "/etc/motd",
            "/etc/NetworkManager/conf.d/01-ipv6.conf",
            "/root/assisted.te",
            "/etc/multipath.conf",
            "/usr/local/bin/oci-eval-user-data.sh",
            "/root/.docker/config.json",
        ]
    );
    let root = config.to_value();
    assert_eq!(root["ignition"], json!({"version": "3.1.0"}));
    assert!(root.get("passwd").is_none());
    let agent = unit(&config, "agent.service");
    assert!(agent.contains("TimeoutStartSec=600\nExecStartPre="), "{agent}");
    assert!(agent.contains("--url https://assisted.example.com \\\n"), "{agent}");
    assert!(agent.contains("--insecure=false\n"), "{agent}");
}

#[test]
fn file_modes_and_owners_are_expected() {
    for (name, discovery) in matrix() {
        let config = discovery.compose().unwrap().config;
        for file in config.to_value()["storage"]["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap();
            let Some(mode) = file["mode"].as_u64() else {
                assert!(path == "/etc/chrony.conf" && file.get("contents").is_none(), "{name}: {file}");
                continue;
            };
            let is_secret = path.ends_with(".env") || path.starts_with("/root/.docker");
            let expected = match path {
                _ if path.starts_with("/usr/local/bin/") => 0o755,
                _ if is_secret || path.starts_with("/etc/assisted/network/") => 0o600,
                _ => 0o644,
            };
            assert_eq!(mode, expected, "{name}: {path}");
            assert_eq!((&file["user"]["name"], &file["overwrite"]), (&json!("root"), &json!(true)), "{path}");
        }
    }
}

#[test]
fn static_network_is_only_in_the_config_of_full_images() {
    let mut discovery = full();
    let in_full = discovery.compose().unwrap().config;
    assert_eq!(
        contents(&in_full, "/etc/assisted/network/host0/mac_interface.ini").unwrap(),
        b"52:54:00:aa:bb:01=eth0"
    );
    assert!(unit(&in_full, "pre-network-manager-config.service").contains("Before=NetworkManager.service\n"));
    discovery.infra_env.image_type = DiscoveryImage::Minimal;
    let in_minimal = discovery.compose().unwrap().config.to_string();
    assert!(
        !in_minimal.contains("/etc/assisted/network") && !in_minimal.contains("pre-network-manager-config")
    );
}

#[test]
fn ironic_replaces_the_agent_service() {
    let mut discovery = minimal();
    let before = discovery.compose().unwrap().config;
    discovery.ironic = Some(setups::ironic());
    let config = discovery.compose().unwrap().config;
    let root = config.to_value();
    assert_eq!(root["systemd"]["units"][0]["enabled"], false);
    let count = |config: &Config, pointer: &str, key| list(config, pointer, key).len();
    assert_eq!(count(&config, "/storage/files", "path"), count(&before, "/storage/files", "path") + 1);
    assert_eq!(count(&config, "/systemd/units", "name"), count(&before, "/systemd/units", "name") + 1);
}

#[test]
fn override_merges_like_the_documented_example() {
    let mut discovery = full();
    let base = discovery.compose().unwrap().config;
    for version in ["3.1.0", "3.2.0"] {
        let over = json!({
            "ignition": {"version": version},
            "passwd": {"users": [{"name": "core", "passwordHash": "$6$salt$hash"}]},
            "storage": {"files": [
                {"path": "/etc/motd", "contents": {"source": "data:,hello"}},
                {"path": "/etc/extra.conf", "mode": 384, "contents": {"source": "data:,x"}},
            ]},
            "systemd": {"units": [
                {"name": "multipathd.service", "enabled": false},
                {"name": "agent.service", "dropins": [{"name": "20-env.conf", "contents": "[Service]\nEnvironment=A=b\n"}]},
            ]},
        });
        discovery.infra_env.config_override = Some(Override::new(over.to_string()));
        let composed = discovery.compose().unwrap();
        let config = &composed.config;
        assert!(composed.warnings.is_empty(), "{}", composed.warnings.to_text("override"));
        assert_eq!(config.spec().to_string(), version);
        let names = list(config, "/systemd/units", "name");
        assert_eq!(names, list(&base, "/systemd/units", "name"));
        let root = config.to_value();
        let user = &root["passwd"]["users"][0];
        assert_eq!((&user["passwordHash"], &user["groups"]), (&json!("$6$salt$hash"), &json!(["sudo"])));
        assert_eq!(user["sshAuthorizedKeys"].as_array().unwrap().len(), 1);
        let agent = &root["systemd"]["units"][0];
        assert_eq!((&agent["enabled"], &agent["dropins"][0]["name"]), (&json!(true), &json!("20-env.conf")));
        assert_eq!(unit(config, "agent.service"), unit(&base, "agent.service"));
        let multipath = names.iter().position(|name| name == "multipathd.service").unwrap();
        assert_eq!(root["systemd"]["units"][multipath]["enabled"], false);
        let (old, new) = (list(&base, "/storage/files", "path"), list(config, "/storage/files", "path"));
        assert_eq!(new[..old.len()], old);
        assert_eq!(new[old.len()..], ["/etc/extra.conf"]);
        let motd = &root["storage"]["files"][old.iter().position(|path| path == "/etc/motd").unwrap()];
        let expected = json!({"path": "/etc/motd", "overwrite": true, "user": {"name": "root"}, "mode": 420, "contents": {"source": "data:,hello"}});
        assert_eq!(motd, &expected);
        let extra = json!({"path": "/etc/extra.conf", "mode": 384, "contents": {"source": "data:,x"}});
        assert_eq!(root["storage"]["files"][old.len()], extra);
    }
}

#[test]
fn overrides_are_refused_like_the_documented_examples() {
    let error = |version: &str, rest: Value| {
        let mut over = rest;
        over["ignition"] = json!({"version": version});
        let mut discovery = full();
        discovery.infra_env.config_override = Some(Override::new(over.to_string()));
        discovery.compose()
    };
    for version in ["3.0.0", "3.3.0", "3.6.0"] {
        assert!(error(version, json!({})).is_ok(), "{version}");
    }
    let dropped = error("3.1.0", json!({"storage": {"luks": [{"name": "a"}]}})).unwrap();
    assert_eq!(dropped.warnings.findings()[0].pointer, "/storage/luks");
    let long = format!("[Unit]\n#{}\n", "x".repeat(2100));
    for (pointer, rest) in [
        ("/storage/files/0/user", json!({"storage": {"files": [{"path": "/etc/motd", "user": {"id": 0}}]}})),
        (
            "/storage/files/0/overwrite",
            json!({"storage": {"files": [{"path": "/etc/motd", "overwrite": true}]}}),
        ),
        ("/storage/files/1", json!({"storage": {"files": [{"path": "/a"}, {"path": "/a"}]}})),
        ("/storage/links/0", json!({"storage": {"links": [{"path": "/etc", "target": "/x"}]}})),
        ("/storage/files/0", json!({"storage": {"files": [{"path": "/etc/systemd/system/agent.service"}]}})),
        (
            "/systemd/units/0/contents",
            json!({"systemd": {"units": [{"name": "a.service", "contents": long}]}}),
        ),
    ] {
        let error = error("3.1.0", rest).unwrap_err();
        let (ComposeError::Override { field, .. } | ComposeError::Merged { field, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(field, "ignition_config_override");
        let finding = error.findings().next().unwrap();
        assert!(finding.pointer.starts_with(pointer), "{pointer}: {finding}");
        assert!(finding.position.is_some(), "{finding}");
    }
}

#[test]
fn config_uses_a_spec_version_that_the_system_supports() {
    let mut discovery = minimal();
    discovery.infra_env.config_override = Some(Override::new(r#"{"ignition":{"version":"3.4.0"}}"#));
    discovery.newest_spec = Spec::V3_4;
    assert!(discovery.compose().is_ok());
    discovery.newest_spec = Spec::V3_2;
    let error = discovery.compose().unwrap_err().to_string();
    assert_eq!(
        error,
        "ignition_config_override: the config would have spec 3.4.0, but the system reads only up to 3.2.0"
    );
}

#[test]
fn secrets_do_not_show_in_debug() {
    let discovery = full();
    let output = format!("{discovery:?} {:?}", discovery.compose());
    for secret in setups::SECRETS {
        assert!(!output.contains(secret), "{secret}: {output}");
        assert!(
            discovery.compose().unwrap().config.to_string().contains(secret),
            "{secret} is in the config"
        );
    }
}

#[test]
fn a_thousand_no_proxy_entries_are_accepted() {
    let list = (0..1000).map(|number| format!("host{number}.example.com")).collect::<Vec<_>>().join(",");
    let mut discovery = full();
    discovery.infra_env.proxies = Proxies::parse("http://a", "", &list).unwrap();
    let config = discovery.compose().unwrap().config;
    assert!(validate(&config).is_empty());
    let file = String::from_utf8(contents(&config, "/etc/assisted/proxy.env").unwrap()).unwrap();
    assert!(file.contains(&format!("\nno_proxy=\"{list}\"\n")));
}

/// Parses a file for `EnvironmentFile=`, in which values have double quotes and backslashes.
fn read_environment_file(text: &str) -> Vec<(String, String)> {
    text.lines().map(|line| read_assignment(line, "\"\\`$")).collect()
}

fn read_assignment(line: &str, special: &str) -> (String, String) {
    let (name, value) = line.split_once('=').unwrap();
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap();
    (name.to_owned(), unescape(value, special))
}

fn unescape(value: &str, special: &str) -> String {
    let mut result = String::new();
    let mut chars = value.chars();
    while let Some(it) = chars.next() {
        if it == '\\' {
            let next = chars.next().unwrap();
            assert!(special.contains(next), "{value}");
            result.push(next);
        } else {
            assert!(!special.contains(it), "{value}");
            result.push(it);
        }
    }
    result
}

/// Parses a script of `export NAME='value'` lines.
fn read_profile(text: &str) -> Vec<(String, String)> {
    let assignment = |line: &str| {
        let (name, value) = line.strip_prefix("export ").unwrap().split_once('=').unwrap();
        let pieces: Vec<&str> = value.split(r"'\''").collect();
        let value = pieces.join("\u{0}");
        let inner = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')).unwrap();
        assert!(!inner.contains('\''), "{line}");
        (name.to_owned(), inner.replace('\u{0}', "'"))
    };
    text.lines().map(assignment).collect()
}

/// Parses a drop-in with `Environment="NAME=value"` lines.
fn read_dropin(text: &str) -> Vec<(String, String)> {
    let assignment = |line: &str| {
        let quoted = line.strip_prefix("Environment=\"").and_then(|line| line.strip_suffix('"')).unwrap();
        let text = unescape(quoted, "\"\\");
        assert_eq!(text.replace("%%", "").matches('%').count(), 0, "{line}");
        let (name, value) = text.split_once('=').unwrap();
        (name.to_owned(), value.replace("%%", "%"))
    };
    text.strip_prefix("[Service]\n").unwrap().lines().map(assignment).collect()
}

fn with(change: impl FnOnce(&mut Discovery)) -> Config {
    let mut discovery = minimal();
    change(&mut discovery);
    let config = discovery.compose().unwrap().config;
    assert!(validate(&config).is_empty());
    config
}

fn text(config: &Config, path: &str) -> String {
    String::from_utf8(contents(config, path).unwrap()).unwrap()
}

/// Returns the drop-in with the proxies in the initrd of a minimal ISO.
fn rootfs_dropin(proxies: &Proxies) -> String {
    let networks =
        HostNetworkFiles::generate(&[], NetworkGeneration::Keyfiles, &KeyfileCache::default()).unwrap();
    let entries =
        networks.initrd_entries(&InitrdOptions { proxies: proxies.clone(), ..InitrdOptions::default() });
    let dropin =
        entries.iter().find(|entry| entry.path.contains("coreos-livepxe-rootfs.service.d/")).unwrap();
    let EntryKind::File { contents, .. } = &dropin.kind else { panic!("{dropin:?}") };
    String::from_utf8(contents.to_vec()).unwrap()
}

proptest! {
    #[test]
    fn proxy_is_refused_or_unchanged(url in hostile("http://user:p"), exception in hostile(".example")) {
        let url = format!("{url}@proxy:3128");
        let proxies = Proxies::parse(&url, "", "").or_else(|_| Proxies::parse("", "", &exception));
        let Ok(proxies) = proxies else { return Ok(()) };
        if proxies == Proxies::default() {
            return Ok(());
        }
        let has_url = Proxies::parse(&url, "", "").is_ok();
        let value = if has_url { url.trim().to_owned() } else { entries(&exception).join(",") };
        let config = with(|discovery| discovery.infra_env.proxies = proxies.clone());
        let forms = [
            read_environment_file(&text(&config, "/etc/assisted/proxy.env")),
            read_profile(&text(&config, "/etc/profile.d/proxy.sh")),
            read_dropin(&rootfs_dropin(&proxies)),
        ];
        for form in forms {
            prop_assert_eq!(form.len(), 2);
            for (name, found) in form {
                prop_assert!(name.to_ascii_uppercase().ends_with("_PROXY"));
                prop_assert_eq!(&found, &value);
            }
        }
        if has_url {
            let root = config.to_value();
            prop_assert_eq!(root["ignition"]["proxy"]["httpProxy"].as_str(), Some(value.as_str()));
        }
    }

    #[test]
    fn base_url_is_refused_or_becomes_one_argument(url in hostile("https://a/b")) {
        let Ok(url) = HttpUrl::parse("base_url", &url) else { return Ok(()) };
        let config = with(|discovery| discovery.service.base_url = url.clone());
        let agent = unit(&config, "agent.service");
        let line = agent.lines().find_map(|line| line.strip_prefix("    --url ")).unwrap();
        let word = line.strip_suffix(" \\").unwrap();
        let word = match word.strip_prefix('"') {
            Some(quoted) => unescape(quoted.strip_suffix('"').unwrap(), "\"\\").replace("%%", "%").replace("$$", "$"),
            None => word.to_owned(),
        };
        prop_assert_eq!(word.as_str(), url.as_str());
        prop_assert_eq!(agent.lines().count(), unit(&minimal().compose().unwrap().config, "agent.service").lines().count());
    }

    #[test]
    fn ssh_key_is_refused_or_unchanged(comment in hostile("me@host")) {
        let key = format!("{} {comment}", setups::KEY);
        let Ok(keys) = SshKeys::parse(&key) else { return Ok(()) };
        let config = with(|discovery| discovery.infra_env.ssh_keys = keys.clone());
        let root = config.to_value();
        prop_assert_eq!(&root["passwd"]["users"][0]["sshAuthorizedKeys"], &json!([key.trim()]));
    }

    #[test]
    fn time_server_is_refused_or_unchanged(server in hostile("ntp.example.com")) {
        let Ok(sources) = TimeSources::parse(&server, "") else { return Ok(()) };
        let config = with(|discovery| discovery.infra_env.time_sources = sources.clone());
        let TimeSources::Additional(_) = sources else { return Ok(()) };
        let appended = text(&config, "/etc/chrony.conf");
        let mut servers: Vec<&str> = Vec::new();
        for line in appended.lines().filter(|line| !line.is_empty() && *line != "makestep 1.0 -1") {
            servers.push(line.strip_prefix("server ").and_then(|line| line.strip_suffix(" iburst")).unwrap());
        }
        prop_assert_eq!(servers, entries(&server));
    }
}

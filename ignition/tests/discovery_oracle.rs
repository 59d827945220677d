//! Checks discovery configs with programs that share no code with this crate: the validator of the real Ignition,
//! shellcheck for every script, and systemd for every unit.
//!
//! If a program is missing, its tests print a notice and are skipped. With `KINDLING_REQUIRE_TOOLS=1` they fail
//! instead.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

#[allow(dead_code, reason = "the engine itself is asked elsewhere")]
mod engine;
mod resources;
mod setups;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use engine::Validator;
use engine::skip::report_missing;
use ignition::config::Config;
use ignition::discovery::{AgentToken, CertificateBundle, HttpUrl, Proxies};
use ignition::pointer::{
    ConfigEndpoint, DiscoveryMedia, InstalledHost, MachineConfigPool, MachineConfigServer, RequestHeader,
};
use resources::contents;
use serde_json::Value;
use setups::matrix;

/// Returns all discovery configs, with a service and without a service, and a pointer config.
fn configs() -> Vec<(String, Config)> {
    let mut all: Vec<_> =
        matrix().into_iter().map(|(name, it)| (name, it.compose().unwrap().config)).collect();
    let alone = setups::standalone_matrix().into_iter();
    all.extend(alone.map(|(name, it)| (name, it.compose().unwrap().config)));
    let pem = "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n";
    let endpoint = ConfigEndpoint {
        server: MachineConfigServer::ApiHost("api.lab.example.com".to_owned()),
        pool: MachineConfigPool::new("worker").unwrap(),
        token: Some(AgentToken::new("t").unwrap()),
        headers: vec![RequestHeader::new("X-Site", "lab").unwrap()],
        authority: Some(CertificateBundle::parse("f", pem).unwrap()),
    };
    let mut host = InstalledHost::new("node").unwrap();
    host.discovery_media = DiscoveryMedia::Disk;
    let pointer = host.compose(&endpoint.pointer_config().unwrap()).unwrap().config;
    all.push(("pointer".to_owned(), pointer));
    all
}

/// Runs a program. If it is missing, prints a notice and returns `None`.
fn run(program: &str, configure: impl FnOnce(&mut Command)) -> Option<Output> {
    let mut command = Command::new(program);
    configure(&mut command);
    match command.stdin(Stdio::null()).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            report_missing(&format!("{program} is not installed"));
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

#[test]
fn validator_accepts_every_config_silently() {
    let Some(validator) = Validator::find() else { return };
    for (name, config) in configs() {
        let verdict = validator.validate(&config.to_string());
        assert!(verdict.is_valid && verdict.text.is_empty(), "{name}: {}", verdict.text);
    }
}

/// Returns every distinct script by its path.
fn scripts() -> BTreeMap<String, Vec<u8>> {
    let mut scripts = BTreeMap::new();
    for (_, config) in configs() {
        for file in config.to_value()["storage"]["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap();
            let text = contents(&config, path).unwrap();
            if text.starts_with(b"#!") || path.ends_with(".sh") {
                scripts.insert(path.to_owned(), text);
            }
        }
    }
    scripts
}

#[test]
fn shellcheck_accepts_every_script() {
    let scripts = scripts();
    assert!(scripts.len() >= 7, "{:?}", scripts.keys());
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in scripts {
        let file = folder.path().join(Path::new(&path).file_name().unwrap());
        fs::write(&file, &text).unwrap();
        let output = run("shellcheck", |command| {
            command.args(["--severity", "style"]).arg(&file);
            if !text.starts_with(b"#!") {
                // Shells of all kinds read this file. Shellcheck reports that a dollar sign is not expanded, which is
                // intended.
                command.args(["--shell", "sh", "--exclude", "SC2016"]);
            }
        });
        let Some(output) = output else { return };
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The login shell must return the original values.
#[test]
fn shell_reads_proxies_unchanged() {
    let url = HttpUrl::parse("f", "http://u'$(id)&;*!%25:p~@10.0.0.1:3128").unwrap();
    let mut discovery = setups::minimal();
    discovery.infra_env.proxies = Proxies::parse(url.as_str(), "", "*").unwrap();
    let config = discovery.compose().unwrap().config;
    let folder = tempfile::tempdir().unwrap();
    for path in ["/etc/profile.d/proxy.sh", "/etc/assisted/proxy.env"] {
        let file = folder.path().join("variables");
        fs::write(&file, contents(&config, path).unwrap()).unwrap();
        let print = "set -a; . \"$0\"; printf '%s|%s' \"$HTTP_PROXY\" \"$no_proxy\"";
        let output = run("/bin/sh", |command| {
            command.arg("-c").arg(print).arg(&file);
        });
        let stdout = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(stdout, format!("{}|*", url.as_str()), "{path}");
    }
}

/// Writes the programs and units that the units refer to below a root directory.
fn write_system(root: &Path, config: &Config) -> Vec<String> {
    const PROGRAMS: [&str; 14] = [
        "/bin/bash",
        "/bin/sh",
        "/usr/bin/podman",
        "/usr/bin/checkmodule",
        "/usr/bin/semodule_package",
        "/usr/sbin/semodule",
        "/usr/sbin/modprobe",
        "/usr/sbin/iscsistart",
        "/usr/local/bin/agent",
        "/usr/local/bin/agent-pull-image",
        "/usr/local/bin/agent-fix-bz1964591",
        "/usr/local/bin/okd-binaries.sh",
        "/usr/local/bin/oci-eval-user-data.sh",
        "/usr/local/bin/pre-network-manager-config.sh",
    ];
    let write = |path: &str, text: &[u8]| {
        let file = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let mode = if path.contains("/bin/") || path.contains("/sbin/") { 0o755 } else { 0o644 };
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    for program in PROGRAMS.into_iter().chain(["/usr/local/bin/cleanup-assisted-discovery-stateroot.sh"]) {
        write(program, b"");
    }
    let folder = "/etc/systemd/system";
    for name in
        ["network-online", "multi-user", "sockets", "sysinit", "basic", "shutdown", "first-boot-complete"]
    {
        write(&format!("{folder}/{name}.target"), b"[Unit]\nDescription=x\n");
    }
    write(&format!("{folder}/systemd-journal-gatewayd@.service"), b"[Service]\nExecStart=/bin/bash\n");
    let mut names = Vec::new();
    for unit in config.to_value()["systemd"]["units"].as_array().unwrap() {
        let name = unit["name"].as_str().unwrap();
        for dropin in unit["dropins"].as_array().into_iter().flatten() {
            let path = format!("{folder}/{name}.d/{}", dropin["name"].as_str().unwrap());
            write(&path, dropin["contents"].as_str().unwrap().as_bytes());
        }
        if let Some(text) = unit.get("contents").and_then(Value::as_str) {
            write(&format!("{folder}/{name}"), text.as_bytes());
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns the messages of systemd about the units of a config.
fn verify(config: &Config) -> Option<String> {
    let root = tempfile::tempdir().unwrap();
    let units = write_system(root.path(), config);
    let output = run("systemd-analyze", |command| {
        command.args(["verify", "--man=no", "--generators=no"]).arg("--root").arg(root.path()).args(&units);
    })?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() || !said.is_empty());
    Some(said)
}

#[test]
fn systemd_accepts_every_unit() {
    for (name, config) in configs() {
        // Skip some combinations to save time, because many combinations contain the same units.
        if name.contains("trust") || name.len() > 40 {
            continue;
        }
        let Some(said) = verify(&config) else { return };
        assert_eq!(said, "", "{name}");
    }
}

#[test]
fn systemd_rejects_broken_units() {
    for (good, bad) in
        [("ExecStart=/usr/local/bin/agent ", "ExecStart=/missing "), ("RestartSec=3", "RestartSec=soon")]
    {
        let config = setups::full().compose().unwrap().config.to_string().replace(good, bad);
        let config = Config::parse(config.as_bytes()).unwrap().config;
        let Some(said) = verify(&config) else { return };
        assert!(said.contains(bad.rsplit('=').next().unwrap().trim()), "{bad}: {said}");
    }
}

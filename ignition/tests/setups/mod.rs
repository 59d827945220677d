//! Inputs of discovery configs: the smallest input, an input with all settings, and all combinations.

#![allow(dead_code, reason = "no test program needs all of it")]

pub(crate) mod host;

use std::path::PathBuf;
use std::{env, fs};

use ignition::config::Config;
use ignition::discovery::{
    AgentToken, CertificateBundle, CertificateCheck, Discovery, DiscoveryImage, HostName, HttpUrl,
    ImagePolicy, ImageReference, InfraEnvId, InfraEnvSettings, InventoryService, Mirrors, PasswordHash,
    Proxies, PullSecret, SshKeys, TimeSources,
};
use ignition::ironic::{Ironic, StandaloneIronic};
use ignition::network::{
    HostNetwork, HostNetworkFiles, IgnitionFiles, KeyfileCache, MacInterface, NetworkGeneration,
};
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// Secrets of the full config that must not appear elsewhere.
pub(crate) const SECRETS: [&str; 5] =
    ["dXNlcjpodW50ZXIx", "t0ken-hunter2", "$6$salt$hunter3", "hunter4", "hunter5"];

/// Creates a syntactically valid certificate, which the name makes unique.
fn certificate(name: &str) -> CertificateBundle {
    let pem = format!("# {name}\n-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n");
    CertificateBundle::parse("certificate", &pem).unwrap()
}

fn image(text: &str) -> ImageReference {
    ImageReference::parse("image", text).unwrap()
}

fn pull_secret() -> PullSecret {
    PullSecret::parse(r#"{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIx"}}}"#).unwrap()
}

pub(crate) fn minimal() -> Discovery {
    let url = HttpUrl::parse("base_url", "https://assisted.example.com").unwrap();
    let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666").unwrap();
    let service = InventoryService::new(url, image("quay.io/example/agent:v1"));
    Discovery::new(service, InfraEnvSettings::new(id, pull_secret()))
}

/// Creates a host with a password in its keyfile.
fn host() -> HostNetwork {
    let document = "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4: {enabled: true, dhcp: true}\n  \
                    802.1x: {identity: a, eap-methods: [tls], ca-cert: /a, client-cert: /b, private-key: /c, \
                    private-key-password: hunter5}\n";
    let interface =
        MacInterface { logical_nic_name: "eth0".to_owned(), mac_address: "52:54:00:aa:bb:01".to_owned() };
    HostNetwork::from_unchecked(document, vec![interface])
}

/// Returns the files of the host in an image of many hosts.
pub(crate) fn network() -> IgnitionFiles {
    HostNetworkFiles::generate(&[host()], NetworkGeneration::Keyfiles, &KeyfileCache::default())
        .unwrap()
        .ignition_files()
}

pub(crate) fn ironic() -> Ironic {
    Ironic::parse(
        "https://192.0.2.5:6385",
        "https://192.0.2.5:5050/v1/continue",
        image("quay.io/example/ipa:v1"),
    )
    .unwrap()
}

fn proxies() -> Proxies {
    Proxies::parse("http://user:hunter4%40$x@10.0.0.1:3128", "https://proxy.example.com", ".lab,10.0.0.0/8")
        .unwrap()
}

fn mirrors() -> Mirrors {
    let text =
        "[[registry]]\nlocation = \"quay.io\"\n\n[[registry.mirror]]\nlocation = \"mirror.lab:5000/quay\"\n";
    Mirrors::new(text, Some(certificate("mirror"))).unwrap()
}

/// Returns an input with all settings except OKD, Ironic and an override.
pub(crate) fn full() -> Discovery {
    let mut discovery = minimal();
    let service = &mut discovery.service;
    service.token = Some(AgentToken::new("t0ken-hunter2").unwrap());
    service.certificate_check = CertificateCheck::Skip;
    service.authority = Some(certificate("service"));
    service.organisation_authority = Some(certificate("organisation"));
    service.image_policy = ImagePolicy::AcceptAnything;
    let infra_env = &mut discovery.infra_env;
    infra_env.ssh_keys = SshKeys::parse(&format!("{KEY} me@example.com\n")).unwrap();
    infra_env.password_hash = Some(PasswordHash::parse("$6$salt$hunter3").unwrap());
    infra_env.proxies = proxies();
    infra_env.time_sources = TimeSources::parse("ntp.example.com,192.0.2.1", "").unwrap();
    infra_env.trust_bundle = Some(certificate("additional"));
    infra_env.mirrors = Some(mirrors());
    discovery.static_network = Some(network());
    discovery
}

/// Minimum length of [`override_text`] in bytes.
pub(crate) const OVERRIDE_LEN: usize = 20 << 10;

/// Returns a user's override with files, a password and a unit. The text is 20 KiB long.
pub(crate) fn override_text() -> String {
    let file = |number: usize| {
        json!({"path": format!("/etc/extra/{number}.conf"), "mode": 420, "overwrite": true, "user": {"name": "root"},
            "contents": {"source": format!("data:,{}", "setting%20=%20value%0A".repeat(40))}})
    };
    let count = OVERRIDE_LEN / file(0).to_string().len() + 1;
    let config = json!({
        "ignition": {"version": "3.2.0"},
        "passwd": {"users": [{"name": "core", "passwordHash": "$6$salt$hash", "groups": ["sudo"]}]},
        "storage": {"files": (0..count).map(file).collect::<Vec<_>>()},
        "systemd": {"units": [{"name": "multipathd.service", "enabled": false}]},
    });
    config.to_string()
}

/// Returns all combinations of inputs that add files and units, each with a name.
pub(crate) fn matrix() -> Vec<(String, Discovery)> {
    const CONDITIONS: usize = 7;
    let mut all = vec![("full".to_owned(), full())];
    for bits in 0..1_usize << CONDITIONS {
        let is = |condition: usize| bits >> condition & 1 == 1;
        let mut it = minimal();
        let mut name = String::new();
        let mut note = |text: &str| name.push_str(text);
        if is(0) {
            note(" proxies");
            it.infra_env.proxies = proxies();
        }
        if is(1) {
            note(" okd");
            it.okd_rpms_image = Some(image("quay.io/okd/rpms@sha256:00"));
        }
        if is(2) {
            note(" ironic");
            it.ironic = Some(ironic());
        }
        if is(3) {
            note(" network");
            it.static_network = Some(network());
        }
        if is(4) {
            note(" minimal image without network, only these time sources");
            it.infra_env.image_type = if is(3) { DiscoveryImage::Full } else { DiscoveryImage::Minimal };
            it.infra_env.time_sources = TimeSources::parse("", "ntp.example.com").unwrap();
        } else {
            it.infra_env.time_sources = TimeSources::parse("192.0.2.1,a", "").unwrap();
        }
        if is(5) {
            note(" mirrors and trust");
            it.infra_env.mirrors = Some(mirrors());
            it.infra_env.trust_bundle = Some(certificate("additional"));
            it.service.authority = Some(certificate("service"));
        }
        if is(6) {
            note(" token and access");
            it.service.token = Some(AgentToken::new("t0ken-hunter2").unwrap());
            it.service.certificate_check = CertificateCheck::Skip;
            it.infra_env.ssh_keys = SshKeys::parse(KEY).unwrap();
        }
        all.push((name, it));
    }
    all
}

/// Returns the inputs of an Ironic config with only the mandatory inputs.
pub(crate) fn standalone() -> StandaloneIronic {
    StandaloneIronic::new(ironic())
}

/// Returns the inputs of an Ironic config with all inputs.
pub(crate) fn full_standalone() -> StandaloneIronic {
    let mut ironic = Ironic::parse(
        "https://192.0.2.5,https://user:hunter6@[2001:db8::5]:443/prefix",
        "https://192.0.2.5",
        image("quay.io/example/ipa@sha256:00"),
    )
    .unwrap();
    ironic.ip_options = "ip=dhcp,dhcp6".to_owned();
    let mut standalone = StandaloneIronic::new(ironic);
    standalone.pull_secret = Some(pull_secret());
    standalone.ssh_keys = SshKeys::parse(&format!("{KEY} me@example.com\n")).unwrap();
    standalone.proxies = proxies();
    standalone.time_sources = TimeSources::parse("ntp.example.com,192.0.2.1", "").unwrap();
    standalone.trust_bundle = Some(certificate("additional"));
    standalone.mirrors = Some(mirrors());
    standalone.hostname = Some(HostName::parse("hostname", "node-0.lab.example.com").unwrap());
    standalone.static_network = Some(IgnitionFiles::for_one_host(&host()).unwrap());
    standalone
}

/// Returns all combinations of inputs that add files to the Ironic config, each with a name.
pub(crate) fn standalone_matrix() -> Vec<(String, StandaloneIronic)> {
    type Change = fn(&mut StandaloneIronic, StandaloneIronic);
    const CONDITIONS: [(&str, Change); 7] = [
        (" pull secret", |it, full| it.pull_secret = full.pull_secret),
        (" SSH keys", |it, full| it.ssh_keys = full.ssh_keys),
        (" proxies", |it, full| it.proxies = full.proxies),
        (" time servers", |it, full| it.time_sources = full.time_sources),
        (" trust and mirrors", |it, full| (it.trust_bundle, it.mirrors) = (full.trust_bundle, full.mirrors)),
        (" host name", |it, full| it.hostname = full.hostname),
        (" static network", |it, full| it.static_network = full.static_network),
    ];
    let mut all = vec![("Ironic full".to_owned(), full_standalone())];
    for bits in 0..1_usize << CONDITIONS.len() {
        let mut it = standalone();
        let mut name = "Ironic".to_owned();
        for (_, (note, change)) in CONDITIONS.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1) {
            name.push_str(note);
            change(&mut it, full_standalone());
        }
        all.push((name, it));
    }
    let mut several = standalone();
    several.static_network = Some(network());
    several.time_sources = TimeSources::parse("", "ntp.example.com").unwrap();
    all.push(("Ironic several".to_owned(), several));
    all
}

/// Compares a config with its golden file. With `UPDATE_GOLDEN=1`, rewrites the golden file.
pub(crate) fn assert_golden(name: &str, config: &Config) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    let config = config.to_pretty();
    if env::var("UPDATE_GOLDEN").as_deref() == Ok("1") {
        fs::write(&path, &config).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(config == golden, "{} differs; UPDATE_GOLDEN=1 rewrites it", path.display());
}

/// The documentation page about configs: the section about Ironic without a service, and the rest.
pub(crate) struct Page {
    pub(crate) standalone: String,
    pub(crate) rest: String,
}

pub(crate) fn page() -> Page {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/discovery.md");
    let text = fs::read_to_string(path).unwrap();
    let start = text.find("\n## Ironic without a service\n").unwrap();
    let len = text[start + 1..].find("\n## ").map_or(text.len() - start, |len| len + 1);
    Page {
        standalone: text[start..start + len].to_owned(),
        rest: format!("{}{}", &text[..start], &text[start + len..]),
    }
}

/// Returns the mode of a file in the notation of `docs/discovery.md`.
pub(crate) fn mode(file: &Value) -> String {
    file["mode"].as_u64().map_or_else(|| "system's".to_owned(), |mode| format!("{mode:04o}"))
}

/// Returns the paths or names of the entries in a list.
pub(crate) fn list(config: &Config, pointer: &str, key: &str) -> Vec<String> {
    let root = config.to_value();
    let list = root.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

/// Generates injection attempts, and valid texts with special characters.
pub(crate) fn hostile(good: &'static str) -> impl Strategy<Value = String> {
    let marks = "[\"'\\\\%$`{}()#;&|<>*?!~ \n\r\t\u{0}äa-z0-9@:/.,=-]{0,12}";
    prop_oneof![marks, marks.prop_map(move |text| format!("{good}{text}")), any::<String>()]
}

/// Returns the entries of a comma-separated list, without duplicates.
pub(crate) fn entries(list: &str) -> Vec<&str> {
    let mut entries: Vec<&str> = Vec::new();
    for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

pub(crate) fn unit(config: &Config, name: &str) -> String {
    let root = config.to_value();
    let units: &[Value] = root["systemd"]["units"].as_array().unwrap();
    let unit = units.iter().find(|unit| unit["name"] == name).unwrap();
    unit["contents"].as_str().unwrap().to_owned()
}

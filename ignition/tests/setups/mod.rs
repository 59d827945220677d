//! Inputs of discovery configs, for all tests that want them: the least, one with everything, and all combinations.

#![allow(dead_code, reason = "no test program needs all of it")]

use ignition::discovery::{
    CertificateBundle, CertificateCheck, Discovery, HttpUrl, ImagePolicy, ImageReference, ImageType,
    InfraEnv, InfraEnvId, Ironic, Mirrors, PasswordHash, Proxies, PullSecret, Service, SshKeys, TimeSources,
    Token,
};
use ignition::document::Document;
use ignition::network::{Generation, HostNetwork, IgnitionFiles, KeyfileCache, MacInterface, Networks};
use ignition::resource;
use serde_json::Value;

pub(crate) const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// What is in the full config and must not show elsewhere.
pub(crate) const SECRETS: [&str; 5] =
    ["dXNlcjpodW50ZXIx", "t0ken-hunter2", "$6$salt$hunter3", "hunter4", "hunter5"];

/// A certificate as far as its form goes; the name tells one from the other.
fn certificate(name: &str) -> CertificateBundle {
    let pem = format!("# {name}\n-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n");
    CertificateBundle::parse("certificate", &pem).unwrap()
}

fn image(text: &str) -> ImageReference {
    ImageReference::parse("image", text).unwrap()
}

pub(crate) fn minimal() -> Discovery {
    let url = HttpUrl::parse("base_url", "https://assisted.example.com").unwrap();
    let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666").unwrap();
    let secret = PullSecret::parse(r#"{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIx"}}}"#).unwrap();
    Discovery::new(Service::new(url, image("quay.io/example/agent:v1")), InfraEnv::new(id, secret))
}

/// One host, with a password in its keyfile.
pub(crate) fn network() -> IgnitionFiles {
    let document = "interfaces:\n- name: eth0\n  type: ethernet\n  state: up\n  ipv4: {enabled: true, dhcp: true}\n  \
                    802.1x: {identity: a, eap-methods: [tls], ca-cert: /a, client-cert: /b, private-key: /c, \
                    private-key-password: hunter5}\n";
    let interface =
        MacInterface { logical_nic_name: "eth0".to_owned(), mac_address: "52:54:00:aa:bb:01".to_owned() };
    let hosts = [HostNetwork::new(document, vec![interface])];
    Networks::generate(&hosts, Generation::Keyfiles, &KeyfileCache::default()).unwrap().ignition()
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

/// Everything but OKD, Ironic and an override.
pub(crate) fn full() -> Discovery {
    let mut discovery = minimal();
    let service = &mut discovery.service;
    service.token = Some(Token::new("t0ken-hunter2").unwrap());
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

/// All combinations of what makes files and units appear, with names.
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
            it.infra_env.image_type = if is(3) { ImageType::Full } else { ImageType::Minimal };
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
            it.service.token = Some(Token::new("t0ken-hunter2").unwrap());
            it.service.certificate_check = CertificateCheck::Skip;
            it.infra_env.ssh_keys = SshKeys::parse(KEY).unwrap();
        }
        all.push((name, it));
    }
    all
}

/// What a file of a config holds, its appended parts included.
pub(crate) fn contents(config: &Document, path: &str) -> Option<Vec<u8>> {
    let file = config.root()["storage"]["files"].as_array()?.iter().find(|file| file["path"] == path)?;
    let parts = std::iter::once(&file["contents"]).chain(file["append"].as_array().into_iter().flatten());
    let sources = parts.filter_map(|part| part["source"].as_str());
    Some(sources.flat_map(|source| resource::contents(source, None).unwrap()).collect())
}

/// The text of a unit.
pub(crate) fn unit(config: &Document, name: &str) -> String {
    let units: &[Value] = config.root()["systemd"]["units"].as_array().unwrap();
    let unit = units.iter().find(|unit| unit["name"] == name).unwrap();
    unit["contents"].as_str().unwrap().to_owned()
}

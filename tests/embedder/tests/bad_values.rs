//! Typed values that the libraries refuse before there is a plan.

use std::error::Error;

use discovery::{Inputs, InputsBuilder, OpenshiftVersion};
use embedder::site;
use ignition::discovery::kernel_arguments::{KernelArgumentChange, KernelArgumentOperation};
use ignition::discovery::{
    AgentToken, CertificateBundle, HttpUrl, ImageReference, InfraEnvId, Proxies, PullSecret, SshKeys,
    TimeSources,
};
use ignition::network::{HostNetwork, KeyfileCache, MacAddr, MacInterface};

/// Returns the error of a value that must be refused.
fn refused<T, E: Into<Box<dyn Error>>>(result: Result<T, E>) -> String {
    result.map(drop).map_err(Into::into).expect_err("accepted").to_string()
}

fn checked(builder: InputsBuilder) -> String {
    refused(builder.check(&KeyfileCache::default()))
}

/// Returns inputs with a host whose network document and MAC addresses are unchecked strings, like the input of an API.
fn unchecked(document: &str, interfaces: &[(&str, &str)]) -> InputsBuilder {
    let interfaces = interfaces.iter().map(|(name, mac)| MacInterface {
        logical_nic_name: (*name).to_owned(),
        mac_address: (*mac).to_owned(),
    });
    let network = HostNetwork::from_unchecked(document, interfaces.collect()).with_name("node-0");
    site::inputs(None).unwrap().host(network)
}

#[test]
fn values_of_types_are_refused_when_they_are_parsed() {
    let append = KernelArgumentOperation::Append;
    for (what, message) in [
        ("zz", refused("zz".parse::<MacAddr>())),
        ("52:54:00:00:00", refused("52:54:00:00:00".parse::<MacAddr>())),
        ("latest", refused("latest".parse::<OpenshiftVersion>())),
        ("4.18 beta", refused("4.18 beta".parse::<OpenshiftVersion>())),
        ("ftp://192.0.2.1", refused("ftp://192.0.2.1".parse::<HttpUrl>())),
        ("http://", refused("http://".parse::<HttpUrl>())),
        ("http://a b/", refused("http://a b/".parse::<HttpUrl>())),
        ("infra-env", refused("infra-env".parse::<InfraEnvId>())),
        ("no image!", refused(ImageReference::parse("agent_image", "no image!"))),
        ("SSH", refused(SshKeys::parse("not a key"))),
        ("proxy", refused(Proxies::parse("socks://192.0.2.1", "", ""))),
        ("NTP", refused(TimeSources::parse("a b", ""))),
        ("quiet\n", refused(KernelArgumentChange::new(append, "quiet\n"))),
    ] {
        assert!(!message.is_empty() && !message.ends_with(": "), "{what}: {message}");
    }
    // Errors about secrets do not contain the secrets.
    for message in [
        refused(PullSecret::parse("s3cret")),
        refused(AgentToken::new("s3\ncret")),
        refused(CertificateBundle::parse("ca", "s3cret")),
    ] {
        assert!(!message.contains("s3"), "{message}");
    }
}

#[test]
fn contradictions_are_refused_by_the_check() {
    const DOCUMENT: &str = "interfaces: [{name: eno1, type: ethernet, state: up}]";
    let host = |name, mac, address| site::host(name, mac, address).unwrap();
    let with = |name, mac, address| site::inputs(None).unwrap().host(host(name, mac, address));
    let version = |text: &str| {
        let infra_env = site::infra_env(Some(r#"{"ignition": {"version": "3.4.0"}}"#)).unwrap();
        Inputs::builder(site::service().unwrap(), infra_env, text.parse().unwrap())
    };
    let cases = [
        (checked(unchecked(DOCUMENT, &[("eno1", "zz")])), "node-0: mac_interface_map[0].mac_address: error:"),
        (
            checked(unchecked(DOCUMENT, &[("", "52:54:00:00:00:09")])),
            "node-0: mac_interface_map[0].logical_nic_name",
        ),
        (checked(unchecked(DOCUMENT, &[("a/b", "52:54:00:00:00:09")])), "node-0: mac_interface_map[0]"),
        (checked(unchecked(DOCUMENT, &[])), "node-0: "),
        (checked(unchecked("interfaces: [", &[("eno1", "52:54:00:00:00:09")])), "node-0:1: error:"),
        (
            checked(unchecked(
                "interfaces: [{name: eno1, type: ethernet, mtu: 20}]",
                &[("eno1", "52:54:00:00:00:09")],
            )),
            "node-0:1: interfaces[0].mtu: error:",
        ),
        // Duplicates across hosts.
        (checked(with("node-2", "52:54:00:00:00:01", "192.0.2.13")), "52:54:00:00:00:01"),
        (checked(with("node-2", "52:54:00:00:00:03", "192.0.2.12")), "192.0.2.12"),
        // Values that are valid alone, but not together.
        (checked(version("4.9")), "the system reads only up to 3.2"),
    ];
    for (findings, expected) in cases {
        assert!(findings.contains(expected), "{expected}: {findings}");
    }
    let without_macs = HostNetwork::without_macs(DOCUMENT).with_name("node-3");
    let findings = checked(site::inputs(None).unwrap().host(without_macs));
    assert!(findings.contains("node-3: error: has no MAC addresses"), "{findings}");
}

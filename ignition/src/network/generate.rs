//! One nmstate document to keyfiles: the generator behind its fences.

use std::collections::{BTreeMap, BTreeSet};

use nmstate::NetworkState;

use super::document::Document;
use super::{Keyfile, NetworkError, fault, isolation};

/// Most bytes of one document.
///
/// A host with hundreds of interfaces needs some 100 KiB, and the area for network files in an image holds
/// 256 KiB after compression. The generator's time grows with the square of the number of interfaces or rules;
/// at this limit it stays within a few seconds.
pub const MAX_DOCUMENT_LEN: usize = 512 << 10;

/// The name under which the generator files its keyfiles.
pub(super) const BACKEND: &str = "NetworkManager";

/// Generates the keyfiles for one host's nmstate document, YAML or JSON.
///
/// The files come in the order of their names. Two profiles of one name give two files of one name. A document
/// without interfaces gives no files and no error.
///
/// # Errors
///
/// When the document is too long, not text, not a network state or not realisable, when the generator panics, and
/// when two interfaces name one port or a profile name holds a slash or a control character.
///
/// # Examples
///
/// ```
/// let files = ignition::network::keyfiles(
///     b"interfaces: [{name: eth1, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]",
/// )?;
/// assert_eq!(files[0].name, "eth1.nmconnection");
/// # Ok::<(), ignition::network::NetworkError>(())
/// ```
pub fn keyfiles(document: &[u8]) -> Result<Vec<Keyfile>, NetworkError> {
    check_len(document.len())?;
    let text = std::str::from_utf8(document).map_err(NetworkError::NotText)?;
    keyfiles_of(&Document::parse(text)?)
}

/// Generates the keyfiles for a parsed document.
pub(super) fn keyfiles_of(document: &Document) -> Result<Vec<Keyfile>, NetworkError> {
    let state = document.state()?;
    let generated = isolation::run(|| generate(&state));
    let mut generated = generated.map_err(|message| NetworkError::Panic { message })??;
    generated.sort();
    let mut keyfiles = generated
        .into_iter()
        .map(|(name, contents)| Keyfile::from_generated(name, contents))
        .collect::<Result<Vec<_>, _>>()?;
    keyfiles.sort();
    Ok(keyfiles)
}

/// Refuses documents that are too long.
pub(super) fn check_len(len: usize) -> Result<(), NetworkError> {
    if len > MAX_DOCUMENT_LEN {
        return Err(NetworkError::TooLarge { len });
    }
    Ok(())
}

fn generate(state: &NetworkState) -> Result<Vec<(String, String)>, NetworkError> {
    check_ports(state)?;
    configure(state).map_err(|_| fault::first(state))
}

/// Runs the generator, which may name any of several faults.
pub(super) fn configure(state: &NetworkState) -> Result<Vec<(String, String)>, NetworkError> {
    let generated = isolation::run(|| state.gen_conf());
    let generated = generated.map_err(|message| NetworkError::Panic { message })?;
    let mut backends = generated.map_err(|source| NetworkError::Generate { interface: None, source })?;
    backends.remove(BACKEND).ok_or(NetworkError::NoKeyfiles)
}

/// Refuses a port with two controllers, the first such port. Interfaces that are to go or to be left alone control nothing.
fn check_ports(state: &NetworkState) -> Result<(), NetworkError> {
    let mut controllers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for interface in state.interfaces.iter().filter(|i| !i.is_absent() && !i.is_ignore()) {
        for port in interface.ports().unwrap_or_default() {
            controllers.entry(port).or_default().insert(interface.name());
        }
    }
    for (port, controllers) in controllers {
        let mut controllers = controllers.into_iter().map(str::to_owned);
        if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
            return Err(NetworkError::AmbiguousPort { port: port.to_owned(), first, second });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn names(document: &str) -> Vec<String> {
        keyfiles(document.as_bytes()).unwrap().into_iter().map(|file| file.name).collect()
    }

    fn only(document: &str) -> String {
        let [file] = <[Keyfile; 1]>::try_from(keyfiles(document.as_bytes()).unwrap()).unwrap();
        file.contents
    }

    #[test]
    fn a_static_address() {
        let document = "
interfaces: [{name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}}]
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0, table-id: 254}]}
dns-resolver: {config: {search: [lab.example.com], server: [192.0.2.53]}}";
        let keyfile = "\
[connection]
autoconnect=true
autoconnect-slaves=-1
id=eth0
interface-name=eth0
type=802-3-ethernet
uuid=dfd202f5-562f-5f07-8f2a-a7717756fb70

[ipv4]
address0=192.0.2.10/24
dhcp-timeout=2147483647
dns=192.0.2.53
dns-priority=40
dns-search=lab.example.com
method=manual
route0=0.0.0.0/0,192.0.2.1,0
route0_options=table=254

[ipv6]
dhcp-timeout=2147483647
method=disabled
";
        assert_eq!(only(document), keyfile);
    }

    #[test]
    fn files_are_named_after_their_profiles_and_sorted() {
        let document = "interfaces:
- {name: eth1, type: ethernet, state: up, profile-name: uplink}
- {name: bond0.404, type: vlan, state: up, vlan: {id: 404, base-iface: bond0}}
- {name: bond0, type: bond, state: up, link-aggregation: {mode: active-backup, port: [eth1, a0]}}
- {name: a0, type: ethernet, state: up}
- {name: old, type: ethernet, state: absent}";
        let expected = ["a0", "bond0.404", "bond0", "uplink"].map(|name| format!("{name}.nmconnection"));
        assert_eq!(names(document), expected);
        assert_eq!(names("interfaces: []"), [""; 0]);
        assert_eq!(names("{}"), [""; 0]);
    }

    #[test]
    fn routing_rules_are_numbered_alike_every_time() {
        let rules: Vec<String> = (0..12)
            .map(|i| format!("{{ip-to: 198.51.{i}.0/24, route-table: 254, priority: {}}}", 500 - i))
            .collect();
        let document = format!(
            "interfaces: [{{name: eth0, type: ethernet, state: up, ipv4: {{enabled: true, dhcp: true}}}}]
route-rules: {{config: [{}]}}",
            rules.join(", ")
        );
        let first = only(&document);
        assert!(first.contains("routing-rule0=priority 489 to 198.51.11.0/24 table 254\n"), "{first}");
        assert!((0..8).all(|_| only(&document) == first));
    }

    #[test]
    fn yaml_and_json_mean_the_same() {
        let yaml = "interfaces: [{name: eth0, type: ethernet, state: up, mtu: 9000}]";
        let json = r#"{"interfaces": [{"name": "eth0", "type": "ethernet", "state": "up", "mtu": "9000"}]}"#;
        assert_eq!(only(yaml), only(json));
    }

    #[test]
    fn no_break_spaces_are_forgiven_but_kept_where_they_parse() {
        let pasted = "interfaces:\n-\u{a0}name: eth0\n\u{a0} type: ethernet\n\u{a0}\u{a0}state: up\n";
        assert_eq!(names(pasted), ["eth0.nmconnection"]);
        let meant = "interfaces: [{name: eth0, type: ethernet, state: up, profile-name: \"a\u{a0}b\"}]";
        assert_eq!(names(meant), ["a\u{a0}b.nmconnection"]);
    }

    #[test]
    fn a_port_of_two_controllers_is_refused() {
        for state in ["up", "down"] {
            let document = format!(
                "interfaces:
- {{name: vrf0, type: vrf, state: {state}, vrf: {{port: [eth0], route-table-id: 7}}}}
- {{name: bond0, type: bond, state: up, link-aggregation: {{mode: active-backup, port: [eth0]}}}}"
            );
            let error = keyfiles(document.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "interface eth0 is a port of both bond0 and vrf0");
        }
    }

    #[test]
    fn refusals_name_the_step_and_the_reason() {
        let chain = |document: &str| {
            let error = keyfiles(document.as_bytes()).unwrap_err();
            (error.to_string(), error.source().map(ToString::to_string).unwrap_or_default())
        };
        let (step, reason) = chain("colour: blue");
        assert!(step == "parsing nmstate at colour, line 1" && reason.contains("colour"), "{step}: {reason}");
        let (step, reason) = chain("dns-resolver: {config: {server: [192.0.2.1]}}");
        assert!(step.starts_with("generating") && reason.contains("interface"), "{step}: {reason}");
        let (step, _) =
            chain("interfaces: [{name: a, type: ethernet, state: up, profile-name: ../../etc/shadow}]");
        assert!(step.contains("\"../../etc/shadow.nmconnection\""), "{step}");
    }

    #[test]
    fn what_is_no_document_is_refused() {
        assert!(matches!(keyfiles(b"\xff\xfe"), Err(NetworkError::NotText(_))));
        let long = vec![b' '; MAX_DOCUMENT_LEN + 1];
        assert!(matches!(keyfiles(&long), Err(NetworkError::TooLarge { .. })));
    }

    #[test]
    fn aliases_are_resolved() {
        let off = "{enabled: false}";
        let interface = |number: usize, ip: &str| {
            format!("- {{name: eth{number}, type: ethernet, state: up, ipv4: {ip}, ipv6: *off}}\n")
        };
        let shared: String = (0..12).map(|number| interface(number, off)).collect();
        let document = format!("interfaces:\n{}{shared}", interface(99, "&off {enabled: false}"));
        assert_eq!(names(&document).len(), 13);
    }
}

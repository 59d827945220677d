//! Generates keyfiles from one nmstate document.

use std::collections::{BTreeMap, BTreeSet};

use nmstate::NetworkState;

use super::document::NetworkDocument;
use super::{Keyfile, NetworkError, panics};

/// Maximum length of a document in bytes.
///
/// A host with hundreds of interfaces needs about 100 KiB, and an image reserves 256 KiB for compressed network files.
/// The generator's time is quadratic in the number of interfaces or rules. At this limit, it is at most a few seconds.
pub(super) const MAX_DOCUMENT_LEN: usize = 512 << 10;

/// Maximum number of bytes to generate again in the search for the faulty interface of a document. Each interface may
/// refer to all others. A document with 200 VLANs stays below the limit.
const MAX_SEARCH_LEN: usize = 8 << 20;

/// The key of the keyfiles in the generator's result.
pub(super) const BACKEND_KEY: &str = "NetworkManager";

/// Generates the keyfiles for the nmstate document of one host, in YAML or JSON.
///
/// The files are sorted by name. Two profiles with the same name result in two files with the same name. A document
/// without interfaces results in no files and no error.
///
/// # Errors
///
/// * [`NetworkError::TooLarge`], [`NetworkError::NotText`] or [`NetworkError::Yaml`] if the bytes are not one YAML
///   document within the limits.
/// * [`NetworkError::Parse`] if the document is not a network state.
/// * [`NetworkError::AmbiguousPort`] if two interfaces have the same port.
/// * [`NetworkError::Generate`] if the generator rejects the state, or [`NetworkError::Panic`] if it panics.
/// * [`NetworkError::UnsafeName`] if a profile name contains a slash or a control character, or is too long.
/// * [`NetworkError::NoKeyfiles`] if the generator returns nothing for `NetworkManager`.
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
    check_document_len(document.len())?;
    let text = std::str::from_utf8(document).map_err(NetworkError::NotText)?;
    keyfiles_from_document(&NetworkDocument::parse(text)?)
}

/// Generates the keyfiles for a parsed document.
pub(super) fn keyfiles_from_document(document: &NetworkDocument) -> Result<Vec<Keyfile>, NetworkError> {
    let state = document.state()?;
    check_port_controllers(&state)?;
    let mut generated = run_generator(&state).map_err(|error| match error {
        // If the generator panics for a part of the document, return the error of the whole document.
        NetworkError::Generate { .. } => {
            panics::catch_panic(|| first_rejected_interface(document)).ok().flatten().unwrap_or(error)
        }
        other => other,
    })?;
    generated.sort();
    let mut keyfiles = generated
        .into_iter()
        .map(|(name, contents)| Keyfile::from_generated(name, contents))
        .collect::<Result<Vec<_>, _>>()?;
    keyfiles.sort();
    Ok(keyfiles)
}

pub(super) fn check_document_len(len: usize) -> Result<(), NetworkError> {
    if len > MAX_DOCUMENT_LEN {
        return Err(NetworkError::TooLarge { len });
    }
    Ok(())
}

/// Runs the generator. It stores interfaces in hash tables and reports the first fault that it encounters, so the error
/// may differ between runs if a document has several faults.
fn run_generator(state: &NetworkState) -> Result<Vec<(String, String)>, NetworkError> {
    let generated = panics::catch_panic(|| state.gen_conf());
    let generated = generated.map_err(|message| NetworkError::Panic { message })?;
    let mut backends = generated.map_err(|source| NetworkError::Generate {
        path: String::new(),
        line: None,
        source: Box::new(source),
    })?;
    backends.remove(BACKEND_KEY).ok_or(NetworkError::NoKeyfiles)
}

/// Returns the error of the first faulty interface, because the generator's messages often do not name the interface.
/// An interface is faulty if the generator rejects it together with the interfaces that it refers to. The first one has
/// the fewest references; among equals it is the first in the document.
///
/// Returns `None` if the fault is not in one interface, or if the document has too many interfaces to try each of them.
fn first_rejected_interface(document: &NetworkDocument) -> Option<NetworkError> {
    document.interface_states(MAX_SEARCH_LEN).find_map(|(path, state)| {
        let NetworkError::Generate { source, .. } = run_generator(&state).err()? else { return None };
        Some(NetworkError::Generate { line: document.line(&path), path, source })
    })
}

/// Rejects the first port with two controllers. Interfaces that the document removes or ignores do not count as
/// controllers.
fn check_port_controllers(state: &NetworkState) -> Result<(), NetworkError> {
    let mut controllers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for interface in state.interfaces.iter().filter(|i| !i.is_absent() && !i.is_ignore()) {
        for port in interface.ports().into_iter().flatten() {
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

    fn keyfile_names(document: &str) -> Vec<String> {
        keyfiles(document.as_bytes()).unwrap().into_iter().map(|file| file.name).collect()
    }

    fn only_keyfile(document: &str) -> String {
        let [file] = <[Keyfile; 1]>::try_from(keyfiles(document.as_bytes()).unwrap()).unwrap();
        file.contents
    }

    #[test]
    fn static_address_is_written_to_keyfile() {
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
        assert_eq!(only_keyfile(document), keyfile);
    }

    #[test]
    fn files_are_named_after_profiles_and_sorted() {
        let document = "interfaces:
- {name: eth1, type: ethernet, state: up, profile-name: uplink}
- {name: bond0.404, type: vlan, state: up, vlan: {id: 404, base-iface: bond0}}
- {name: bond0, type: bond, state: up, link-aggregation: {mode: active-backup, port: [eth1, a0]}}
- {name: a0, type: ethernet, state: up}
- {name: old, type: ethernet, state: absent}";
        let expected = ["a0", "bond0.404", "bond0", "uplink"].map(|name| format!("{name}.nmconnection"));
        assert_eq!(keyfile_names(document), expected);
        assert_eq!(keyfile_names("interfaces: []"), [""; 0]);
        assert_eq!(keyfile_names("{}"), [""; 0]);
    }

    #[test]
    fn routing_rules_have_stable_numbers() {
        let rules: Vec<String> = (0..12)
            .map(|i| format!("{{ip-to: 198.51.{i}.0/24, route-table: 254, priority: {}}}", 500 - i))
            .collect();
        let document = format!(
            "interfaces: [{{name: eth0, type: ethernet, state: up, ipv4: {{enabled: true, dhcp: true}}}}]
route-rules: {{config: [{}]}}",
            rules.join(", ")
        );
        let first = only_keyfile(&document);
        assert!(first.contains("routing-rule0=priority 489 to 198.51.11.0/24 table 254\n"), "{first}");
        assert!((0..8).all(|_| only_keyfile(&document) == first));
    }

    #[test]
    fn yaml_and_json_documents_are_equivalent() {
        let yaml = "interfaces: [{name: eth0, type: ethernet, state: up, mtu: 9000}]";
        let json = r#"{"interfaces": [{"name": "eth0", "type": "ethernet", "state": "up", "mtu": "9000"}]}"#;
        assert_eq!(only_keyfile(yaml), only_keyfile(json));
    }

    #[test]
    fn no_break_spaces_are_replaced_unless_the_document_parses() {
        let pasted = "interfaces:\n-\u{a0}name: eth0\n\u{a0} type: ethernet\n\u{a0}\u{a0}state: up\n";
        assert_eq!(keyfile_names(pasted), ["eth0.nmconnection"]);
        let document = "interfaces: [{name: eth0, type: ethernet, state: up, profile-name: \"a\u{a0}b\"}]";
        assert_eq!(keyfile_names(document), ["a\u{a0}b.nmconnection"]);
    }

    #[test]
    fn rejects_port_of_two_controllers() {
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
    fn errors_name_the_step_and_the_reason() {
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
    fn rejects_invalid_documents() {
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
        assert_eq!(keyfile_names(&document).len(), 13);
    }
}

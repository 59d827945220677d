//! The hosts of a file: nmstate documents, `NMStateConfig` manifests, or a list as the API has it.

use std::sync::Arc;

use ignition::network::yaml::Lines;
use ignition::network::{HostNetwork, InputError, is_host_list};

use super::draft::host;
use super::object::Object;
use super::read::{ReadError, documents, parse};
use crate::discovery::{Findings, Host, HostOrigin, Place};

/// Reads the hosts of a file. Each YAML document is the nmstate of one host or a manifest; manifests of other kinds than
/// `NMStateConfig` are left out. A list has the shape of the inventory API's `static_network_config`.
///
/// Hosts are named after their manifest, or after the file: with the index in a list (`hosts.json[3]`), or with the line
/// where the document begins if there are several (`hosts.yaml:12`).
///
/// # Errors
///
/// Returns an error if the file is not text, or a list of something else or of too many hosts.
pub fn read_hosts(file: &str, bytes: &[u8]) -> Result<(Vec<Host>, Findings), InputError> {
    let text = std::str::from_utf8(bytes).map_err(|_| InputError::NotText { file: file.to_owned() })?;
    if is_host_list(text) {
        let hosts = ignition::network::read_hosts(file, bytes)?.into_iter().map(plain);
        return Ok((hosts.collect(), Findings::default()));
    }
    let name: Arc<str> = file.into();
    let parts: Vec<(usize, &str)> = documents(text).filter(|(_, document)| has_content(document)).collect();
    let (mut hosts, mut findings) = (Vec::new(), Findings::default());
    for (skipped, document) in &parts {
        let value = match parse(&name, *skipped, document) {
            Ok(value) => Some(value),
            // The checks of a host count lines from the beginning of its document.
            Err(ReadError::Malformed { place, reason }) if parts.len() > 1 || *skipped > 0 => {
                findings.error(place, reason);
                continue;
            }
            Err(_) => None,
        };
        if let Some(value) = value.filter(|value| value.get("kind").is_some()) {
            let objects = Object::all(&name, (*skipped, document), value, &mut findings);
            let configs = objects.iter().filter(|object| object.kind() == "NMStateConfig");
            hosts.extend(configs.filter_map(|object| host(object, &mut findings)));
        } else {
            let begin = format!("{file}:{}", skipped.saturating_add(1));
            let label = if parts.len() == 1 { file } else { begin.as_str() };
            hosts.push(part((&name, label), *skipped, document));
        }
    }
    if parts.is_empty() {
        hosts.push(plain(HostNetwork::without_macs(text).named(file)));
    } else if hosts.is_empty() && !findings.is_fatal() {
        findings.error(Place::of(file), "has no NMStateConfig");
    }
    Ok((hosts, findings))
}

/// Whether a document has more than comments, directives and marks.
fn has_content(document: &str) -> bool {
    let is_mark =
        |line: &str| line.is_empty() || line.starts_with(['#', '%']) || line == "---" || line == "...";
    document.lines().any(|line| !is_mark(line.trim()))
}

fn plain(network: HostNetwork) -> Host {
    Host { name: network.name().unwrap_or_default().to_owned(), network, origin: None }
}

/// The host of a document.
fn part((file, label): (&Arc<str>, &str), skipped: usize, document: &str) -> Host {
    let origin = HostOrigin {
        file: Arc::clone(file),
        lines: Arc::new(Lines::read(document)),
        skipped,
        network: String::new(),
        interfaces: "mac_interface_map".to_owned(),
    };
    let network = HostNetwork::without_macs(document).named(label);
    Host { name: label.to_owned(), network, origin: Some(Arc::new(origin)) }
}

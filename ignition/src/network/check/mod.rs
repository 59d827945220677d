//! Checks the networks of hosts before an image is built for them.
//!
//! First, each host is checked alone, on all CPUs: its MAC address map, its interfaces, its addresses and routes. If no
//! rule reports an error, the generator tries to generate the keyfiles. Then the hosts are compared: two hosts must not
//! have the same MAC address, static address or name. The checks take about as long as the generation of the keyfiles,
//! and the keyfiles remain in the cache.

mod address;
mod cluster;
mod cycle;
mod declared;
mod duplicates;
mod finding;
mod interface;
mod mac_map;
mod state;

use std::error::Error;

pub use crate::cidr::Cidr;
pub use cluster::{ClusterNetworks, ClusterVip};
pub use declared::{DeclaredInterface, declared_interfaces};
pub use finding::{NetworkFinding, NetworkReport, Rule};

use super::document::NetworkDocument;
use super::generate::{check_document_len, keyfiles_from_document};
use super::yaml::LineIndex;
use super::{Cancel, HostError, HostNetwork, KeyfileCache, NetworkError, files, parallel};
use crate::report::Severity;
use finding::{DraftFinding, shortened};
use state::{HostResult, HostState};

/// The path in findings about the MAC address map.
const MAP_PATH: &str = "mac_interface_map";

/// Checks the hosts of one image and compares them with their cluster.
///
/// # Examples
///
/// ```
/// use ignition::network::check::{ClusterNetworks, check_hosts};
/// use ignition::network::{HostNetwork, KeyfileCache};
///
/// let document = "interfaces:\n- name: eno1\n- {name: v0, type: vlan, vlan: {id: 5000, base-iface: eno1}}\n";
/// let hosts = [HostNetwork::without_macs(document).with_name("a.yaml")];
/// let report = check_hosts(&hosts, &ClusterNetworks::default(), &KeyfileCache::default());
/// assert_eq!(
///     report.to_string(),
///     "a.yaml:3: interfaces[1].vlan.id: error: VLAN 5000 is not within 1 to 4094\n",
/// );
/// ```
#[must_use]
pub fn check_hosts(hosts: &[HostNetwork], cluster: &ClusterNetworks, cache: &KeyfileCache) -> NetworkReport {
    let inspect = |host: &HostNetwork| {
        let mut result = check_host(host, cache);
        cluster::check(cluster, &mut result);
        result
    };
    build_report(hosts, parallel::map(hosts, &Cancel::new(), inspect))
}

/// Checks the hosts of one image. Returns `None` if the work was cancelled.
#[must_use]
pub fn check_hosts_cancellable(
    hosts: &[HostNetwork],
    cache: &KeyfileCache,
    cancel: &Cancel,
) -> Option<NetworkReport> {
    let results = parallel::map(hosts, cancel, |host| check_host(host, cache));
    (!cancel.is_cancelled()).then(|| build_report(hosts, results))
}

/// Compares the hosts with each other. Returns the findings of each host and the findings about several hosts.
fn build_report(hosts: &[HostNetwork], mut results: Vec<HostResult>) -> NetworkReport {
    duplicates::check(hosts, &mut results);
    let findings = hosts.iter().zip(results).enumerate().flat_map(|(index, (host, result))| {
        let lines = needs_lines(host, &result).then(|| LineIndex::read(host.document()));
        result.findings.into_iter().map(move |draft| to_finding(draft, index, host, lines.as_ref()))
    });
    NetworkReport::new(findings.collect())
}

/// Returns `true` if a finding is about a value in the document, so that its line is needed. A document that is too
/// large was not parsed, so its lines are not indexed either.
fn needs_lines(host: &HostNetwork, result: &HostResult) -> bool {
    let is_in_document = |draft: &DraftFinding| !draft.path.is_empty() && !draft.path.starts_with(MAP_PATH);
    result.findings.iter().any(is_in_document) && check_document_len(host.document().len()).is_ok()
}

fn to_finding(
    draft: DraftFinding,
    index: usize,
    host: &HostNetwork,
    lines: Option<&LineIndex>,
) -> NetworkFinding {
    let DraftFinding { severity, rule, interface, path, line, message } = draft;
    let line = line.or_else(|| lines.and_then(|lines| lines.find(&path)));
    let message = match lines {
        Some(lines) => lines.as_written(&path, message),
        None => message,
    };
    let name = host.name().map(Into::into);
    NetworkFinding { severity, rule, host: index, name, interface, path, line, message }
}

/// Applies the rules to one host.
fn check_host(host: &HostNetwork, cache: &KeyfileCache) -> HostResult {
    let mut result = HostResult::default();
    mac_map::check(host, &mut result);
    match NetworkDocument::parse(host.document()) {
        Err(error) => {
            let line = if let NetworkError::Yaml(error) = &error { Some(error.line()) } else { None };
            let draft = DraftFinding::error(Rule::Unreadable, "", with_causes(&error));
            result.push(DraftFinding { line, ..draft });
        }
        Ok(document) => {
            let state = HostState::new(host, document.root());
            interface::check(&state, &mut result);
            cycle::check(&state, &mut result);
            address::check(&state, &mut result);
            if state.interfaces.is_empty() {
                let message = "the document has no interfaces";
                result.push(DraftFinding::error(Rule::NoInterfaces, "interfaces", message));
            }
            if result.findings.iter().all(|finding| finding.severity != Severity::Error)
                && let Err(error) = try_generate(host, &document, cache)
            {
                result.push(generator_finding(&error, &state));
            }
        }
    }
    result
}

/// Generates the keyfiles of a host, to find out whether the generator accepts it.
fn try_generate(
    host: &HostNetwork,
    document: &NetworkDocument,
    cache: &KeyfileCache,
) -> Result<(), HostError> {
    if let Some(interfaces) = host.interfaces() {
        return files::generate_cached(host, interfaces, document, cache);
    }
    keyfiles_from_document(document).map(drop).map_err(HostError::in_document_of(""))
}

/// Converts an error of the generator to a finding, with the interface if it is known.
fn generator_finding(error: &HostError, state: &HostState) -> DraftFinding {
    let HostError::Document { source, .. } = error else {
        return DraftFinding::error(Rule::NoKeyfiles, "", with_causes(error));
    };
    let (path, message) = match source {
        NetworkError::Parse { path, source, .. } => (path, format!("parsing nmstate: {source}")),
        NetworkError::Generate { path, source, .. } => {
            (path, format!("generating configuration from nmstate: {source}"))
        }
        other => return DraftFinding::error(Rule::NoKeyfiles, "", with_causes(other)),
    };
    let draft = DraftFinding::error(Rule::NoKeyfiles, path, one_line(&message));
    let interface = state.interfaces.iter().find(|interface| interface.path == *path);
    DraftFinding { interface: interface.map(|interface| shortened(&interface.name)), ..draft }
}

/// Maximum length of a generator's error in a message, in characters. The error may quote the whole document.
const MAX_ERROR_CHARS: usize = 400;

/// Returns an error and its causes on one line. The generator's errors may have several lines.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    one_line(&chain.map(ToString::to_string).collect::<Vec<_>>().join(": "))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let visible = |it: char| if it.is_control() { '\u{fffd}' } else { it };
    line.chars().take(MAX_ERROR_CHARS).map(visible).collect()
}

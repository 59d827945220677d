//! Finds out what is wrong with the networks of hosts before there is an image of them.
//!
//! Each host is looked at by itself, on all processors: its map of MAC addresses, its interfaces, its addresses and routes;
//! where no rule finds an error, the generator has the last word. Then all hosts are looked at together: no two may have
//! the same MAC address, static address or name. The time is about that of generating the keyfiles, which the cache
//! remembers.

mod across;
mod address;
mod cluster;
mod cycle;
mod declared;
mod finding;
mod interface;
mod mac_map;
mod state;

use std::error::Error;

pub use address::Subnet;
pub use cluster::{ClusterNetworks, Vip};
pub use declared::{DeclaredInterface, interfaces};
pub use finding::{Finding, Report, Rule};

use super::document::Document;
use super::generate::keyfiles_of;
use super::yaml::Lines;
use super::{Cancel, HostError, HostNetwork, KeyfileCache, NetworkError, parallel, payload};
use crate::report::Severity;
use finding::Draft;
use state::{Found, State};

/// The path of what is wrong with a map.
const MAP: &str = "mac_interface_map";

/// Checks hosts that are meant for one image.
///
/// # Examples
///
/// ```
/// use ignition::network::{HostNetwork, KeyfileCache, check::check};
///
/// let document = "interfaces:\n- name: eno1\n  type: ethernet\n- name: v0\n  type: vlan\n  vlan: {id: 5000, base-iface: eno1}\n";
/// let report = check(&[HostNetwork::without_macs(document).named("a.yaml")], &KeyfileCache::default());
/// assert_eq!(
///     report.to_string(),
///     "a.yaml:6: interfaces[1].vlan.id: error: VLAN 5000 is not within 1 to 4094\n",
/// );
/// ```
#[must_use]
pub fn check(hosts: &[HostNetwork], cache: &KeyfileCache) -> Report {
    check_for(hosts, &ClusterNetworks::default(), cache)
}

/// Checks hosts as [`check`] does, and compares them with the cluster that they are meant for.
#[must_use]
pub fn check_for(hosts: &[HostNetwork], cluster: &ClusterNetworks, cache: &KeyfileCache) -> Report {
    let inspect = |host: &HostNetwork| {
        let mut found = inspect(host, cache);
        cluster::check(cluster, &mut found);
        found
    };
    report(hosts, parallel::map(hosts, &Cancel::new(), inspect))
}

/// Checks hosts as [`check`] does. Returns nothing if the work was cancelled.
#[must_use]
pub fn check_until(hosts: &[HostNetwork], cache: &KeyfileCache, cancel: &Cancel) -> Option<Report> {
    let found = parallel::map(hosts, cancel, |host| inspect(host, cache));
    (!cancel.is_cancelled()).then(|| report(hosts, found))
}

/// Compares the hosts, and reports what was found in each and among them.
fn report(hosts: &[HostNetwork], mut found: Vec<Found>) -> Report {
    across::check(hosts, &mut found);
    let findings = hosts.iter().zip(found).enumerate().flat_map(|(index, (host, found))| {
        let lines = (!found.findings.is_empty()).then(|| Lines::read(host.document()));
        found.findings.into_iter().map(move |draft| finish(draft, index, host, lines.as_ref()))
    });
    Report::new(findings.collect())
}

fn finish(draft: Draft, index: usize, host: &HostNetwork, lines: Option<&Lines>) -> Finding {
    let Draft { severity, rule, interface, path, line, message } = draft;
    let line = line.or_else(|| lines.and_then(|lines| lines.find(&path)));
    let message = match lines {
        Some(lines) => lines.as_written(&path, message),
        None => message,
    };
    let name = host.name().map(Into::into);
    Finding { severity, rule, host: index, name, interface, path, line, message }
}

/// What there is to say about one host.
fn inspect(host: &HostNetwork, cache: &KeyfileCache) -> Found {
    let mut found = Found::default();
    mac_map::check(host, &mut found);
    match Document::parse(host.document()) {
        Err(error) => {
            // The end of a text may be one line after its last.
            let last = host.document().lines().count().max(1);
            let line =
                if let NetworkError::Yaml(error) = &error { Some(error.line().min(last)) } else { None };
            found.push(Draft { line, ..Draft::error(Rule::Unreadable, "", causes(&error)) });
        }
        Ok(document) => {
            let state = State::new(host, document.root());
            interface::check(&state, &mut found);
            cycle::check(&state, &mut found);
            address::check(&state, &mut found);
            if state.interfaces.is_empty() {
                let message = "the document has no interfaces";
                found.push(Draft::error(Rule::NoInterfaces, "interfaces", message));
            }
            if found.findings.iter().all(|finding| finding.severity != Severity::Error)
                && let Err(error) = generate(host, &document, cache)
            {
                found.push(refused(&error, &state));
            }
        }
    }
    found
}

/// Whether the generator makes keyfiles of a host.
fn generate(host: &HostNetwork, document: &Document, cache: &KeyfileCache) -> Result<(), HostError> {
    if host.interfaces().is_some() {
        return payload::generate_cached(host, document, cache);
    }
    keyfiles_of(document).map(drop).map_err(|source| HostError::Document { host: String::new(), source })
}

/// What the generator has against a host, and against which of its interfaces.
fn refused(error: &HostError, state: &State) -> Draft {
    let HostError::Document { source, .. } = error else {
        return Draft::error(Rule::NoKeyfiles, "", causes(error));
    };
    if let NetworkError::Parse { path, source, .. } = source {
        let draft = Draft::error(Rule::NoKeyfiles, path, one_line(&format!("parsing nmstate: {source}")));
        let interface = state.interfaces.iter().find(|interface| interface.path == *path);
        return match interface {
            Some(interface) => draft.of(&interface.name),
            None => draft,
        };
    }
    let message = causes(source);
    let NetworkError::Generate { interface: Some(name), .. } = source else {
        return Draft::error(Rule::NoKeyfiles, "", message);
    };
    let path = state.by_name().get(&**name).map(|interface| interface.path.clone());
    Draft::error(Rule::NoKeyfiles, path.unwrap_or_default(), message).of(name)
}

/// Most characters of a generator's error. It may quote all of a document.
const MAX_MESSAGE: usize = 400;

/// An error with its causes in one line. Those of the generator may have several.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    one_line(&text)
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = |it: char| if it.is_control() { '\u{fffd}' } else { it };
    line.chars().take(MAX_MESSAGE).map(shown).collect()
}

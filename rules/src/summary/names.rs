//! Results of DNS lookups, from the agent's reply to `domain-resolution`.

use assisted::reply::{DomainReport, DomainResolution};

use super::compact::{compact, exact};
use super::excess::{ExcessLog, ExcessPart, ListLimit};
use super::limits::{MAX_ADDRESS_TEXT, MAX_ADDRESSES, MAX_NAME_BYTES, MAX_NAMES, MAX_TEXT};

const NAMES: ListLimit = ListLimit::new(ExcessPart::Names, MAX_NAMES).with_heap_bytes(MAX_NAME_BYTES);
const ADDRESSES: ListLimit = ListLimit::new(ExcessPart::Addresses, MAX_ADDRESSES);
const CNAMES: ListLimit = ListLimit::new(ExcessPart::Cnames, MAX_ADDRESSES);

compact! {
    /// The result of one DNS lookup.
    #[derive(Eq)]
    ResolvedName {
        /// The domain name that the agent looked up.
        name: Box<str>,
        /// Addresses of the name, as reported: IPv4 before IPv6.
        #[serde(rename = "ips", deserialize_with = "exact")]
        addresses: Vec<Box<str>>,
        /// Canonical names of the name, as reported.
        #[serde(deserialize_with = "exact")]
        cnames: Vec<Box<str>>,
    }
}

/// Converts the reply of the agent into a summary.
pub(super) fn read_names(log: &mut ExcessLog, report: &DomainReport<'_>) -> Vec<ResolvedName> {
    log.list(NAMES, report.resolutions.iter(), resolved_name)
}

fn resolved_name(log: &mut ExcessLog, resolution: &DomainResolution<'_>) -> ResolvedName {
    let addresses = resolution.ipv4_addresses.iter().chain(resolution.ipv6_addresses.iter());
    ResolvedName {
        name: log.text(&resolution.domain_name, MAX_TEXT),
        addresses: log.list(ADDRESSES, addresses, |log, address| log.text(address, MAX_ADDRESS_TEXT)),
        cnames: log.list(CNAMES, resolution.cnames.iter(), |log, cname| log.text(cname, MAX_TEXT)),
    }
}

//! Rules for interfaces, their ports and their base interfaces.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::finding::{DraftFinding, Rule, excerpt, shortened};
use super::state::{HostResult, HostState, Identity, Interface, is_predictable_name};
use crate::network::{MacAddr, MacError, yaml};
use crate::report::Severity;

/// Maximum length of an interface name in the kernel, in bytes.
const MAX_NAME_LEN: usize = 15;
/// Maximum VLAN ID. 4095 is reserved.
const MAX_VLAN: i128 = 4094;
/// Minimum MTU of IPv4, maximum MTU, and minimum MTU of IPv6.
const MIN_MTU: i128 = 68;
const MAX_MTU: i128 = 65_535;
const MIN_MTU_IPV6: i128 = 1280;

const ETHERNET_TYPES: &[&str] = &["ethernet", "802-3-ethernet"];
/// Sections of an interface that contain ports, with the keys of the port lists.
const SECTIONS_WITH_PORTS: &[(&str, &[&str])] = &[
    ("link-aggregation", &["port", "ports", "ports-config"]),
    ("bridge", &["port", "ports"]),
    ("vrf", &["port", "ports"]),
];
/// Sections of an interface that contain the name of a base interface.
const SECTIONS_WITH_BASE: &[&str] =
    &["vlan", "vxlan", "mac-vlan", "mac-vtap", "macsec", "ipvlan", "infiniband"];
/// Types of interfaces that exist only in user space. Their names may be the same as the name of a kernel interface.
pub(super) const USER_SPACE_TYPES: &[&str] = &["ovs-bridge", "ovs-port", "ipsec"];

/// A port or base interface of another interface.
pub(super) struct Subordinate<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) path: String,
    is_base: bool,
}

pub(super) fn check(state: &HostState, result: &mut HostResult) {
    let by_name = state.interfaces_by_name();
    let mut names = HashSet::new();
    let mut controllers: HashMap<Cow<str>, &Interface> = HashMap::new();
    let mut used: HashSet<Cow<str>> = HashSet::new();
    for interface in &state.interfaces {
        let class = interface.has_type(USER_SPACE_TYPES);
        if !names.insert((&*interface.name, class)) {
            let message = format!("duplicate interface {}", excerpt(&interface.name));
            result.push(interface.error(Rule::DuplicateInterface, "name", message));
        }
        check_name(&interface.name, &format!("{}.name", interface.path), result);
        check_mac(interface, result);
        check_mtu(interface, &by_name, result);
        check_vlan(interface, result);
        check_mapping(state, interface, result);
        for part in subordinates(interface) {
            check_declared(state, interface, &part, &by_name, result);
            if !part.is_base {
                let first = *controllers.entry(part.name.clone()).or_insert(interface);
                if first.name != interface.name {
                    let [port, one, other] = [&part.name, &first.name, &interface.name].map(|it| excerpt(it));
                    let message = format!("{port} is a port of both {one} and {other}");
                    let finding = DraftFinding::error(Rule::PortOfTwo, &part.path, message);
                    result.push(finding.with_interface(&interface.name));
                }
            }
            used.insert(part.name);
        }
    }
    check_unused_names(state, &by_name, &used, result);
}

/// Reports names in the map that the document does not use.
fn check_unused_names(
    state: &HostState,
    by_name: &HashMap<&str, &Interface>,
    used: &HashSet<Cow<str>>,
    result: &mut HostResult,
) {
    let is_used = |name: &&str| by_name.contains_key(*name) || used.contains(*name);
    let mapped = state.mapped.iter().flatten().map(|(name, position)| (*name, *position));
    let mut unused: Vec<(&str, usize)> = mapped.filter(|(name, _)| !is_used(name)).collect();
    unused.sort_unstable();
    for (name, position) in unused {
        let path = format!("{}[{position}].logical_nic_name", super::MAP_PATH);
        let message = format!("the document has no interface {}", excerpt(name));
        result.push(DraftFinding::warning(Rule::UnusedMac, path, message).with_interface(name));
    }
}

/// Checks that a name is valid for the kernel and in the files for early boot.
pub(super) fn check_name(name: &str, path: &str, result: &mut HostResult) {
    let is_wrong = |it: char| it.is_whitespace() || it.is_control() || "/:%".contains(it);
    let message = if name.len() > MAX_NAME_LEN {
        format!(
            "the name {} is {} bytes long; the kernel accepts at most {MAX_NAME_LEN}",
            excerpt(name),
            name.len()
        )
    } else if name.is_empty() || name == "." || name == ".." || name.contains(is_wrong) {
        format!("\"{}\" is not a valid interface name", shortened(name))
    } else {
        return;
    };
    result.push(DraftFinding::error(Rule::InterfaceName, path, message).with_interface(name));
}

/// Parses the MAC address of an interface. The error is the message of a finding.
pub(super) fn parse_unicast_mac(text: &str) -> Result<MacAddr, String> {
    let mac: MacAddr = text.parse().map_err(|error: MacError| error.to_string())?;
    if mac.is_unicast() {
        return Ok(mac);
    }
    Err(format!("no interface can have the address {}", excerpt(text)))
}

fn check_mac(interface: &Interface, result: &mut HostResult) {
    let Some(text) = yaml::text_at(interface.value, "mac-address") else {
        if interface.is_known_by_mac() {
            let message = "the interface is identified by its MAC address, but has none";
            result.push(interface.error(Rule::MalformedMac, "identifier", message));
        }
        return;
    };
    match parse_unicast_mac(&text) {
        Ok(mac) => {
            let path = format!("{}.mac-address", interface.path);
            result.claim(Identity::Mac(mac), &text, Some(&interface.name), path);
        }
        Err(message) => result.push(interface.error(Rule::MalformedMac, "mac-address", message)),
    }
}

fn check_mtu(interface: &Interface, by_name: &HashMap<&str, &Interface>, result: &mut HostResult) {
    let mtu = match yaml::number_at(interface.value, "mtu") {
        Some(Ok(mtu)) => mtu,
        Some(Err(text)) => {
            let message = format!("\"{}\" is not a valid MTU", shortened(&text));
            return result.push(interface.error(Rule::Mtu, "mtu", message));
        }
        None => return,
    };
    let has_v6 = yaml::value_at(interface.value, "ipv6").is_some_and(|it| yaml::flag_at(it, "enabled"));
    let base = yaml::value_at(interface.value, "vlan").and_then(|vlan| yaml::text_at(vlan, "base-iface"));
    let base =
        base.and_then(|base| by_name.get(&*base)).and_then(|base| yaml::number_at(base.value, "mtu")?.ok());
    let mtu_text = yaml::text_at(interface.value, "mtu").map(|text| excerpt(&text)).unwrap_or_default();
    // Any MTU is valid for a loopback interface.
    let is_in_range =
        if interface.has_type(&["loopback"]) { mtu >= 0 } else { (MIN_MTU..=MAX_MTU).contains(&mtu) };
    let message = if !is_in_range {
        format!("an MTU of {mtu_text} is not within {MIN_MTU} to {MAX_MTU}")
    } else if has_v6 && mtu < MIN_MTU_IPV6 {
        format!("an MTU of {mtu_text} is too small for IPv6, which needs {MIN_MTU_IPV6}")
    } else if let Some(base) = base.filter(|base| mtu > *base) {
        format!("an MTU of {mtu_text} exceeds the MTU of the base interface {base}")
    } else {
        return;
    };
    result.push(interface.error(Rule::Mtu, "mtu", message));
}

fn check_vlan(interface: &Interface, result: &mut HostResult) {
    let Some(vlan) = yaml::value_at(interface.value, "vlan").filter(|vlan| vlan.is_object()) else { return };
    let message = match yaml::number_at(vlan, "id") {
        Some(Ok(0)) => {
            let message = "VLAN 0 is not a VLAN: it only marks the priority of packets";
            let finding = interface.error(Rule::VlanId, "vlan.id", message);
            return result.push(DraftFinding { severity: Severity::Warning, ..finding });
        }
        Some(Ok(1..=MAX_VLAN)) => return,
        Some(Ok(_)) => {
            let id = yaml::text_at(vlan, "id").unwrap_or_default();
            format!("VLAN {} is not within 1 to {MAX_VLAN}", excerpt(&id))
        }
        Some(Err(text)) => format!("\"{}\" is not a valid VLAN ID", shortened(&text)),
        None => "the VLAN ID is missing or not a number".to_owned(),
    };
    result.push(interface.error(Rule::VlanId, "vlan.id", message));
}

/// Returns `true` if the type of an interface is a type of network cards.
pub(super) fn is_network_card(interface: &Interface) -> bool {
    interface.kind.is_none() || interface.has_type(ETHERNET_TYPES)
}

/// Checks that a network card can be found by its MAC address, or by its name if the document uses the kernel's name.
fn check_mapping(state: &HostState, interface: &Interface, result: &mut HostResult) {
    let name = &*interface.name;
    let is_found = state.is_mapped(name) || interface.is_known_by_mac();
    if state.mapped.is_none() || !is_network_card(interface) || is_found {
        return;
    }
    let mut message = format!("interface {} has no MAC address in the map", excerpt(name));
    let severity = if is_predictable_name(name) {
        message.push_str(": the settings apply only on a machine with a card of that name");
        Severity::Warning
    } else if interface.kind.is_none() {
        // An interface without a type may have any type, so it is not necessarily a network card.
        Severity::Warning
    } else {
        Severity::Error
    };
    let finding = DraftFinding::new(severity, Rule::UnmappedInterface, &interface.path, message);
    result.push(finding.with_interface(name));
}

/// Returns the ports and base interfaces of an interface, without duplicates.
pub(super) fn subordinates<'a>(interface: &Interface<'a>) -> Vec<Subordinate<'a>> {
    let mut parts = Vec::new();
    for (section, keys) in SECTIONS_WITH_PORTS {
        for key in *keys {
            let path = format!("{}.{section}.{key}", interface.path);
            add_ports(yaml::list_at(interface.value, &[section, key]), &path, &mut parts);
        }
    }
    for section in SECTIONS_WITH_BASE {
        let base = yaml::value_at(interface.value, section).and_then(|it| yaml::text_at(it, "base-iface"));
        let path = format!("{}.{section}.base-iface", interface.path);
        let base = base.filter(|name| !name.is_empty());
        parts.extend(base.map(|name| Subordinate { name, path, is_base: true }));
    }
    let mut names = HashSet::new();
    parts.retain(|part| names.insert((part.name.clone(), part.is_base)));
    parts
}

/// Adds the ports in a list. A port is a name or a mapping with a name. A port of an OVS bridge may be a bond with its
/// own ports; the name of that bond is not an interface.
fn add_ports<'a>(list: &'a [Value], path: &str, parts: &mut Vec<Subordinate<'a>>) {
    let mut add = |port: &'a Value, path: String| {
        let name = yaml::scalar_text(port).or_else(|| yaml::text_at(port, "name"));
        parts.extend(name.map(|name| Subordinate { name, path, is_base: false }));
    };
    for (index, port) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let bonded = ["port", "ports"].map(|key| yaml::list_at(port, &["link-aggregation", key]));
        if bonded.iter().all(|bonded| bonded.is_empty()) {
            add(port, path);
            continue;
        }
        for (index, port) in bonded.into_iter().flatten().enumerate() {
            add(port, format!("{path}.link-aggregation.port[{index}]"));
        }
    }
}

fn check_declared(
    state: &HostState,
    interface: &Interface,
    part: &Subordinate,
    by_name: &HashMap<&str, &Interface>,
    result: &mut HostResult,
) {
    let name = &*part.name;
    if by_name.contains_key(name) || state.is_mapped(name) {
        return;
    }
    let mut message =
        format!("{} uses {}, which the document does not declare", excerpt(&interface.name), excerpt(name));
    let is_certain = if is_predictable_name(name) {
        message.push_str(": it works only on a machine with a network card of that name");
        false
    } else if state.mapped.is_some() {
        message.push_str(", and the map has no MAC address for it");
        true
    } else {
        // Without a map, nmstate creates an interface with the name of an undeclared port, so only an undeclared base
        // interface is certainly an error.
        part.is_base
    };
    let severity = if is_certain { Severity::Error } else { Severity::Warning };
    let finding = DraftFinding::new(severity, Rule::UnknownInterface, &part.path, message);
    result.push(finding.with_interface(&interface.name));
}

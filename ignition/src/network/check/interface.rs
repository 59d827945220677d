//! Rules for interfaces by themselves and for what they are built of.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::finding::{Draft, Rule, shown};
use super::state::{Claim, Found, Identity, Interface, State, is_predictable};
use crate::network::{MacAddr, yaml};

/// Longest name that the kernel takes, in bytes.
const MAX_NAME_LEN: usize = 15;
/// The VLANs of a network; those beside them are reserved.
const MAX_VLAN: i128 = 4094;
/// Smallest and largest packets of IPv4, and the smallest that IPv6 needs.
const MIN_MTU: i128 = 68;
const MAX_MTU: i128 = 65_535;
const MIN_MTU_V6: i128 = 1280;

const ETHERNET: &[&str] = &["ethernet", "802-3-ethernet"];
/// Parts of interfaces that name what they are built on.
const BASES: &[&str] = &["vlan", "vxlan", "mac-vlan", "mac-vtap", "macsec", "ipvlan", "infiniband"];
/// Types whose interfaces may share their names with others: their names are not the kernel's.
pub(super) const USER_SPACE: &[&str] = &["ovs-bridge", "ovs-port", "ipsec"];

/// An interface that another one names.
pub(super) struct Part<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) path: String,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Port,
    Base,
}

pub(super) fn check(state: &State, found: &mut Found) {
    let by_name = state.by_name();
    let mut names = HashSet::new();
    let mut controllers: HashMap<Cow<str>, &Interface> = HashMap::new();
    let mut used: HashSet<Cow<str>> = HashSet::new();
    for interface in &state.interfaces {
        let class = interface.is_kind(USER_SPACE);
        if !names.insert((&*interface.name, class)) {
            let message = format!("there is another interface {}", shown(&interface.name));
            report(found, interface, "name", Rule::DuplicateInterface, message);
        }
        name(&interface.name, &format!("{}.name", interface.path), found);
        mac(interface, found);
        mtu(interface, &by_name, found);
        vlan(interface, found);
        mapping(state, interface, found);
        for part in parts(interface) {
            known(state, interface, &part, &by_name, found);
            if part.role != Role::Base {
                let first = *controllers.entry(part.name.clone()).or_insert(interface);
                let (one, other) = (shown(&first.name), shown(&interface.name));
                if first.name != interface.name {
                    let message = format!("{} is a port of both {one} and {other}", shown(&part.name));
                    found.push(Draft::error(Rule::PortOfTwo, &part.path, message).of(&interface.name));
                }
            }
            used.insert(part.name);
        }
    }
    unused(state, &by_name, &used, found);
}

fn report(found: &mut Found, interface: &Interface, key: &str, rule: Rule, message: String) {
    found.push(Draft::error(rule, format!("{}.{key}", interface.path), message).of(&interface.name));
}

/// Names of the map that the document does not have.
fn unused(state: &State, by_name: &HashMap<&str, &Interface>, used: &HashSet<Cow<str>>, found: &mut Found) {
    let is_used = |name: &&str| by_name.contains_key(*name) || used.contains(*name);
    let mapped = state.mapped.iter().flatten().map(|(name, position)| (*name, *position));
    let mut unused: Vec<(&str, usize)> = mapped.filter(|(name, _)| !is_used(name)).collect();
    unused.sort_unstable();
    for (name, position) in unused {
        let path = format!("{}[{position}].logical_nic_name", super::MAP);
        let message = format!("the document has no interface {}", shown(name));
        found.push(Draft::warning(Rule::UnusedMac, path, message).of(name));
    }
}

/// A name has to be one for the kernel, and one that the files of the early boot can hold.
pub(super) fn name(name: &str, path: &str, found: &mut Found) {
    let is_wrong = |it: char| it.is_whitespace() || it.is_control() || "/:%".contains(it);
    let message = if name.len() > MAX_NAME_LEN {
        format!("the name {} has {} bytes; the kernel takes {MAX_NAME_LEN}", shown(name), name.len())
    } else if name.is_empty() || name == "." || name == ".." || name.contains(is_wrong) {
        format!("\"{}\" is not a valid interface name", shown(name))
    } else {
        return;
    };
    found.push(Draft::error(Rule::InterfaceName, path, message).of(name));
}

fn mac(interface: &Interface, found: &mut Found) {
    let path = format!("{}.mac-address", interface.path);
    let written = yaml::text_at(interface.value, "mac-address");
    match written.map(|text| (text.parse::<MacAddr>(), text.into_owned())) {
        Some((Ok(mac), written)) if mac.is_unicast() => found.claim(Claim {
            identity: Identity::Mac(mac),
            written,
            interface: Some(interface.name.clone().into_owned()),
            path,
        }),
        Some((Ok(_), written)) => {
            let message = format!("no interface can have the address {}", shown(&written));
            report(found, interface, "mac-address", Rule::MalformedMac, message);
        }
        Some((Err(error), _)) => {
            report(found, interface, "mac-address", Rule::MalformedMac, error.to_string());
        }
        None if interface.is_known_by_mac() => {
            let message = "the interface is to be known by a MAC address, but has none".to_owned();
            report(found, interface, "identifier", Rule::MalformedMac, message);
        }
        None => {}
    }
}

fn mtu(interface: &Interface, by_name: &HashMap<&str, &Interface>, found: &mut Found) {
    let mtu = match yaml::number(interface.value, "mtu") {
        Some(Ok(mtu)) => mtu,
        Some(Err(text)) => {
            let message = format!("\"{}\" is not a valid MTU", shown(&text));
            report(found, interface, "mtu", Rule::Mtu, message);
            return;
        }
        None => return,
    };
    let has_v6 = yaml::get(interface.value, "ipv6").is_some_and(|it| yaml::flag(it, "enabled"));
    let base = yaml::get(interface.value, "vlan").and_then(|vlan| yaml::text_at(vlan, "base-iface"));
    let base =
        base.and_then(|base| by_name.get(&*base)).and_then(|base| yaml::number(base.value, "mtu")?.ok());
    let written = yaml::text_at(interface.value, "mtu").map(|text| shown(&text)).unwrap_or_default();
    // A loopback interface may have any.
    let is_in_range =
        if interface.is_kind(&["loopback"]) { mtu >= 0 } else { (MIN_MTU..=MAX_MTU).contains(&mtu) };
    let message = if !is_in_range {
        format!("an MTU of {written} is not within {MIN_MTU} to {MAX_MTU}")
    } else if has_v6 && mtu < MIN_MTU_V6 {
        format!("an MTU of {written} is too small for IPv6, which needs {MIN_MTU_V6}")
    } else if let Some(base) = base.filter(|base| mtu > *base) {
        format!("an MTU of {written} is above that of the interface below, {base}")
    } else {
        return;
    };
    report(found, interface, "mtu", Rule::Mtu, message);
}

fn vlan(interface: &Interface, found: &mut Found) {
    let Some(vlan) = yaml::get(interface.value, "vlan").filter(|vlan| vlan.is_object()) else { return };
    let message = match yaml::number(vlan, "id") {
        Some(Ok(0)) => {
            let message = "VLAN 0 is not a VLAN: it only marks the priority of packets";
            let path = format!("{}.vlan.id", interface.path);
            found.push(Draft::warning(Rule::VlanId, path, message).of(&interface.name));
            return;
        }
        Some(Ok(1..=MAX_VLAN)) => return,
        Some(Ok(_)) => {
            let id = yaml::text_at(vlan, "id").unwrap_or_default();
            format!("VLAN {} is not within 1 to {MAX_VLAN}", shown(&id))
        }
        Some(Err(text)) => format!("\"{}\" is not a valid VLAN ID", shown(&text)),
        None => "the VLAN ID is missing or not a number".to_owned(),
    };
    report(found, interface, "vlan.id", Rule::VlanId, message);
}

/// Whether an interface is a network card, as far as its type says.
pub(super) fn is_network_card(interface: &Interface) -> bool {
    interface.kind.is_none() || interface.is_kind(ETHERNET)
}

/// A network card is found by its MAC address, or by its name if the machine gives it the same name as the document.
fn mapping(state: &State, interface: &Interface, found: &mut Found) {
    let name = &*interface.name;
    let is_found = state.is_mapped(name) || interface.is_known_by_mac();
    if state.mapped.is_none() || !is_network_card(interface) || is_found {
        return;
    }
    let message = format!("interface {} has no MAC address in the map", shown(name));
    let finding = match interface.kind {
        _ if is_predictable(name) => {
            let message = format!("{message}: the settings apply only on a machine with a card of that name");
            Draft::warning(Rule::UnmappedInterface, &interface.path, message)
        }
        Some(_) => Draft::error(Rule::UnmappedInterface, &interface.path, message),
        // Without a type, it may be an interface of any kind.
        None => Draft::warning(Rule::UnmappedInterface, &interface.path, message),
    };
    found.push(finding.of(name));
}

/// The interfaces that one names, each once.
pub(super) fn parts<'a>(interface: &Interface<'a>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let lists = [
        ("link-aggregation", "port", Role::Port),
        ("link-aggregation", "ports", Role::Port),
        ("link-aggregation", "ports-config", Role::Port),
        ("bridge", "port", Role::Port),
        ("bridge", "ports", Role::Port),
        ("vrf", "port", Role::Port),
        ("vrf", "ports", Role::Port),
    ];
    for (section, key, role) in lists {
        let list = yaml::list(interface.value, &[section, key]);
        let path = format!("{}.{section}.{key}", interface.path);
        ports(list, &path, role, &mut parts);
    }
    for section in BASES {
        let base = yaml::get(interface.value, section).and_then(|it| yaml::text_at(it, "base-iface"));
        let path = format!("{}.{section}.base-iface", interface.path);
        parts.extend(base.filter(|it| !it.is_empty()).map(|name| Part { name, path, role: Role::Base }));
    }
    let mut seen = HashSet::new();
    parts.retain(|part| seen.insert((part.name.clone(), part.role == Role::Base)));
    parts
}

/// Ports are names or mappings with a name; those of an OVS bridge may be bonds of others, whose names are only its own.
fn ports<'a>(list: &'a [Value], path: &str, role: Role, parts: &mut Vec<Part<'a>>) {
    for (index, port) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let bonded = ["port", "ports"].map(|key| yaml::list(port, &["link-aggregation", key]));
        if bonded.iter().all(|bonded| bonded.is_empty()) {
            let name = yaml::text(port).or_else(|| yaml::text_at(port, "name"));
            parts.extend(name.map(|name| Part { name, path, role }));
            continue;
        }
        for (index, port) in bonded.into_iter().flatten().enumerate() {
            let path = format!("{path}.link-aggregation.port[{index}]");
            let name = yaml::text(port).or_else(|| yaml::text_at(port, "name"));
            parts.extend(name.map(|name| Part { name, path, role }));
        }
    }
}

fn known(
    state: &State,
    interface: &Interface,
    part: &Part,
    by_name: &HashMap<&str, &Interface>,
    found: &mut Found,
) {
    let name = &*part.name;
    if by_name.contains_key(name) || state.is_mapped(name) {
        return;
    }
    let mut message =
        format!("{} uses {}, which the document does not declare", shown(&interface.name), shown(name));
    let is_certain = if is_predictable(name) {
        message.push_str(": it works only on a machine with a network card of that name");
        false
    } else if state.mapped.is_some() {
        message.push_str(", and the map has no MAC address for it");
        true
    } else {
        // Without a map, nmstate makes an interface of a port, under the name that it is given.
        part.role == Role::Base
    };
    let finding = match is_certain {
        true => Draft::error(Rule::UnknownInterface, &part.path, message),
        false => Draft::warning(Rule::UnknownInterface, &part.path, message),
    };
    found.push(finding.of(&interface.name));
}

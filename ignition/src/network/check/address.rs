//! Rules for addresses, routes and name servers.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use serde_json::Value;

use super::finding::{Draft, Rule, shown};
use super::state::{Claim, Found, Identity, Interface, State};
use crate::network::yaml;

/// Types whose interfaces have addresses that the document does not name.
const OWN_ADDRESSES: &[&str] = &["loopback", "ipsec"];

/// An address with the length of its network's prefix, such as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    address: IpAddr,
    prefix: u32,
}

impl Subnet {
    /// Parses an address and the length of its prefix with a slash between them.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let (address, prefix) = (address.parse().ok()?, prefix.parse().ok()?);
        (prefix <= number(address).1).then_some(Self { address, prefix })
    }

    /// Whether an address is in the network.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let (own, bits) = number(self.address);
        let (other, other_bits) = number(address);
        let shift = bits.saturating_sub(self.prefix);
        bits == other_bits && own.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
    }

    /// The network without the bits that are the host's.
    #[must_use]
    pub fn trunc(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        };
        Self { address, ..self }
    }

    /// Whether it is a network of IPv4 addresses.
    pub(super) fn is_ipv4(self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether the network is this address alone.
    fn is_single(self) -> bool {
        self.prefix == number(self.address).1
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// An address as a number, with its number of bits.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_bits().into(), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// What an interface has of one family of addresses.
struct Family<'a> {
    section: &'static str,
    value: &'a Value,
}

impl<'a> Family<'a> {
    /// Both families, as far as they are there and not switched off.
    fn of(interface: &Interface<'a>) -> impl Iterator<Item = Self> {
        let is_on = |it: &Self| yaml::get(it.value, "enabled").is_none() || yaml::flag(it.value, "enabled");
        Self::all(interface).filter(is_on)
    }

    fn all(interface: &Interface<'a>) -> impl Iterator<Item = Self> {
        let value = interface.value;
        let family = move |section| Some(Self { section, value: yaml::get(value, section)? });
        ["ipv4", "ipv6"].into_iter().filter_map(family)
    }

    fn is_dynamic(&self) -> bool {
        yaml::flag(self.value, "dhcp") || yaml::flag(self.value, "autoconf")
    }

    fn list(&self) -> &'a [Value] {
        yaml::list(self.value, &["address"])
    }

    /// The addresses, by their place in the list. What is none is left to the generator.
    fn addresses(&self) -> impl Iterator<Item = (usize, Subnet)> {
        let address = |(index, value): (usize, &Value)| {
            let address = yaml::text_at(value, "ip")?.parse().ok()?;
            let prefix = u32::try_from(yaml::number(value, "prefix-length")?.ok()?).ok()?;
            (prefix <= number(address).1).then_some((index, Subnet { address, prefix }))
        };
        self.list().iter().enumerate().filter_map(address)
    }

    /// An address as the user wrote it.
    fn written(&self, index: usize) -> String {
        let text = self.list().get(index).and_then(|value| yaml::text_at(value, "ip"));
        text.map(|text| text.into_owned()).unwrap_or_default()
    }

    /// Addresses are IP addresses, also if the family is switched off. nmstate reports neither the line nor the value.
    fn syntax(&self, interface: &Interface, found: &mut Found) {
        for (index, value) in self.list().iter().enumerate() {
            let Some(written) = yaml::text_at(value, "ip") else { continue };
            if written.parse::<IpAddr>().is_err() {
                let path = format!("{}.{}.address[{index}].ip", interface.path, self.section);
                let finding = Draft::error(Rule::MalformedAddress, path, not_an_address(&written));
                found.push(finding.of(&interface.name));
            }
        }
    }

    /// The prefix of an address fits into it, also where the family is switched off.
    fn prefixes(&self, interface: &Interface, found: &mut Found) {
        for (index, value) in self.list().iter().enumerate().filter(|(_, value)| value.is_object()) {
            let address = yaml::text_at(value, "ip").and_then(|text| text.parse::<IpAddr>().ok());
            let bits = if self.section == "ipv4" { 32 } else { 128 };
            let max: i128 = address.map_or(bits, |address| number(address).1).into();
            let message = match yaml::number(value, "prefix-length") {
                Some(Ok(prefix)) if (0..=max).contains(&prefix) => continue,
                Some(Ok(_)) => {
                    let written = yaml::text_at(value, "prefix-length").unwrap_or_default();
                    format!("a prefix of {} bits is not within 0 to {max}", shown(&written))
                }
                Some(Err(text)) => format!("\"{}\" is not a valid prefix length", shown(&text)),
                None => "the address has no prefix length".to_owned(),
            };
            let path = format!("{}.{}.address[{index}].prefix-length", interface.path, self.section);
            found.push(Draft::error(Rule::PrefixLength, path, message).of(&interface.name));
        }
    }
}

pub(super) fn check(state: &State, found: &mut Found) {
    for interface in &state.interfaces {
        Family::all(interface).for_each(|family| {
            family.prefixes(interface, found);
            family.syntax(interface, found);
        });
        claims(interface, found);
        dynamic(interface, found);
    }
    let by_name = state.by_name();
    let routes: Vec<Route> =
        yaml::list(state.root, &["routes", "config"]).iter().enumerate().filter_map(Route::read).collect();
    let on_link = on_link(&routes);
    for route in &routes {
        route.syntax(found);
        route.check(&by_name, &on_link, found);
    }
    name_servers(state, found);
    hostname(state, found);
}

/// The name of an address family, by its section.
fn title(section: &str) -> &'static str {
    if section == "ipv4" { "IPv4" } else { "IPv6" }
}

fn not_an_address(written: &str) -> String {
    format!("\"{}\" is not an IP address", shown(written))
}

/// Notes the families in which an interface gets addresses that the document does not have.
fn dynamic(interface: &Interface, found: &mut Found) {
    for family in Family::of(interface).filter(Family::is_dynamic) {
        match family.section {
            "ipv4" => found.is_dynamic.ipv4 = true,
            _ => found.is_dynamic.ipv6 = true,
        }
    }
}

/// Static addresses are one interface's alone, unless they are its machine's inner affair.
fn claims(interface: &Interface, found: &mut Found) {
    if interface.is_kind(&["loopback", "dummy"]) {
        return;
    }
    for family in Family::of(interface).filter(|family| !family.is_dynamic()) {
        for (index, Subnet { address, .. }) in family.addresses() {
            if !address.is_loopback() && !is_link_local(address) {
                found.claim(Claim {
                    identity: Identity::Address(address),
                    written: family.written(index),
                    interface: Some(interface.name.clone().into_owned()),
                    path: format!("{}.{}.address[{index}].ip", interface.path, family.section),
                });
            }
        }
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

struct Route<'a> {
    path: String,
    value: &'a Value,
    interface: Option<std::borrow::Cow<'a, str>>,
    /// Unspecified addresses are none.
    gateway: Option<IpAddr>,
}

impl<'a> Route<'a> {
    fn read((index, value): (usize, &'a Value)) -> Option<Self> {
        let is_absent = yaml::text_at(value, "state").as_deref() == Some("absent");
        let gateway = yaml::text_at(value, "next-hop-address").and_then(|text| text.parse().ok());
        (!is_absent).then(|| Self {
            path: format!("routes.config[{index}]"),
            value,
            interface: yaml::text_at(value, "next-hop-interface").filter(|name| !name.is_empty()),
            gateway: gateway.filter(|gateway: &IpAddr| !gateway.is_unspecified()),
        })
    }

    /// The destination and the gateway can be read. nmstate reports no line for them.
    fn syntax(&self, found: &mut Found) {
        let text = |key| yaml::text_at(self.value, key).filter(|text| !text.is_empty());
        let mut report = |key: &str, message: String| {
            found.push(Draft::error(Rule::MalformedAddress, format!("{}.{key}", self.path), message));
        };
        if let Some(written) = text("destination")
            && Subnet::parse(&written).is_none()
            && written.parse::<IpAddr>().is_err()
        {
            let example = if written.contains(':') { "2001:db8::/64" } else { "192.0.2.0/24" };
            let message = format!("\"{}\" is not a network such as {example}", shown(&written));
            report("destination", message);
        }
        if let Some(written) = text("next-hop-address").filter(|text| text.parse::<IpAddr>().is_err()) {
            report("next-hop-address", not_an_address(&written));
        }
    }

    /// The gateway as the user wrote it.
    fn written(&self) -> String {
        yaml::text_at(self.value, "next-hop-address").map(|text| shown(&text)).unwrap_or_default()
    }

    fn check(
        &self,
        by_name: &HashMap<&str, &Interface>,
        on_link: &HashMap<&str, Vec<Subnet>>,
        found: &mut Found,
    ) {
        let path = format!("{}.next-hop-interface", self.path);
        let Some(name) = self.interface.as_deref() else {
            // Blackholes and the like need none.
            if yaml::get(self.value, "route-type").is_none() {
                let message = "the route has no interface to go through";
                found.push(Draft::error(Rule::RouteInterface, &self.path, message));
            }
            return;
        };
        let Some(interface) = by_name.get(name) else {
            let message = format!("the document has no interface {}", shown(name));
            found.push(Draft::error(Rule::RouteInterface, path, message).of(name));
            return;
        };
        if let Some(gateway) = self.gateway
            && self.is_of_one_family(gateway, interface, found)
        {
            self.check_gateway(gateway, interface, on_link.get(name).map_or(&[], Vec::as_slice), found);
        }
    }

    /// `NetworkManager` passes over routes with gateways of the other family.
    fn is_of_one_family(&self, gateway: IpAddr, interface: &Interface, found: &mut Found) -> bool {
        let destination = yaml::text_at(self.value, "destination").unwrap_or_default();
        let address = destination.split('/').next().and_then(|text| text.parse::<IpAddr>().ok());
        let is_of_one = address.is_none_or(|address| address.is_ipv4() == gateway.is_ipv4());
        if !is_of_one {
            let families = if gateway.is_ipv4() {
                "IPv4, the destination of IPv6"
            } else {
                "IPv6, the destination of IPv4"
            };
            let path = format!("{}.next-hop-address", self.path);
            let message = format!("the gateway {} is of {families}", self.written());
            found.push(Draft::error(Rule::Gateway, path, message).of(&interface.name));
        }
        is_of_one
    }

    /// A gateway has to be in one of the networks of its interface. It may also be on the link by a route of its own;
    /// where the interface has nothing but single addresses, the system often finds it all the same.
    fn check_gateway(&self, gateway: IpAddr, interface: &Interface, on_link: &[Subnet], found: &mut Found) {
        let section = if gateway.is_ipv4() { "ipv4" } else { "ipv6" };
        let path = format!("{}.next-hop-address", self.path);
        let (name, written) = (shown(&interface.name), self.written());
        let Some(family) = Family::of(interface).find(|family| family.section == section) else {
            if !interface.is_kind(OWN_ADDRESSES) {
                let message = format!("{name} has no {} to reach the gateway {written}", title(section));
                found.push(Draft::error(Rule::Gateway, path, message).of(&interface.name));
            }
            return;
        };
        let subnets: Vec<Subnet> = family.addresses().map(|(_, subnet)| subnet).collect();
        if family.is_dynamic() || subnets.len() < family.list().len() {
            return;
        }
        if subnets.iter().any(|subnet| subnet.address == gateway) {
            let message = format!("the gateway {written} is the interface {name} itself");
            found.push(Draft::error(Rule::Gateway, path, message).of(&interface.name));
            return;
        }
        // An interface with IPv6 has an address of the link in any case.
        let is_on_link = is_link_local(gateway) && (gateway.is_ipv6() || !subnets.is_empty());
        if is_on_link || subnets.iter().chain(on_link).any(|subnet| subnet.contains(gateway)) {
            return;
        }
        if subnets.is_empty() {
            let message = format!("{name} has no {} address to reach the gateway {written}", title(section));
            found.push(Draft::error(Rule::Gateway, path, message).of(&interface.name));
            return;
        }
        let message = format!("the gateway {written} is not in a network of {name}");
        let finding = if subnets.iter().all(|subnet| subnet.is_single()) {
            Draft::warning(Rule::Gateway, path, message)
        } else {
            Draft::error(Rule::Gateway, path, message)
        };
        found.push(finding.of(&interface.name));
    }
}

/// The networks that routes declare to be on the link of an interface.
fn on_link<'a>(routes: &'a [Route]) -> HashMap<&'a str, Vec<Subnet>> {
    let mut networks: HashMap<&str, Vec<Subnet>> = HashMap::new();
    for route in routes.iter().filter(|route| route.gateway.is_none()) {
        let destination = yaml::text_at(route.value, "destination");
        let subnet = destination.as_deref().and_then(Subnet::parse).filter(|subnet| subnet.prefix > 0);
        if let (Some(interface), Some(subnet)) = (route.interface.as_deref(), subnet) {
            networks.entry(interface).or_default().push(subnet);
        }
    }
    networks
}

/// Name servers need an interface of their family.
fn name_servers(state: &State, found: &mut Found) {
    let sections: Vec<&str> =
        state.interfaces.iter().flat_map(|it| Family::of(it).map(|family| family.section)).collect();
    let servers = yaml::list(state.root, &["dns-resolver", "config", "server"]);
    for (index, server) in servers.iter().enumerate() {
        let Some(written) = yaml::text(server) else { continue };
        let path = format!("dns-resolver.config.server[{index}]");
        // A link-local address may have the name of its interface after it.
        let address = written.split_once('%').map_or(&*written, |(address, _)| address);
        let Ok(server) = address.parse::<IpAddr>() else {
            found.push(Draft::error(Rule::MalformedAddress, path, not_an_address(&written)));
            continue;
        };
        let section = if server.is_ipv4() { "ipv4" } else { "ipv6" };
        if !sections.contains(&section) {
            let family = title(section);
            let message = format!("no interface has {family} to reach the name server {}", shown(&written));
            found.push(Draft::error(Rule::DnsInterface, path, message));
        }
    }
}

fn hostname(state: &State, found: &mut Found) {
    let Some(hostname) = yaml::get(state.root, "hostname") else { return };
    for key in ["config", "running"] {
        let Some(written) = yaml::text_at(hostname, key) else { continue };
        let name = written.trim().to_ascii_lowercase();
        if !name.is_empty() && !name.starts_with("localhost") {
            let (identity, written) = (Identity::Hostname(name), written.trim().to_owned());
            found.claim(Claim { identity, written, interface: None, path: format!("hostname.{key}") });
            return;
        }
    }
}

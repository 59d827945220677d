//! Rules for addresses, routes and name servers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;

use serde_json::Value;

use super::finding::{DraftFinding, Rule, excerpt, shortened};
use super::state::{HostResult, HostState, Identity, Interface};
use crate::cidr::{Cidr, bit_count};
use crate::network::yaml;
use crate::report::Severity;

/// Interface types that have addresses without listing them in the document.
const TYPES_WITH_OWN_ADDRESSES: &[&str] = &["loopback", "ipsec"];

/// The section of an interface for one address family.
struct FamilySection<'a> {
    section: &'static str,
    value: &'a Value,
}

impl<'a> FamilySection<'a> {
    /// Returns the sections of an interface's enabled address families.
    fn enabled_in(interface: &Interface<'a>) -> impl Iterator<Item = Self> {
        let is_on =
            |it: &Self| yaml::value_at(it.value, "enabled").is_none() || yaml::flag_at(it.value, "enabled");
        Self::all_in(interface).filter(is_on)
    }

    fn all_in(interface: &Interface<'a>) -> impl Iterator<Item = Self> {
        let value = interface.value;
        let family = move |section| Some(Self { section, value: yaml::value_at(value, section)? });
        ["ipv4", "ipv6"].into_iter().filter_map(family)
    }

    fn is_dynamic(&self) -> bool {
        yaml::flag_at(self.value, "dhcp") || yaml::flag_at(self.value, "autoconf")
    }

    fn address_list(&self) -> &'a [Value] {
        yaml::list_at(self.value, &["address"])
    }

    /// Returns the valid addresses, each with its index in the list and in the user's notation. Invalid addresses are
    /// reported by [`check_syntax`](Self::check_syntax) and [`check_prefix_lengths`](Self::check_prefix_lengths).
    fn addresses(&self) -> impl Iterator<Item = (usize, Cow<'a, str>, Cidr)> {
        let address = |(index, value): (usize, &'a Value)| {
            let text = yaml::text_at(value, "ip")?;
            let address = text.parse().ok()?;
            let prefix = u32::try_from(yaml::number_at(value, "prefix-length")?.ok()?).ok()?;
            Some((index, text, Cidr::new(address, prefix)?))
        };
        self.address_list().iter().enumerate().filter_map(address)
    }

    /// Checks the syntax of addresses, even if the family is disabled. nmstate's own errors contain neither the line
    /// nor the value.
    fn check_syntax(&self, interface: &Interface, result: &mut HostResult) {
        for (index, value) in self.address_list().iter().enumerate() {
            let Some(text) = yaml::text_at(value, "ip") else { continue };
            if text.parse::<IpAddr>().is_err() {
                let key = format!("{}.address[{index}].ip", self.section);
                let message = invalid_address_message(&text);
                result.push(interface.error(Rule::MalformedAddress, &key, message));
            }
        }
    }

    /// Checks the prefix lengths of addresses, even if the family is disabled.
    fn check_prefix_lengths(&self, interface: &Interface, result: &mut HostResult) {
        for (index, value) in self.address_list().iter().enumerate().filter(|(_, value)| value.is_object()) {
            let address = yaml::text_at(value, "ip").and_then(|text| text.parse::<IpAddr>().ok());
            let bits = if self.section == "ipv4" { 32 } else { 128 };
            let max: i128 = address.map_or(bits, bit_count).into();
            let message = match yaml::number_at(value, "prefix-length") {
                Some(Ok(prefix)) if (0..=max).contains(&prefix) => continue,
                Some(Ok(_)) => {
                    let text = yaml::text_at(value, "prefix-length").unwrap_or_default();
                    format!("a prefix of {} bits is not within 0 to {max}", excerpt(&text))
                }
                Some(Err(text)) => format!("\"{}\" is not a valid prefix length", shortened(&text)),
                None => "the address has no prefix length".to_owned(),
            };
            let key = format!("{}.address[{index}].prefix-length", self.section);
            result.push(interface.error(Rule::PrefixLength, &key, message));
        }
    }
}

pub(super) fn check(state: &HostState, result: &mut HostResult) {
    for interface in &state.interfaces {
        FamilySection::all_in(interface).for_each(|family| {
            family.check_prefix_lengths(interface, result);
            family.check_syntax(interface, result);
        });
        claim_static_addresses(interface, result);
        record_dynamic_families(interface, result);
    }
    let by_name = state.interfaces_by_name();
    let routes: Vec<RouteEntry> = yaml::list_at(state.root, &["routes", "config"])
        .iter()
        .enumerate()
        .filter_map(RouteEntry::parse)
        .collect();
    let on_link = on_link_networks(&routes);
    for route in &routes {
        route.check_syntax(result);
        route.check(&by_name, &on_link, result);
    }
    check_name_servers(state, result);
    claim_hostname(state, result);
}

/// Returns the name of the interface section for the family of an address.
fn section_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ipv4" } else { "ipv6" }
}

/// Returns the name of an address's family for messages.
fn family_name(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn invalid_address_message(text: &str) -> String {
    format!("\"{}\" is not an IP address", shortened(text))
}

/// Records the address families in which an interface gets its addresses from the network, by DHCP or autoconf.
fn record_dynamic_families(interface: &Interface, result: &mut HostResult) {
    for family in FamilySection::enabled_in(interface).filter(FamilySection::is_dynamic) {
        match family.section {
            "ipv4" => result.dynamic_families.ipv4 = true,
            _ => result.dynamic_families.ipv6 = true,
        }
    }
}

/// Claims static addresses for the interface, except addresses that only the machine itself uses.
fn claim_static_addresses(interface: &Interface, result: &mut HostResult) {
    if interface.has_type(&["loopback", "dummy"]) {
        return;
    }
    for family in FamilySection::enabled_in(interface).filter(|family| !family.is_dynamic()) {
        for (index, written, Cidr { address, .. }) in family.addresses() {
            if !address.is_loopback() && !is_link_local(address) {
                let path = format!("{}.{}.address[{index}].ip", interface.path, family.section);
                result.claim(Identity::Address(address), &written, Some(&interface.name), path);
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

struct RouteEntry<'a> {
    path: String,
    value: &'a Value,
    interface: Option<Cow<'a, str>>,
    /// The gateway, or `None` if it is unspecified (`0.0.0.0` or `::`).
    gateway: Option<IpAddr>,
}

impl<'a> RouteEntry<'a> {
    fn parse((index, value): (usize, &'a Value)) -> Option<Self> {
        let is_absent = yaml::text_at(value, "state").as_deref() == Some("absent");
        let gateway = yaml::text_at(value, "next-hop-address").and_then(|text| text.parse().ok());
        (!is_absent).then(|| Self {
            path: format!("routes.config[{index}]"),
            value,
            interface: yaml::text_at(value, "next-hop-interface").filter(|name| !name.is_empty()),
            gateway: gateway.filter(|gateway: &IpAddr| !gateway.is_unspecified()),
        })
    }

    /// Checks the syntax of the destination and the gateway. nmstate's own errors do not contain their lines.
    fn check_syntax(&self, result: &mut HostResult) {
        let text = |key| yaml::text_at(self.value, key).filter(|text| !text.is_empty());
        let mut report = |key: &str, message: String| {
            result.push(DraftFinding::error(Rule::MalformedAddress, format!("{}.{key}", self.path), message));
        };
        if let Some(value_text) = text("destination")
            && Cidr::parse(&value_text).is_none()
            && value_text.parse::<IpAddr>().is_err()
        {
            let example = if value_text.contains(':') { "2001:db8::/64" } else { "192.0.2.0/24" };
            let message = format!("\"{}\" is not a network such as {example}", shortened(&value_text));
            report("destination", message);
        }
        if let Some(value_text) = text("next-hop-address").filter(|text| text.parse::<IpAddr>().is_err()) {
            report("next-hop-address", invalid_address_message(&value_text));
        }
    }

    /// Returns the gateway in the user's notation.
    fn gateway_text(&self) -> String {
        yaml::text_at(self.value, "next-hop-address").map(|text| excerpt(&text)).unwrap_or_default()
    }

    fn check(
        &self,
        by_name: &HashMap<&str, &Interface>,
        on_link: &HashMap<&str, Vec<Cidr>>,
        result: &mut HostResult,
    ) {
        let Some(name) = self.interface.as_deref() else {
            // Routes with a special type, such as blackhole routes, need no interface.
            if yaml::value_at(self.value, "route-type").is_none() {
                let message = "the route has no interface to go through";
                result.push(DraftFinding::error(Rule::RouteInterface, &self.path, message));
            }
            return;
        };
        let Some(interface) = by_name.get(name) else {
            let path = format!("{}.next-hop-interface", self.path);
            let message = format!("the document has no interface {}", excerpt(name));
            result.push(DraftFinding::error(Rule::RouteInterface, path, message).with_interface(name));
            return;
        };
        let Some(gateway) = self.gateway else { return };
        let on_link = on_link.get(name).map_or(&[][..], Vec::as_slice);
        let problem = self.family_problem(gateway).map(|message| (Severity::Error, message));
        if let Some((severity, message)) =
            problem.or_else(|| self.gateway_problem(gateway, interface, on_link))
        {
            let path = format!("{}.next-hop-address", self.path);
            result.push(DraftFinding::new(severity, Rule::Gateway, path, message).with_interface(name));
        }
    }

    /// Returns an error if the destination and the gateway have different address families. `NetworkManager` ignores
    /// such routes.
    fn family_problem(&self, gateway: IpAddr) -> Option<String> {
        let destination = yaml::text_at(self.value, "destination")?;
        let destination: IpAddr = destination.split('/').next()?.parse().ok()?;
        let [of_gateway, of_destination] = [gateway, destination].map(family_name);
        (of_gateway != of_destination).then(|| {
            let gateway_text = self.gateway_text();
            format!("the gateway {gateway_text} is {of_gateway}, the destination is {of_destination}")
        })
    }

    /// Returns a problem if a gateway is in no network of its interface and no route makes it reachable on the link. If
    /// all addresses of the interface have the full prefix length, the problem is only a warning, because the system
    /// often reaches the gateway anyway.
    fn gateway_problem(
        &self,
        gateway: IpAddr,
        interface: &Interface,
        on_link: &[Cidr],
    ) -> Option<(Severity, String)> {
        let (name, gateway_text) = (excerpt(&interface.name), self.gateway_text());
        let family_name = family_name(gateway);
        let mut families = FamilySection::enabled_in(interface);
        let Some(family) = families.find(|family| family.section == section_of(gateway)) else {
            let message = format!("{name} has no {family_name} to reach the gateway {gateway_text}");
            return (!interface.has_type(TYPES_WITH_OWN_ADDRESSES)).then_some((Severity::Error, message));
        };
        let subnets: Vec<Cidr> = family.addresses().map(|(_, _, subnet)| subnet).collect();
        if family.is_dynamic() || subnets.len() < family.address_list().len() {
            return None;
        }
        if subnets.iter().any(|subnet| subnet.address == gateway) {
            let message = format!("the gateway {gateway_text} is the interface {name} itself");
            return Some((Severity::Error, message));
        }
        // An interface with IPv6 always has a link-local address, so it reaches a link-local gateway even without
        // static addresses.
        let is_on_link = is_link_local(gateway) && (gateway.is_ipv6() || !subnets.is_empty());
        if is_on_link || subnets.iter().chain(on_link).any(|subnet| subnet.contains(gateway)) {
            return None;
        }
        if subnets.is_empty() {
            let message = format!("{name} has no {family_name} address to reach the gateway {gateway_text}");
            return Some((Severity::Error, message));
        }
        let is_certain = subnets.iter().any(|subnet| !subnet.is_single_address());
        let severity = if is_certain { Severity::Error } else { Severity::Warning };
        Some((severity, format!("the gateway {gateway_text} is not in a network of {name}")))
    }
}

/// Returns the networks that routes declare as directly reachable, by interface.
fn on_link_networks<'a>(routes: &'a [RouteEntry]) -> HashMap<&'a str, Vec<Cidr>> {
    let mut networks: HashMap<&str, Vec<Cidr>> = HashMap::new();
    for route in routes.iter().filter(|route| route.gateway.is_none()) {
        let destination = yaml::text_at(route.value, "destination");
        let subnet = destination.as_deref().and_then(Cidr::parse).filter(|subnet| subnet.prefix > 0);
        if let (Some(interface), Some(subnet)) = (route.interface.as_deref(), subnet) {
            networks.entry(interface).or_default().push(subnet);
        }
    }
    networks
}

/// Checks that each name server has an interface with an address of the same family.
fn check_name_servers(state: &HostState, result: &mut HostResult) {
    let sections: Vec<&str> = state
        .interfaces
        .iter()
        .flat_map(|it| FamilySection::enabled_in(it).map(|family| family.section))
        .collect();
    let servers = yaml::list_at(state.root, &["dns-resolver", "config", "server"]);
    for (index, server) in servers.iter().enumerate() {
        let Some(text) = yaml::scalar_text(server) else { continue };
        let path = format!("dns-resolver.config.server[{index}]");
        // A link-local address may have a zone, which is the name of an interface.
        let address = text.split_once('%').map_or(&*text, |(address, _)| address);
        let Ok(server) = address.parse::<IpAddr>() else {
            result.push(DraftFinding::error(Rule::MalformedAddress, path, invalid_address_message(&text)));
            continue;
        };
        if !sections.contains(&section_of(server)) {
            let family = family_name(server);
            let message = format!("no interface has {family} to reach the name server {}", excerpt(&text));
            result.push(DraftFinding::error(Rule::DnsInterface, path, message));
        }
    }
}

fn claim_hostname(state: &HostState, result: &mut HostResult) {
    let Some(hostname) = yaml::value_at(state.root, "hostname") else { return };
    for key in ["config", "running"] {
        let Some(text) = yaml::text_at(hostname, key) else { continue };
        let name = text.trim().to_ascii_lowercase();
        if !name.is_empty() && !name.starts_with("localhost") {
            return result.claim(Identity::Hostname(name), text.trim(), None, format!("hostname.{key}"));
        }
    }
}

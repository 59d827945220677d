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

/// Interface types that have addresses which the document does not list.
const TYPES_WITH_OWN_ADDRESSES: &[&str] = &["loopback", "ipsec"];

/// The section of an interface for one address family.
struct FamilySection<'a> {
    section: &'static str,
    value: &'a Value,
}

impl<'a> FamilySection<'a> {
    /// Returns the address families that an interface has and that are not disabled.
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

    /// Returns the valid addresses, each with its index in the list and as the user wrote it. The others are reported
    /// by [`check_syntax`](Self::check_syntax) and [`check_prefix_lengths`](Self::check_prefix_lengths).
    fn addresses(&self) -> impl Iterator<Item = (usize, Cow<'a, str>, Cidr)> {
        let address = |(index, value): (usize, &'a Value)| {
            let written = yaml::text_at(value, "ip")?;
            let address = written.parse().ok()?;
            let prefix = u32::try_from(yaml::number_at(value, "prefix-length")?.ok()?).ok()?;
            Some((index, written, Cidr::new(address, prefix)?))
        };
        self.address_list().iter().enumerate().filter_map(address)
    }

    /// Checks the syntax of addresses, even if the family is disabled. Errors of nmstate contain neither the line nor
    /// the value.
    fn check_syntax(&self, interface: &Interface, found: &mut HostResult) {
        for (index, value) in self.address_list().iter().enumerate() {
            let Some(written) = yaml::text_at(value, "ip") else { continue };
            if written.parse::<IpAddr>().is_err() {
                let key = format!("{}.address[{index}].ip", self.section);
                let message = invalid_address_message(&written);
                found.push(interface.error(Rule::MalformedAddress, &key, message));
            }
        }
    }

    /// Checks the prefix lengths of addresses, even if the family is disabled.
    fn check_prefix_lengths(&self, interface: &Interface, found: &mut HostResult) {
        for (index, value) in self.address_list().iter().enumerate().filter(|(_, value)| value.is_object()) {
            let address = yaml::text_at(value, "ip").and_then(|text| text.parse::<IpAddr>().ok());
            let bits = if self.section == "ipv4" { 32 } else { 128 };
            let max: i128 = address.map_or(bits, bit_count).into();
            let message = match yaml::number_at(value, "prefix-length") {
                Some(Ok(prefix)) if (0..=max).contains(&prefix) => continue,
                Some(Ok(_)) => {
                    let written = yaml::text_at(value, "prefix-length").unwrap_or_default();
                    format!("a prefix of {} bits is not within 0 to {max}", excerpt(&written))
                }
                Some(Err(text)) => format!("\"{}\" is not a valid prefix length", shortened(&text)),
                None => "the address has no prefix length".to_owned(),
            };
            let key = format!("{}.address[{index}].prefix-length", self.section);
            found.push(interface.error(Rule::PrefixLength, &key, message));
        }
    }
}

pub(super) fn check(state: &HostState, found: &mut HostResult) {
    for interface in &state.interfaces {
        FamilySection::all_in(interface).for_each(|family| {
            family.check_prefix_lengths(interface, found);
            family.check_syntax(interface, found);
        });
        claim_static_addresses(interface, found);
        record_dynamic_families(interface, found);
    }
    let by_name = state.interfaces_by_name();
    let routes: Vec<RouteEntry> = yaml::list_at(state.root, &["routes", "config"])
        .iter()
        .enumerate()
        .filter_map(RouteEntry::parse)
        .collect();
    let on_link = on_link_networks(&routes);
    for route in &routes {
        route.check_syntax(found);
        route.check(&by_name, &on_link, found);
    }
    check_name_servers(state, found);
    claim_hostname(state, found);
}

/// Returns the section of an interface for the family of an address.
fn section_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ipv4" } else { "ipv6" }
}

/// Returns the name of the family of an address.
fn family_name(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn invalid_address_message(written: &str) -> String {
    format!("\"{}\" is not an IP address", shortened(written))
}

/// Records the address families in which an interface gets addresses from the network.
fn record_dynamic_families(interface: &Interface, found: &mut HostResult) {
    for family in FamilySection::enabled_in(interface).filter(FamilySection::is_dynamic) {
        match family.section {
            "ipv4" => found.dynamic_families.ipv4 = true,
            _ => found.dynamic_families.ipv6 = true,
        }
    }
}

/// Claims static addresses for the interface, except those that only the machine itself uses.
fn claim_static_addresses(interface: &Interface, found: &mut HostResult) {
    if interface.has_type(&["loopback", "dummy"]) {
        return;
    }
    for family in FamilySection::enabled_in(interface).filter(|family| !family.is_dynamic()) {
        for (index, written, Cidr { address, .. }) in family.addresses() {
            if !address.is_loopback() && !is_link_local(address) {
                let path = format!("{}.{}.address[{index}].ip", interface.path, family.section);
                found.claim(Identity::Address(address), &written, Some(&interface.name), path);
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
    /// The gateway; `None` if it is unspecified (`0.0.0.0` or `::`).
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

    /// Checks the syntax of the destination and the gateway. Errors of nmstate contain no line for them.
    fn check_syntax(&self, found: &mut HostResult) {
        let text = |key| yaml::text_at(self.value, key).filter(|text| !text.is_empty());
        let mut report = |key: &str, message: String| {
            found.push(DraftFinding::error(Rule::MalformedAddress, format!("{}.{key}", self.path), message));
        };
        if let Some(written) = text("destination")
            && Cidr::parse(&written).is_none()
            && written.parse::<IpAddr>().is_err()
        {
            let example = if written.contains(':') { "2001:db8::/64" } else { "192.0.2.0/24" };
            let message = format!("\"{}\" is not a network such as {example}", shortened(&written));
            report("destination", message);
        }
        if let Some(written) = text("next-hop-address").filter(|text| text.parse::<IpAddr>().is_err()) {
            report("next-hop-address", invalid_address_message(&written));
        }
    }

    /// Returns the gateway as the user wrote it.
    fn gateway_text(&self) -> String {
        yaml::text_at(self.value, "next-hop-address").map(|text| excerpt(&text)).unwrap_or_default()
    }

    fn check(
        &self,
        by_name: &HashMap<&str, &Interface>,
        on_link: &HashMap<&str, Vec<Cidr>>,
        found: &mut HostResult,
    ) {
        let Some(name) = self.interface.as_deref() else {
            // Routes of a special type, such as blackhole routes, need no interface.
            if yaml::value_at(self.value, "route-type").is_none() {
                let message = "the route has no interface to go through";
                found.push(DraftFinding::error(Rule::RouteInterface, &self.path, message));
            }
            return;
        };
        let Some(interface) = by_name.get(name) else {
            let path = format!("{}.next-hop-interface", self.path);
            let message = format!("the document has no interface {}", excerpt(name));
            found.push(DraftFinding::error(Rule::RouteInterface, path, message).with_interface(name));
            return;
        };
        let Some(gateway) = self.gateway else { return };
        let on_link = on_link.get(name).map_or(&[][..], Vec::as_slice);
        let problem = self.family_problem(gateway).map(|message| (Severity::Error, message));
        if let Some((severity, message)) =
            problem.or_else(|| self.gateway_problem(gateway, interface, on_link))
        {
            let path = format!("{}.next-hop-address", self.path);
            found.push(DraftFinding::new(severity, Rule::Gateway, path, message).with_interface(name));
        }
    }

    /// Returns an error if destination and gateway have different address families. `NetworkManager` ignores such
    /// routes.
    fn family_problem(&self, gateway: IpAddr) -> Option<String> {
        let destination = yaml::text_at(self.value, "destination")?;
        let destination: IpAddr = destination.split('/').next()?.parse().ok()?;
        let [of_gateway, of_destination] = [gateway, destination].map(family_name);
        (of_gateway != of_destination).then(|| {
            let written = self.gateway_text();
            format!("the gateway {written} is {of_gateway}, the destination is {of_destination}")
        })
    }

    /// Returns a problem if a gateway is in none of the networks of its interface, and no route makes it reachable on
    /// the link. If all addresses of the interface have the full prefix length, the problem is only a warning, because
    /// the system often finds the gateway anyway.
    fn gateway_problem(
        &self,
        gateway: IpAddr,
        interface: &Interface,
        on_link: &[Cidr],
    ) -> Option<(Severity, String)> {
        let (name, written) = (excerpt(&interface.name), self.gateway_text());
        let family_name = family_name(gateway);
        let mut families = FamilySection::enabled_in(interface);
        let Some(family) = families.find(|family| family.section == section_of(gateway)) else {
            let message = format!("{name} has no {family_name} to reach the gateway {written}");
            return (!interface.has_type(TYPES_WITH_OWN_ADDRESSES)).then_some((Severity::Error, message));
        };
        let subnets: Vec<Cidr> = family.addresses().map(|(_, _, subnet)| subnet).collect();
        if family.is_dynamic() || subnets.len() < family.address_list().len() {
            return None;
        }
        if subnets.iter().any(|subnet| subnet.address == gateway) {
            let message = format!("the gateway {written} is the interface {name} itself");
            return Some((Severity::Error, message));
        }
        // An interface with IPv6 always has a link-local address.
        let is_on_link = is_link_local(gateway) && (gateway.is_ipv6() || !subnets.is_empty());
        if is_on_link || subnets.iter().chain(on_link).any(|subnet| subnet.contains(gateway)) {
            return None;
        }
        if subnets.is_empty() {
            let message = format!("{name} has no {family_name} address to reach the gateway {written}");
            return Some((Severity::Error, message));
        }
        let is_certain = subnets.iter().any(|subnet| !subnet.is_single_address());
        let severity = if is_certain { Severity::Error } else { Severity::Warning };
        Some((severity, format!("the gateway {written} is not in a network of {name}")))
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

/// Checks that each name server has an interface with its address family.
fn check_name_servers(state: &HostState, found: &mut HostResult) {
    let sections: Vec<&str> = state
        .interfaces
        .iter()
        .flat_map(|it| FamilySection::enabled_in(it).map(|family| family.section))
        .collect();
    let servers = yaml::list_at(state.root, &["dns-resolver", "config", "server"]);
    for (index, server) in servers.iter().enumerate() {
        let Some(written) = yaml::scalar_text(server) else { continue };
        let path = format!("dns-resolver.config.server[{index}]");
        // The name of an interface may follow a link-local address.
        let address = written.split_once('%').map_or(&*written, |(address, _)| address);
        let Ok(server) = address.parse::<IpAddr>() else {
            found.push(DraftFinding::error(Rule::MalformedAddress, path, invalid_address_message(&written)));
            continue;
        };
        if !sections.contains(&section_of(server)) {
            let family = family_name(server);
            let message = format!("no interface has {family} to reach the name server {}", excerpt(&written));
            found.push(DraftFinding::error(Rule::DnsInterface, path, message));
        }
    }
}

fn claim_hostname(state: &HostState, found: &mut HostResult) {
    let Some(hostname) = yaml::value_at(state.root, "hostname") else { return };
    for key in ["config", "running"] {
        let Some(written) = yaml::text_at(hostname, key) else { continue };
        let name = written.trim().to_ascii_lowercase();
        if !name.is_empty() && !name.starts_with("localhost") {
            return found.claim(Identity::Hostname(name), written.trim(), None, format!("hostname.{key}"));
        }
    }
}

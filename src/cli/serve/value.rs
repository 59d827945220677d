//! Parsers of option values, with the expected form as the error.

use std::net::{IpAddr, SocketAddr};

use crate::inventory::catalogue::{ImageType, Version};
use uuid::Uuid;

/// Parses a boolean, in any form that Go accepts.
pub(in crate::cli) fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// Parses an address to listen on.
pub(in crate::cli) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an IP address and a port, such as 127.0.0.1:8090 or [::]:8090";
    text.parse().map_err(|_| expected.to_owned())
}

/// Parses the id of a record.
pub(in crate::cli) fn parse_id<Id: From<Uuid>>(text: &str) -> Result<Id, String> {
    text.parse().map(Uuid::into).map_err(|_| "expected a UUID".to_owned())
}

/// Parses the default image type of infra-envs.
pub(super) fn parse_image_type(text: &str) -> Result<ImageType, String> {
    let usual = [ImageType::Full, ImageType::Minimal];
    let found = usual.into_iter().find(|kind| kind.as_str() == text);
    found.ok_or_else(|| format!("expected {} or {}", ImageType::Full, ImageType::Minimal))
}

/// Parses an OpenShift version.
pub(super) fn parse_version(text: &str) -> Result<Version, String> {
    Version::parse(text).ok_or_else(|| "expected a version, such as 4.18".to_owned())
}

/// Parses an IPv4 network.
pub(super) fn parse_network_v4(text: &str) -> Result<String, String> {
    parse_network(text, IpAddr::is_ipv4, 32)
        .ok_or_else(|| "expected a network, such as 10.128.0.0/14".to_owned())
}

/// Parses an IPv6 network.
pub(super) fn parse_network_v6(text: &str) -> Result<String, String> {
    parse_network(text, IpAddr::is_ipv6, 128)
        .ok_or_else(|| "expected a network, such as fd01::/48".to_owned())
}

fn parse_network(text: &str, is_of_version: impl Fn(&IpAddr) -> bool, longest: u8) -> Option<String> {
    let (address, prefix) = text.split_once('/')?;
    let is_address = address.parse().is_ok_and(|address| is_of_version(&address));
    let is_prefix = prefix.parse::<u8>().is_ok_and(|prefix| prefix <= longest);
    (is_address && is_prefix).then(|| text.to_owned())
}

/// Parses an origin, which may contain one `*`.
pub(super) fn parse_origin(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_origin = text.bytes().all(|byte| byte.is_ascii_graphic()) && text.matches('*').count() <= 1;
    match is_origin {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err("expected an origin, such as https://ui.example.com, with at most one *".to_owned()),
    }
}

/// Parses a host without a port, which may contain one `*`.
pub(super) fn parse_host(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    let is_host = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_*[:]".contains(&byte));
    let is_address = text.starts_with('[') && text.ends_with(']');
    match is_host && text.matches('*').count() <= 1 && (is_address || !text.contains(':')) {
        true => Ok(text),
        false => {
            Err("expected a host without a port, such as kindling.example.com, with at most one *".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_must_match_ip_version() {
        parse_network_v4("10.128.0.0/14").unwrap();
        parse_network_v6("fd01::/48").unwrap();
        for text in ["", "10.0.0.0", "10.0.0.0/33", "fd01::/48", "10.0.0/8", "10.0.0.0/8/8", "10.0.0.0/-1"] {
            parse_network_v4(text).unwrap_err();
        }
        parse_network_v6("10.128.0.0/14").unwrap_err();
        parse_network_v6("fd01::/129").unwrap_err();
    }
}

//! Parsers of option values. An error describes the expected form.

use std::net::IpAddr;
use std::path::PathBuf;

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

/// Parses the id of a record.
pub(in crate::cli) fn parse_id<Id: From<Uuid>>(text: &str) -> Result<Id, String> {
    text.parse().map(Uuid::into).map_err(|_| "expected a UUID".to_owned())
}

/// Parses the default image type of infra-envs.
pub(super) fn parse_image_type(text: &str) -> Result<ImageType, String> {
    let allowed = [ImageType::Full, ImageType::Minimal];
    let image_type = allowed.into_iter().find(|kind| kind.as_str() == text);
    image_type.ok_or_else(|| format!("expected {} or {}", ImageType::Full, ImageType::Minimal))
}

pub(super) fn parse_version(text: &str) -> Result<Version, String> {
    Version::parse(text).ok_or_else(|| "expected a version, such as 4.18".to_owned())
}

/// Parses an IPv4 network, such as `10.128.0.0/14`.
pub(super) fn parse_network_v4(text: &str) -> Result<String, String> {
    parse_network(text, IpAddr::is_ipv4, 32)
        .ok_or_else(|| "expected a network, such as 10.128.0.0/14".to_owned())
}

/// Parses an IPv6 network, such as `fd01::/48`.
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
    // Reject a value without a scheme, because it would match no origin.
    match is_origin && (text.contains('*') || text.contains("://")) {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err("expected an origin, such as https://ui.example.com, with at most one *".to_owned()),
    }
}

/// Parses a host without a port, which may contain one `*`.
pub(super) fn parse_host(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    let is_host = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_*[:]".contains(&byte));
    let is_address = text.starts_with('[') && text.ends_with(']');
    match is_host && !text.is_empty() && text.matches('*').count() <= 1 && (is_address || !text.contains(':'))
    {
        true => Ok(text),
        false => {
            Err("expected a host without a port, such as kindling.example.com, with at most one *".to_owned())
        }
    }
}

/// Parses the host of a URL: a name or an address, in the form that the URL parser produces.
pub(super) fn parse_url_host(text: &str) -> Result<String, String> {
    let text = text.trim();
    let url = reqwest::Url::parse(&format!("http://{text}/"));
    let is_host = url.is_ok_and(|url| url.host_str().is_some_and(|host| host.eq_ignore_ascii_case(text)));
    match is_host && !text.contains('*') {
        true => Ok(text.to_owned()),
        false => {
            Err("expected the host of a URL, without scheme, port and `*`: mirror.example.com, 192.0.2.1 or \
                      [2001:db8::1]"
                .to_owned())
        }
    }
}

/// Parses a directory. Rejects a URL, which would otherwise become the name of a local directory.
pub(super) fn parse_directory(text: &str) -> Result<PathBuf, String> {
    match text {
        "" => Err("expected a directory".to_owned()),
        _ if is_like_url(text) => Err("expected a directory, not a URL".to_owned()),
        _ => Ok(PathBuf::from(text)),
    }
}

/// Parses a directory or the URL of a bucket.
pub(super) fn parse_directory_or_bucket(text: &str) -> Result<String, String> {
    match text.strip_prefix("s3://") {
        Some(bucket) if !bucket.is_empty() => Ok(text.to_owned()),
        _ => parse_directory(text)
            .map(|_| text.to_owned())
            .map_err(|_| "expected a directory, or s3://BUCKET/PREFIX".to_owned()),
    }
}

/// Returns `true` if the text is a URL, even if a colon or slash is missing: `s3//bucket`, `s3:/bucket`, `s3:bucket`.
fn is_like_url(text: &str) -> bool {
    let end = text.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (scheme, rest) = text.split_at(end);
    !scheme.is_empty()
        && (rest.starts_with(":/")
            || scheme.eq_ignore_ascii_case("s3") && (rest.starts_with("//") || rest.starts_with(':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_not_a_url() {
        for text in ["data", "/srv/s3//data", "./s3://bucket", "s3", "s3/bucket", "a:b", "."] {
            assert_eq!(parse_directory(text), Ok(PathBuf::from(text)));
            assert_eq!(parse_directory_or_bucket(text), Ok(text.to_owned()));
        }
        for text in
            ["", "s3//bucket", "S3//bucket", "s3:/bucket", "s3:bucket", "file:///srv", "http://a/b", "s3://"]
        {
            parse_directory(text).unwrap_err();
            parse_directory_or_bucket(text).unwrap_err();
        }
        parse_directory("s3://bucket").unwrap_err();
        parse_directory_or_bucket("s3://bucket").unwrap();
    }

    #[test]
    fn host_is_written_as_in_a_url() {
        for text in ["mirror.example.com", "Mirror", "192.0.2.1", "[2001:db8::1]", "a_b"] {
            assert_eq!(parse_url_host(text), Ok(text.to_owned()));
        }
        for text in [
            "",
            "*",
            "*.example.com",
            "a:80",
            "http://a",
            "a/b",
            "::1",
            "[::01]",
            "192.0.2",
            "a b",
            "u@a",
            "a?",
        ] {
            assert!(parse_url_host(text).is_err(), "{text:?}");
        }
    }

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

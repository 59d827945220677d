//! Checks the `Host` header of a request (RFC 9112, 3.2).

use axum::http::uri::Authority;
use axum::http::{Request, Version, header};

/// Returns what is wrong with the `Host` header, or `None` if it is valid. The server responds to an invalid header
/// with 400.
pub(super) fn host_fault<B>(request: &Request<B>) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() < Version::HTTP_11 => None,
        (None, _) => Some("request has no Host header"),
        (Some(_), Some(_)) => Some("request has more than one Host header"),
        (Some(host), None) if is_valid_host(host.as_bytes()) => None,
        (Some(_), None) => Some("invalid Host header"),
    }
}

/// Returns `true` if the value is a valid host. An empty value is valid: a client sends it for a URL without a host.
fn is_valid_host(value: &[u8]) -> bool {
    is_plain_host(value) || value.is_empty() || is_valid_authority(value)
}

fn is_valid_authority(value: &[u8]) -> bool {
    // `Authority` accepts any text after an IPv6 address, so check the port here.
    let port = match value.iter().rposition(|byte| *byte == b']') {
        Some(end) => value.get(end + 1..).unwrap_or_default(),
        None => b"",
    };
    let is_port =
        port.is_empty() || port.strip_prefix(b":").is_some_and(|port| port.iter().all(u8::is_ascii_digit));
    is_port && !value.contains(&b'@') && Authority::try_from(value).is_ok()
}

/// Returns `true` if the value is a host name or an IPv4 address, with or without a port. Such a value needs no further
/// checks.
pub(super) fn is_plain_host(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| *byte == b':');
    let (name, port, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let is_name =
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte));
    is_name && port.is_none_or(|port| port.iter().all(u8::is_ascii_digit)) && more.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault_with_hosts(version: Version, hosts: &[&str]) -> Option<&'static str> {
        let request = Request::builder().version(version);
        let request = hosts.iter().fold(request, |request, host| request.header("host", *host));
        host_fault(&request.body(()).unwrap())
    }

    #[test]
    fn request_needs_exactly_one_valid_host() {
        for host in ["a.example", "a.example:8090", "192.0.2.1", "[2001:db8::1]:8090", "a_b", ""] {
            assert_eq!(fault_with_hosts(Version::HTTP_11, &[host]), None, "{host}");
        }
        let usual = ["a.example", "a.example:8090", "192.0.2.1", "a-b", "a:"];
        assert!(usual.iter().all(|host| is_plain_host(host.as_bytes()) && is_valid_host(host.as_bytes())));
        for host in ["a.example:x", "a:1:2", ":80", "[::1]", "a b", "u@a", ""] {
            assert!(!is_plain_host(host.as_bytes()), "{host}");
        }
        let after_address =
            ["[::1].a.example", "[::1]a:80", "[127.0.0.1].a.example", "[::1]:x", "[::1]:80:80"];
        for host in ["a b", "a/b", "u@a", "a,b c", "[::1", "a:b:c"].into_iter().chain(after_address) {
            assert!(fault_with_hosts(Version::HTTP_11, &[host]).is_some(), "{host}");
        }
        assert!(fault_with_hosts(Version::HTTP_11, &[]).is_some());
        assert!(fault_with_hosts(Version::HTTP_10, &["a", "a"]).is_some());
        assert_eq!(fault_with_hosts(Version::HTTP_10, &[]), None);
    }
}

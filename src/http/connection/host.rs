//! The `Host` of a request (RFC 9112, 3.2).

use axum::http::uri::Authority;
use axum::http::{Request, Version, header};

/// What is wrong with it, if anything is: such a request is answered with 400.
pub(super) fn fault<B>(request: &Request<B>) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() < Version::HTTP_11 => None,
        (None, _) => Some("the request has no Host"),
        (Some(_), Some(_)) => Some("the request has more than one Host"),
        (Some(host), None) if is_host(host.as_bytes()) => None,
        (Some(_), None) => Some("the Host of the request is none"),
    }
}

/// Who asks for what has no host says so with an empty one.
fn is_host(value: &[u8]) -> bool {
    is_usual(value) || value.is_empty() || (!value.contains(&b'@') && Authority::try_from(value).is_ok())
}

/// Whether it is a name or an address of version 4, with or without a port: what there is nothing to be said about.
pub(super) fn is_usual(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| *byte == b':');
    let (name, port, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let is_name =
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte));
    is_name && port.is_none_or(|port| port.iter().all(u8::is_ascii_digit)) && more.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault_of(version: Version, hosts: &[&str]) -> Option<&'static str> {
        let request = Request::builder().version(version);
        let request = hosts.iter().fold(request, |request, host| request.header("host", *host));
        fault(&request.body(()).unwrap())
    }

    #[test]
    fn a_request_names_one_host() {
        for host in ["a.example", "a.example:8090", "192.0.2.1", "[2001:db8::1]:8090", "a_b", ""] {
            assert_eq!(fault_of(Version::HTTP_11, &[host]), None, "{host}");
        }
        let usual = ["a.example", "a.example:8090", "192.0.2.1", "a-b", "a:"];
        assert!(usual.iter().all(|host| is_usual(host.as_bytes()) && is_host(host.as_bytes())));
        for host in ["a.example:x", "a:1:2", ":80", "[::1]", "a b", "u@a", ""] {
            assert!(!is_usual(host.as_bytes()), "{host}");
        }
        for host in ["a b", "a/b", "u@a", "a,b c", "[::1", "a:b:c"] {
            assert!(fault_of(Version::HTTP_11, &[host]).is_some(), "{host}");
        }
        assert!(fault_of(Version::HTTP_11, &[]).is_some());
        assert!(fault_of(Version::HTTP_10, &["a", "a"]).is_some());
        assert_eq!(fault_of(Version::HTTP_10, &[]), None);
    }
}

//! What the pages of other sites may have the browser of an administrator ask, when no token is required.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::serve::Server;
use crate::support::Scratch;

const LIST: &str = "/api/assisted-install/v2/infra-envs";

/// The status line and the body of the answer to a request as it is written here.
fn raw(server: &Server, request: &str) -> (u16, String) {
    let mut stream = server.connect();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

fn get(server: &Server, path: &str, host: &str) -> (u16, String) {
    raw(server, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

#[test]
fn hosts_of_other_sites_are_refused_on_loopback() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[("SERVICE_BASE_URL", "http://10.0.2.2:8090")], &[]);
    for host in ["localhost", "127.0.0.1:1", "10.0.2.2:8090"] {
        assert_eq!(get(&server, LIST, host).0, 200, "{host}");
    }
    for path in [LIST, "/", "/page/page.js", "/openapi.json", "/api/assisted-install/v2/nothing"] {
        let (status, text) = get(&server, path, "evil.example");
        assert_eq!(status, 421, "{path}");
        assert!(text.contains(r#"host \"evil.example\""#) && text.contains("--allowed-hosts"), "{text}");
    }
    // Machines reach images under any name, and a supervisor asks for the health under any.
    for path in ["/health", "/live", "/metrics"] {
        assert_eq!(get(&server, path, "evil.example").0, 200, "{path}");
    }
    for path in ["/boot-artifacts/kernel?version=4.18", "/i/6ba7b810-9dad-11d1-80b4-00c04fd430c8/full.iso"] {
        assert!([400, 404].contains(&get(&server, path, "evil.example").0), "{path}");
    }
    assert_eq!(raw(&server, &format!("GET {LIST} HTTP/1.0\r\n\r\n")).0, 200);
}

#[test]
fn pages_of_other_sites_change_nothing() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[("ALLOWED_DOMAINS", "https://ui.example")], &[]);
    let id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let post = |origin: &str| {
        let path = format!("{LIST}/{id}/regenerate-signing-key");
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1:8090\r\nConnection: close\r\nOrigin: {origin}");
        raw(&server, &format!("{head}\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"))
    };
    for origin in ["http://evil.example", "null", "http://127.0.0.1:8091"] {
        let (status, text) = post(origin);
        assert_eq!(status, 403, "{origin}");
        assert!(text.contains("--allowed-domains"), "{text}");
    }
    for origin in ["http://127.0.0.1:8090", "https://ui.example"] {
        assert_eq!(post(origin).0, 404, "{origin}: there is no such infra-env");
    }
}

#[test]
fn open_services_answer_to_allowed_hosts() {
    let scratch = Scratch::new();
    let open = ["--auth-type", "none", "--allow-open-access", "--listen", "0.0.0.0:0"];
    let by_address = Server::start(&scratch, &[], &open[..]);
    for (host, expected) in [("198.51.100.7:8090", 200), ("localhost", 200), ("lab.example", 421)] {
        assert_eq!(get(&by_address, LIST, host).0, expected, "{host}");
    }
    by_address.end();
    let listed = Server::start(&scratch, &[("KINDLING_ALLOWED_HOSTS", "*.lab.example")], &open[..]);
    for (host, expected) in [("a.lab.example:8090", 200), ("198.51.100.7", 421), ("lab.example.evil", 421)] {
        assert_eq!(get(&listed, LIST, host).0, expected, "{host}");
    }
}

#[test]
fn unix_sockets_answer_under_any_host() {
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let server = Server::start(&scratch, &[], &["--listen", &format!("unix:{}", path.display())]);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream
        .write_all(format!("GET {LIST} HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    server.end();
}

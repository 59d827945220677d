//! Requests that pages of other sites can make an administrator's browser send to a server without required tokens.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::serve::ServeProcess;
use crate::support::Scratch;

const LIST: &str = "/api/assisted-install/v2/infra-envs";

/// Sends a request verbatim, and returns the status line and the body of the response.
fn send_verbatim(server: &ServeProcess, request: &str) -> (u16, String) {
    let mut stream = server.connect();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

fn get_from_host(server: &ServeProcess, path: &str, host: &str) -> (u16, String) {
    send_verbatim(server, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

#[test]
fn other_host_names_are_refused_on_loopback() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[("SERVICE_BASE_URL", "http://10.0.2.2:8090")], &[]);
    for host in ["localhost", "127.0.0.1:1", "10.0.2.2:8090"] {
        assert_eq!(get_from_host(&server, LIST, host).0, 200, "{host}");
    }
    for path in [LIST, "/", "/page/page.js", "/openapi.json", "/api/assisted-install/v2/nothing"] {
        let (status, text) = get_from_host(&server, path, "evil.example");
        assert_eq!(status, 421, "{path}");
        assert!(text.contains(r#"host \"evil.example\""#) && text.contains("allowed hosts"), "{text}");
    }
    // Boot files and health checks are available under any host name, because machines and supervisors may use any.
    for path in ["/health", "/live", "/metrics"] {
        assert_eq!(get_from_host(&server, path, "evil.example").0, 200, "{path}");
    }
    for path in ["/boot-artifacts/kernel?version=4.18", "/i/6ba7b810-9dad-11d1-80b4-00c04fd430c8/full.iso"] {
        assert!([400, 404].contains(&get_from_host(&server, path, "evil.example").0), "{path}");
    }
    assert_eq!(send_verbatim(&server, &format!("GET {LIST} HTTP/1.0\r\n\r\n")).0, 200);
    let log = server.stop();
    assert!(log.contains("--allowed-hosts") && log.contains("--allowed-domains"), "{log}");
}

#[test]
fn pages_of_other_sites_change_nothing() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[("ALLOWED_DOMAINS", "https://ui.example")], &[]);
    let id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let post = |origin: &str| {
        let path = format!("{LIST}/{id}/regenerate-signing-key");
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1:8090\r\nConnection: close\r\nOrigin: {origin}");
        send_verbatim(&server, &format!("{head}\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"))
    };
    for origin in ["http://evil.example", "null", "http://127.0.0.1:8091"] {
        let (status, text) = post(origin);
        assert_eq!(status, 403, "{origin}");
        assert!(text.contains("allowed origins"), "{text}");
    }
    for origin in ["http://127.0.0.1:8090", "https://ui.example"] {
        assert_eq!(post(origin).0, 404, "{origin}: there is no such infra-env");
    }
}

#[test]
fn open_service_accepts_only_allowed_host_names() {
    let scratch = Scratch::new();
    let open = ["--auth-type", "none", "--allow-open-access", "--listen", "0.0.0.0:0"];
    let by_address = ServeProcess::start(&scratch, &[], &open[..]);
    for (host, expected) in [("198.51.100.7:8090", 200), ("localhost", 200), ("lab.example", 421)] {
        assert_eq!(get_from_host(&by_address, LIST, host).0, expected, "{host}");
    }
    by_address.stop();
    let listed = ServeProcess::start(&scratch, &[("KINDLING_ALLOWED_HOSTS", "*.lab.example")], &open[..]);
    for (host, expected) in [("a.lab.example:8090", 200), ("198.51.100.7", 421), ("lab.example.evil", 421)] {
        assert_eq!(get_from_host(&listed, LIST, host).0, expected, "{host}");
    }
}

#[test]
fn unix_sockets_accept_any_host_name() {
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let server = ServeProcess::start(&scratch, &[], &["--listen", &format!("unix:{}", path.display())]);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream
        .write_all(format!("GET {LIST} HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    server.stop();
}

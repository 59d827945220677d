//! Requests that wait for a base image whose server sends no response.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::serve::{PATIENCE, ServeProcess};
use crate::support::Scratch;

const PATH: &str = "/boot-artifacts/kernel?version=4.18";

/// Starts a server whose base image is at a server that accepts connections and sends nothing.
fn start(options: &[&str]) -> (ServeProcess, TcpListener, Scratch) {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let images = format!(
        r#"[{{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1", "url": "http://{}/a.iso"}}]"#,
        silent.local_addr().unwrap()
    );
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[("OS_IMAGES", &images)], options);
    (server, silent, scratch)
}

/// Reads a response, which must ask the client to try again later.
fn assert_refused(mut stream: TcpStream) {
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    assert!(response.to_lowercase().contains("\r\nretry-after: 10\r\n"), "{response}");
    assert!(response.contains("base image rhcos-full-iso-1-x86_64.iso is not ready yet"), "{response}");
}

fn send_request(server: &ServeProcess) -> TcpStream {
    let mut stream = server.connect();
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn request_is_refused_after_the_wait() {
    let (server, _silent, _scratch) = start(&["--base-image-wait", "1ms"]);
    assert_refused(send_request(&server));
    server.stop();
}

#[test]
fn waiting_request_does_not_delay_the_shutdown() {
    let (server, silent, _scratch) = start(&["--base-image-wait", "1h", "--drain-time", "1h"]);
    let stream = send_request(&server);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The request has started the download, for which it waits.
    silent.accept().unwrap();
    server.send_signal("TERM");
    assert_refused(stream);
    let (code, log) = server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
}

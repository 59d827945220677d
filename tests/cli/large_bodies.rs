//! The memory of a server whose clients send large bodies: concurrently, slowly, or under a memory limit.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::ServeProcess;
use crate::support::{KINDLING, ProgramRun, Scratch};

const API: &str = "/api/assisted-install/v2";
const MIB: usize = 1 << 20;
/// An unoptimised test server needs several seconds for the largest body, and processes such bodies one after another.
const PATIENCE: Duration = Duration::from_secs(300);
const IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1", "url": "file:///base.iso"}]"#;
const SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;

/// The documented bound: 256 MiB of bodies in transit, and 512 MiB for their processing.
const BOUND: usize = (256 + 512) * MIB;
/// Memory of the server in addition to request bodies: caches of records and of network files, and the allocator's
/// reserves.
const OTHERS: usize = 160 * MIB;

/// Returns a value in bytes from `/proc/PID/status`.
fn memory(server: &ServeProcess, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<usize>().unwrap() << 10
}

/// Returns an infra-env whose config has one large file.
fn body_with_text(len: usize) -> String {
    let file = json!({"path": "/etc/large", "contents": {"source": format!("data:,{}", "x".repeat(len))}});
    let config = json!({"ignition": {"version": "3.1.0"}, "storage": {"files": [file]}}).to_string();
    json!({"name": "demo", "pull_secret": SECRET, "ignition_config_override": config}).to_string()
}

/// Returns an infra-env with many hosts.
fn body_with_hosts(hosts: usize) -> String {
    let host = |number: usize| {
        let mac = format!("52:54:00:{:02x}:{:02x}:{:02x}", number >> 16, number >> 8 & 255, number & 255);
        let address = format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255);
        let document = json!({"interfaces": [{
            "name": "eth0", "type": "ethernet", "state": "up", "mac-address": mac,
            "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": address, "prefix-length": 8}]},
        }]});
        let map = json!([{"mac_address": mac, "logical_nic_name": "eth0"}]);
        json!({"network_yaml": document.to_string(), "mac_interface_map": map})
    };
    let hosts: Vec<Value> = (0..hosts).map(host).collect();
    json!({"name": "demo", "pull_secret": SECRET, "static_network_config": hosts}).to_string()
}

/// Returns a body with the maximum number of objects. Objects take more memory than any other value.
fn body_with_objects() -> String {
    let object = r#"{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}"#;
    let count = (1 << 20) / 9 - 10;
    let objects = vec![object; count].join(",");
    format!(r#"{{"name": "demo", "pull_secret": "x", "static_network_config": [{objects}]}}"#)
}

fn begin_request(address: &str, path: &str, len: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST {API}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {len}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Sends a body and returns the status of the response.
fn post(address: &str, path: &str, body: &str) -> u16 {
    let mut stream = begin_request(address, path, body.len());
    // The server may refuse the body before it has read all of it.
    let _ = stream.write_all(body.as_bytes());
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    let head = String::from_utf8_lossy(&response[..response.len().min(100)]).into_owned();
    head.split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("no response: {head}"))
}

/// Sends a body from several clients at the same time, and returns the statuses.
fn post_from_each(clients: usize, server: &ServeProcess, body: &str) -> Vec<u16> {
    let address = &*server.addresses[0];
    thread::scope(|scope| {
        let client = |_| scope.spawn(|| post(address, "/infra-envs", body));
        let clients: Vec<_> = (0..clients).map(client).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

fn start(scratch: &Scratch) -> ServeProcess {
    ServeProcess::start(scratch, &[("OS_IMAGES", IMAGES)], &[])
}

#[test]
fn concurrent_large_bodies_need_bounded_memory() {
    let scratch = Scratch::new();
    let server = start(&scratch);
    let body = body_with_text(16 * MIB);
    let statuses = post_from_each(14, &server, &body);
    println!("{statuses:?}, peak {} MiB", memory(&server, "VmHWM:") / MIB);
    assert!(statuses.contains(&201), "{statuses:?}");
    assert!(statuses.iter().all(|status| [201, 503].contains(status)), "{statuses:?}");
    let peak = memory(&server, "VmHWM:");
    assert!(peak < BOUND + OTHERS, "{} MiB", peak / MIB);
    server.stop();
}

#[test]
fn largest_allowed_bodies_are_accepted() {
    let scratch = Scratch::new();
    for (name, body) in [("text", body_with_text(32 * MIB - 1000)), ("hosts", body_with_hosts(20_000))] {
        let server = start(&scratch);
        assert_eq!(post(&server.addresses[0], "/infra-envs", &body), 201, "{name}");
        let peak = memory(&server, "VmHWM:");
        println!("{name}: {} bytes, peak {} MiB", body.len(), peak / MIB);
        assert!(peak < 512 * MIB, "{name}: {} MiB", peak / MIB);
        server.stop();
    }
}

/// Several threads process the bodies, and the allocator keeps freed memory for each thread. The memory must not grow
/// with the number of bodies.
#[test]
fn memory_of_costly_bodies_is_returned() {
    let scratch = Scratch::new();
    let server = start(&scratch);
    let body = body_with_objects();
    for _ in 0..3 {
        let statuses = post_from_each(2, &server, &body);
        assert!(statuses.contains(&400), "{statuses:?}");
        assert!(statuses.iter().all(|status| [400, 503].contains(status)), "{statuses:?}");
    }
    let peak = memory(&server, "VmHWM:");
    println!("objects: {} bytes, peak {} MiB", body.len(), peak / MIB);
    assert!(peak < 512 * MIB + OTHERS, "{} MiB", peak / MIB);
    server.stop();
}

#[test]
fn slow_bodies_hold_only_what_was_sent() {
    let scratch = Scratch::new();
    let server = start(&scratch);
    let piece = "x".repeat(MIB);
    let mut senders: Vec<TcpStream> =
        (0..20).map(|_| begin_request(&server.addresses[0], "/infra-envs", 32 * MIB)).collect();
    for sender in &mut senders {
        sender.write_all(piece.as_bytes()).unwrap();
    }
    // The slow requests have declared 640 MiB and sent only 20 MiB, so the server still accepts another body.
    assert_eq!(post(&server.addresses[0], "/infra-envs", &body_with_text(16 * MIB)), 201);
    assert_eq!(server.request("GET /health", "").status, 200);
    let peak = memory(&server, "VmHWM:");
    assert!(peak < 256 * MIB, "{} MiB", peak / MIB);
    server.send_signal("KILL");
}

/// Starts a server whose address space is limited to `mebibytes` MiB.
fn start_with_limit(scratch: &Scratch, mebibytes: usize) -> ServeProcess {
    let script = format!("ulimit -v {}; exec {KINDLING} serve --listen 127.0.0.1:0", mebibytes << 10);
    let run = ProgramRun::new("sh", scratch.folder()).args(["-c", &script]).env("OS_IMAGES", IMAGES);
    ServeProcess::spawn(run.command(), 1)
}

#[test]
fn server_with_limited_address_space_refuses_bodies_and_lives() {
    let scratch = Scratch::new();
    let usual = start(&scratch);
    let used = memory(&usual, "VmSize:") / MIB;
    usual.stop();
    let mut server = start_with_limit(&scratch, used + 400);
    let mut statuses = Vec::new();
    for body in [body_with_text(20 * MIB), body_with_objects(), body_with_hosts(1000)] {
        statuses.extend(post_from_each(4, &server, &body));
    }
    println!("{used} + 400 MiB: {statuses:?}");
    assert!(statuses.contains(&503), "{statuses:?}");
    assert!(statuses.iter().all(|status| [201, 503].contains(status)), "{statuses:?}");
    assert!(server.child.try_wait().unwrap().is_none(), "the server ended");
    assert_eq!(server.request("GET /health", "").status, 200);
    server.stop();
}

//! The cost of a client that requests long work and disconnects before it ends.

use std::fs;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

use crate::serve::{PATIENCE, ServeProcess};
use crate::support::Scratch;

const INFRA_ENVS: &str = "POST /api/assisted-install/v2/infra-envs";
const OS_IMAGES: &str =
    r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://a/b", "version": "1"}]"#;
/// Translating the networks of this many hosts takes seconds.
const HOSTS: u32 = 2000;
const FEW_HOSTS: u32 = 40;
/// Duration of a clock tick in `/proc/PID/stat`.
const TICK: Duration = Duration::from_millis(10);

/// Returns the CPU time that a server has used.
fn cpu_time(server: &ServeProcess) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.child.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    TICK * [fields[11], fields[12]].map(|ticks| ticks.parse::<u32>().unwrap()).iter().sum()
}

/// Returns an infra-env whose host network configs take long to translate.
fn slow_infra_env_request(hosts: u32) -> String {
    let dummies: String =
        (0..80).map(|number| format!(", {{name: d{number}, type: dummy, state: up}}")).collect();
    let host = |number: u32| -> Value {
        json!({
            "network_yaml":
                format!("interfaces: [{{name: eth0, type: ethernet, state: up, description: h{hosts}-{number}}}{dummies}]"),
            "mac_interface_map": [{
                "mac_address": format!("52:54:00:00:{:02x}:{:02x}", number >> 8, number & 255),
                "logical_nic_name": "eth0",
            }],
        })
    };
    let body = json!({
        "name": "demo",
        "pull_secret": r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#,
        "static_network_config": (0..hosts).map(host).collect::<Value>(),
    })
    .to_string();
    format!(
        "{INFRA_ENVS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn work_stops_when_the_client_disconnects() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[("OS_IMAGES", OS_IMAGES)], &[]);
    let (head, body) = slow_infra_env_request(FEW_HOSTS)
        .split_once("\r\n\r\n")
        .map(|(head, body)| (head.to_owned(), body.to_owned()))
        .unwrap();
    let headers = head.split_once("Host: localhost\r\n").unwrap().1;
    let before = cpu_time(&server);
    let answer = server.request_with_body(INFRA_ENVS, headers, &body);
    assert_eq!(answer.status, 201, "{answer:?}");
    let of_all = (cpu_time(&server) - before) * (HOSTS / FEW_HOSTS);

    let before = cpu_time(&server);
    let used = || cpu_time(&server).saturating_sub(before);
    let mut leaving = server.connect();
    leaving.write_all(slow_infra_env_request(HOSTS).as_bytes()).unwrap();
    wait_for("the work has started", || used() > of_all / 20);
    // Make the client send a reset: after a mere close, it could still wait for the response.
    set_socket_linger(&leaving, Some(Duration::ZERO)).unwrap();
    drop(leaving);
    let mut last = Duration::ZERO;
    wait_for("the server is idle", || {
        let before = std::mem::replace(&mut last, used());
        last - before < TICK * 3
    });
    assert!(last < of_all / 2, "{last:?} of {of_all:?}");
}

/// Waits for an effect of the server's checks, which run every half second.
#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE * 4, "{what}");
        thread::sleep(Duration::from_millis(500));
    }
}

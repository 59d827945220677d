//! Clients that request long lists and do not read them.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use kindling::inventory::store::{
    Changes, Filter, Kind, Outcome, ReportKind, ReportKinds, Row, SqlStore, Step, Store,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::serve::ServeProcess;
use crate::support::Scratch;

const HOSTS: usize = 2000;
const CLIENTS: usize = 16;
/// Memory that the responses to all of these clients may take together.
const MAX_MEMORY: u64 = 32 << 20;
/// How often memory is measured, and how long after the last change. Building a whole list takes longer than that.
const MEMORY_SAMPLES: usize = 300;
const PAUSE: Duration = Duration::from_millis(10);

const OS_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1", "url": "http://127.0.0.1:1/x.iso"}]"#;
const RELEASE_IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3", "url": "quay.io/a:1"}]"#;
const API: &str = "/api/assisted-install/v2";

fn post_json(server: &ServeProcess, path: &str, body: &Value) -> Value {
    let body = body.to_string();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    let answer = server.request_with_body(&format!("POST {API}{path}"), &headers, &body);
    assert!((200..300).contains(&answer.status), "{path}: {}", String::from_utf8_lossy(&answer.body));
    if answer.body.is_empty() { Value::Null } else { answer.json() }
}

/// An inventory report of about 50 KiB.
fn large_inventory_report() -> Value {
    let disk = |number: usize| {
        json!({
            "id": format!("/dev/disk/by-id/wwn-0x5000000000{number:06}"), "path": format!("/dev/sd{number}"),
            "by_path": format!("/dev/disk/by-path/pci-0000:00:1f.{number}-ata-1"), "drive_type": "SSD",
            "size_bytes": 128_849_018_880_i64, "serial": format!("S{number:018}"), "model": "Samsung SSD 870 EVO",
            "smart": "x".repeat(1000), "installation_eligibility": {"eligible": true, "not_eligible_reasons": []},
        })
    };
    json!({
        "hostname": "host", "cpu": {"count": 8, "architecture": "x86_64"},
        "memory": {"physical_bytes": 34_359_738_368_i64, "usable_bytes": 34_359_738_368_i64},
        "disks": (0..35).map(disk).collect::<Vec<_>>(),
    })
}

/// Copies one host many times within its cluster and infra-env, in the database of a stopped server.
fn copy_host_in_database(scratch: &Scratch) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = SqlStore::open_file(&scratch.path("kindling-data/kindling.db")).await.unwrap();
        let hosts = store.list(Filter::all(Kind::Host)).await.unwrap();
        let [host] = &hosts[..] else { panic!("one host") };
        let kinds = ReportKinds::new(&[ReportKind::Inventory]);
        let reports = store.reports(host.key, kinds).await.unwrap();
        let report = reports.get(ReportKind::Inventory).unwrap();
        assert!((40 << 10..80 << 10).contains(&report.len()), "{}", report.len());
        let copy = |_: &usize| {
            let id = Uuid::new_v4();
            let document = host.document.replace(&host.key.id.to_string(), &id.to_string());
            let mut copy = Row { document, ..host.clone() };
            copy.key.id = id;
            [Step::PutReport(copy.key, ReportKind::Inventory, report.to_owned()), Step::Insert(copy)]
        };
        for batch in (1..HOSTS).collect::<Vec<_>>().chunks(100) {
            let changes = Changes { steps: batch.iter().flat_map(copy).collect(), events: Vec::new() };
            assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
        }
        store.close().await;
    });
}

fn private_memory(server: &ServeProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

/// A client that has sent its request and read one byte of the response.
fn begin_response(server: &ServeProcess, path: &str, coding: &str) -> TcpStream {
    let mut stream = server.connect();
    let head = format!("GET {API}{path} HTTP/1.0\r\nAccept-Encoding: {coding}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    stream
}

#[test]
fn stalled_readers_of_long_lists_need_little_memory() {
    let scratch = Scratch::new();
    let settings = [
        ("HOST_MAX_DISCONNECTION_TIME", "24h"),
        ("OS_IMAGES", OS_IMAGES),
        ("RELEASE_IMAGES", RELEASE_IMAGES),
    ];
    let server = ServeProcess::start(&scratch, &settings, &[]);
    let secret = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;
    let cluster = json!({"name": "c", "openshift_version": "4.18", "pull_secret": secret});
    let cluster = post_json(&server, "/clusters", &cluster)["id"].as_str().unwrap().to_owned();
    let env = json!({"name": "e", "pull_secret": secret, "cluster_id": cluster});
    let env = post_json(&server, "/infra-envs", &env)["id"].as_str().unwrap().to_owned();
    let id = Uuid::new_v4();
    post_json(&server, &format!("/infra-envs/{env}/hosts"), &json!({"host_id": id}));
    let reply = json!({"step_type": "inventory", "step_id": "1", "exit_code": 0, "output": large_inventory_report().to_string()});
    post_json(&server, &format!("/infra-envs/{env}/hosts/{id}/instructions"), &reply);
    server.stop();
    copy_host_in_database(&scratch);

    let server = ServeProcess::start(&scratch, &settings, &[]);
    server.request(&format!("GET {API}/infra-envs/{env}/hosts/{id}"), "");
    let before = private_memory(&server);
    let hosts = format!("/infra-envs/{env}/hosts");
    let paths = [
        hosts.clone(),
        format!("/clusters/{cluster}/hosts?with-inventory=true"),
        "/clusters".to_owned(),
        format!("/clusters/{cluster}"),
    ];
    let mut most = before;
    let mut streams = Vec::new();
    for client in 0..CLIENTS {
        let coding = if client % 8 < 4 { "identity" } else { "gzip" };
        streams.push(begin_response(&server, &paths[client % 4], coding));
        most = most.max(private_memory(&server));
    }
    for _ in 0..MEMORY_SAMPLES {
        thread::sleep(PAUSE);
        most = most.max(private_memory(&server));
    }
    println!("private memory: {} KiB before, {} KiB at most", before >> 10, most >> 10);
    assert!(most < before + MAX_MEMORY, "{before} before, {most} with {CLIENTS} clients");
    // They delay no other client, and a client that starts to read gets the whole list.
    let health = server.request("GET /health", "");
    assert_eq!(health.status, 200, "{health:?}");
    let mut text = String::new();
    BufReader::new(&mut streams[0]).read_to_string(&mut text).unwrap();
    let list: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(list.as_array().unwrap().len(), HOSTS);
    let kept = private_memory(&server);
    println!("private memory after one list: {} KiB", kept >> 10);
    assert!(kept < before + MAX_MEMORY, "{before} before, {kept} after one list");
    drop(streams);
    server.stop();
}

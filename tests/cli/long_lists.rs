//! Clients that request long lists but do not read them.

use std::cell::Cell;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use kindling::inventory::event::{Event, Severity};
use kindling::inventory::id::ClusterId;
use kindling::inventory::store::{
    Changes, Filter, Kind, Outcome, ReportKind, ReportKinds, Row, SqlStore, Step, Store,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::serve::ServeProcess;
use crate::support::{Scratch, private_memory};

const CLIENTS: usize = 16;
/// Number of measurements of the memory after its last change. They take longer than the server needs to build a whole
/// list.
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

/// Returns an inventory report of about 50 KiB.
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

/// Changes the database of a stopped server.
fn change_database(scratch: &Scratch, change: impl AsyncFn(&dyn Store)) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = SqlStore::open_file(&scratch.path("kindling-data/kindling.db")).await.unwrap();
        change(&store).await;
        store.close().await;
    });
}

/// Copies one host with its reports within its cluster and infra-env until there are `count` hosts. Returns the length
/// of a host's reports.
fn copy_host_in_database(scratch: &Scratch, count: usize) -> usize {
    let len = Cell::new(0);
    change_database(scratch, async |store| {
        let hosts = store.list(Filter::all(Kind::Host)).await.unwrap();
        let [host] = &hosts[..] else { panic!("one host") };
        let reports = store.reports(host.key, ReportKinds::new(ReportKind::ALL)).await.unwrap();
        len.set(reports.0.values().map(String::len).sum());
        let copy = |_: &usize| {
            let id = Uuid::new_v4();
            let document = host.document.replace(&host.key.id.to_string(), &id.to_string());
            let mut copy = Row { document, ..host.clone() };
            copy.key.id = id;
            let report =
                |(kind, text): (&ReportKind, &String)| Step::PutReport(copy.key, *kind, text.clone());
            let mut steps: Vec<_> = reports.0.iter().map(report).collect();
            steps.push(Step::Insert(copy));
            steps
        };
        for batch in (1..count).collect::<Vec<_>>().chunks(20) {
            let changes = Changes { steps: batch.iter().flat_map(copy).collect(), events: Vec::new() };
            assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
        }
    });
    len.get()
}

/// Sends a request and reads one byte of the response.
fn begin_response(server: &ServeProcess, path: &str, coding: &str) -> TcpStream {
    let mut stream = server.connect();
    let head = format!("GET {API}{path} HTTP/1.0\r\nAccept-Encoding: {coding}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    stream
}

/// A server whose database has many hosts in one cluster and infra-env.
struct HostsServer {
    server: ServeProcess,
    cluster: String,
    env: String,
    /// Length of the reports of each host.
    len: usize,
}

fn start_server(scratch: &Scratch) -> ServeProcess {
    let settings = [
        ("HOST_MAX_DISCONNECTION_TIME", "24h"),
        ("OS_IMAGES", OS_IMAGES),
        ("RELEASE_IMAGES", RELEASE_IMAGES),
    ];
    ServeProcess::start(scratch, &settings, &[])
}

impl HostsServer {
    /// Starts a server with hosts that all have these reports.
    fn start(scratch: &Scratch, hosts: usize, reports: &[(&str, Value)]) -> Self {
        let server = start_server(scratch);
        let secret = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}"#;
        let cluster = json!({"name": "c", "openshift_version": "4.18", "pull_secret": secret});
        let cluster = post_json(&server, "/clusters", &cluster)["id"].as_str().unwrap().to_owned();
        let env = json!({"name": "e", "pull_secret": secret, "cluster_id": cluster});
        let env = post_json(&server, "/infra-envs", &env)["id"].as_str().unwrap().to_owned();
        let id = Uuid::new_v4();
        post_json(&server, &format!("/infra-envs/{env}/hosts"), &json!({"host_id": id}));
        for (kind, report) in reports {
            let reply =
                json!({"step_type": kind, "step_id": "1", "exit_code": 0, "output": report.to_string()});
            post_json(&server, &format!("/infra-envs/{env}/hosts/{id}/instructions"), &reply);
        }
        server.stop();
        let len = copy_host_in_database(scratch, hosts);
        let server = start_server(scratch);
        server.request(&format!("GET {API}/infra-envs/{env}/hosts/{id}"), "");
        wait_for_assessment(&server);
        Self { server, cluster, env, len }
    }

    /// Returns the paths of long responses.
    fn paths(&self) -> [String; 4] {
        let Self { cluster, env, .. } = self;
        [
            format!("/infra-envs/{env}/hosts"),
            format!("/clusters/{cluster}/hosts?with-inventory=true"),
            "/clusters?with_hosts=true".to_owned(),
            format!("/clusters/{cluster}"),
        ]
    }
}

/// Waits until the server has assessed the cluster, and so has the facts about the hosts in memory.
fn wait_for_assessment(server: &ServeProcess) {
    let start = Instant::now();
    loop {
        let metrics = server.request("GET /metrics", "");
        if !String::from_utf8_lossy(&metrics.body).contains("kindling_assessed_clusters_total 0\n") {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the cluster is not assessed");
        thread::sleep(PAUSE);
    }
}

/// Clients that have begun to read a response, and the private memory of the server.
struct StalledClients {
    before: u64,
    most: u64,
    streams: Vec<TcpStream>,
}

impl StalledClients {
    fn start(server: &ServeProcess, paths: &[String]) -> Self {
        let before = private_memory(server.child.id());
        let mut clients = Self { before, most: before, streams: Vec::new() };
        for client in 0..CLIENTS {
            let coding = if client % 8 < 4 { "identity" } else { "gzip" };
            clients.streams.push(begin_response(server, &paths[client % paths.len()], coding));
            clients.most = clients.most.max(private_memory(server.child.id()));
        }
        for _ in 0..MEMORY_SAMPLES {
            thread::sleep(PAUSE);
            clients.most = clients.most.max(private_memory(server.child.id()));
        }
        println!("private memory: {} KiB before, {} KiB at most", before >> 10, clients.most >> 10);
        clients
    }

    /// Checks the memory of the server. Other clients must not be delayed, and a client that resumes reading must
    /// receive the whole list.
    fn check(mut self, server: &ServeProcess, max_memory: u64, len: usize) {
        let Self { before, most, .. } = self;
        assert!(most < before + max_memory, "{before} before, {most} with {CLIENTS} clients");
        let health = server.request("GET /health", "");
        assert_eq!(health.status, 200, "{health:?}");
        let mut text = String::new();
        BufReader::new(&mut self.streams[0]).read_to_string(&mut text).unwrap();
        let list: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(list.as_array().unwrap().len(), len);
        let after = private_memory(server.child.id());
        println!("private memory after one list: {} KiB", after >> 10);
        assert!(after < before + max_memory, "{before} before, {after} after one list");
    }
}

#[test]
fn stalled_readers_of_long_lists_need_little_memory() {
    const HOSTS: usize = 1000;
    let scratch = Scratch::new();
    let hosts = HostsServer::start(&scratch, HOSTS, &[("inventory", large_inventory_report())]);
    assert!((40 << 10..80 << 10).contains(&hosts.len), "{}", hosts.len);
    StalledClients::start(&hosts.server, &hosts.paths()).check(&hosts.server, 32 << 20, HOSTS);
    hosts.server.stop();
}

/// A page contains a single host if its reports are long. The reports become longer still as a JSON string.
#[test]
fn stalled_readers_of_the_longest_reports_need_bounded_memory() {
    const HOSTS: usize = 24;
    let scratch = Scratch::new();
    let quotes = |count: usize| "\"".repeat(count);
    let mut inventory = large_inventory_report();
    inventory["cpu"]["model_name"] = quotes(450 << 10).into();
    let connectivity = json!({"remote_hosts": [{"host_id": quotes(500 << 10)}]});
    let reports = [("inventory", inventory), ("connectivity-check", connectivity)];
    let hosts = HostsServer::start(&scratch, HOSTS, &reports);
    assert!((1900 << 10..2 << 20).contains(&hosts.len), "{}", hosts.len);
    StalledClients::start(&hosts.server, &hosts.paths()).check(
        &hosts.server,
        CLIENTS as u64 * (16 << 20),
        HOSTS,
    );
    hosts.server.stop();
}

#[test]
fn stalled_readers_of_long_events_need_little_memory() {
    const EVENTS: usize = 300;
    let scratch = Scratch::new();
    start_server(&scratch).stop();
    let cluster = ClusterId::fresh();
    change_database(&scratch, async |store| {
        let event = || Event {
            props: Some(json!({"a": "x".repeat(64_000)}).to_string()),
            ..Event::new("long", Severity::Info, "m".repeat(4096), chrono::Utc::now())
                .of_cluster(Some(cluster))
        };
        for _ in 0..EVENTS / 20 {
            let changes = Changes { steps: Vec::new(), events: (0..20).map(|_| event()).collect() };
            assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
        }
    });
    let server = start_server(&scratch);
    let path = format!("/events?cluster_id={cluster}");
    server.request(&format!("GET {API}{path}&limit=1"), "");
    StalledClients::start(&server, &[path]).check(&server, 32 << 20, EVENTS);
    server.stop();
}

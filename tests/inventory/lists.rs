//! Lists that are longer than one database page and one chunk of a response.

use std::time::Duration;

use kindling::inventory::Settings;
use kindling::inventory::store::{
    Changes, Filter, Kind, Operation, Outcome, ReportKind, ReportKinds, Row, Step,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env, inventory_report};
use crate::service::{
    PULL_SECRET, TestService, on_each_database, on_each_database_with, only_own_validations, send_request,
};

/// Number of hosts with real reports, which need more than one page.
const HOSTS: usize = 40;

/// Copies a record with another id, and replaces texts in its document.
fn copy_of_row(row: &Row, replace: &[(&str, &str)]) -> Row {
    let id = Uuid::new_v4();
    let mut document = row.document.replace(&row.key.id.to_string(), &id.to_string());
    for (from, to) in replace {
        document = document.replace(from, to);
    }
    let mut copy = Row { document, ..row.clone() };
    copy.key.id = id;
    copy
}

/// Returns the steps that insert a copy of a host with its inventory report.
fn copy_of_host((row, report): &(Row, String), replace: &[(&str, &str)]) -> [Step; 2] {
    let copy = copy_of_row(row, replace);
    [Step::PutReport(copy.key, ReportKind::Inventory, report.clone()), Step::Insert(copy)]
}

async fn commit_steps(service: &TestService, steps: impl IntoIterator<Item = Step>) {
    let steps = steps.into_iter().collect();
    let outcome = service.inventory.records().store().commit(Changes { steps, events: Vec::new() }).await;
    assert_eq!(outcome.unwrap(), Outcome::Done);
}

/// Returns the first host, with its inventory report.
async fn first_host(service: &TestService, filter: Filter) -> (Row, String) {
    let row = list_rows(service, filter).await.remove(0);
    let kinds = ReportKinds::new(&[ReportKind::Inventory]);
    let reports = service.inventory.records().reports(row.key, kinds).await.unwrap();
    let report = reports.get(ReportKind::Inventory).unwrap_or_default().to_owned();
    (row, report)
}

async fn list_rows(service: &TestService, filter: Filter) -> Vec<Row> {
    service.inventory.records().store().list(filter).await.unwrap()
}

/// Creates an infra-env with many hosts, each with a report of 50 KiB. Returns the id of the infra-env, and the ids of
/// the hosts in their order.
async fn many_hosts(service: &TestService) -> (String, Vec<String>) {
    many_hosts_in(service, &json!({})).await
}

/// Creates hosts like [`many_hosts`], with parameters of the infra-env.
async fn many_hosts_in(service: &TestService, params: &Value) -> (String, Vec<String>) {
    let agent = FakeAgent::new(service, &create_infra_env(service, params).await);
    agent.register().await.json_with_status(201);
    let mut machine = inventory_report("host");
    machine["cpu"]["flags"] = (0..5000).map(|flag| format!("flag{flag}")).collect();
    agent.reply_to_step("inventory", &machine).await.json_with_status(204);
    let filter = Filter::all(Kind::Host).within(agent.infra_env.parse().unwrap());
    let host = first_host(service, filter).await;
    assert!(host.1.len() > 50 << 10);
    commit_steps(service, (1..HOSTS).flat_map(|_| copy_of_host(&host, &[]))).await;
    let ids = list_rows(service, filter).await.iter().map(|row| row.key.id.to_string()).collect();
    (agent.infra_env, ids)
}

fn ids_in_list(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn long_list_has_every_record_once_in_order() {
    on_each_database(async |service| {
        let (env, expected) = many_hosts(service).await;
        let path = format!("/v2/infra-envs/{env}/hosts");
        let answer = service.get(&path).await;
        let list = answer.json_with_status(200);
        assert_eq!(ids_in_list(&list), expected);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        // A server knows the length only if the whole list is in memory.
        assert_eq!(answer.header("content-length"), None);
        assert!(answer.text.ends_with("}]\n"));
        let last = format!("{path}/{}", expected.last().unwrap());
        let last = service.get(&last).await;
        assert!(
            answer.text.ends_with(&format!("{}]\n", last.text.trim_end())),
            "a listed host equals the single host"
        );
    });
}

/// Creates a cluster and returns its id.
async fn create_cluster(service: &TestService) -> String {
    let cluster = json!({"name": "c", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    let cluster = service.post("/v2/clusters", &cluster).await.json_with_status(201);
    cluster["id"].as_str().unwrap().to_owned()
}

#[test]
fn deletion_of_a_cluster_reads_an_infra_env_once() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        many_hosts_in(service, &json!({"cluster_id": cluster})).await;
        let metrics = service.inventory.records().store().metrics();
        let before = metrics.durations(Operation::Read).count();
        service.delete(&format!("/v2/clusters/{cluster}")).await.json_with_status(204);
        let reads = metrics.durations(Operation::Read).count() - before;
        assert!(reads < 10, "{reads} reads for {HOSTS} hosts");
    });
}

#[test]
fn changed_cluster_has_all_hosts_and_no_content_length() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let (_, expected) = many_hosts_in(service, &json!({"cluster_id": cluster})).await;
        let path = format!("/v2/clusters/{cluster}");
        let changed = service.patch(&path, &json!({"name": "other"})).await;
        let response = changed.json_with_status(201);
        assert_eq!(ids_in_list(&response["hosts"]), expected);
        // A server knows the length only if all hosts are in memory.
        assert_eq!(changed.header("content-length"), None);
        assert_eq!(response["name"], "other");
        assert_eq!(changed.text, service.get(&path).await.text);
    });
}

/// Copies the first record of a filter until there are `count` records, and returns their ids in order.
async fn multiply(service: &TestService, filter: Filter, count: usize) -> Vec<String> {
    let row = list_rows(service, filter).await.remove(0);
    commit_steps(service, (1..count).map(|_| Step::Insert(copy_of_row(&row, &[])))).await;
    list_rows(service, filter).await.iter().map(|row| row.key.id.to_string()).collect()
}

/// Ranges within a page, across pages, up to the end, and beyond the end.
const RANGES: [(usize, Option<usize>); 11] = [
    (0, Some(1)),
    (0, Some(64)),
    (0, Some(65)),
    (1, Some(64)),
    (63, Some(2)),
    (64, None),
    (100, Some(1_000)),
    (149, Some(1)),
    (150, Some(1)),
    (1_000, None),
    (0, Some(150)),
];

async fn assert_ranges(service: &TestService, path: &str, expected: &[String]) {
    let joint = if path.contains('?') { '&' } else { '?' };
    let whole = service.get(path).await.json_with_status(200);
    assert_eq!(ids_in_list(&whole), expected, "{path}");
    for (offset, limit) in RANGES {
        let limited = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        let list = service.get(&format!("{path}{joint}offset={offset}{limited}")).await.json_with_status(200);
        let end = limit.map_or(expected.len(), |limit| expected.len().min(offset + limit));
        assert_eq!(ids_in_list(&list), expected[offset.min(end)..end], "{path} {offset} {limit:?}");
        // The page has the same items as this part of the whole list.
        assert_eq!(list.as_array().unwrap(), &whole.as_array().unwrap()[offset.min(end)..end]);
    }
}

#[test]
fn limit_and_offset_select_a_part_of_each_list() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let env = create_infra_env(service, &json!({"cluster_id": cluster})).await;
        FakeAgent::new(service, &env).register().await.json_with_status(201);
        for (kind, paths) in [
            (
                Kind::Host,
                vec![
                    format!("/v2/infra-envs/{env}/hosts"),
                    format!("/v2/clusters/{cluster}/hosts"),
                    format!("/v2/clusters/{cluster}/hosts?status=discovering&role=auto-assign"),
                ],
            ),
            (
                Kind::Cluster,
                vec![
                    "/v2/clusters".to_owned(),
                    "/v2/clusters?owner=admin".to_owned(),
                    "/v2/clusters?with_hosts=true".to_owned(),
                ],
            ),
            (
                Kind::InfraEnv,
                vec![
                    "/v2/infra-envs".to_owned(),
                    "/v2/infra-envs?owner=admin".to_owned(),
                    format!("/v2/infra-envs?cluster_id={cluster}"),
                ],
            ),
        ] {
            let expected = multiply(service, Filter::all(kind), 150).await;
            for path in paths {
                assert_ranges(service, &path, &expected).await;
            }
        }
        let answer = service.get("/v2/clusters?owner=other&limit=1").await;
        assert_eq!(answer.text, "[]\n");
    });
}

/// Programs that count hosts need not read tens of kilobytes for each host.
#[test]
fn host_list_of_an_infra_env_omits_reports_on_request() {
    on_each_database(async |service| {
        let (infra_env, ids) = many_hosts(service).await;
        let agent = FakeAgent { id: ids[0].clone(), ..FakeAgent::new(service, &infra_env) };
        let reach = json!({"remote_hosts": [{"host_id": "x", "l2_connectivity": null, "l3_connectivity": null, "mtu_report": null}]});
        agent.reply_to_step("connectivity-check", &reach).await.json_with_status(204);
        let path = format!("/v2/infra-envs/{infra_env}/hosts");
        let full = service.get(&path).await.json_with_status(200);
        for (report, count) in [("inventory", HOSTS), ("connectivity", 1)] {
            let short = service.get(&format!("{path}?with-{report}=false")).await.json_with_status(200);
            assert_eq!(ids_in_list(&short), ids);
            let mut expected = full.clone();
            let hosts = expected.as_array_mut().unwrap().iter_mut();
            let removed = hosts.filter_map(|host| host.as_object_mut().unwrap().remove(report));
            assert_eq!(removed.count(), count, "{report}");
            assert_eq!(short, expected, "{report}");
            let again = service.get(&format!("{path}?with-{report}=true")).await.json_with_status(200);
            assert_eq!(again, full, "{report}");
        }
        let short = service.get(&format!("{path}?with-inventory=false")).await.json_with_status(200);
        let host_len = short[1].to_string().len();
        assert!(host_len < 4 << 10, "a host takes {host_len} bytes");
    });
}

#[test]
fn deleted_records_do_not_count_in_a_range() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let env = create_infra_env(service, &json!({"cluster_id": cluster})).await;
        FakeAgent::new(service, &env).register().await.json_with_status(201);
        let hosts = multiply(service, Filter::all(Kind::Host), 6).await;
        service.delete(&format!("/v2/infra-envs/{env}/hosts/{}", hosts[1])).await.json_with_status(204);
        for path in [format!("/v2/infra-envs/{env}/hosts"), format!("/v2/clusters/{cluster}/hosts")] {
            let list = service.get(&format!("{path}?offset=1&limit=3")).await.json_with_status(200);
            assert_eq!(ids_in_list(&list), hosts[2..5], "{path}");
        }
        let clusters = multiply(service, Filter::all(Kind::Cluster), 6).await;
        service.delete(&format!("/v2/clusters/{}", clusters[1])).await.json_with_status(204);
        let path = "/v2/clusters?offset=1&limit=3";
        let list = service.get(path).await.json_with_status(200);
        assert_eq!(ids_in_list(&list), clusters[2..5]);
        let request = service.request(Method::GET, path).header("get_unregistered_clusters", "true");
        let with_deleted = send_request(request).await.json_with_status(200);
        assert_eq!(ids_in_list(&with_deleted), clusters[1..4]);
    });
}

#[test]
fn rejects_invalid_limit_and_offset() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        let env = create_infra_env(service, &json!({})).await;
        for path in [
            "/v2/clusters".to_owned(),
            "/v2/infra-envs".to_owned(),
            format!("/v2/infra-envs/{env}/hosts"),
            format!("/v2/clusters/{cluster}/hosts"),
        ] {
            for (query, reason) in [
                ("limit=0", "limit in query should be greater than or equal to 1"),
                ("limit=-1", "limit in query should be greater than or equal to 1"),
                ("offset=-1", "offset in query should be greater than or equal to 0"),
                ("offset=x", "offset in query must be of type int64: \"x\""),
            ] {
                let answer = service.get(&format!("{path}?{query}")).await;
                assert_eq!(answer.refusal_reason(400), reason, "{path}");
            }
        }
    });
}

#[test]
fn counts_of_listed_clusters_equal_the_counts_of_each_cluster() {
    on_each_database_with(only_own_validations, async |service| {
        let (cluster, empty) = (create_cluster(service).await, create_cluster(service).await);
        let env = create_infra_env(service, &json!({"cluster_id": cluster})).await;
        let mut agents = Vec::new();
        for name in ["known", "disconnected", "deleted"] {
            let agent = FakeAgent::new(service, &env);
            agent.register().await.json_with_status(201);
            agent.reply_to_step("inventory", &inventory_report(name)).await.json_with_status(204);
            agents.push(agent);
        }
        FakeAgent::new(service, &env).register().await.json_with_status(201);
        let lost = json!({"step_type": "inventory", "exit_code": 256});
        agents[1].send_reply(&lost).await.json_with_status(204);
        service.delete(&agents[2].path()).await.json_with_status(204);
        let counts = |cluster: &Value| {
            ["ready_host_count", "enabled_host_count", "total_host_count"].map(|key| cluster[key].clone())
        };
        service.inventory.assess_clusters().await.unwrap();
        let list = service.get("/v2/clusters").await.json_with_status(200);
        assert_eq!(ids_in_list(&list), [cluster.clone(), empty.clone()]);
        assert_eq!(counts(&list[0]), [json!(1), json!(3), json!(3)]);
        assert_eq!(counts(&list[1]), [Value::Null, Value::Null, Value::Null]);
        for query in ["?exclude-hosts=true", ""] {
            let single = service.get(&format!("/v2/clusters/{cluster}{query}")).await.json_with_status(200);
            assert_eq!(counts(&single), counts(&list[0]), "{query:?}");
        }
    });
}

/// Number of hosts whose list is longer than all buffers between the server and a client.
const MANY_HOSTS: usize = 600;

/// Connects to the server with small buffers. The kernel buffers at most 128 KiB for this client; with default buffers,
/// it could hold a whole list.
async fn connect_with_little_room(service: &TestService) -> TcpStream {
    let address = service.url("").strip_prefix("http://").unwrap().parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.connect(address).await.unwrap()
}

/// A client that does not read costs one page. Later it gets the whole list, including records added in the meantime.
#[test]
fn client_that_does_not_read_stops_the_list() {
    on_each_database(async |service| {
        let (env, _) = many_hosts(service).await;
        let filter = Filter::all(Kind::Host).within(env.parse().unwrap());
        let host = first_host(service, filter).await;
        for _ in (HOSTS..MANY_HOSTS).step_by(HOSTS) {
            commit_steps(service, (0..HOSTS).flat_map(|_| copy_of_host(&host, &[]))).await;
        }
        let metrics = service.inventory.records().store().metrics();
        let pages = || metrics.durations(Operation::Read).count();
        let path = format!("/v2/infra-envs/{env}/hosts");
        let before = pages();
        service.get(&path).await.json_with_status(200);
        let pages_of_list = pages() - before;
        let before = pages();
        let mut client = connect_with_little_room(service).await;
        let request = format!("GET {}{path} HTTP/1.0\r\n\r\n", Settings::API);
        client.write_all(request.as_bytes()).await.unwrap();
        // Wait until the server reads no more pages.
        let (mut stalled_at, mut unchanged) = (0, 0);
        while unchanged < 5 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let read = pages() - before;
            unchanged = if read == stalled_at { unchanged + 1 } else { 0 };
            stalled_at = read;
        }
        let most = pages_of_list / 3;
        assert!((1..most).contains(&stalled_at), "{stalled_at} of {pages_of_list} pages were read");
        commit_steps(service, copy_of_host(&host, &[])).await;
        let expected: Vec<_> =
            list_rows(service, filter).await.iter().map(|row| row.key.id.to_string()).collect();
        assert_eq!(expected.len(), MANY_HOSTS + 1);
        let before = pages();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        let (head, list) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.0 200 "), "{head}");
        assert_eq!(ids_in_list(&serde_json::from_str(list).unwrap()), expected);
        assert!(pages() - before >= pages_of_list - stalled_at);
    });
}

#[test]
fn short_list_has_a_content_length() {
    on_each_database(async |service| {
        for path in ["/v2/infra-envs", "/v2/clusters", "/v2/events"] {
            let answer = service.get(path).await;
            assert_eq!((answer.status, &*answer.text), (200, "[]\n"), "{path}");
            assert_eq!(answer.header("content-length"), Some("3"), "{path}");
        }
    });
}

#[test]
fn long_list_is_compressed_without_content_length() {
    on_each_database(async |service| {
        let (env, expected) = many_hosts(service).await;
        let path = format!("/v2/infra-envs/{env}/hosts");
        let plain = service.get(&path).await;
        let packed =
            service.request(Method::GET, &path).header("accept-encoding", "gzip").send().await.unwrap();
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        let mut unpacked = String::new();
        let bytes = packed.bytes().await.unwrap();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut unpacked).unwrap();
        assert_eq!(unpacked, plain.text);
        assert_eq!(ids_in_list(&plain.json()), expected);
        for coding in ["identity", "gzip"] {
            let request = |method| service.request(method, &path).header("accept-encoding", coding).send();
            let (get, head) = (request(Method::GET).await.unwrap(), request(Method::HEAD).await.unwrap());
            assert_eq!(head.status(), 200);
            assert_eq!(head.headers().get("content-length"), None, "{coding}");
            assert_eq!(head.headers()["vary"], get.headers()["vary"], "{coding}");
            assert!(head.headers()["vary"].to_str().unwrap().contains("encoding"), "{coding}");
        }
    });
}

/// A client must not mistake a part of a list for the whole list.
#[test]
fn list_that_fails_midway_is_aborted() {
    on_each_database(async |service| {
        let (env, _) = many_hosts(service).await;
        let path = format!("/v2/infra-envs/{env}/hosts");
        let filter = Filter::all(Kind::Host).within(env.parse().unwrap());
        let host = first_host(service, filter).await;
        commit_steps(service, copy_of_host(&host, &[("\"status\"", "\"state\"")])).await;
        for coding in ["identity", "gzip"] {
            let answer =
                service.request(Method::GET, &path).header("accept-encoding", coding).send().await.unwrap();
            assert_eq!(answer.status(), 200, "the first page is returned");
            assert!(answer.bytes().await.is_err(), "{coding}");
        }
    });
}

#[test]
fn list_that_fails_before_its_first_record_is_an_error() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let filter = Filter::all(Kind::Host).within(agent.infra_env.parse().unwrap());
        let [row] = &list_rows(service, filter).await[..] else { panic!("one host") };
        commit_steps(service, [Step::Insert(copy_of_row(row, &[("\"status\"", "\"state\"")]))]).await;
        let answer = service.get(&format!("/v2/infra-envs/{}/hosts", agent.infra_env)).await;
        assert_eq!(answer.refusal_reason(500), "the database failed");
    });
}

#[test]
fn long_cluster_and_infra_env_lists_are_complete_and_in_order() {
    on_each_database(async |service| {
        let cluster = create_cluster(service).await;
        create_infra_env(service, &json!({"cluster_id": cluster})).await;
        for (kind, path) in [(Kind::Cluster, "/v2/clusters"), (Kind::InfraEnv, "/v2/infra-envs")] {
            let [row] = &list_rows(service, Filter::all(kind)).await[..] else { panic!("one") };
            commit_steps(service, (1..300).map(|_| Step::Insert(copy_of_row(row, &[])))).await;
            let expected: Vec<_> = list_rows(service, Filter::all(kind))
                .await
                .iter()
                .map(|row| row.key.id.to_string())
                .collect();
            let answer = service.get(path).await;
            assert_eq!(ids_in_list(&answer.json_with_status(200)), expected, "{path}");
            assert_eq!(answer.header("content-length"), None, "{path}");
        }
        let of_cluster =
            service.get(&format!("/v2/infra-envs?cluster_id={cluster}")).await.json_with_status(200);
        assert_eq!(ids_in_list(&of_cluster).len(), 300);
        let of_nobody = service.get("/v2/infra-envs?owner=nobody").await;
        assert_eq!(of_nobody.text, "[]\n");
    });
}

#[test]
fn long_event_lists_are_complete_and_in_order() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        for _ in 0..170 {
            agent.register().await.json_with_status(201);
        }
        let path = format!("/v2/events?infra_env_id={}", agent.infra_env);
        let all = service.get(&format!("{path}&limit=-1")).await;
        let count: usize = all.header("event-count").unwrap().parse().unwrap();
        let list = all.json_with_status(200);
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), count);
        assert!(count > 170);
        let sorted = list.is_sorted_by_key(|event| event["event_time"].as_str().unwrap().to_owned());
        assert!(sorted);
        for (offset, limit) in [(0, 10), (0, 100), (3, 101), (100, 50), (100, 1000), (0, count)] {
            let part = service.get(&format!("{path}&offset={offset}&limit={limit}")).await;
            assert_eq!(part.header("event-count").unwrap(), count.to_string());
            let expected = &list[offset..list.len().min(offset + limit)];
            assert_eq!(part.json_with_status(200).as_array().unwrap(), expected, "{offset} {limit}");
            let backwards =
                service.get(&format!("{path}&order=descending&offset={offset}&limit={limit}")).await;
            let mut reversed = list.clone();
            reversed.reverse();
            let expected = &reversed[offset..list.len().min(offset + limit)];
            assert_eq!(backwards.json_with_status(200).as_array().unwrap(), expected, "{offset} {limit}");
        }
    });
}

//! Lists that are longer than one page of the database and one piece of an answer.

use kindling::inventory::store::{Changes, Filter, Kind, Outcome, Row, Step};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::{Agent, machine};
use crate::service::{PULL_SECRET, Service, on_each_database};

/// More hosts with real reports than one page has.
const HOSTS: usize = 40;

/// A row of another record, which differs from this one in its id and a part of its document.
fn copy_of(row: &Row, replace: &[(&str, &str)]) -> Row {
    let id = Uuid::new_v4();
    let mut document = row.document.replace(&row.key.id.to_string(), &id.to_string());
    for (from, to) in replace {
        document = document.replace(from, to);
    }
    let mut copy = Row { document, ..row.clone() };
    copy.key.id = id;
    copy
}

async fn insert(service: &Service, rows: impl IntoIterator<Item = Row>) {
    let steps = rows.into_iter().map(Step::Insert).collect();
    let outcome = service.inventory.records().store().commit(Changes { steps, events: Vec::new() }).await;
    assert_eq!(outcome.unwrap(), Outcome::Done);
}

async fn rows(service: &Service, filter: Filter) -> Vec<Row> {
    service.inventory.records().store().list(filter).await.unwrap()
}

/// An infra-env with many hosts, each with a report of 50 KiB. Returns its id, and those of its hosts in their order.
async fn many_hosts(service: &Service) -> (String, Vec<String>) {
    let agent = Agent::booted(service).await;
    let mut machine = machine("host");
    machine["cpu"]["flags"] = (0..5000).map(|flag| format!("flag{flag}")).collect();
    agent.reply("inventory", &machine).await.expect(204);
    let filter = Filter::all(Kind::Host).within(agent.infra_env.parse().unwrap());
    let [row] = &rows(service, filter).await[..] else { panic!("one host") };
    assert!(row.document.len() > 50 << 10);
    insert(service, (1..HOSTS).map(|_| copy_of(row, &[]))).await;
    let ids = rows(service, filter).await.iter().map(|row| row.key.id.to_string()).collect();
    (agent.infra_env, ids)
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn long_list_has_every_record_once_in_order() {
    on_each_database(async |service| {
        let (env, expected) = many_hosts(service).await;
        let path = format!("/v2/infra-envs/{env}/hosts");
        let answer = service.get(&path).await;
        let list = answer.expect(200);
        assert_eq!(ids(&list), expected);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        // A length is only known once all of it is in memory.
        assert_eq!(answer.header("content-length"), None);
        assert!(answer.text.ends_with("}]\n"));
        let last = format!("{path}/{}", expected.last().unwrap());
        let last = service.get(&last).await;
        assert!(
            answer.text.ends_with(&format!("{}]\n", last.text.trim_end())),
            "an item of a list is one alone"
        );
    });
}

#[test]
fn short_list_has_a_length() {
    on_each_database(async |service| {
        for path in ["/v2/infra-envs", "/v2/clusters", "/v2/events"] {
            let answer = service.get(path).await;
            assert_eq!((answer.status, &*answer.text), (200, "[]\n"), "{path}");
            assert_eq!(answer.header("content-length"), Some("3"), "{path}");
        }
    });
}

#[test]
fn long_list_is_packed_and_its_head_tells_no_length() {
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
        assert_eq!(ids(&plain.json()), expected);
        for (coding, vary) in [("identity", None), ("gzip", Some("accept-encoding"))] {
            let head =
                service.request(Method::HEAD, &path).header("accept-encoding", coding).send().await.unwrap();
            assert_eq!(head.status(), 200);
            assert_eq!(head.headers().get("content-length"), None, "{coding}");
            let found = head.headers().get("vary").map(|value| value.to_str().unwrap().to_lowercase());
            assert_eq!(found.as_deref().filter(|text| text.contains("encoding")), vary, "{coding}");
        }
    });
}

/// A client must not take a part of a list for all of it.
#[test]
fn list_that_fails_on_the_way_breaks_off() {
    on_each_database(async |service| {
        let (env, _) = many_hosts(service).await;
        let path = format!("/v2/infra-envs/{env}/hosts");
        let filter = Filter::all(Kind::Host).within(env.parse().unwrap());
        let [row, ..] = &rows(service, filter).await[..] else { panic!("no hosts") };
        insert(service, [copy_of(row, &[("\"status\"", "\"state\"")])]).await;
        for coding in ["identity", "gzip"] {
            let answer =
                service.request(Method::GET, &path).header("accept-encoding", coding).send().await.unwrap();
            assert_eq!(answer.status(), 200, "the first page is good");
            assert!(answer.bytes().await.is_err(), "{coding}");
        }
    });
}

#[test]
fn list_that_fails_at_once_is_refused() {
    on_each_database(async |service| {
        let agent = Agent::booted(service).await;
        let filter = Filter::all(Kind::Host).within(agent.infra_env.parse().unwrap());
        let [row] = &rows(service, filter).await[..] else { panic!("one host") };
        insert(service, [copy_of(row, &[("\"status\"", "\"state\"")])]).await;
        let answer = service.get(&format!("/v2/infra-envs/{}/hosts", agent.infra_env)).await;
        assert_eq!(answer.refused(500), "the database failed");
    });
}

#[test]
fn all_other_lists_are_whole_and_in_order() {
    on_each_database(async |service| {
        let cluster = json!({"name": "c", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster =
            service.post("/v2/clusters", &cluster).await.expect(201)["id"].as_str().unwrap().to_owned();
        let env = json!({"name": "e", "pull_secret": PULL_SECRET, "cluster_id": cluster});
        service.post("/v2/infra-envs", &env).await.expect(201);
        for (kind, path) in [(Kind::Cluster, "/v2/clusters"), (Kind::InfraEnv, "/v2/infra-envs")] {
            let [row] = &rows(service, Filter::all(kind)).await[..] else { panic!("one") };
            insert(service, (1..300).map(|_| copy_of(row, &[]))).await;
            let expected: Vec<_> =
                rows(service, Filter::all(kind)).await.iter().map(|row| row.key.id.to_string()).collect();
            let answer = service.get(path).await;
            assert_eq!(ids(&answer.expect(200)), expected, "{path}");
            assert_eq!(answer.header("content-length"), None, "{path}");
        }
        let of_cluster = service.get(&format!("/v2/infra-envs?cluster_id={cluster}")).await.expect(200);
        assert_eq!(ids(&of_cluster).len(), 300);
        let of_nobody = service.get("/v2/infra-envs?owner=nobody").await;
        assert_eq!(of_nobody.text, "[]\n");
    });
}

#[test]
fn long_lists_of_events_are_whole_and_in_order() {
    on_each_database(async |service| {
        let agent = Agent::booted(service).await;
        for _ in 0..170 {
            agent.register().await.expect(201);
        }
        let path = format!("/v2/events?infra_env_id={}", agent.infra_env);
        let all = service.get(&format!("{path}&limit=-1")).await;
        let count: usize = all.header("event-count").unwrap().parse().unwrap();
        let list = all.expect(200);
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), count);
        assert!(count > 170);
        let sorted = list.is_sorted_by_key(|event| event["event_time"].as_str().unwrap().to_owned());
        assert!(sorted);
        for (offset, limit) in [(0, 10), (0, 100), (3, 101), (100, 50), (100, 1000), (0, count)] {
            let part = service.get(&format!("{path}&offset={offset}&limit={limit}")).await;
            assert_eq!(part.header("event-count").unwrap(), count.to_string());
            let expected = &list[offset..list.len().min(offset + limit)];
            assert_eq!(part.expect(200).as_array().unwrap(), expected, "{offset} {limit}");
            let backwards =
                service.get(&format!("{path}&order=descending&offset={offset}&limit={limit}")).await;
            let mut reversed = list.clone();
            reversed.reverse();
            let expected = &reversed[offset..list.len().min(offset + limit)];
            assert_eq!(backwards.expect(200).as_array().unwrap(), expected, "{offset} {limit}");
        }
    });
}

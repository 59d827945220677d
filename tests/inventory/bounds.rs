//! Limits on the data that the agents of one infra-env can store.

use kindling::inventory::store::{Changes, Filter, Kind, Outcome, Row, Step};
use kindling::inventory::{HostLimits, Settings};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env, events_of_infra_env, inventory_report};
use crate::service::{PULL_SECRET, ServiceAnswer, TestService, on_each_database, on_each_database_with};

const MIB: usize = 1 << 20;

/// Returns an inventory report that is `len` bytes long.
fn inventory_report_of_len(len: usize) -> Value {
    let mut machine = inventory_report("large");
    machine["cpu"]["model_name"] = "".into();
    machine["cpu"]["model_name"] = "x".repeat(len - machine.to_string().len()).into();
    machine
}

fn with_host_limits(limits: HostLimits) -> impl Fn(&mut Settings) {
    move |settings| settings.host_limits = limits
}

/// Registers a host in an infra-env.
async fn registered_host<'a>(service: &'a TestService, infra_env: &str) -> FakeAgent<'a> {
    let agent = FakeAgent::new(service, infra_env);
    agent.register().await.json_with_status(201);
    agent
}

fn host_count(answer: &ServiceAnswer) -> usize {
    answer.json_with_status(200).as_array().unwrap().len()
}

#[test]
fn rejects_reports_above_the_limit() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        agent.reply_to_step("inventory", &inventory_report_of_len(MIB)).await.json_with_status(204);
        let refused = agent.reply_to_step("inventory", &inventory_report_of_len(MIB + 1)).await;
        let reason = "inventory report too large, discarded (limit 1048576 bytes)";
        assert_eq!(refused.refusal_reason(413), reason);
        let addresses = json!([{"network": "192.168.1.0/24", "free_addresses": ["x".repeat(MIB)]}]);
        let refused = agent.reply_to_step("free-network-addresses", &addresses).await;
        let reason = "free-network-addresses report too large, discarded (limit 1048576 bytes)";
        assert_eq!(refused.refusal_reason(413), reason);
        let stored_len = agent.get_host().await["inventory"].as_str().unwrap().len();
        assert!(
            (MIB..MIB + 1000).contains(&stored_len),
            "the last accepted report is kept, of {stored_len} bytes"
        );
    });
}

#[test]
fn rejects_reports_above_the_limit_of_a_host() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        agent.reply_to_step("inventory", &inventory_report_of_len(MIB)).await.json_with_status(204);
        // The service stores these results by image name, in addition to earlier results, until they reach the limit.
        let mut stored_count = 0;
        let refused = loop {
            let image =
                json!({"name": format!("{stored_count}{}", "x".repeat(MIB / 4)), "result": "success"});
            let answer =
                agent.reply_to_step("container-image-availability", &json!({"images": [image]})).await;
            if answer.status != 204 {
                break answer;
            }
            stored_count += 1;
            assert!(stored_count < 10);
        };
        let reason =
            format!("reports of host {} too large together, discarded (limit 2097152 bytes)", agent.id);
        assert_eq!(refused.refusal_reason(413), reason);
        // The service stores each image name twice, so only one result fits.
        assert_eq!(stored_count, 1);
        // The service still accepts a report that needs no more space.
        agent.reply_to_step("inventory", &inventory_report("small")).await.json_with_status(204);
        agent.request_steps().await.json_with_status(200);
    });
}

#[test]
fn networks_of_a_host_are_limited() {
    on_each_database(async |service| {
        let cluster = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &cluster).await.json_with_status(201)["id"].clone();
        let env = create_infra_env(service, &json!({"cluster_id": cluster})).await;
        let (greedy, other) = (registered_host(service, &env).await, registered_host(service, &env).await);
        let mut machine = inventory_report("greedy");
        let addresses: Vec<_> = (0..300)
            .flat_map(|number| [1, 2].map(|host| format!("10.{}.{}.{host}/24", number / 256, number % 256)))
            .collect();
        machine["interfaces"][0]["ipv4_addresses"] = json!(addresses);
        greedy.reply_to_step("inventory", &machine).await.json_with_status(204);
        other.reply_to_step("inventory", &inventory_report("other")).await.json_with_status(204);
        let path = format!("/v2/clusters/{}", cluster.as_str().unwrap());
        let cluster = service.get(&path).await.json_with_status(200);
        let (last, first) = cluster["host_networks"].as_array().unwrap().split_last().unwrap();
        assert_eq!(*last, json!({"cidr": "192.168.1.0/24", "host_ids": [other.id]}));
        assert_eq!(first.len(), 256);
        for network in first {
            assert_eq!(network["host_ids"], json!([greedy.id]), "{network}");
        }
        assert_eq!(cluster["hosts"].as_array().unwrap().len(), 2);
    });
}

#[test]
fn reasons_of_a_truncated_report_are_cut() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let mut machine = inventory_report("truncated");
        for kind in ["partial", "full"] {
            let reasons: Vec<_> = (0..9).map(|_| "ä".repeat(40_000)).collect();
            machine["truncation"] = json!({"type": kind, "reasons": reasons});
            agent.reply_to_step("inventory", &machine).await.json_with_status(204);
            let host = agent.get_host().await;
            let validations: Value =
                serde_json::from_str(host["validations_info"].as_str().unwrap()).unwrap();
            let messages =
                validations["hardware"].as_array().unwrap().iter().map(|it| it["message"].as_str());
            let cut = messages.flatten().find(|message| message.contains('ä')).unwrap();
            assert_eq!(cut, format!("Inventory is truncated ({kind}): {}", "ä".repeat(2048)));
        }
    });
}

#[test]
fn hosts_of_an_infra_env_are_limited() {
    let limits = HostLimits { hosts: 3, ..HostLimits::default() };
    on_each_database_with(with_host_limits(limits), async |service| {
        let env = create_infra_env(service, &json!({})).await;
        let other = create_infra_env(service, &json!({})).await;
        let first = registered_host(service, &env).await;
        for _ in 0..2 {
            registered_host(service, &env).await;
        }
        let event_count = events_of_infra_env(service, &env).await.len();
        let late = FakeAgent::new(service, &env);
        let reason = format!(
            "infra-env {env} is full (limits: 3 hosts, 1310720000 bytes of reports); delete hosts that are no longer needed"
        );
        assert_eq!(late.register().await.refusal_reason(413), reason);
        let hosts = format!("/v2/infra-envs/{env}/hosts");
        assert_eq!(host_count(&service.get(&hosts).await), 3);
        // The agent of the refused host tries again every minute.
        assert_eq!(events_of_infra_env(service, &env).await.len(), event_count);
        first.register().await.json_with_status(201);
        registered_host(service, &other).await;
        assert_eq!(service.delete(&first.path()).await.status, 204);
        late.register().await.json_with_status(201);
        assert_eq!(first.register().await.status, 413);
    });
}

/// Adds a copy of the only host of an infra-env to the database, without a registration.
async fn copy_host(service: &TestService, host: &FakeAgent<'_>) {
    let store = service.inventory.records().store();
    let rows = store.list(Filter::all(Kind::Host)).await.unwrap();
    let row = rows.into_iter().find(|row| row.key.id.to_string() == host.id).unwrap();
    let id = Uuid::new_v4();
    let mut copy = Row { document: row.document.replace(&host.id, &id.to_string()), generation: 1, ..row };
    copy.key.id = id;
    let changes = Changes { steps: vec![Step::Insert(copy)], events: Vec::new() };
    assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
}

#[test]
fn reports_grow_while_an_infra_env_has_too_many_hosts() {
    let limits = HostLimits { hosts: 1, bytes: 256 << 10, ..HostLimits::default() };
    on_each_database_with(with_host_limits(limits), async |service| {
        let env = create_infra_env(service, &json!({})).await;
        let host = registered_host(service, &env).await;
        copy_host(service, &host).await;
        for len in [10 << 10, 100 << 10] {
            let report = inventory_report_of_len(len);
            host.reply_to_step("inventory", &report).await.json_with_status(204);
        }
        let refused = host.reply_to_step("inventory", &inventory_report_of_len(300 << 10)).await;
        assert!(refused.refusal_reason(413).contains("(limit 262144 bytes)"), "{}", refused.text);
        // The reason is stored although the infra-env has no space for reports.
        let events = events_of_infra_env(service, &env).await;
        assert!(events.iter().any(|(name, _)| name == "host_report_refused"), "{events:?}");
        assert_eq!(FakeAgent::new(service, &env).register().await.status, 413);
    });
}

#[test]
fn concurrent_registrations_do_not_exceed_the_limit() {
    let limits = HostLimits { hosts: 5, ..HostLimits::default() };
    on_each_database_with(with_host_limits(limits), async |service| {
        let env = create_infra_env(service, &json!({})).await;
        let agents: Vec<_> = (0..40).map(|_| FakeAgent::new(service, &env)).collect();
        let answers = futures_util::future::join_all(agents.iter().map(FakeAgent::register)).await;
        let registered = answers.iter().filter(|answer| answer.status == 201).count();
        // On PostgreSQL, a transaction does not see the changes of concurrent transactions.
        let most = if service.inventory.records().store().is_alone() { 5 } else { 5 + 10 };
        assert!((5..=most).contains(&registered), "{registered}");
        assert!(answers.iter().all(|answer| [201, 413].contains(&answer.status)));
    });
}

#[test]
fn bytes_of_an_infra_env_are_limited() {
    let limits = HostLimits { bytes: 256 << 10, ..HostLimits::default() };
    on_each_database_with(with_host_limits(limits), async |service| {
        let env = create_infra_env(service, &json!({})).await;
        let (one, other) = (registered_host(service, &env).await, registered_host(service, &env).await);
        one.reply_to_step("inventory", &inventory_report_of_len(150 << 10)).await.json_with_status(204);
        let refused = other.reply_to_step("inventory", &inventory_report_of_len(150 << 10)).await;
        let reason = format!(
            "reports of all hosts of infra-env {env} too large together, discarded (limit 262144 bytes); delete hosts that are no longer needed"
        );
        assert_eq!(refused.refusal_reason(413), reason);
        // These requests add no data: agents still poll, and a report may be replaced.
        other.request_steps().await.json_with_status(200);
        one.reply_to_step("inventory", &inventory_report_of_len(150 << 10)).await.json_with_status(204);
        // A deletion or a new registration of a host frees space.
        one.register().await.json_with_status(201);
        other.reply_to_step("inventory", &inventory_report_of_len(150 << 10)).await.json_with_status(204);
        assert_eq!(service.delete(&other.path()).await.status, 204);
        one.reply_to_step("inventory", &inventory_report_of_len(150 << 10)).await.json_with_status(204);
    });
}

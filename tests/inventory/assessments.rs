//! Results of validations: when they are computed, stored and shown. In most of these tests, hosts have no cluster, so
//! each report causes an assessment of its host.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use kindling::inventory::Settings;
use kindling::inventory::background;
use kindling::inventory::store::{
    Changes, Filter, Key, Kind, Outcome, ReportKind, Row, SqlStore, Step, Store as _,
};
use rules::validation::{DisabledValidations, HostValidationId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env, events_of_infra_env};
use crate::clusters::create_cluster;
use crate::database::{TestDatabase, postgres_url};
use crate::fleet::{
    Fleet, HostIdentity, checked_hosts, commit_step, commits, host_key, on_each_url, poll, report_of, start,
    stored_host, stored_report,
};
use crate::service::{TestService, on_each_database, on_each_database_with_clock};
use crate::store::block_on;

/// Statuses of the clusters in these tests.
const STATUSES: [&str; 3] = ["insufficient", "pending-for-input", "ready"];

const NONE: [Uuid; 0] = [];

/// Returns the clusters that have changed since their last assessment.
async fn stale(service: &TestService) -> Vec<Uuid> {
    service
        .inventory
        .records()
        .stale_clusters(&STATUSES, service.inventory.settings().assessment_basis().as_str(), 100)
        .await
        .unwrap()
}

async fn assess(service: &TestService) -> u64 {
    service.inventory.assess_clusters().await.unwrap()
}

/// Formats validations like Go.
fn validations_text(categories: [(&str, &[[&str; 3]]); 2]) -> String {
    let list = |validations: &[[&str; 3]]| {
        let one = |[id, status, message]: &[&str; 3]| {
            format!(r#"{{"id":"{id}","status":"{status}","message":"{message}"}}"#)
        };
        validations.iter().map(one).collect::<Vec<_>>().join(",")
    };
    let category = |(name, validations)| format!(r#""{name}":[{}]"#, list(validations));
    format!("{{{}}}", categories.map(category).join(","))
}

/// Returns the text of the validations of a host without a cluster. `connected` is the status and message of the
/// validation `connected`.
fn expected_text(hardware: &[[&str; 3]], connected: [&str; 2]) -> String {
    let network = [
        ["connected", connected[0], connected[1]],
        ["media-connected", "success", "Media device is connected"],
        if hardware[0][1] == "success" {
            ["has-default-route", "success", "Host has been configured with at least one default route."]
        } else {
            ["has-default-route", "pending", "Missing default routing information."]
        },
    ];
    validations_text([("hardware", hardware), ("network", &network)])
}

/// The hardware validations of a host without an inventory report.
const NEW: [[&str; 3]; 7] = [
    ["has-inventory", "failure", "Inventory has not been received for the host"],
    ["inventory-not-partially-truncated", "pending", "Missing inventory"],
    ["inventory-not-fully-truncated", "pending", "Missing inventory"],
    ["has-min-cpu-cores", "pending", "Missing inventory"],
    ["has-min-memory", "pending", "Missing inventory"],
    ["has-min-valid-disks", "pending", "Missing inventory"],
    ["hostname-valid", "failure", "Missing inventory"],
];

/// The hardware validations of a host with a good inventory report.
const GOOD: [[&str; 3]; 7] = [
    ["has-inventory", "success", "Valid inventory exists for the host"],
    ["inventory-not-partially-truncated", "success", "Inventory is not truncated"],
    ["inventory-not-fully-truncated", "success", "Inventory is not truncated"],
    ["has-min-cpu-cores", "success", "Sufficient CPU cores"],
    ["has-min-memory", "success", "Sufficient minimum RAM"],
    ["has-min-valid-disks", "success", "Sufficient disk capacity"],
    ["hostname-valid", "success", "Hostname node-0 is allowed"],
];

const CONNECTED: [&str; 2] = ["success", "Host is connected"];

async fn shown_validations(agent: &FakeAgent<'_>) -> String {
    agent.get_host().await["validations_info"].as_str().unwrap().to_owned()
}

/// Returns the messages of events about validations, oldest first.
async fn validation_events(service: &TestService, infra_env: &str) -> Vec<String> {
    let events = events_of_infra_env(service, infra_env).await;
    let is_of_validation = |name: &str| name.starts_with("host_validation_");
    events.into_iter().filter(|(name, _)| is_of_validation(name)).map(|(_, message)| message).collect()
}

#[test]
fn validations_follow_reports_and_silence_with_one_event_each() {
    on_each_database_with_clock(
        |_| {},
        async |service, clock| {
            let agent = &FakeAgent::register_in_new_infra_env(service).await;
            assert_eq!(shown_validations(agent).await, expected_text(&NEW, CONNECTED));
            assert_eq!(validation_events(service, &agent.infra_env).await, [""; 0]);
            for _ in 0..2 {
                agent.reply_to_step("inventory", &report_of(0)).await.json_with_status(204);
                assess(service).await;
            }
            assert_eq!(shown_validations(agent).await, expected_text(&GOOD, CONNECTED));
            let fixed = |id: &str| format!("Host node-0: validation '{id}' is now fixed");
            let mut expected = vec![fixed("has-inventory"), fixed("hostname-valid")];
            assert_eq!(validation_events(service, &agent.infra_env).await, expected);

            clock.advance(Settings::MAX_SILENCE + Duration::from_secs(1));
            for _ in 0..2 {
                service.inventory.disconnect_silent_hosts().await.unwrap();
                assess(service).await;
            }
            assert_eq!(
                shown_validations(agent).await,
                expected_text(&GOOD, ["failure", "Host is disconnected"])
            );
            expected
                .push("Host node-0: validation 'connected' that used to succeed is now failing".to_owned());
            assert_eq!(validation_events(service, &agent.infra_env).await, expected);
            for _ in 0..2 {
                poll(agent).await;
                assess(service).await;
            }
            assert_eq!(shown_validations(agent).await, expected_text(&GOOD, CONNECTED));
            expected.push(fixed("connected"));
            assert_eq!(validation_events(service, &agent.infra_env).await, expected);
        },
    );
}

#[test]
fn results_outlive_a_registration_and_end_with_the_host() {
    on_each_database(async |service| {
        let agent = &FakeAgent::register_with_report(service, "node-0").await;
        let events = validation_events(service, &agent.infra_env).await.len();
        agent.register().await.json_with_status(201);
        // The host had results for its inventory, so the loss of the inventory is an event.
        assert_eq!(shown_validations(agent).await, expected_text(&NEW, CONNECTED));
        let messages = validation_events(service, &agent.infra_env).await;
        let lost =
            |id: &str| format!("Host {}: validation '{id}' that used to succeed is now failing", agent.id);
        assert_eq!(messages[events..], [lost("has-inventory"), lost("hostname-valid")]);

        service.delete(&agent.path()).await.json_with_status(204);
        agent.register().await.json_with_status(201);
        // The new host has no earlier results, and so no changes.
        assert_eq!(validation_events(service, &agent.infra_env).await.len(), events + 2);
        assert!(stored_report(agent, ReportKind::Results).await.is_some());
        let row = stored_host(agent).await;
        commit_step(service, Step::Remove(row.key, row.generation)).await;
        assert_eq!(stored_report(agent, ReportKind::Results).await, None);
    });
}

/// Returns the generations of all hosts of an infra-env.
async fn generations(service: &TestService, infra_env: &str) -> BTreeMap<Key, i64> {
    let filter = Filter::all(Kind::Host).within(infra_env.parse().unwrap());
    let rows = service.inventory.records().store().list(filter).await.unwrap();
    rows.into_iter().map(|row| (row.key, row.generation)).collect()
}

#[test]
fn report_of_one_host_of_a_large_cluster_writes_only_that_host() {
    const HOSTS: usize = 500;
    on_each_database(async |service| {
        let fleet = Fleet::register(service, 0, &json!({})).await;
        let infra_env = create_infra_env(service, &json!({"cluster_id": fleet.cluster})).await;
        let agents: Vec<_> = (0..HOSTS).map(|_| FakeAgent::new(service, &infra_env)).collect();
        join_all(agents.iter().enumerate().map(async |(number, agent)| {
            agent.register().await.json_with_status(201);
            agent.reply_to_step("inventory", &report_of(number)).await.json_with_status(204);
        }))
        .await;
        assess(service).await;
        let tasks = service.inventory.tasks();
        assert_eq!(generations(service, &infra_env).await.len(), HOSTS);
        let (assessed, commits_before) = (tasks.assessed_clusters(), commits(service));
        assert_eq!(assess(service).await, 0);
        assert_eq!((commits(service), tasks.assessed_clusters()), (commits_before, assessed));

        let mut poor = report_of(7);
        poor["cpu"]["count"] = json!(1);
        agents[7].reply_to_step("inventory", &poor).await.json_with_status(204);
        let (before, commits_before) = (generations(service, &infra_env).await, commits(service));
        assert_eq!((assess(service).await, tasks.assessed_clusters()), (1, assessed + 1));
        assert_eq!(commits(service), commits_before + 1);
        assert_eq!(agents[7].host_status().await, "insufficient");
        let after = generations(service, &infra_env).await;
        let changed: Vec<_> = after.iter().filter(|(key, generation)| before[*key] != **generation).collect();
        assert_eq!(changed, [(&host_key(&agents[7]), &(before[&host_key(&agents[7])] + 1))]);
        assert_eq!(assess(service).await, 0);
        assert_eq!(commits(service), commits_before + 1);
    });
}

#[test]
fn hosts_without_results_get_them_in_one_commit() {
    const HOSTS: usize = 205;
    on_each_database(async |service| {
        let fleet = Fleet::register(service, HOSTS, &json!({})).await;
        assess(service).await;
        for agent in &fleet.agents {
            commit_step(service, Step::RemoveReport(host_key(agent), ReportKind::Results)).await;
        }
        assert_eq!(fleet.agents[0].get_host().await["validations_info"], "{}");
        // New results alone do not make an assessment outdated.
        assert_eq!(assess(service).await, 0);
        fleet.agents[0].reply_to_step("inventory", &report_of(0)).await.json_with_status(204);
        let before = commits(service);
        assert_eq!(assess(service).await, u64::try_from(HOSTS).unwrap());
        assert_eq!(commits(service) - before, 1);
        let validations = shown_validations(&fleet.agents[1]).await;
        assert!(validations.contains("Inventory has not been received for the host"), "{validations}");
        assert_eq!(validation_events(service, &fleet.agents[1].infra_env).await, [""; 0]);
    });
}

#[test]
fn next_full_run_detects_a_change_without_a_notification() {
    on_each_url(async |url| {
        let service = start(url, |_| {}).await;
        let fleet = Fleet::with_reports(&service, 2, &json!({})).await;
        let cluster: Uuid = fleet.cluster.parse().unwrap();
        let (host, key) = (HostIdentity::of(&fleet.agents[0]), host_key(&fleet.agents[0]));
        assess(&service).await;
        assert_eq!(stale(&service).await, NONE);
        drop(fleet);
        service.stop().await;

        let store = SqlStore::open(url).await.unwrap();
        let row = store.get(key).await.unwrap().unwrap();
        let mut document: Value = serde_json::from_str(&row.document).unwrap();
        document["choices"]["hostname"] = json!("localhost");
        let row = Row { generation: row.generation + 1, document: document.to_string(), ..row };
        let changes = Changes { steps: vec![Step::Replace(row)], events: Vec::new() };
        assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
        store.close().await;

        let service = start(url, |_| {}).await;
        assert_eq!(stale(&service).await, [cluster]);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let tasks = tokio::spawn(background::run(service.inventory.clone(), async {
            let _ = ended.await;
        }));
        let is_assessed = async || stale(&service).await.is_empty();
        tokio::time::timeout(Duration::from_secs(60), async {
            while !is_assessed().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
        let agent = host.agent(&service);
        assert!(shown_validations(&agent).await.contains("The host name localhost is forbidden"));
        assert_eq!(service.inventory.tasks().written_results(), 1);
        drop(agent);
        end.send(()).unwrap();
        tasks.await.unwrap();
        service.stop().await;
    });
}

#[test]
fn background_tasks_assess_a_cluster_after_a_change() {
    on_each_database(async |service| {
        let tasks = tokio::spawn(background::run(service.inventory.clone(), std::future::pending()));
        // The next full run is more than a minute away.
        let has_run = || {
            let task = service.inventory.tasks().find("assess_clusters");
            task.is_some_and(|task| task.durations().count() > 0)
        };
        tokio::time::timeout(Duration::from_secs(30), async {
            while !has_run() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
        let fleet = Fleet::register(service, 1, &crate::fleet::with_vips()).await;
        let agent = &fleet.agents[0];
        agent.reply_to_step("inventory", &report_of(0)).await.json_with_status(204);
        let vips = json!([{"vip": "192.168.1.5", "vip_type": "api", "verification": "failed"}]);
        agent.reply_to_step("verify-vips", &vips).await.json_with_status(204);
        tokio::time::timeout(Duration::from_secs(30), async {
            while fleet.get_cluster().await["api_vips"][0]["verification"] != "failed" {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
        tasks.abort();
    });
}

#[test]
fn replicas_show_the_results_of_each_other() {
    let Some(server) = postgres_url() else { return };
    block_on(async {
        let database = TestDatabase::create(&server).await;
        let (one, two) = (start(&database.url, |_| {}).await, start(&database.url, |_| {}).await);
        let fleet = Fleet::register(&one, 2, &json!({})).await;
        let at_two: Vec<_> = fleet.agents.iter().map(|agent| HostIdentity::of(agent).agent(&two)).collect();
        // Both replicas have the cluster in memory.
        for agent in fleet.agents.iter().chain(&at_two) {
            poll(agent).await;
        }
        at_two[1].reply_to_step("inventory", &report_of(1)).await.json_with_status(204);
        fleet.agents[0].reply_to_step("inventory", &report_of(0)).await.json_with_status(204);
        tokio::time::timeout(Duration::from_secs(30), async {
            while !stale(&two).await.is_empty() {
                assess(&one).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            while !shown_validations(&at_two[0]).await.contains("Hostname node-0 is allowed") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            while checked_hosts(&poll(&at_two[1]).await).is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            while checked_hosts(&poll(&fleet.agents[0]).await).is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
        assert_eq!((assess(&one).await, assess(&two).await), (0, 0));
        assert_eq!(stale(&two).await, NONE);
        drop((fleet, at_two));
        for service in [one, two] {
            service.stop().await;
        }
        database.drop().await;
    });
}

#[test]
fn damaged_host_does_not_stop_the_assessment_of_other_clusters() {
    on_each_url(async |url| {
        let mut service = start(url, |_| {}).await;
        for has_damaged_document in [true, false] {
            let damaged = Fleet::with_reports(&service, 2, &json!({})).await;
            // The cluster of the damaged host has been assessed before.
            assess(&service).await;
            let key = host_key(&damaged.agents[0]);
            let row = stored_host(&damaged.agents[0]).await;
            let other = HostIdentity::of(&damaged.agents[1]);
            let mut good = Vec::new();
            for _ in 0..2 {
                good.push(create_cluster(&service, &json!({})).await["id"].clone());
            }
            let cluster: Uuid = damaged.cluster.parse().unwrap();
            drop(damaged);
            let generation = row.generation + 1;
            let replaced = if has_damaged_document { "{}".to_owned() } else { row.document.clone() };
            commit_step(&service, Step::Replace(Row { generation, document: replaced, ..row })).await;
            if !has_damaged_document {
                let results = Step::PutReport(key, ReportKind::Results, "{".to_owned());
                commit_step(&service, results).await;
            }
            service.stop().await;
            service = start(url, |_| {}).await;
            assert_eq!(stale(&service).await.iter().filter(|id| **id == cluster).count(), 1);
            assess(&service).await;
            let stale = stale(&service).await;
            assert!(stale.contains(&cluster));
            let other = other.agent(&service);
            let mut poor = report_of(1);
            poor["cpu"]["count"] = json!(1);
            other.reply_to_step("inventory", &poor).await.json_with_status(204);
            assess(&service).await;
            assert_eq!(other.get_host().await["status"], "insufficient");
            drop(other);
            for id in &good {
                assert!(!stale.contains(&id.as_str().unwrap().parse().unwrap()), "{id}");
            }
        }
        service.stop().await;
    });
}

/// A release with other validations has the same effect as other settings.
#[test]
fn check_in_assesses_a_host_again_after_a_change_of_settings() {
    on_each_url(async |url| {
        let service = start(url, |_| {}).await;
        let agent = FakeAgent::register_with_report(&service, "node-1").await;
        agent.request_steps().await.json_with_status(200);
        let host = HostIdentity::of(&agent);
        drop(agent);
        service.stop().await;
        let disabled = DisabledValidations::parse::<HostValidationId>("has-min-memory").unwrap();
        let service = start(url, |settings| settings.validations.disabled_host = disabled).await;
        let agent = host.agent(&service);
        let is_disabled = async || {
            let host = agent.get_host().await;
            let validations: Value =
                serde_json::from_str(host["validations_info"].as_str().unwrap()).unwrap();
            let hardware = validations["hardware"].as_array().unwrap();
            hardware.iter().any(|it| it["id"] == "has-min-memory" && it["status"] == "disabled")
        };
        assert!(!is_disabled().await);
        agent.request_steps().await.json_with_status(200);
        assert!(is_disabled().await);
        let before = commits(&service);
        agent.request_steps().await.json_with_status(200);
        assert_eq!(commits(&service), before, "it is assessed once");
        drop(agent);
        service.stop().await;
    });
}

//! Connectivity reports: small differences of latency do not change a host.

use std::time::Duration;

use assisted::connectivity::ConnectivityCheckHost;
use assisted::request::StepRequest;
use serde_json::{Value, json};

use crate::agent::FakeAgent;
use crate::fleet::{Fleet, commits, connectivity_to, poll, stored_host, type_of};
use crate::service::{TestService, on_each_database_with, only_own_validations};

/// Returns the hosts whose connectivity an agent checks.
async fn targets(agent: &FakeAgent<'_>) -> Vec<ConnectivityCheckHost> {
    let steps = poll(agent).await;
    let step = steps.instructions.iter().find(|step| type_of(step) == "connectivity-check").unwrap();
    let StepRequest::ConnectivityCheck(hosts) = StepRequest::parse(step).unwrap() else { panic!("{step:?}") };
    hosts.iter().cloned().collect()
}

/// Reports a round-trip time to all other hosts.
async fn report(agent: &FakeAgent<'_>, targets: &[ConnectivityCheckHost], rtt_ms: f64) {
    let output = connectivity_to(targets, rtt_ms);
    agent.reply_to_step("connectivity-check", &output).await.json_with_status(204);
}

/// Returns the round-trip time in the report that clients see.
async fn shown_rtt(agent: &FakeAgent<'_>) -> f64 {
    let host = agent.get_host().await;
    let report: Value = serde_json::from_str(host["connectivity"].as_str().unwrap()).unwrap();
    report["remote_hosts"][0]["l3_connectivity"][0]["average_rtt_ms"].as_f64().unwrap()
}

async fn wait_for_rtt(agent: &FakeAgent<'_>, rtt_ms: f64) {
    let reached = async {
        while shown_rtt(agent).await.to_bits() != rtt_ms.to_bits() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reached).await.unwrap();
}

/// Returns the state that a write of a host changes: its record, and the number of commits.
async fn written(service: &TestService, agent: &FakeAgent<'_>) -> (i64, String, Value, u64) {
    let row = stored_host(agent).await;
    (row.generation, row.document, agent.get_host().await["updated_at"].clone(), commits(service))
}

#[test]
fn small_differences_of_latency_change_no_host() {
    on_each_database_with(only_own_validations, async |service| {
        let fleet = Fleet::with_reports(service, 2, &json!({})).await;
        let agent = &fleet.agents[0];
        let targets = targets(agent).await;
        report(agent, &targets, 1.0).await;
        assert!(shown_rtt(agent).await < 2.0);
        let before = written(service, agent).await;
        for rtt_ms in [1.5, 99.0, 2.5] {
            report(agent, &targets, rtt_ms).await;
            assert_eq!(written(service, agent).await, before, "{rtt_ms}");
        }
        // The first difference is visible after a while. Later ones follow after a few minutes.
        wait_for_rtt(agent, 1.5).await;
        let after = written(service, agent).await;
        assert_eq!((after.0, &after.1, &after.2), (before.0, &before.1, &before.2));

        // The limit is 100 ms.
        for (number, rtt_ms) in [(1, 100.5), (2, 100.0), (3, 1500.0)] {
            report(agent, &targets, rtt_ms).await;
            let now = written(service, agent).await;
            assert_eq!((now.0, now.3), (before.0 + number, after.3 + u64::try_from(number).unwrap()));
            assert!((shown_rtt(agent).await - rtt_ms).abs() < 0.01);
        }
        let no_longer_reached = json!({"remote_hosts": [{"host_id": targets[0].host_id}]});
        agent.reply_to_step("connectivity-check", &no_longer_reached).await.json_with_status(204);
        assert_eq!(stored_host(agent).await.generation, before.0 + 4);
    });
}

#[test]
fn waiting_report_does_not_replace_a_later_one() {
    on_each_database_with(only_own_validations, async |service| {
        let fleet = Fleet::with_reports(service, 2, &json!({})).await;
        let [one, two] = fleet.agents.as_slice() else { panic!("two hosts") };
        let (of_one, of_two) = (targets(one).await, targets(two).await);
        report(one, &of_one, 1.0).await;
        report(two, &of_two, 1.0).await;
        report(one, &of_one, 2.0).await;
        report(one, &of_one, 150.0).await;
        // Reports of all hosts are stored in one batch.
        report(two, &of_two, 3.0).await;
        wait_for_rtt(two, 3.0).await;
        assert!(shown_rtt(one).await > 149.0);
    });
}

#[test]
fn report_after_lost_media_or_a_refused_report_changes_the_host() {
    on_each_database_with(only_own_validations, async |service| {
        let fleet = Fleet::with_reports(service, 2, &json!({})).await;
        let agent = &fleet.agents[0];
        let targets = targets(agent).await;
        report(agent, &targets, 1.0).await;
        let lost = json!({"step_type": "connectivity-check", "step_id": "a", "exit_code": 256});
        agent.send_reply(&lost).await.json_with_status(204);
        assert_eq!(agent.host_status().await, "disconnected");
        report(agent, &targets, 2.0).await;
        assert_eq!(agent.host_status().await, "known");
        let broken = json!({"step_type": "connectivity-check", "step_id": "a", "output": "{"});
        agent.send_reply(&broken).await.refusal_reason(400);
        let refused =
            async || stored_host(agent).await.document.contains("\"refused\":{\"connectivity-check\"");
        assert!(refused().await);
        report(agent, &targets, 3.0).await;
        assert!(!refused().await);
    });
}

//! The function calls of an operator in the same process, next to the requests of users and agents.

use assisted::infra_env::InfraEnvCreateParams;
use chrono::Utc;
use futures_util::{FutureExt as _, StreamExt as _};
use kindling::inventory::host::{HostKind, HostRole, HostStatus, RestoredHost};
use kindling::inventory::id::{HostKey, InfraEnvId};
use kindling::inventory::infra_env::{InfraEnvDefinition, ResourceOwner};
use kindling::inventory::service::{ResourceId, WatchEvent, WatchQuery};
use serde_json::{Value, json};

use crate::agent::{FakeAgent, inventory_report};
use crate::service::{PULL_SECRET, TestService, on_each_database};

/// Creates an infra-env with this id, like the operator for an `InfraEnv`.
async fn ensure_infra_env(service: &TestService, id: InfraEnvId) {
    let params = json!({"name": "demo", "pull_secret": PULL_SECRET});
    let params: InfraEnvCreateParams = serde_json::from_value(params).unwrap();
    let owner = ResourceOwner::new("InfraEnv", "site", "demo");
    let definition = InfraEnvDefinition { owner: Some(owner), ..params.into() };
    service.inventory.ensure_infra_env(id, definition, None).await.unwrap();
}

fn key_of(agent: &FakeAgent<'_>) -> HostKey {
    HostKey { infra_env_id: agent.infra_env.parse().unwrap(), host_id: agent.id.parse().unwrap() }
}

#[test]
fn rejects_api_changes_of_an_infra_env_with_an_owner() {
    on_each_database(async |service| {
        let id = InfraEnvId::fresh();
        ensure_infra_env(service, id).await;
        let path = format!("/v2/infra-envs/{id}");
        let before = service.get(&path).await.json_with_status(200);
        for body in [
            json!({}),
            json!({"ssh_authorized_key": ""}),
            json!({"additional_ntp_sources": "ntp.example.org"}),
        ] {
            let reason = service.patch(&path, &body).await.refusal_reason(409);
            let expected =
                format!("infra-env {id} is defined by InfraEnv site/demo; change that object instead");
            assert_eq!(reason, expected);
        }
        let reason = service.delete(&path).await.refusal_reason(409);
        let expected = format!("infra-env {id} is defined by InfraEnv site/demo; delete that object instead");
        assert_eq!(reason, expected);
        assert_eq!(service.get(&path).await.json_with_status(200), before);
    });
}

/// Returns the document of a host without the values that depend on its creation.
fn comparable(mut host: Value) -> Value {
    let document = host.as_object_mut().unwrap();
    for key in
        ["created_at", "updated_at", "status_updated_at", "checked_in_at", "registered_at", "inventory"]
    {
        document.remove(key);
    }
    host
}

#[test]
fn running_agent_of_a_restored_host_continues() {
    on_each_database(async |service| {
        let id = InfraEnvId::fresh();
        ensure_infra_env(service, id).await;
        let agent = FakeAgent::new(service, &id.to_string());
        agent.register().await.json_with_status(201);
        let ntp = json!({"ntp_sources": [{"source_name": "ntp.example.com", "source_state": "synced"}]});
        let report = inventory_report("node-1");
        let work = async || {
            let steps = agent.step_types().await;
            agent.reply_to_step("inventory", &report).await.json_with_status(204);
            agent.reply_to_step("ntp-synchronizer", &ntp).await.json_with_status(204);
            (steps, agent.get_host().await)
        };
        let (steps, before) = work().await;
        let inventory = &service.inventory;
        let key = key_of(&agent);
        let details = inventory.host_details(key).await.unwrap().unwrap();
        // Deletes everything, as in the loss of a database.
        inventory.deregister_host(key, None).await.unwrap();
        let owner = ResourceOwner::new("InfraEnv", "site", "demo");
        inventory.deregister_owned_infra_env(id, owner, None).await.unwrap();
        agent.request_steps().await.refusal_reason(404);
        ensure_infra_env(service, id).await;
        let host = RestoredHost {
            cluster_id: None,
            kind: HostKind::Host,
            status: Some(HostStatus::KnownUnbound),
            role: HostRole::AutoAssign,
            stage: None,
            inventory: Some(details.inventory_json().to_owned()),
            approved: true,
            registered_at: Utc::now(),
        };
        inventory.restore_host(key, host, None).await.unwrap();
        let (steps_after, after) = work().await;
        assert_eq!(steps_after, steps);
        assert_eq!(after["inventory"], before["inventory"]);
        assert_eq!(comparable(after), comparable(before));
        assert!(inventory.host(key).await.unwrap().choices.approved);
    });
}

#[test]
fn watcher_sees_reports_of_hosts_and_no_check_ins() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        // The first check-in may cause an assessment of the host.
        agent.request_steps().await.json_with_status(200);
        let mut events = service.inventory.watch(WatchQuery::default());
        let mut changed_hosts = || {
            let mut hosts = Vec::new();
            while let Some(Some(event)) = events.next().now_or_never() {
                if let WatchEvent::Changed(change) = event {
                    hosts.push(change.resource);
                }
            }
            hosts
        };
        changed_hosts();
        let source = |state: &str| json!({"ntp_sources": [{"source_name": "a", "source_state": state}]});
        for (step, report) in [
            ("inventory", inventory_report("node-1")),
            ("ntp-synchronizer", source("synced")),
            ("ntp-synchronizer", source("error")),
        ] {
            agent.reply_to_step(step, &report).await.json_with_status(204);
            let hosts = changed_hosts();
            assert!(
                !hosts.is_empty() && hosts.iter().all(|host| *host == ResourceId::Host(key_of(&agent))),
                "{hosts:?}"
            );
            agent.reply_to_step(step, &report).await.json_with_status(204);
            agent.request_steps().await.json_with_status(200);
            service.inventory.records().store_check_ins().await.unwrap();
            assert_eq!(changed_hosts(), [], "{step}");
        }
    });
}

//! How much the agents of one infra-env can make the service keep.

use kindling::inventory::{HostLimits, Settings};
use serde_json::{Value, json};

use crate::agent::{Agent, events, infra_env, machine};
use crate::service::{Answer, Service, on_each_database, on_each_database_with};

const MIB: usize = 1 << 20;

/// A machine whose inventory report has this many bytes.
fn machine_of_len(len: usize) -> Value {
    let mut machine = machine("large");
    machine["cpu"]["model_name"] = "".into();
    machine["cpu"]["model_name"] = "x".repeat(len - machine.to_string().len()).into();
    machine
}

fn bounded(limits: HostLimits) -> impl Fn(&mut Settings) {
    move |settings| settings.host_limits = limits
}

/// A machine of an infra-env, registered.
async fn booted<'a>(service: &'a Service, infra_env: &str) -> Agent<'a> {
    let agent = Agent::of(service, infra_env);
    agent.register().await.expect(201);
    agent
}

fn host_count(answer: &Answer) -> usize {
    answer.expect(200).as_array().unwrap().len()
}

#[test]
fn rejects_reports_above_the_limit() {
    on_each_database(async |service| {
        let agent = Agent::booted(service).await;
        agent.reply("inventory", &machine_of_len(MIB)).await.expect(204);
        let refused = agent.reply("inventory", &machine_of_len(MIB + 1)).await;
        let reason = "inventory report too large, discarded (limit 1048576 bytes)";
        assert_eq!(refused.refused(413), reason);
        let addresses = json!([{"network": "192.168.1.0/24", "free_addresses": ["x".repeat(MIB)]}]);
        let refused = agent.reply("free-network-addresses", &addresses).await;
        let reason = "free-network-addresses report too large, discarded (limit 1048576 bytes)";
        assert_eq!(refused.refused(413), reason);
        let kept = agent.host().await["inventory"].as_str().unwrap().len();
        assert!((MIB..MIB + 1000).contains(&kept), "the last good report stays, of {kept} bytes");
    });
}

#[test]
fn rejects_reports_that_one_host_cannot_keep_together() {
    on_each_database(async |service| {
        let agent = Agent::booted(service).await;
        agent.reply("inventory", &machine_of_len(MIB)).await.expect(204);
        // These are kept by name, next to those that came before.
        let mut kept = 0;
        let refused = loop {
            let image = json!({"name": format!("{kept}{}", "x".repeat(MIB / 4)), "result": "success"});
            let answer = agent.reply("container-image-availability", &json!({"images": [image]})).await;
            if answer.status != 204 {
                break answer;
            }
            kept += 1;
            assert!(kept < 10);
        };
        let reason =
            format!("reports of host {} too large together, discarded (limit 2097152 bytes)", agent.id);
        assert_eq!(refused.refused(413), reason);
        // A name is kept twice.
        assert_eq!(kept, 1);
        // What takes no more room than before is still accepted.
        agent.reply("inventory", &machine("small")).await.expect(204);
        agent.poll().await.expect(200);
    });
}

#[test]
fn infra_env_takes_no_more_hosts_than_the_limit() {
    let limits = HostLimits { hosts: 3, ..HostLimits::default() };
    on_each_database_with(bounded(limits), async |service| {
        let env = infra_env(service, &json!({})).await;
        let other = infra_env(service, &json!({})).await;
        let first = booted(service, &env).await;
        for _ in 0..2 {
            booted(service, &env).await;
        }
        let told = events(service, &env).await.len();
        let late = Agent::of(service, &env);
        let reason = format!(
            "infra-env {env} is full (limits: 3 hosts, 1310720000 bytes of reports); delete hosts that are no longer needed"
        );
        assert_eq!(late.register().await.refused(413), reason);
        let hosts = format!("/v2/infra-envs/{env}/hosts");
        assert_eq!(host_count(&service.get(&hosts).await), 3);
        // Its agent tries again every minute.
        assert_eq!(events(service, &env).await.len(), told);
        first.register().await.expect(201);
        booted(service, &other).await;
        assert_eq!(service.delete(&first.path()).await.status, 204);
        late.register().await.expect(201);
        assert_eq!(first.register().await.status, 413);
    });
}

#[test]
fn hosts_that_register_at_once_do_not_pass_the_limit() {
    let limits = HostLimits { hosts: 5, ..HostLimits::default() };
    on_each_database_with(bounded(limits), async |service| {
        let env = infra_env(service, &json!({})).await;
        let agents: Vec<_> = (0..40).map(|_| Agent::of(service, &env)).collect();
        let answers = futures_util::future::join_all(agents.iter().map(Agent::register)).await;
        let registered = answers.iter().filter(|answer| answer.status == 201).count();
        // On PostgreSQL, transactions that run at the same time do not see each other.
        let most = if service.inventory.records().store().is_alone() { 5 } else { 5 + 10 };
        assert!((5..=most).contains(&registered), "{registered}");
        assert!(answers.iter().all(|answer| [201, 413].contains(&answer.status)));
    });
}

#[test]
fn infra_env_keeps_no_more_bytes_than_the_limit() {
    let limits = HostLimits { bytes: 256 << 10, ..HostLimits::default() };
    on_each_database_with(bounded(limits), async |service| {
        let env = infra_env(service, &json!({})).await;
        let (one, other) = (booted(service, &env).await, booted(service, &env).await);
        one.reply("inventory", &machine_of_len(150 << 10)).await.expect(204);
        let refused = other.reply("inventory", &machine_of_len(150 << 10)).await;
        let reason = format!(
            "infra-env {env} is full (limits: 20000 hosts, 262144 bytes of reports); delete hosts that are no longer needed"
        );
        assert_eq!(refused.refused(413), reason);
        // Nothing grows here: agents still poll, and a report may be replaced.
        other.poll().await.expect(200);
        one.reply("inventory", &machine_of_len(150 << 10)).await.expect(204);
        // A host that registers again or is deleted makes room.
        one.register().await.expect(201);
        other.reply("inventory", &machine_of_len(150 << 10)).await.expect(204);
        assert_eq!(service.delete(&other.path()).await.status, 204);
        one.reply("inventory", &machine_of_len(150 << 10)).await.expect(204);
    });
}

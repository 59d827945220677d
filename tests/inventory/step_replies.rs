//! Replies of agents to steps: the service stores, ignores or refuses them.

use kindling::inventory::store::ReportKind;
use serde_json::{Value, json};

use crate::agent::{FakeAgent, events_of_infra_env};
use crate::fleet::{
    Fleet, checked_hosts, commits, output_of, poll, reply_to_all, report_of, stored_host, stored_report,
    type_of, types, with_vips,
};
use crate::service::{TestService, on_each_database, on_each_database_with, only_own_validations};

/// Registers a host in a cluster and replies to all of its steps. Returns the fleet and the outputs of the replies.
async fn replied<'a>(service: &'a TestService) -> (Fleet<'a>, Vec<(String, String)>) {
    let fleet = Fleet::with_reports(service, 2, &with_vips()).await;
    let steps = poll(&fleet.agents[0]).await;
    reply_to_all(&fleet.agents[0], &steps, 0).await;
    let output = |step: &assisted::step::Step| (type_of(step).to_owned(), output_of(step, 0).to_string());
    let outputs = steps.instructions.iter().map(output).collect();
    (fleet, outputs)
}

/// Returns a reply with an exit code.
fn reply(kind: &str, exit_code: i64, output: &str) -> Value {
    json!({"step_type": kind, "step_id": format!("{kind}-00000002"), "exit_code": exit_code, "output": output})
}

#[test]
fn equal_replies_of_a_cluster_host_write_nothing() {
    on_each_database(async |service| {
        let (fleet, outputs) = replied(service).await;
        let agent = &fleet.agents[0];
        let (before, host) = (commits(service), stored_host(agent).await);
        for _ in 0..2 {
            for (kind, output) in &outputs {
                agent.send_reply(&reply(kind, 0, output)).await.json_with_status(204);
            }
        }
        assert_eq!((commits(service), stored_host(agent).await), (before, host));
    });
}

#[test]
fn empty_output_is_refused_unless_a_scan_may_be_in_progress() {
    on_each_database_with(only_own_validations, async |service| {
        let (fleet, outputs) = replied(service).await;
        let agent = &fleet.agents[0];
        let before = agent.assessed_host().await;
        for kind in [
            "free-network-addresses",
            "container-image-availability",
            "installation-disk-speed-check",
            "install",
            "stop-installation",
            "logs-gather",
            "download-boot-artifacts",
            "reboot-for-reclaim",
        ] {
            for reply in [reply(kind, 0, ""), json!({"step_type": kind, "step_id": "a"})] {
                assert_eq!(agent.send_reply(&reply).await.status, 204, "{kind}");
            }
        }
        for kind in [
            "inventory",
            "connectivity-check",
            "ntp-synchronizer",
            "domain-resolution",
            "verify-vips",
            "api-vip-connectivity-check",
            "tang-connectivity-check",
            "dhcp-lease-allocate",
            "upgrade-agent",
        ] {
            let refused = agent.send_reply(&reply(kind, 0, "")).await.refusal_reason(400);
            assert!(refused.contains(kind), "{kind}: {refused}");
        }
        let events = events_of_infra_env(service, &agent.infra_env).await;
        let refusals = events.iter().filter(|(name, _)| name == "host_report_refused").count();
        assert_eq!(refusals, 9, "{events:?}");
        // The earlier reports remain.
        let after = agent.assessed_host().await;
        for key in ["status", "status_info", "inventory", "connectivity", "ntp_sources"] {
            assert_eq!(after[key], before[key], "{key}");
        }
        for (kind, output) in &outputs {
            agent.send_reply(&reply(kind, 0, output)).await.json_with_status(204);
        }
    });
}

#[test]
fn failed_steps_leave_the_reports() {
    on_each_database(async |service| {
        let (fleet, outputs) = replied(service).await;
        let agent = &fleet.agents[0];
        let (before, host) = (commits(service), stored_host(agent).await);
        for (kind, output) in &outputs {
            let other = output.replace("192.168.1.", "192.168.2.").replace("ntp.sim", "ntp.other");
            assert_ne!(other, *output, "{kind}");
            for exit_code in [-1, 1, 2, 124, 125, 255] {
                for output in ["", "{", output, &other] {
                    let answer = agent.send_reply(&reply(kind, exit_code, output)).await;
                    assert_eq!(answer.status, 204, "{kind} {exit_code}: {}", answer.text);
                }
            }
        }
        for kind in ["container-image-availability", "installation-disk-speed-check", "install"] {
            for exit_code in [-1, 1, 124, 125] {
                agent.send_reply(&reply(kind, exit_code, "")).await.json_with_status(204);
            }
        }
        assert_eq!((commits(service), stored_host(agent).await), (before, host));
    });
}

#[test]
fn failed_measurements_with_an_output_are_stored() {
    on_each_database(async |service| {
        let (fleet, _) = replied(service).await;
        let agent = &fleet.agents[0];
        let images = json!({"images": [{"name": "quay.io/a", "result": "failure"}]}).to_string();
        agent.send_reply(&reply("container-image-availability", 2, &images)).await.json_with_status(204);
        let disk = json!({"path": "/dev/sda"}).to_string();
        agent.send_reply(&reply("installation-disk-speed-check", 255, &disk)).await.json_with_status(204);
        let mut tang = reply("tang-connectivity-check", -1, r#"{"tang_server_response":null}"#);
        tang["error"] = json!("no response");
        agent.send_reply(&tang).await.json_with_status(204);
        let host = agent.assessed_host().await;
        let parsed = |key: &str| -> Value { serde_json::from_str(host[key].as_str().unwrap()).unwrap() };
        assert_eq!(parsed("images_status")["quay.io/a"]["result"], "failure");
        let speed = json!({"tested": true, "exit_code": 255});
        assert_eq!(parsed("disks_info")["/dev/sda"]["disk_speed"], speed);
        assert_eq!(host["tang_connectivity"], "no response");
        // An invalid output of a failed step contains no measurement.
        for kind in ["container-image-availability", "installation-disk-speed-check"] {
            for output in ["{", "[]", "disk is busy"] {
                let answer = agent.send_reply(&reply(kind, 1, output)).await;
                assert_eq!(answer.status, 204, "{kind} {output}: {}", answer.text);
                agent.send_reply(&reply(kind, 0, output)).await.refusal_reason(400);
            }
        }
        let after = agent.assessed_host().await;
        for key in ["images_status", "disks_info"] {
            assert_eq!(after[key], host[key]);
        }
    });
}

#[test]
fn lost_media_disconnects_a_host_until_a_step_succeeds() {
    on_each_database_with(only_own_validations, async |service| {
        let (fleet, outputs) = replied(service).await;
        let [agent, other] = fleet.agents.as_slice() else { panic!("two hosts") };
        for (kind, output) in &outputs {
            agent.send_reply(&reply(kind, 256, "")).await.json_with_status(204);
            let host = agent.assessed_host().await;
            assert_eq!(
                (&host["status"], &host["media_status"]),
                (&json!("disconnected"), &json!("disconnected"))
            );
            assert!(
                host["status_info"].as_str().unwrap().starts_with("Unable to read from the discovery media")
            );
            assert_eq!(checked_hosts(&poll(other).await), None);
            assert_eq!(types(&poll(agent).await), ["inventory"]);
            assert_eq!(agent.host_status().await, "disconnected", "a check-in says nothing about the media");
            agent.send_reply(&reply(kind, 1, output)).await.json_with_status(204);
            assert_eq!(agent.host_status().await, "disconnected", "{kind} has failed");
            agent.send_reply(&reply(kind, 0, output)).await.json_with_status(204);
            let host = agent.assessed_host().await;
            assert_eq!(
                (&host["status"], &host["media_status"]),
                (&json!("known"), &json!("connected")),
                "{kind}"
            );
        }
        let events = events_of_infra_env(service, &agent.infra_env).await;
        let lost = events.iter().filter(|(name, _)| name == "host_media_disconnected").count();
        assert_eq!(lost, outputs.len());
    });
}

#[test]
fn unexpected_replies_are_stored_or_ignored() {
    on_each_database(async |service| {
        let fleet = Fleet::register(service, 1, &json!({})).await;
        let agent = &fleet.agents[0];
        // The service stores these reports although no poll has requested them.
        let names = json!({"resolutions": [{"domain_name": "a.example", "ipv4_addresses": ["192.0.2.1"]}]});
        agent.reply_to_step("domain-resolution", &names).await.json_with_status(204);
        let vips = json!([{"vip": "192.0.2.9", "vip_type": "api", "verification": "succeeded"}]);
        agent.reply_to_step("verify-vips", &vips).await.json_with_status(204);
        let host = agent.assessed_host().await;
        assert!(host["domain_name_resolutions"].as_str().unwrap().contains("a.example"), "{host}");
        assert_eq!(host["status"], "discovering");
        assert!(stored_report(agent, ReportKind::VerifiedVips).await.is_some());
        let before = stored_host(agent).await;
        agent.send_reply(&json!({"step_id": "a", "output": "{}"})).await.json_with_status(204);
        assert_eq!(stored_host(agent).await, before);
        let refused = agent.send_reply(&reply("teleport", 0, "{}")).await.refusal_reason(400);
        assert!(refused.starts_with("step_type in body should be one of"), "{refused}");
        let unknown = FakeAgent::new(service, &agent.infra_env);
        unknown.reply_to_step("inventory", &report_of(1)).await.refusal_reason(404);
    });
}

#[test]
fn invalid_inventory_is_refused_and_its_reason_is_shown() {
    on_each_database_with(only_own_validations, async |service| {
        let fleet = Fleet::register(service, 1, &json!({})).await;
        let agent = &fleet.agents[0];
        let text = "its last report was refused";
        for output in ["{", "[]", "null", r#"{"disks": 5}"#, ""] {
            agent.send_reply(&reply("inventory", 0, output)).await.refusal_reason(400);
            let host = agent.assessed_host().await;
            assert_eq!(host["status"], "discovering");
            assert!(host["status_info"].as_str().unwrap().contains(text), "{output}: {host}");
        }
        let events = events_of_infra_env(service, &agent.infra_env).await;
        let refusals = events.iter().filter(|(name, _)| name == "host_report_refused").count();
        assert_eq!(refusals, 1, "{events:?}");
        agent.reply_to_step("inventory", &report_of(1)).await.json_with_status(204);
        assert_eq!(agent.assessed_host().await["status_info"], "Host is ready to be installed");
    });
}

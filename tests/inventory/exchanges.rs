//! The steps and replies that a service and the agents of its hosts exchange, until the hosts can be installed.

use std::time::Duration;

use assisted::request::{InventoryRequest, StepRequest};
use assisted::step::StepType;
use kindling::inventory::Settings;
use kindling::inventory::store::ReportKind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env, inventory_report};
use crate::clusters::create_cluster;
use crate::fleet::{
    Fleet, checked_hosts, poll, reply_to_all, report_of, stored_report, type_of, types, with_vips,
};
use crate::service::{on_each_database_with, on_each_database_with_clock, only_own_validations};

/// The steps of a known host of a cluster with virtual IP addresses.
const KNOWN: [&str; 6] = [
    "connectivity-check",
    "free-network-addresses",
    "inventory",
    "ntp-synchronizer",
    "domain-resolution",
    "verify-vips",
];

/// Returns the ids of all hosts except one, in order.
fn others(fleet: &Fleet<'_>, own: usize) -> Vec<String> {
    let ids = fleet.agents.iter().enumerate().filter(|(number, _)| *number != own);
    let mut ids: Vec<_> = ids.map(|(_, agent)| agent.id.clone()).collect();
    ids.sort();
    ids
}

#[test]
fn hosts_of_a_compact_cluster_become_known() {
    on_each_database_with(only_own_validations, async |service| {
        let fleet = Fleet::register(service, 3, &with_vips()).await;
        for (number, agent) in fleet.agents.iter().enumerate() {
            assert_eq!(agent.host_status().await, "discovering");
            let steps = poll(agent).await;
            assert_eq!(types(&steps), ["inventory"]);
            assert_eq!(
                (steps.next_instruction_seconds, steps.post_step_action.to_string()),
                (60, "continue".to_owned())
            );
            let expected = InventoryRequest {
                host_id: agent.id.parse().unwrap(),
                output_max_size: None,
                disk_min_size: None,
            };
            assert_eq!(StepRequest::parse(&steps.instructions[0]).unwrap(), StepRequest::Inventory(expected));
            reply_to_all(agent, &steps, number).await;
            // Connectivity checks do not include hosts without an inventory report.
            let reported = &fleet.agents[..number];
            let checked = checked_hosts(&poll(agent).await);
            assert_eq!(checked.map_or(0, |hosts| hosts.len()), reported.len());
        }
        for (number, agent) in fleet.agents.iter().enumerate() {
            let steps = poll(agent).await;
            assert_eq!(types(&steps), KNOWN);
            assert_eq!(steps.next_instruction_seconds, 60);
            assert_eq!(checked_hosts(&steps).unwrap(), others(&fleet, number));
            for step in &steps.instructions {
                let prefix = format!("{}-", type_of(step));
                let id = step.step_id.strip_prefix(&prefix).unwrap();
                assert!(id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
            }
            reply_to_all(agent, &steps, number).await;
        }
        for (number, agent) in fleet.agents.iter().enumerate() {
            let host = agent.assessed_host().await;
            assert_eq!(
                (&host["status"], &host["status_info"]),
                (&json!("known"), &json!("Host is ready to be installed"))
            );
            for report in ["inventory", "connectivity", "ntp_sources", "domain_name_resolutions"] {
                assert!(host[report].is_string(), "{report}: {host}");
            }
            for kind in [ReportKind::FreeAddresses, ReportKind::VerifiedVips] {
                assert!(stored_report(agent, kind).await.is_some(), "{kind}");
            }
            assert_eq!(checked_hosts(&poll(agent).await).unwrap(), others(&fleet, number));
        }
    });
}

#[test]
fn arguments_have_the_values_of_the_cluster() {
    on_each_database_with(only_own_validations, async |service| {
        let mut settings = with_vips();
        settings["additional_ntp_source"] = json!("ntp1.example.com,192.0.2.7");
        let fleet = Fleet::with_reports(service, 2, &settings).await;
        let steps = poll(&fleet.agents[0]).await;
        let argument = |kind: &str| -> Value {
            let step = steps.instructions.iter().find(|step| type_of(step) == kind).unwrap();
            let [argument] = step.args.as_slice() else { panic!("{step:?}") };
            serde_json::from_str(argument).unwrap()
        };
        assert_eq!(argument("free-network-addresses"), json!(["192.168.1.0/24"]));
        assert_eq!(argument("ntp-synchronizer"), json!({"ntp_source": "ntp1.example.com,192.0.2.7"}));
        assert_eq!(
            argument("verify-vips"),
            json!([{"vip": "192.168.1.5", "vip_type": "api"}, {"vip": "192.168.1.6", "vip_type": "ingress"}])
        );
        let nic = json!({"name": "eth0", "mac": "52:54:00:00:00:01", "ip_addresses": ["192.168.1.11"]});
        assert_eq!(argument("connectivity-check"), json!([{"host_id": fleet.agents[1].id, "nics": [nic]}]));
        let names = argument("domain-resolution");
        let names: Vec<_> =
            names["domains"].as_array().unwrap().iter().map(|it| &it["domain_name"]).collect();
        let expected = [
            "api.demo.example.com",
            "api-int.demo.example.com",
            "console-openshift-console.apps.demo.example.com",
            "validateNoWildcardDNS.demo.example.com.",
            "validateNoWildcardDNS.demo.example.com",
            "quay.io",
        ];
        assert_eq!(names, expected);
        // The steps of the next poll contain the new values.
        let path = format!("/v2/clusters/{}", fleet.cluster);
        let change =
            json!({"api_vips": [], "ingress_vips": [], "base_dns_domain": "", "additional_ntp_source": ""});
        service.patch(&path, &change).await.json_with_status(201);
        let steps = poll(&fleet.agents[0]).await;
        let expected = ["connectivity-check", "free-network-addresses", "inventory", "ntp-synchronizer"];
        assert_eq!(types(&steps), expected);
        assert_eq!(steps.instructions[3].args, [r#"{"ntp_source":""}"#]);
    });
}

#[test]
fn silent_host_is_not_checked_until_it_returns() {
    on_each_database_with_clock(only_own_validations, async |service, clock| {
        let fleet = Fleet::with_reports(service, 3, &with_vips()).await;
        let [one, two, silent] = fleet.agents.as_slice() else { panic!("three hosts") };
        assert_eq!(checked_hosts(&poll(one).await).unwrap(), others(&fleet, 0));
        clock.advance(Settings::MAX_SILENCE + Duration::from_secs(1));
        for agent in [one, two] {
            poll(agent).await;
        }
        assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), 1);
        let host = silent.assessed_host().await;
        assert_eq!(host["status"], "disconnected");
        assert_eq!(host["status_info"], "Host has stopped communicating with the installation service");
        assert_eq!(checked_hosts(&poll(one).await).unwrap(), [two.id.as_str()]);

        let steps = poll(silent).await;
        assert_eq!((types(&steps), steps.next_instruction_seconds), (vec!["inventory"], 120));
        assert_eq!(silent.host_status().await, "known");
        assert_eq!(types(&poll(silent).await), KNOWN);
        assert_eq!(checked_hosts(&poll(one).await).unwrap(), others(&fleet, 0));
    });
}

#[test]
fn insufficient_host_gets_all_steps() {
    on_each_database_with(only_own_validations, async |service| {
        let fleet = Fleet::with_reports(service, 2, &with_vips()).await;
        let mut poor = report_of(0);
        poor["cpu"]["count"] = json!(1);
        fleet.agents[0].reply_to_step("inventory", &poor).await.json_with_status(204);
        assert_eq!(fleet.agents[0].host_status().await, "insufficient");
        let steps = poll(&fleet.agents[0]).await;
        let expected = [
            "inventory",
            "connectivity-check",
            "free-network-addresses",
            "ntp-synchronizer",
            "domain-resolution",
            "verify-vips",
        ];
        assert_eq!(types(&steps), expected);
        reply_to_all(&fleet.agents[0], &steps, 0).await;
        assert_eq!(fleet.agents[0].host_status().await, "known");
    });
}

#[test]
fn host_moves_from_the_pool_into_a_cluster() {
    on_each_database_with_clock(only_own_validations, async |service, clock| {
        let infra_env = create_infra_env(service, &json!({"ntp_sources": "192.0.2.1"})).await;
        let agent = FakeAgent::new(service, &infra_env);
        agent.register().await.json_with_status(201);
        let mut poor = inventory_report("node-1");
        poor["memory"]["physical_bytes"] = json!(1 << 30);
        for (status, report) in [("discovering-unbound", &poor), ("insufficient-unbound", &report_of(1))] {
            assert_eq!(agent.host_status().await, status);
            let steps = poll(&agent).await;
            assert_eq!(types(&steps), ["inventory", "ntp-synchronizer"], "{status}");
            assert_eq!(steps.instructions[1].args, [r#"{"ntp_source":"192.0.2.1"}"#]);
            agent.reply_to_step("inventory", report).await.json_with_status(204);
        }
        assert_eq!(agent.host_status().await, "known-unbound");
        clock.advance(Settings::MAX_SILENCE + Duration::from_secs(1));
        assert_eq!(service.inventory.disconnect_silent_hosts().await.unwrap(), 1);
        let steps = poll(&agent).await;
        assert_eq!((types(&steps), steps.next_instruction_seconds), (vec!["inventory"], 120));
        assert_eq!(types(&poll(&agent).await), ["inventory", "ntp-synchronizer"]);

        let cluster = create_cluster(service, &with_vips()).await;
        let bind = format!("{}/actions/bind", agent.path());
        service.post(&bind, &json!({"cluster_id": cluster["id"]})).await.json_with_status(200);
        let steps = poll(&agent).await;
        assert_eq!((types(&steps), steps.post_step_action.to_string()), (vec![], "exit".to_owned()));
        agent.register().await.json_with_status(201);
        let steps = poll(&agent).await;
        assert_eq!(types(&steps), ["inventory"]);
        reply_to_all(&agent, &steps, 1).await;
        assert_eq!(agent.host_status().await, "known");
        assert_eq!(types(&poll(&agent).await), KNOWN[1..]);
    });
}

#[test]
fn single_node_has_no_peers_and_no_virtual_addresses() {
    on_each_database_with(only_own_validations, async |service| {
        let settings = json!({"control_plane_count": 1, "base_dns_domain": "example.com"});
        let fleet = Fleet::register(service, 1, &settings).await;
        let agent = &fleet.agents[0];
        let steps = poll(agent).await;
        assert_eq!(types(&steps), ["inventory"]);
        reply_to_all(agent, &steps, 1).await;
        let steps = poll(agent).await;
        assert_eq!(types(&steps), KNOWN[1..5]);
        reply_to_all(agent, &steps, 1).await;
        let host = agent.assessed_host().await;
        assert_eq!((&host["status"], &host["role"]), (&json!("known"), &json!("master")));
        assert_eq!(host["bootstrap"], true);
    });
}

#[test]
fn host_of_an_existing_cluster_downloads_its_ignition_config() {
    on_each_database_with(only_own_validations, async |service| {
        let import = json!({
            "name": "old", "api_vip_dnsname": "api.old.example.com", "openshift_cluster_id": Uuid::new_v4(),
        });
        let cluster = service.post("/v2/clusters/import", &import).await.json_with_status(201);
        let cluster = cluster["id"].as_str().unwrap().to_owned();
        let fleet = Fleet::register_in(service, 2, cluster).await;
        for (number, agent) in fleet.agents.iter().enumerate() {
            let steps = poll(agent).await;
            assert_eq!(types(&steps)[..2], ["inventory", "ntp-synchronizer"]);
            reply_to_all(agent, &steps, number).await;
        }
        let agent = &fleet.agents[0];
        assert_eq!(agent.assessed_host().await["kind"], "AddToExistingClusterHost");
        let steps = poll(agent).await;
        let expected = ["connectivity-check", "api-vip-connectivity-check", "inventory", "ntp-synchronizer"];
        assert_eq!(types(&steps)[..4], expected);
        assert_eq!(checked_hosts(&steps).unwrap(), [fleet.agents[1].id.as_str()]);
        let StepRequest::ApiVip(request) = StepRequest::parse(&steps.instructions[1]).unwrap() else {
            panic!("{steps:?}")
        };
        assert_eq!(request.url, "http://api.old.example.com:22624/config/worker");
        reply_to_all(agent, &steps, 0).await;
        let host = agent.assessed_host().await;
        assert_eq!(host["status"], "known");
        let reply: Value = serde_json::from_str(host["api_vip_connectivity"].as_str().unwrap()).unwrap();
        assert_eq!((&reply["is_success"], &reply["url"]), (&json!(true), &json!(request.url)));
    });
}

#[test]
fn disabled_steps_are_left_out_and_inventory_limits_are_sent() {
    let settings = |settings: &mut Settings| {
        only_own_validations(settings);
        settings.disabled_steps = [StepType::VerifyVips, StepType::NtpSynchronizer].into();
        (settings.inventory_max_size, settings.inventory_disk_min_size) = (Some(65536), Some(1 << 30));
    };
    on_each_database_with(settings, async |service| {
        let fleet = Fleet::with_reports(service, 1, &with_vips()).await;
        let agent = &fleet.agents[0];
        let steps = poll(agent).await;
        assert_eq!(types(&steps), ["free-network-addresses", "inventory", "domain-resolution"]);
        assert_eq!(
            steps.instructions[1].args,
            [agent.id.clone(), "--output-max-size=65536".to_owned(), "--disk-min-size=1073741824".to_owned()]
        );
        // Replies to disabled steps are still stored.
        let sources = json!({"ntp_sources": [{"source_name": "a", "source_state": "synced"}]});
        agent.reply_to_step("ntp-synchronizer", &sources).await.json_with_status(204);
        assert!(agent.assessed_host().await["ntp_sources"].is_string());
    });
}

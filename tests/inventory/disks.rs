//! The disks of a host: which of them are eligible for the installation, and the reasons against the others.

use kindling::inventory::Settings;
use kindling::inventory::store::ReportKind;
use serde_json::{Value, json};

use crate::agent::FakeAgent;
use crate::clusters::create_cluster;
use crate::fleet::{Fleet, report_of, stored_host, stored_report};
use crate::service::{on_each_database, on_each_database_with};

/// Returns an inventory report with one disk of this size.
fn report_with_disk(gigabytes: u64) -> Value {
    let mut report = report_of(1);
    report["disks"][0]["size_bytes"] = json!(gigabytes * 1_000_000_000);
    report
}

/// Returns the reasons against the only disk of a host. Empty if the disk is eligible.
async fn reasons(agent: &FakeAgent<'_>) -> Vec<String> {
    let host = agent.assessed_host().await;
    let inventory: Value = serde_json::from_str(host["inventory"].as_str().unwrap()).unwrap();
    let eligibility = inventory["disks"][0]["installation_eligibility"].clone();
    let reasons: Option<Vec<String>> =
        serde_json::from_value(eligibility["not_eligible_reasons"].clone()).unwrap();
    assert_eq!(eligibility["eligible"] == true, reasons.is_none(), "{eligibility}");
    reasons.unwrap_or_default()
}

#[test]
fn cluster_needs_larger_disks_than_the_pool() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        agent.reply_to_step("inventory", &report_with_disk(60)).await.json_with_status(204);
        assert_eq!(reasons(&agent).await, [""; 0]);
        assert_eq!(agent.host_status().await, "known-unbound");
        let in_pool = stored_report(&agent, ReportKind::Inventory).await;

        let cluster = create_cluster(service, &json!({})).await;
        let bind = format!("{}/actions/bind", agent.path());
        service.post(&bind, &json!({"cluster_id": cluster["id"]})).await.json_with_status(200);
        agent.register().await.json_with_status(201);
        agent.reply_to_step("inventory", &report_with_disk(60)).await.json_with_status(204);
        let too_small = "Disk is too small (disk only has 60 GB, but 100 GB are required)";
        assert_eq!(reasons(&agent).await, [too_small]);
        let host = agent.assessed_host().await;
        assert_eq!(host["status"], "insufficient");
        assert!(host["status_info"].as_str().unwrap().contains("No eligible disks were found"), "{host}");
        assert!(host.get("installation_disk_id").is_none());
        // The reasons are results, and not part of the report.
        assert_eq!(stored_report(&agent, ReportKind::Inventory).await, in_pool);

        service.post(&format!("{}/actions/unbind", agent.path()), &json!({})).await.json_with_status(200);
        agent.register().await.json_with_status(201);
        agent.reply_to_step("inventory", &report_with_disk(60)).await.json_with_status(204);
        assert_eq!(reasons(&agent).await, [""; 0]);
    });
}

#[test]
fn role_changes_the_reasons_and_not_the_report() {
    let roles = |settings: &mut Settings| {
        let role = |gigabytes: u64| json!({"cpu_cores": 2, "ram_mib": 8192, "disk_size_gb": gigabytes});
        let entry = json!({
            "version": "default", "master": role(120), "worker": role(80), "arbiter": role(80), "sno": role(120),
        });
        settings.hardware =
            rules::requirements::HardwareRequirements::parse(&json!([entry]).to_string()).unwrap();
    };
    on_each_database_with(roles, async |service| {
        let fleet = Fleet::register(service, 1, &json!({})).await;
        let agent = &fleet.agents[0];
        agent.reply_to_step("inventory", &report_with_disk(100)).await.json_with_status(204);
        let report = stored_report(agent, ReportKind::Inventory).await;
        let too_small = "Disk is too small (disk only has 100 GB, but 120 GB are required)".to_owned();
        for (role, expected) in
            [("master", vec![too_small.clone()]), ("worker", vec![]), ("master", vec![too_small])]
        {
            service.patch(&agent.path(), &json!({"host_role": role})).await.json_with_status(201);
            assert_eq!(reasons(agent).await, expected, "{role}");
            let status = if expected.is_empty() { "pending-for-input" } else { "insufficient" };
            assert_eq!(agent.host_status().await, status, "{role}");
            assert_eq!(stored_report(agent, ReportKind::Inventory).await, report);
        }
    });
}

#[test]
fn reasons_of_the_agent_are_kept_and_reasons_of_the_service_are_recomputed() {
    on_each_database(async |service| {
        let fleet = Fleet::register(service, 1, &json!({})).await;
        let agent = &fleet.agents[0];
        let mut report = report_with_disk(60);
        report["disks"][0]["installation_eligibility"] = json!({
            "eligible": false,
            "not_eligible_reasons": [
                "Disk is an LVM logical volume",
                "Disk is too small (disk only has 1 GB, but 2 GB are required)",
            ],
        });
        agent.reply_to_step("inventory", &report).await.json_with_status(204);
        let too_small = "Disk is too small (disk only has 60 GB, but 100 GB are required)";
        assert_eq!(reasons(agent).await, ["Disk is an LVM logical volume", too_small]);
        let listed = service.get(&format!("/v2/infra-envs/{}/hosts", agent.infra_env)).await;
        let listed = listed.json_with_status(200)[0]["inventory"].clone();
        assert_eq!(listed, agent.assessed_host().await["inventory"]);
        // Equal results are not written again.
        let before = stored_host(agent).await;
        agent.reply_to_step("inventory", &report).await.json_with_status(204);
        assert_eq!(stored_host(agent).await, before);
        report["disks"][0]["size_bytes"] = json!(200_000_000_000_u64);
        agent.reply_to_step("inventory", &report).await.json_with_status(204);
        assert_eq!(reasons(agent).await, ["Disk is an LVM logical volume"]);
        report["disks"].as_array_mut().unwrap().clear();
        agent.reply_to_step("inventory", &report).await.json_with_status(204);
        assert_eq!(agent.host_status().await, "insufficient");
    });
}

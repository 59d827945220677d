//! Agents of booted hosts: their reports, and the responses of the service.

use std::time::Duration;

use kindling::inventory::Settings;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::service::{
    PULL_SECRET, ServiceAnswer, TestService, on_each_database, on_each_database_with, send_request,
};

/// The agent of a host. It behaves like the agent in a discovery image.
pub(crate) struct FakeAgent<'a> {
    pub(crate) service: &'a TestService,
    pub(crate) infra_env: String,
    pub(crate) id: String,
    pub(crate) version: String,
}

/// Returns an inventory report of a host that meets all requirements.
pub(crate) fn inventory_report(hostname: &str) -> Value {
    json!({
        "hostname": hostname,
        "cpu": {"count": 8, "architecture": "x86_64", "frequency": 2400, "flags": [], "model_name": "sim"},
        "memory": {"physical_bytes": 34_359_738_368_i64, "usable_bytes": 34_359_738_368_i64, "physical_bytes_method": "dmidecode"},
        "disks": [{
            "id": "/dev/disk/by-id/wwn-0x5000000000000001", "by_id": "/dev/disk/by-id/wwn-0x5000000000000001",
            "path": "/dev/sda", "name": "sda", "drive_type": "HDD", "size_bytes": 128_849_018_880_i64, "bootable": true,
            "wwn": "0x5000000000000001", "serial": "s1",
            "installation_eligibility": {"eligible": true, "not_eligible_reasons": []}
        }],
        "interfaces": [{
            "name": "eth0", "type": "physical", "mac_address": "52:54:00:00:00:01", "mtu": 1500, "has_carrier": true,
            "speed_mbps": 1000, "flags": ["up", "broadcast", "multicast"], "ipv4_addresses": ["192.168.1.11/24"],
            "ipv6_addresses": []
        }],
        "routes": [{"interface": "eth0", "gateway": "192.168.1.1", "destination": "0.0.0.0", "family": 2, "metric": 100}],
        "system_vendor": {"manufacturer": "Sim", "product_name": "Sim", "serial_number": "1", "virtual": true},
        "boot": {"current_boot_mode": "bios", "device_type": "ephemeral"},
        "bmc_address": "0.0.0.0", "bmc_v6address": "::/0", "tpm_version": "none"
    })
}

/// Creates an infra-env and returns its id.
pub(crate) async fn create_infra_env(service: &TestService, more: &Value) -> String {
    let mut body = json!({"name": "demo", "pull_secret": PULL_SECRET});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let infra_env = service.post("/v2/infra-envs", &body).await.json_with_status(201);
    infra_env["id"].as_str().unwrap().to_owned()
}

impl<'a> FakeAgent<'a> {
    pub(crate) fn new(service: &'a TestService, infra_env: &str) -> Self {
        let version = service.inventory.settings().agent_image.clone();
        Self { service, infra_env: infra_env.to_owned(), id: Uuid::new_v4().to_string(), version }
    }

    /// Registers a host in a new infra-env.
    pub(crate) async fn register_in_new_infra_env(service: &'a TestService) -> Self {
        let agent = Self::new(service, &create_infra_env(service, &json!({})).await);
        agent.register().await.json_with_status(201);
        agent
    }

    /// Registers a host in a new infra-env, and sends its inventory report.
    pub(crate) async fn register_with_report(service: &'a TestService, hostname: &str) -> Self {
        let agent = Self::register_in_new_infra_env(service).await;
        agent.reply_to_step("inventory", &inventory_report(hostname)).await.json_with_status(204);
        agent
    }

    pub(crate) fn path(&self) -> String {
        format!("/v2/infra-envs/{}/hosts/{}", self.infra_env, self.id)
    }

    pub(crate) async fn register(&self) -> ServiceAnswer {
        let body = json!({"host_id": self.id, "discovery_agent_version": self.version});
        let path = format!("/v2/infra-envs/{}/hosts", self.infra_env);
        let request = self.service.request(Method::POST, &path);
        send_request(request.header("discovery_agent_version", &self.version).json(&body)).await
    }

    pub(crate) async fn request_steps(&self) -> ServiceAnswer {
        let path = format!("{}/instructions?timestamp=1700000000", self.path());
        let request = self.service.request(Method::GET, &path);
        send_request(request.header("discovery_agent_version", &self.version)).await
    }

    /// Returns the types of the steps that the agent receives.
    pub(crate) async fn step_types(&self) -> Vec<String> {
        let steps = self.request_steps().await.json_with_status(200);
        let steps = steps["instructions"].as_array().unwrap();
        steps.iter().map(|step| step["step_type"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn reply_to_step(&self, kind: &str, output: &Value) -> ServiceAnswer {
        self.send_reply(&json!({"step_type": kind, "step_id": format!("{kind}-00000001"), "exit_code": 0, "output": output.to_string(), "error": ""})).await
    }

    pub(crate) async fn send_reply(&self, reply: &Value) -> ServiceAnswer {
        self.service.post(&format!("{}/instructions", self.path()), reply).await
    }

    /// Returns the host as users see it.
    pub(crate) async fn get_host(&self) -> Value {
        self.service.get(&self.path()).await.json_with_status(200)
    }

    /// Assesses the host's cluster, and returns the host as users see it.
    pub(crate) async fn assessed_host(&self) -> Value {
        self.service.inventory.assess_clusters().await.unwrap();
        self.get_host().await
    }

    /// Returns the stored status of the host.
    pub(crate) async fn stored_status(&self) -> String {
        self.get_host().await["status"].as_str().unwrap().to_owned()
    }

    /// Assesses the host's cluster, and returns the status of the host. No background task runs in most tests.
    pub(crate) async fn host_status(&self) -> String {
        self.assessed_host().await["status"].as_str().unwrap().to_owned()
    }
}

/// Returns the names and messages of all events of an infra-env.
pub(crate) async fn events_of_infra_env(service: &TestService, infra_env: &str) -> Vec<(String, String)> {
    let events = service.get(&format!("/v2/events?infra_env_id={infra_env}")).await.json_with_status(200);
    let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
    events.as_array().unwrap().iter().map(|event| (text(event, "name"), text(event, "message"))).collect()
}

fn messages_of_event(events: &[(String, String)], name: &str) -> Vec<String> {
    events.iter().filter(|(one, _)| one == name).map(|(_, message)| message.clone()).collect()
}

#[test]
fn booted_host_becomes_known() {
    on_each_database(async |service| {
        let infra_env =
            create_infra_env(service, &json!({"additional_ntp_sources": "ntp1.example.com,192.0.2.1"})).await;
        let agent = FakeAgent::new(service, &infra_env);
        let registered = agent.register().await.json_with_status(201);
        assert_eq!(registered["kind"], "Host");
        assert_eq!(registered["status"], "discovering-unbound");
        let arguments = registered["next_step_runner_command"]["args"][0].as_str().unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(arguments["infra_env_id"], infra_env.as_str());
        assert_eq!(arguments["host_id"], agent.id.as_str());
        assert_eq!(arguments["agent_version"], "quay.io/edge-infrastructure/assisted-installer-agent:latest");
        assert!(registered["next_step_runner_command"].get("command").is_none());

        let steps = agent.request_steps().await.json_with_status(200);
        assert_eq!(steps["next_instruction_seconds"], 60);
        assert_eq!(steps["post_step_action"], "continue");
        let [inventory, ntp] = &steps["instructions"].as_array().unwrap()[..] else { panic!("{steps}") };
        assert_eq!((&inventory["step_type"], &inventory["args"]), (&json!("inventory"), &json!([agent.id])));
        assert_eq!(ntp["step_type"], "ntp-synchronizer");
        assert_eq!(ntp["args"], json!([r#"{"ntp_source":"ntp1.example.com,192.0.2.1"}"#]));
        let id = inventory["step_id"].as_str().unwrap().strip_prefix("inventory-").unwrap();
        assert!(id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");

        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        let sources = json!({"ntp_sources": [{"source_name": "192.0.2.1", "source_state": "synced"}]});
        agent.reply_to_step("ntp-synchronizer", &sources).await.json_with_status(204);
        assert_eq!(agent.step_types().await, ["inventory", "ntp-synchronizer"]);

        let host = agent.get_host().await;
        assert_eq!(host["status"], "known-unbound");
        assert_eq!(host["requested_hostname"], "node-1");
        assert_eq!(host["timestamp"], 1_700_000_000);
        assert_eq!(host["media_status"], "connected");
        assert_eq!(host["discovery_agent_version"], service.inventory.settings().agent_image.as_str());
        assert_eq!(host["installation_disk_id"], "/dev/disk/by-id/wwn-0x5000000000000001");
        assert_eq!(host["installation_disk_path"], "/dev/sda");
        assert_eq!(host["disks_to_be_formatted"], "/dev/disk/by-id/wwn-0x5000000000000001");
        let report: Value = serde_json::from_str(host["inventory"].as_str().unwrap()).unwrap();
        assert_eq!(report["interfaces"][0]["mac_address"], "52:54:00:00:00:01");
        assert_eq!(report["memory"]["physical_bytes"], 34_359_738_368_i64);
        let report: Value = serde_json::from_str(host["ntp_sources"].as_str().unwrap()).unwrap();
        assert_eq!(report, sources["ntp_sources"]);
        let listed = service.get(&format!("/v2/infra-envs/{infra_env}/hosts")).await.json_with_status(200);
        assert_eq!(listed.as_array().unwrap().len(), 1);
        assert_eq!(listed[0]["id"], agent.id.as_str());
        assert_eq!(listed[0]["requested_hostname"], "node-1");

        let events = events_of_infra_env(service, &infra_env).await;
        assert_eq!(
            messages_of_event(&events, "host_registration_succeeded"),
            [format!("Host {}: Successfully registered", agent.id)]
        );
        assert_eq!(
            messages_of_event(&events, "host_status_updated"),
            [
                "Host node-1: updated status from discovering-unbound to known-unbound (Host is ready to be bound to a cluster)"
            ]
        );
    });
}

#[test]
fn new_host_matches_the_api_document() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let mut host = agent.get_host().await;
        for key in ["created_at", "updated_at", "registered_at", "checked_in_at", "status_updated_at"] {
            let time = host.as_object_mut().unwrap().remove(key).unwrap();
            assert!(time.as_str().unwrap().starts_with("20"), "{key}: {time}");
        }
        let validations = host.as_object_mut().unwrap().remove("validations_info").unwrap();
        let validations: Value = serde_json::from_str(validations.as_str().unwrap()).unwrap();
        assert_eq!(validations["hardware"][0]["id"], "has-inventory");
        assert_eq!(validations["hardware"][0]["status"], "failure");
        assert_eq!(validations["network"][0]["id"], "connected");
        assert_eq!(validations["network"][0]["status"], "success");
        let never = "0001-01-01T00:00:00.000Z";
        let expected = json!({
            "kind": "Host",
            "id": agent.id,
            "href": format!("/api/assisted-install/v2/infra-envs/{}/hosts/{}", agent.infra_env, agent.id),
            "infra_env_id": agent.infra_env,
            "status": "discovering-unbound",
            "status_info": "Waiting for host to send hardware details",
            "role": "auto-assign",
            "suggested_role": "auto-assign",
            "requested_hostname": agent.id,
            "progress": {"stage_started_at": never, "stage_updated_at": never},
            "progress_stages": [],
            "stage_started_at": never,
            "stage_updated_at": never,
            "discovery_agent_version": "quay.io/edge-infrastructure/assisted-installer-agent:latest",
            "logs_collected_at": never,
            "logs_started_at": never,
            "deleted_at": null,
            "user_name": "admin",
        });
        assert_eq!(host, expected);
    });
}

#[test]
fn registration_refusal_names_its_reason() {
    on_each_database(async |service| {
        let unknown = FakeAgent::new(service, &Uuid::new_v4().to_string());
        assert_eq!(unknown.register().await.refusal_reason(404), "record not found");

        let infra_env = create_infra_env(service, &json!({"image_type": "disconnected-iso"})).await;
        let agent = FakeAgent::new(service, &infra_env);
        agent.register().await.refusal_reason(400);
        let events = events_of_infra_env(service, &infra_env).await;
        assert_eq!(
            messages_of_event(&events, "host_registration_failed"),
            ["Hosts of a disconnected ISO do not register"]
        );

        let hosts = format!("/v2/infra-envs/{infra_env}/hosts");
        assert_eq!(service.post(&hosts, &json!({})).await.refusal_reason(400), "host_id in body is required");
        let reason = service.post(&hosts, &json!({"host_id": "x"})).await.refusal_reason(400);
        assert_eq!(reason, "host_id in body must be of type uuid: \"x\"");
        let reason =
            service.post(&hosts, &json!({"host_id": agent.id, "colour": 1})).await.refusal_reason(400);
        assert!(reason.contains("json: unknown field \"colour\""), "{reason}");
        let reason =
            service.post("/v2/infra-envs/x/hosts", &json!({"host_id": agent.id})).await.refusal_reason(400);
        assert_eq!(reason, "infra_env_id in path must be of type uuid: \"x\"");
    });
}

#[test]
fn rebooted_host_keeps_user_settings() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        agent.reply_to_step("ntp-synchronizer", &json!({"ntp_sources": []})).await.json_with_status(204);
        let choices =
            json!({"host_role": "worker", "host_name": "chosen", "machine_config_pool_name": "infra"});
        service.patch(&agent.path(), &choices).await.json_with_status(201);
        let before = agent.get_host().await;
        let again = agent.register().await.json_with_status(201);
        assert_eq!(again["status"], "discovering-unbound");
        let host = agent.get_host().await;
        assert_eq!(host["role"], "worker");
        assert_eq!(host["requested_hostname"], "chosen");
        assert_eq!(host["machine_config_pool_name"], "infra");
        assert_eq!(host["installation_disk_id"], before["installation_disk_id"]);
        for key in ["inventory", "ntp_sources", "media_status"] {
            assert!(before.get(key).is_some() && host.get(key).is_none(), "{key}: {host}");
        }
        assert_eq!(host["created_at"], before["created_at"]);
        assert_ne!(host["registered_at"], before["registered_at"]);
        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        assert_eq!(agent.host_status().await, "known-unbound");
    });
}

#[test]
fn deleted_host_can_register_again_as_new() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        service.patch(&agent.path(), &json!({"host_name": "chosen"})).await.json_with_status(201);
        assert_eq!(service.delete(&agent.path()).await.status, 204);
        for answer in
            [agent.request_steps().await, agent.reply_to_step("inventory", &inventory_report("node-1")).await]
        {
            let reason = answer.refusal_reason(404);
            assert_eq!(
                reason,
                format!("failed to get host {} in infra_env {}: record not found", agent.id, agent.infra_env)
            );
        }
        service.get(&agent.path()).await.refusal_reason(404);
        service.delete(&agent.path()).await.refusal_reason(404);
        assert_eq!(
            service.get(&format!("/v2/infra-envs/{}/hosts", agent.infra_env)).await.json_with_status(200),
            json!([])
        );
        agent.register().await.json_with_status(201);
        let host = agent.get_host().await;
        assert_eq!(host["status"], "discovering-unbound");
        assert_eq!(host["requested_hostname"], agent.id.as_str());
        let events = events_of_infra_env(service, &agent.infra_env).await;
        assert_eq!(messages_of_event(&events, "host_deregistered"), ["Host chosen deregistered"]);
    });
}

#[test]
fn one_machine_may_register_in_two_infra_envs() {
    on_each_database(async |service| {
        let one = FakeAgent::register_with_report(service, "node-1").await;
        let mut other = FakeAgent::new(service, &create_infra_env(service, &json!({})).await);
        other.id.clone_from(&one.id);
        other.register().await.json_with_status(201);
        assert_eq!(one.host_status().await, "known-unbound");
        assert_eq!(other.host_status().await, "discovering-unbound");
        service.delete(&other.path()).await.json_with_status(204);
        assert_eq!(one.host_status().await, "known-unbound");
    });
}

#[test]
fn insufficient_host_names_its_failing_requirements() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let mut poor = inventory_report("localhost");
        poor["cpu"]["count"] = json!(1);
        poor["memory"]["physical_bytes"] = json!(1_073_741_824);
        poor["disks"][0]["size_bytes"] = json!(1_000_000_000);
        agent.reply_to_step("inventory", &poor).await.json_with_status(204);
        let host = agent.get_host().await;
        assert_eq!(host["status"], "insufficient-unbound");
        assert_eq!(
            host["status_info"],
            "Host does not meet the minimum hardware requirements: No eligible disks were found, please check specific \
             disks to see why they are not eligible ; The host is not eligible to participate in Openshift Cluster because \
             the minimum required CPU cores for any role is 2, found only 1 ; The host is not eligible to participate in \
             Openshift Cluster because the minimum required RAM for any role is 8.00 GiB, found only 1.00 GiB ; The host \
             name localhost is forbidden"
        );
        assert!(host.get("installation_disk_id").is_none());
        let inventory: Value = serde_json::from_str(host["inventory"].as_str().unwrap()).unwrap();
        let eligibility = &inventory["disks"][0]["installation_eligibility"];
        assert_eq!(eligibility.get("eligible"), None);
        assert_eq!(
            eligibility["not_eligible_reasons"],
            json!(["Disk is too small (disk only has 1 GB, but 50 GB are required)"])
        );
        let validations: Value = serde_json::from_str(host["validations_info"].as_str().unwrap()).unwrap();
        let failed: Vec<_> = validations["hardware"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["status"] == "failure")
            .collect();
        assert_eq!(failed.len(), 4, "{validations}");
        // A new name is the only way for users to fix a failing hostname validation.
        let renamed_host =
            service.patch(&agent.path(), &json!({"host_name": "node-1"})).await.json_with_status(201);
        assert!(!renamed_host["status_info"].as_str().unwrap().contains("hostname"), "{renamed_host}");
        agent.reply_to_step("inventory", &inventory_report("localhost")).await.json_with_status(204);
        assert_eq!(agent.host_status().await, "known-unbound");
    });
}

#[test]
fn inventory_keys_are_case_insensitive() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let mut report = inventory_report("node-1");
        for key in ["hostname", "cpu", "disks"] {
            let value = report.as_object_mut().unwrap().remove(key).unwrap();
            report[key.to_uppercase()] = value;
        }
        agent.reply_to_step("inventory", &report).await.json_with_status(204);
        let host = agent.get_host().await;
        assert_eq!(host["status_info"], "Host is ready to be bound to a cluster");
        assert_eq!(
            (&host["status"], &host["requested_hostname"]),
            (&json!("known-unbound"), &json!("node-1"))
        );
    });
}

#[test]
fn virtual_interfaces_and_unknown_keys_are_dropped() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let mut inventory = inventory_report("node-1");
        inventory["colour"] = json!({"deep": [1, 2, {"er": null}]});
        inventory["disks"][0]["weight"] = json!(1);
        let cards = inventory["interfaces"].as_array_mut().unwrap();
        cards.extend([
            json!({"name": "br0", "type": "bridge"}),
            json!({"name": "bond0", "type": "bond"}),
            json!({"name": "old"}),
        ]);
        agent.reply_to_step("inventory", &inventory).await.json_with_status(204);
        let host = agent.get_host().await;
        let inventory = host["inventory"].as_str().unwrap();
        let report: Value = serde_json::from_str(inventory).unwrap();
        let names: Vec<_> = report["interfaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|card| card["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["eth0", "bond0", "old"]);
        assert!(!inventory.contains("colour") && !inventory.contains("weight"), "{inventory}");
        assert_eq!(report["gpus"], Value::Null, "the list is never absent");
    });
}

#[test]
fn hostile_reports_are_refused_or_stored() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let say = async |output: String| {
            agent
                .send_reply(
                    &json!({"step_type": "inventory", "step_id": "x", "exit_code": 0, "output": output}),
                )
                .await
        };
        let deep = format!("{}{}", r#"{"colour":"#.repeat(10_000), "1".to_owned() + &"}".repeat(10_000));
        let refused = [
            String::new(),
            "null".to_owned(),
            "[]".to_owned(),
            "{".to_owned(),
            "\0".to_owned(),
            r#"{"disks": {}}"#.to_owned(),
            r#"{"disks": [null]}"#.to_owned(),
            r#"{"disks": ["sda"]}"#.to_owned(),
            r#"{"cpu": {"count": "many"}}"#.to_owned(),
            r#"{"cpu": {"count": 1e999}}"#.to_owned(),
            r#"{"cpu": {"count": 9223372036854775808}}"#.to_owned(),
            r#"{"memory": []}"#.to_owned(),
            r#"{"hostname": 1}"#.to_owned(),
            r#"{"hostname": "a\u0000b"}"#.to_owned(),
            format!(r#"{{"disks": [{}]}}"#, vec!["{}"; 20_000].join(",")),
        ];
        for output in refused {
            let start: String = output.chars().take(40).collect();
            let answer = say(output).await;
            assert_eq!(answer.status, 400, "{start}: {}", answer.text);
        }
        assert_eq!(agent.host_status().await, "discovering-unbound");
        let accepted = [
            "{}".to_owned(),
            // Unknown keys are skipped at any depth.
            deep,
            r#"{"cpu": null, "disks": null, "interfaces": [], "hostname": null}"#.to_owned(),
            r#"{"hostname": "a\\u0000b", "cpu": {"count": -9223372036854775808}, "memory": {"physical_bytes": 9223372036854775807}}"#.to_owned(),
            format!(r#"{{"hostname": "{}"}}"#, "x".repeat(1000 << 10)),
            format!(r#"{{"disks": [{}]}}"#, vec!["{}"; 8_000].join(",")),
        ];
        for output in accepted {
            let start: String = output.chars().take(40).collect();
            let answer = say(output).await;
            assert_eq!(answer.status, 204, "{start}: {}", answer.text);
            assert_eq!(agent.host_status().await, "insufficient-unbound", "{start}");
        }
        let longest = events_of_infra_env(service, &agent.infra_env)
            .await
            .into_iter()
            .map(|(_, message)| message.chars().count())
            .max();
        assert!(longest.unwrap() <= 4096, "{longest:?}");
        for reply in [
            json!({"step_type": "paint"}),
            json!({"exit_code": "0"}),
            json!({"colour": 1}),
            json!([]),
            json!({"step_type": "ntp-synchronizer", "output": r#"{"ntp_sources": 1}"#}),
            json!({"step_type": "connectivity-check", "output": "x"}),
        ] {
            agent.send_reply(&reply).await.refusal_reason(400);
        }
    });
}

/// Sends the output of an inventory step, which the service refuses. Returns the reason.
async fn send_refused_inventory(agent: &FakeAgent<'_>, output: &str) -> String {
    let reply = json!({"step_type": "inventory", "step_id": "x", "exit_code": 0, "output": output});
    let answer = agent.send_reply(&reply).await;
    assert!([400, 413].contains(&answer.status), "{}", answer.text);
    answer.json()["reason"].as_str().unwrap().to_owned()
}

#[test]
fn refused_report_is_an_event_and_the_reason_of_the_status() {
    const WAITING: &str = "Waiting for host to send hardware details";
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let info = async || agent.get_host().await["status_info"].as_str().unwrap().to_owned();
        let events = async || {
            messages_of_event(&events_of_infra_env(service, &agent.infra_env).await, "host_report_refused")
        };
        let invalid = send_refused_inventory(&agent, "[]").await;
        assert_eq!(info().await, format!("{WAITING}; its last report was refused: {invalid}"));
        let updated_at = agent.get_host().await["updated_at"].clone();
        // Within ten minutes, other reasons are neither stored nor reported.
        for output in ["[1]", "[]", "{"] {
            send_refused_inventory(&agent, output).await;
        }
        assert_eq!(agent.get_host().await["updated_at"], updated_at);
        // A boot discards the reason.
        agent.register().await.json_with_status(201);
        assert_eq!(info().await, WAITING);
        let too_large = send_refused_inventory(&agent, &" ".repeat((1 << 20) + 1)).await;
        assert_eq!(too_large, "inventory report too large, discarded (limit 1048576 bytes)");
        assert_eq!(info().await, format!("{WAITING}; its last report was refused: {too_large}"));
        // A check-in keeps the reason.
        agent.request_steps().await.json_with_status(200);
        assert_eq!(info().await, format!("{WAITING}; its last report was refused: {too_large}"));
        agent.send_reply(&json!({"step_type": "ntp-synchronizer", "output": "1"})).await.refusal_reason(400);
        let refused = [invalid.clone(), too_large]
            .map(|reason| format!("Host {}: Refused its inventory report: {reason}", agent.id));
        let messages = events().await;
        assert_eq!((&messages[..2], messages.len()), (&refused[..], 3));
        assert!(messages[2].contains("Refused its ntp-synchronizer report: "), "{}", messages[2]);

        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        assert_eq!(info().await, "Host is ready to be bound to a cluster");
        // Alternating good and bad reports do not add events within an hour, and the text of a good host does not
        // change.
        send_refused_inventory(&agent, "[]").await;
        assert_eq!(info().await, "Host is ready to be bound to a cluster");
        agent.reply_to_step("inventory", &json!({"hostname": "node-1"})).await.json_with_status(204);
        let poor = info().await;
        send_refused_inventory(&agent, "[]").await;
        assert_eq!(info().await, format!("{poor}; its last report was refused: {invalid}"));
        assert_eq!(events().await.len(), 3);
    });
}

#[test]
fn broken_connection_within_a_report_is_not_a_refusal() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let before = agent.get_host().await["status_info"].clone();
        let address = service.url("").trim_start_matches("http://").to_owned();
        let path = format!("{}{}/instructions", Settings::API, agent.path());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
        );
        let mut socket = TcpStream::connect(&address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        // The server closes the connection after it has handled the request.
        let mut response = String::new();
        socket.read_to_string(&mut response).await.unwrap();
        assert!(response.contains("request body is incomplete"), "{response}");
        assert_eq!(agent.get_host().await["status_info"], before);
        let events = events_of_infra_env(service, &agent.infra_env).await;
        assert_eq!(messages_of_event(&events, "host_report_refused"), Vec::<String>::new());
    });
}

#[test]
fn refused_body_is_the_reason_of_the_status_until_the_inventory_arrives() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let refusal = agent.send_reply(&json!({"exit_code": "0"})).await;
        let reason = refusal.json()["message"].as_str().unwrap().to_owned();
        let host = agent.get_host().await;
        let info =
            format!("Waiting for host to send hardware details; its last report was refused: {reason}");
        assert_eq!((&host["status"], &host["status_info"]), (&json!("discovering-unbound"), &json!(info)));
        let path = format!("{}/instructions", FakeAgent::new(service, &agent.infra_env).path());
        assert_eq!(service.post(&path, &json!({"exit_code": "0"})).await.status, 404);
        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        assert_eq!(agent.host_status().await, "known-unbound");
        agent.reply_to_step("inventory", &json!({})).await.json_with_status(204);
        let info = agent.get_host().await["status_info"].clone();
        assert!(!info.as_str().unwrap().contains("refused"), "{info}");
        // The service refuses a body with this content type before it reads the body.
        let path = format!("{}/instructions", agent.path());
        let request = service.request(Method::POST, &path).header("content-type", "text/plain").body("{}");
        send_request(request).await.refusal_reason(400);
        let info = agent.get_host().await["status_info"].clone();
        assert!(info.as_str().unwrap().ends_with("only [application/json] are allowed"), "{info}");
        agent.reply_to_step("inventory", &json!({})).await.json_with_status(204);
        let info = agent.get_host().await["status_info"].clone();
        assert!(!info.as_str().unwrap().contains("refused"), "{info}");
    });
}

#[test]
fn step_results_are_stored_under_their_keys() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let reach = json!({"remote_hosts": [{"host_id": "x", "l2_connectivity": null, "l3_connectivity": null, "mtu_report": null}]});
        for (kind, key, output) in [
            ("connectivity-check", "connectivity", &reach),
            ("domain-resolution", "domain_name_resolutions", &json!({"resolutions": []})),
            ("api-vip-connectivity-check", "api_vip_connectivity", &json!({"is_success": true})),
            (
                "tang-connectivity-check",
                "tang_connectivity",
                &json!({"is_success": true, "tang_server_response": []}),
            ),
        ] {
            agent.reply_to_step(kind, output).await.json_with_status(204);
            let host = agent.get_host().await;
            let stored: Value = serde_json::from_str(host[key].as_str().unwrap()).unwrap();
            assert_eq!(stored, *output, "{kind}");
        }
        agent
            .reply_to_step(
                "free-network-addresses",
                &json!([{"network": "192.0.2.0/24", "free_addresses": []}]),
            )
            .await
            .json_with_status(204);
        assert_eq!(
            agent.get_host().await.get("free_addresses"),
            None,
            "the token is stored and never returned"
        );
        let speed = json!({"path": "/dev/sda", "io_sync_duration": 5});
        agent.reply_to_step("installation-disk-speed-check", &speed).await.json_with_status(204);
        let disks: Value =
            serde_json::from_str(agent.get_host().await["disks_info"].as_str().unwrap()).unwrap();
        assert_eq!(disks["/dev/sda"]["disk_speed"], json!({"tested": true, "speed_ms": 5}));
        for (name, result) in [("a", "success"), ("b", "failure")] {
            let images = json!({"images": [{"name": name, "result": result, "size_bytes": 1.5}]});
            agent.reply_to_step("container-image-availability", &images).await.json_with_status(204);
        }
        let images: Value =
            serde_json::from_str(agent.get_host().await["images_status"].as_str().unwrap()).unwrap();
        assert_eq!(images["a"]["result"], "success");
        assert_eq!(images["b"]["result"], "failure");
        let failed = json!({"step_type": "tang-connectivity-check", "exit_code": -1, "error": "no route"});
        agent.send_reply(&failed).await.json_with_status(204);
        assert_eq!(agent.get_host().await["tang_connectivity"], "no route");
        for reply in [
            json!({}),
            json!({"step_type": "install", "exit_code": 1, "output": "x"}),
            json!({"step_type": "inventory", "exit_code": 124, "output": "x"}),
            json!({"step_type": "logs-gather", "exit_code": 0, "output": "x"}),
            json!({"step_type": "free-network-addresses", "exit_code": 0, "output": ""}),
        ] {
            agent.send_reply(&reply).await.json_with_status(204);
        }
        assert_eq!(agent.host_status().await, "known-unbound");
    });
}

#[test]
fn lost_media_disconnect_a_host_until_a_step_succeeds() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let lost = json!({"step_type": "inventory", "exit_code": 256, "output": "", "error": "read error"});
        agent.send_reply(&lost).await.json_with_status(204);
        agent.send_reply(&lost).await.json_with_status(204);
        let host = agent.get_host().await;
        assert_eq!(
            (&host["status"], &host["media_status"]),
            (&json!("disconnected-unbound"), &json!("disconnected"))
        );
        assert_eq!(
            host["status_info"],
            "Unable to read from the discovery media. It was either disconnected or poor network conditions prevented it \
             from being read. Try using the minimal ISO option and be sure to keep the media connected until the \
             installation is completed"
        );
        let steps = agent.request_steps().await.json_with_status(200);
        assert_eq!(steps["next_instruction_seconds"], 120);
        assert_eq!(agent.step_types().await, ["inventory"]);
        assert_eq!(
            agent.host_status().await,
            "disconnected-unbound",
            "a check-in does not change the media status"
        );
        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        let host = agent.get_host().await;
        assert_eq!((&host["status"], &host["media_status"]), (&json!("known-unbound"), &json!("connected")));
        let events = events_of_infra_env(service, &agent.infra_env).await;
        assert_eq!(messages_of_event(&events, "host_media_disconnected").len(), 1);
    });
}

#[test]
fn silent_host_is_disconnected_until_its_next_check_in() {
    let short = Duration::from_millis(200);
    on_each_database_with(
        |settings| settings.max_silence = short,
        async |service| {
            let agent = FakeAgent::register_with_report(service, "node-1").await;
            wait_until(async || service.inventory.disconnect_silent_hosts().await.unwrap() == 1).await;
            let host = agent.get_host().await;
            assert_eq!(host["status"], "disconnected-unbound");
            assert_eq!(host["status_info"], "Host has stopped communicating with the installation service");
            let steps = agent.request_steps().await.json_with_status(200);
            assert_eq!(steps["next_instruction_seconds"], 120);
            let events_then = events_of_infra_env(service, &agent.infra_env).await;
            let moves = messages_of_event(&events_then, "host_status_updated");
            assert_eq!(moves.len(), 3, "{moves:?}");
            assert!(moves[1].contains("from known-unbound to disconnected-unbound"), "{moves:?}");
            assert!(moves[2].contains("from disconnected-unbound to known-unbound"), "{moves:?}");
        },
    );
}

/// Waits for a change that happens after some time.
async fn wait_until(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the expected state was not reached");
}

#[test]
fn agent_of_another_version_gets_only_an_upgrade_step() {
    on_each_database(async |service| {
        let mut agent = FakeAgent::register_in_new_infra_env(service).await;
        agent.version = "quay.io/example/agent:old".to_owned();
        let steps = agent.request_steps().await.json_with_status(200);
        assert_eq!(steps["instructions"].as_array().unwrap().len(), 1);
        assert_eq!(steps["instructions"][0]["step_type"], "upgrade-agent");
        let image = service.inventory.settings().agent_image.clone();
        assert_eq!(steps["instructions"][0]["args"], json!([json!({"agent_image": image}).to_string()]));
        agent.request_steps().await.json_with_status(200);
        assert_eq!(agent.get_host().await["discovery_agent_version"], "quay.io/example/agent:old");
        for result in ["failure", "success", "success"] {
            agent
                .reply_to_step("upgrade-agent", &json!({"agent_image": image, "result": result}))
                .await
                .json_with_status(204);
        }
        agent.reply_to_step("upgrade-agent", &json!({"agent_image": image})).await.json_with_status(204);
        let events = events_of_infra_env(service, &agent.infra_env).await;
        for name in ["upgrade_agent_started", "upgrade_agent_failed", "upgrade_agent_finished"] {
            assert_eq!(messages_of_event(&events, name).len(), 1, "{name}: once an hour");
        }
        agent.version = image;
        assert_eq!(agent.step_types().await, ["inventory", "ntp-synchronizer"]);
    });
    on_each_database_with(
        |settings| settings.upgrade_agents = false,
        async |service| {
            let mut agent = FakeAgent::register_in_new_infra_env(service).await;
            agent.version = "quay.io/example/agent:old".to_owned();
            assert_eq!(agent.step_types().await, ["inventory", "ntp-synchronizer"]);
        },
    );
}

#[test]
fn steps_of_an_unknown_host_are_not_found() {
    on_each_database(async |service| {
        let agent = FakeAgent::new(service, &create_infra_env(service, &json!({})).await);
        agent.request_steps().await.refusal_reason(404);
        agent.reply_to_step("inventory", &inventory_report("a")).await.refusal_reason(404);
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let reason =
            service.get(&format!("{}/instructions?timestamp=noon", agent.path())).await.refusal_reason(400);
        assert_eq!(reason, "timestamp in query must be of type int64: \"noon\"");
        service.get(&format!("{}/instructions", agent.path())).await.json_with_status(200);
    });
}

#[test]
fn concurrent_agent_updates_lose_nothing() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let inventory = inventory_report("node-1");
        let sources = json!({"ntp_sources": [{"source_name": "a", "source_state": "synced"}]});
        let (path, choice) = (agent.path(), json!({"host_name": "chosen"}));
        let (one, two, three, four, name) = tokio::join!(
            agent.reply_to_step("inventory", &inventory),
            agent.reply_to_step("ntp-synchronizer", &sources),
            agent.request_steps(),
            agent.register(),
            service.patch(&path, &choice),
        );
        for answer in [one, two, three, four, name] {
            assert!(answer.status < 300, "{}", answer.text);
        }
        assert_eq!(agent.get_host().await["requested_hostname"], "chosen");
    });
}

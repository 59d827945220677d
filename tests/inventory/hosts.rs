//! Hosts: the values that users see and change.

use kindling::inventory::cluster::ClusterStatus;
use kindling::inventory::host::{HostRecord, HostStage, HostStatus, InstallationDisk, ReportSummary};
use kindling::inventory::id::{HostId, InfraEnvId};
use kindling::inventory::store::{Change, ReportKind, Stored};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::{FakeAgent, create_infra_env, events_of_infra_env, inventory_report};
use crate::service::{
    PULL_SECRET, TestService, on_each_database, on_each_database_with, only_own_validations, with_status,
};

/// Creates a cluster and returns its id.
async fn create_cluster(service: &TestService, more: &Value) -> String {
    let mut body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let cluster = service.post("/v2/clusters", &body).await.json_with_status(201);
    cluster["id"].as_str().unwrap().to_owned()
}

/// Imports an existing cluster and returns its id.
async fn import_cluster(service: &TestService) -> String {
    let body = json!({
        "name": "old", "api_vip_dnsname": "api.old.example.com", "openshift_cluster_id": Uuid::new_v4(),
    });
    let cluster = service.post("/v2/clusters/import", &body).await.json_with_status(201);
    cluster["id"].as_str().unwrap().to_owned()
}

/// Adds an inventory report and an installation disk to a host, in any state. [`alter_host`] stores the report.
fn set_installation_disk(host: &mut HostRecord) {
    let summary = ReportSummary::new(&inventory_report("node-1").to_string());
    host.findings.reports.insert(ReportKind::Inventory.as_str().to_owned(), summary);
    let id = "/dev/disk/by-id/wwn-0x5000000000000001".to_owned();
    host.choices.installation_disk = Some(InstallationDisk { id, path: "/dev/sda".to_owned() });
}

/// Changes a host in a way that only an installation does.
async fn alter_host(service: &TestService, agent: &FakeAgent<'_>, how: impl Fn(&mut HostRecord)) {
    let infra_env: InfraEnvId = agent.infra_env.parse().unwrap();
    let id: HostId = agent.id.parse().unwrap();
    let records = service.inventory.records();
    records
        .change(|_| async {
            let mut change = Change::new();
            let mut stored = records.find::<HostRecord>(Some(infra_env.0), id.0).await?.unwrap();
            how(&mut stored.record);
            change.replace(&stored.record, stored.generation)?;
            if stored.record.findings.has_report(ReportKind::Inventory) {
                change.put_report(
                    &stored.record,
                    ReportKind::Inventory,
                    inventory_report("node-1").to_string(),
                );
            }
            Ok((change, ()))
        })
        .await
        .unwrap();
}

fn has_event(events: &[(String, String)], name: &str, message: &str) -> bool {
    events.iter().any(|(one, said)| one == name && said == message)
}

#[test]
fn users_set_role_and_host_name() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let changed =
            service.patch(&agent.path(), &json!({"host_role": "master", "host_name": "a.example.com"})).await;
        let changed = changed.json_with_status(201);
        assert_eq!(changed["role"], "master");
        assert_eq!(changed["suggested_role"], "master");
        assert_eq!(changed["requested_hostname"], "a.example.com");
        assert_eq!(changed["progress_stages"][0], "Starting installation");
        assert_eq!(changed["progress_stages"].as_array().unwrap().len(), 8);
        assert_eq!(agent.get_host().await["role"], "master");
        let too_long = format!(
            "hostname is too long, must be 63 characters or less. Hostname: {} has 64 characters",
            "a".repeat(64)
        );
        for (body, reason) in [
            (
                json!({"host_role": "bootstrap"}),
                "host_role in body should be one of [auto-assign master arbiter worker]",
            ),
            (json!({"host_name": "localhost"}), "The host name localhost is forbidden"),
            (
                json!({"host_name": "A"}),
                "Hostname does not pass required regex validation: \
                 ^[a-z0-9][a-z0-9-]{0,62}(?:[.][a-z0-9-]{1,63})*$. Hostname: A",
            ),
            (
                json!({"host_name": ""}),
                "Hostname does not pass required regex validation: \
                 ^[a-z0-9][a-z0-9-]{0,62}(?:[.][a-z0-9-]{1,63})*$. Hostname: ",
            ),
            (json!({"host_name": "a".repeat(64)}), too_long.as_str()),
            (
                json!({"disks_selected_config": [{"role": "install"}]}),
                "disks_selected_config.0.id in body is required",
            ),
            (json!({"node_labels": [{"key": "a"}]}), "node_labels.0.value in body is required"),
            (
                json!({"node_labels": [{"key": "a b", "value": ""}]}),
                "\"a b\" cannot be the key of a node label",
            ),
            (
                json!({"fencing_credentials": {"address": "a", "username": "b", "password": "c"}}),
                "fencing_credentials cannot be set: clusters with fencing are not supported",
            ),
            (
                json!({"fencing_credentials": {"address": "a"}}),
                "fencing_credentials.password in body is required",
            ),
        ] {
            assert_eq!(service.patch(&agent.path(), &body).await.refusal_reason(400), reason);
        }
        let missing = format!("/v2/infra-envs/{}/hosts/{}", agent.infra_env, Uuid::new_v4());
        service.patch(&missing, &json!({})).await.refusal_reason(404);
    });
}

#[test]
fn users_set_disks() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let mut two = inventory_report("node-1");
        let mut other = two["disks"][0].clone();
        other["id"] = json!("other");
        other["name"] = json!("sdb");
        other["path"] = json!("/dev/sdb");
        other["size_bytes"] = json!(900_000_000_000_i64);
        two["disks"].as_array_mut().unwrap().push(other);
        agent.reply_to_step("inventory", &two).await.json_with_status(204);
        let choose =
            async |disks: Value| service.patch(&agent.path(), &json!({"disks_selected_config": disks})).await;
        let response = choose(json!([{"id": "other", "role": "install"}])).await.json_with_status(201);
        assert_eq!(response["installation_disk_id"], "other");
        assert_eq!(response["installation_disk_path"], "/dev/sdb");
        agent.reply_to_step("inventory", &two).await.json_with_status(204);
        assert_eq!(
            agent.get_host().await["installation_disk_id"],
            "other",
            "a new inventory keeps the user's choice"
        );
        let several = json!([{"id": "other", "role": "install"}, {"id": "x", "role": "install"}]);
        choose(several).await.refusal_reason(409);
        let reason = choose(json!([{"id": "x", "role": "install"}])).await.refusal_reason(409);
        assert_eq!(reason, "Requested installation disk is not part of the host's valid disks");
        let none = choose(json!([{"id": "other", "role": "none"}])).await.json_with_status(201);
        assert!(none.get("installation_disk_id").is_none());

        let skip = async |id: &str, skip: bool| {
            let body = json!({"disks_skip_formatting": [{"disk_id": id, "skip_formatting": skip}]});
            service.patch(&agent.path(), &body).await
        };
        assert_eq!(skip("other", true).await.json_with_status(201)["skip_formatting_disks"], "other");
        skip("x", true).await.refusal_reason(400);
        assert!(skip("other", false).await.json_with_status(201).get("skip_formatting_disks").is_none());
    });
}

#[test]
fn users_set_node_labels_pool_and_ignition_endpoint() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let body = json!({
            "machine_config_pool_name": "infra",
            "ignition_endpoint_token": "secret-token",
            "ignition_endpoint_http_headers": [{"key": "X-A", "value": "secret-header"}],
            "node_labels": [{"key": "b", "value": "2"}, {"key": "example.com/a", "value": ""}],
        });
        let answer = service.patch(&agent.path(), &body).await;
        assert!(!answer.text.contains("secret-"), "{}", answer.text);
        let changed = answer.json_with_status(201);
        assert_eq!(changed["machine_config_pool_name"], "infra");
        assert_eq!(changed["ignition_endpoint_token_set"], true);
        assert_eq!(changed["node_labels"], r#"{"b":"2","example.com/a":""}"#);
        let cleared =
            service.patch(&agent.path(), &json!({"ignition_endpoint_token": "", "node_labels": []})).await;
        let cleared = cleared.json_with_status(201);
        assert!(cleared.get("ignition_endpoint_token_set").is_none() && cleared.get("node_labels").is_none());
    });
}

#[test]
fn installing_host_refuses_setting_changes() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        alter_host(service, &agent, |host| *host = with_status(host, HostStatus::Installing)).await;
        for body in [
            json!({"host_role": "worker"}),
            json!({"host_name": "a"}),
            json!({"disks_selected_config": []}),
            json!({"disks_skip_formatting": []}),
            json!({"machine_config_pool_name": "a"}),
        ] {
            let reason = service.patch(&agent.path(), &body).await.refusal_reason(409);
            assert!(reason.contains("is in state installing, where its"), "{reason}");
        }
        service.patch(&agent.path(), &json!({"node_labels": []})).await.json_with_status(201);
        agent.reply_to_step("inventory", &inventory_report("node-1")).await.refusal_reason(409);
    });
}

#[test]
fn installer_args_are_checked() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let path = format!("{}/installer-args", agent.path());
        let changed =
            service.patch(&path, &json!({"args": ["--append-karg", "quiet"]})).await.json_with_status(201);
        assert_eq!(changed["installer_args"], r#"["--append-karg","quiet"]"#);
        assert!(changed.get("requested_hostname").is_none(), "only stored values are returned here");
        assert_eq!(changed["progress_stages"], Value::Null);
        let reason = service.patch(&path, &json!({"args": ["--offline"]})).await.refusal_reason(400);
        assert!(
            reason.starts_with(
                "found unexpected flag --offline for installer - allowed flags are [--append-karg"
            )
        );
        service.patch(&path, &json!({"args": ["a b"]})).await.refusal_reason(400);
        service.patch(&path, &json!({"args": [1]})).await.refusal_reason(400);
        assert_eq!(agent.get_host().await["installer_args"], r#"["--append-karg","quiet"]"#);
        let events = events_of_infra_env(service, &agent.infra_env).await;
        assert!(has_event(
            &events,
            "host_installer_args_applied",
            r#"Host node-1: custom installer arguments were applied: ["--append-karg","quiet"]"#
        ));
    });
}

#[test]
fn ignition_override_of_a_host_is_stored() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let path = format!("{}/ignition", agent.path());
        assert_eq!(service.get(&path).await.json_with_status(200), json!({"config": ""}));
        let config = r#"{"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/etc/a"}]}}"#;
        assert_eq!(service.patch(&path, &json!({"config": config})).await.status, 201);
        assert_eq!(service.get(&path).await.json_with_status(200), json!({"config": config}));
        assert_eq!(agent.get_host().await["ignition_config_overrides"], config);
        for config in [
            "{",
            r#"{"ignition": {"version": "3.3.0"}}"#,
            r#"{"ignition": {"version": "3.0.0"}}"#,
            r#"{"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "relative"}]}}"#,
        ] {
            let reason = service.patch(&path, &json!({"config": config})).await.refusal_reason(400);
            assert!(reason.starts_with("error parsing ignition: "), "{reason}");
        }
        service.patch(&path, &json!({"config": ""})).await.json_with_status(201);
        assert!(agent.get_host().await.get("ignition_config_overrides").is_none());
    });
}

#[test]
fn host_is_bound_to_a_cluster_and_unbound() {
    on_each_database_with(only_own_validations, async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let cluster = create_cluster(service, &json!({})).await;
        let bind = format!("{}/actions/bind", agent.path());
        let unbind = format!("{}/actions/unbind", agent.path());
        service.post(&unbind, &json!({})).await.refusal_reason(409);
        let bound = service.post(&bind, &json!({"cluster_id": cluster})).await.json_with_status(200);
        assert_eq!(bound["status"], "binding");
        assert_eq!(bound["status_info"], "Host is waiting to be bound to the cluster");
        assert_eq!(bound["cluster_id"], cluster.as_str());
        assert!(bound.get("inventory").is_none() && bound.get("requested_hostname").is_none());
        assert_eq!(bound["progress_stages"], Value::Null);
        let reason = service.post(&bind, &json!({"cluster_id": cluster})).await.refusal_reason(409);
        assert_eq!(reason, format!("Host {} is already bound to cluster {cluster}", agent.id));
        service.post(&unbind, &json!({})).await.refusal_reason(409);

        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        let steps = agent.request_steps().await.json_with_status(200);
        assert_eq!(steps, json!({"post_step_action": "exit", "instructions": []}));
        agent.register().await.json_with_status(201);
        let host = agent.assessed_host().await;
        assert_eq!(host["status"], "discovering");
        assert!(host.get("inventory").is_none());
        assert_eq!(agent.step_types().await, ["inventory"]);
        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        let host = agent.assessed_host().await;
        assert_eq!(
            (&host["status"], &host["status_info"]),
            (&json!("known"), &json!("Host is ready to be installed"))
        );
        assert_eq!(agent.step_types().await, ["free-network-addresses", "inventory", "ntp-synchronizer"]);

        let response = service.get(&format!("/v2/clusters/{cluster}")).await.json_with_status(200);
        assert_eq!(response["hosts"][0]["id"], agent.id.as_str());
        assert_eq!((&response["ready_host_count"], &response["total_host_count"]), (&json!(1), &json!(1)));

        let left = service.post(&unbind, &json!({})).await.json_with_status(200);
        assert_eq!(left["status"], "unbinding");
        assert_eq!(left["status_info"], "Host is waiting to be unbound from the cluster");
        assert!(left.get("cluster_id").is_none());
        assert_eq!(agent.request_steps().await.json_with_status(200)["post_step_action"], "exit");
        agent.register().await.json_with_status(201);
        assert_eq!(agent.host_status().await, "discovering-unbound");
        let of_cluster = service.get(&format!("/v2/events?cluster_id={cluster}")).await.json_with_status(200);
        let names: Vec<_> =
            of_cluster.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        for name in ["host_bind_succeeded", "host_unbind_succeeded", "host_status_updated"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
    });
}

#[test]
fn bind_refusal_names_its_reason() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let bind = format!("{}/actions/bind", agent.path());
        let unknown = Uuid::new_v4().to_string();
        let reason = service.post(&bind, &json!({"cluster_id": unknown})).await.refusal_reason(400);
        assert_eq!(reason, format!("Cluster ID {unknown} does not exist"));
        assert_eq!(
            service.post(&bind, &json!({})).await.refusal_reason(400),
            "cluster_id in body is required"
        );
        let absent = FakeAgent::new(service, &agent.infra_env);
        service
            .post(&format!("{}/actions/bind", absent.path()), &json!({"cluster_id": unknown}))
            .await
            .refusal_reason(404);
        service.post(&format!("{}/actions/unbind", absent.path()), &json!({})).await.refusal_reason(404);

        let arm = FakeAgent::new(
            service,
            &create_infra_env(service, &json!({"cpu_architecture": "aarch64"})).await,
        );
        arm.register().await.json_with_status(201);
        arm.reply_to_step("inventory", &inventory_report("node-2")).await.json_with_status(204);
        let target = create_cluster(service, &json!({})).await;
        let answer =
            service.post(&format!("{}/actions/bind", arm.path()), &json!({"cluster_id": target})).await;
        assert_eq!(
            answer.refusal_reason(400),
            "InfraEnv's CPU architecture (arm64) doesn't match Cluster's (x86_64)"
        );

        let body = json!({"name": "far", "openshift_version": "4.18"});
        let far = service.post("/v2/clusters/disconnected", &body).await.json_with_status(201);
        let reason = service.post(&bind, &json!({"cluster_id": far["id"]})).await.refusal_reason(409);
        assert!(reason.ends_with("is in state unmonitored and cannot accept hosts"), "{reason}");

        let cluster = create_cluster(service, &json!({})).await;
        let fresh = FakeAgent::register_in_new_infra_env(service).await;
        let reason = service
            .post(&format!("{}/actions/bind", fresh.path()), &json!({"cluster_id": cluster}))
            .await
            .refusal_reason(409);
        assert_eq!(reason, format!("Host {} is in state discovering-unbound, not known-unbound", fresh.id));
        let events = events_of_infra_env(service, &fresh.infra_env).await;
        assert!(has_event(
            &events,
            "host_bind_failed",
            &format!("Failed to bind host {} to cluster {cluster}: {reason}", fresh.id)
        ));
        assert_eq!(agent.host_status().await, "known-unbound");
    });
}

#[test]
fn hosts_of_a_cluster_infra_env_belong_to_the_cluster() {
    on_each_database_with(only_own_validations, async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let agent =
            FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        let registered = agent.register().await.json_with_status(201);
        assert_eq!(
            (&registered["status"], &registered["cluster_id"]),
            (&json!("discovering"), &json!(cluster))
        );
        assert_eq!(registered["role"], "auto-assign");
        let reason =
            service.post(&format!("{}/actions/unbind", agent.path()), &json!({})).await.refusal_reason(409);
        assert!(reason.starts_with(&format!("InfraEnv {} is bound to cluster", agent.infra_env)), "{reason}");

        let hosts = format!("/v2/clusters/{cluster}/hosts");
        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        assert_eq!(agent.host_status().await, "known");
        let listed = service.get(&hosts).await.json_with_status(200);
        assert_eq!(listed[0]["id"], agent.id.as_str());
        assert!(listed[0].get("inventory").is_none() && listed[0].get("requested_hostname").is_none());
        assert_eq!(listed[0]["progress_stages"], Value::Null);
        let listed = service
            .get(&format!("{hosts}?with-inventory=true&role=auto-assign&status=known"))
            .await
            .json_with_status(200);
        assert!(listed[0]["inventory"].as_str().unwrap().contains("52:54:00:00:00:01"));
        assert_eq!(service.get(&format!("{hosts}?role=master")).await.json_with_status(200), json!([]));
        assert_eq!(service.get(&format!("{hosts}?status=installed")).await.json_with_status(200), json!([]));
        service.get(&format!("{hosts}?role=bootstrap")).await.refusal_reason(400);
        service.get(&format!("{hosts}?status=happy")).await.refusal_reason(400);
        let unknown = format!("/v2/clusters/{}/hosts", Uuid::new_v4());
        assert_eq!(service.get(&unknown).await.json_with_status(200), json!([]));
    });
}

#[test]
fn single_node_is_master_and_day_2_host_is_worker() {
    on_each_database(async |service| {
        let single = create_cluster(service, &json!({"high_availability_mode": "None"})).await;
        let agent = FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": single})).await);
        let registered = agent.register().await.json_with_status(201);
        assert_eq!((&registered["role"], &registered["bootstrap"]), (&json!("master"), &json!(true)));
        assert_eq!(registered["progress_stages"][2], "Waiting for bootkube");

        let old = import_cluster(service).await;
        let agent = FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": old})).await);
        let registered = agent.register().await.json_with_status(201);
        assert_eq!(registered["kind"], "AddToExistingClusterHost");
        assert_eq!(
            (&registered["role"], &registered["machine_config_pool_name"]),
            (&json!("worker"), &json!("worker"))
        );
        let stages = registered["progress_stages"].as_array().unwrap();
        assert_eq!(stages.last().unwrap(), "Rebooting");
        assert_eq!(agent.step_types().await, ["inventory", "ntp-synchronizer", "domain-resolution"]);
    });
}

#[test]
fn deleting_a_cluster_deletes_its_hosts_and_unbinds_others() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let own = FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        own.register().await.json_with_status(201);
        let late = FakeAgent::register_with_report(service, "node-1").await;
        service
            .post(&format!("{}/actions/bind", late.path()), &json!({"cluster_id": cluster}))
            .await
            .json_with_status(200);
        let free = FakeAgent::register_with_report(service, "node-2").await;
        assert_eq!(service.delete(&format!("/v2/clusters/{cluster}")).await.status, 204);
        service.get(&own.path()).await.refusal_reason(404);
        let host = late.get_host().await;
        assert_eq!(host["status"], "unbinding");
        assert!(host.get("cluster_id").is_none());
        late.register().await.json_with_status(201);
        assert_eq!(late.host_status().await, "discovering-unbound");
        assert_eq!(free.host_status().await, "known-unbound");
        assert_eq!(own.register().await.refusal_reason(404), format!("Cluster ID {cluster} does not exist"));
        let of_cluster = service.get(&format!("/v2/events?cluster_id={cluster}")).await.json_with_status(200);
        let names: Vec<_> =
            of_cluster.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert!(
            names.contains(&"host_deregistered") && names.contains(&"host_unbind_succeeded"),
            "{names:?}"
        );
    });
}

#[test]
fn infra_env_with_hosts_cannot_be_deleted() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let infra_env = format!("/v2/infra-envs/{}", agent.infra_env);
        let reason = service.delete(&infra_env).await.refusal_reason(400);
        assert!(reason.contains("1 hosts are still associated"), "{reason}");
        service.delete(&agent.path()).await.json_with_status(204);
        assert_eq!(service.delete(&infra_env).await.status, 204);
        service.get(&format!("{infra_env}/hosts")).await.refusal_reason(404);
    });
}

#[test]
fn registration_outcome_depends_on_the_host_state() {
    use HostStatus as S;
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let agent =
            FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        agent.register().await.json_with_status(201);
        for (from, stage, status, to) in [
            (S::Known, None, 201, S::Discovering),
            (S::PendingForInput, None, 201, S::Discovering),
            (S::Disconnected, None, 201, S::Discovering),
            (S::ResettingPendingUserAction, None, 201, S::Discovering),
            (S::Resetting, None, 201, S::Discovering),
            (S::Resetting, Some(HostStage::Rebooting), 201, S::Resetting),
            (S::PreparingForInstallation, None, 201, S::Known),
            (S::PreparingSuccessful, None, 201, S::Known),
            (S::Installing, None, 201, S::Error),
            (S::InstallingInProgress, Some(HostStage::WritingImage), 201, S::Error),
            (S::InstallingInProgress, Some(HostStage::Rebooting), 201, S::InstallingPendingUserAction),
            (S::InstallingPendingUserAction, Some(HostStage::Rebooting), 400, S::InstallingPendingUserAction),
            (S::Error, None, 201, S::Error),
            (S::Installed, None, 409, S::Installed),
            (S::Cancelled, None, 400, S::Cancelled),
            (S::Disabled, None, 400, S::Disabled),
            (S::PreparingFailed, None, 400, S::PreparingFailed),
            (S::KnownUnbound, None, 400, S::KnownUnbound),
        ] {
            alter_host(service, &agent, |host| {
                *host = with_status(host, from);
                host.progress.stage = stage;
                set_installation_disk(host);
            })
            .await;
            let answer = agent.register().await;
            assert_eq!(answer.status, status, "{from}: {}", answer.text);
            let refusal = match from {
                S::InstallingPendingUserAction => {
                    "Host is required to be booted from disk /dev/disk/by-id/wwn-0x5000000000000001"
                }
                S::Installed => {
                    "Host is trying to register after the cluster has already been installed. That most probably means \
                     that the host is booting from the installation ISO, and therefore not effectively joining the \
                     cluster. The request will be ignored. Fix the boot order and reboot the host."
                }
                _ => "",
            };
            assert!(answer.text.contains(refusal), "{from}: {}", answer.text);
            let host = agent.get_host().await;
            assert_eq!(host["status"], to.as_str(), "{from}");
            let text = match (from, to) {
                (_, S::Discovering) => "Waiting for host to send hardware details",
                (_, S::Known) => "Host is ready to be installed",
                (S::Installing | S::InstallingInProgress, S::Error) => {
                    "The host unexpectedly restarted during the installation"
                }
                (S::InstallingInProgress, S::InstallingPendingUserAction) => {
                    "Expected the host to boot from disk, but it booted the installation image - please reboot and fix \
                     boot order to boot from disk s1 (sda, /dev/disk/by-id/wwn-0x5000000000000001)"
                }
                _ => continue,
            };
            assert_eq!(host["status_info"], text, "{from}");
        }
        let events = events_of_infra_env(service, &agent.infra_env).await;
        let failed = events.iter().filter(|(name, _)| name == "host_registration_failed").count();
        assert_eq!(failed, 6);
    });
}

#[test]
fn installing_cluster_refuses_new_hosts_only() {
    on_each_database(async |service| {
        let id = create_cluster(service, &json!({})).await;
        let infra_env = create_infra_env(service, &json!({"cluster_id": id})).await;
        let agent = FakeAgent::new(service, &infra_env);
        agent.register().await.json_with_status(201);
        let records = service.inventory.records();
        let cluster = id.parse().unwrap();
        records
            .change(|_| async {
                let mut change = Change::new();
                let mut stored = service.inventory.stored_cluster(cluster).await?;
                stored.record = with_status(&stored.record, ClusterStatus::Finalizing);
                change.replace(&stored.record, stored.generation)?;
                Ok((change, ()))
            })
            .await
            .unwrap();
        let reason = FakeAgent::new(service, &infra_env).register().await.refusal_reason(409);
        assert_eq!(reason, format!("Cluster {id} is in state finalizing and cannot accept hosts"));
        agent.register().await.json_with_status(201);
        let events = events_of_infra_env(service, &infra_env).await;
        assert!(has_event(&events, "host_registration_failed", &reason));
    });
}

#[test]
fn status_info_names_failing_validations_and_lost_media() {
    on_each_database_with(only_own_validations, async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let agent =
            FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        agent.register().await.json_with_status(201);
        agent.reply_to_step("inventory", &inventory_report("localhost")).await.json_with_status(204);
        let host = agent.assessed_host().await;
        let before = "Host cannot be installed due to following failing validation(s): The host name localhost is forbidden";
        assert_eq!((&host["status"], &host["status_info"]), (&json!("insufficient"), &json!(before)));
        alter_host(service, &agent, |host| *host = with_status(host, HostStatus::Installing)).await;
        let lost = json!({"step_type": "inventory", "exit_code": 256, "output": "", "error": "read error"});
        agent.send_reply(&lost).await.json_with_status(204);
        let host = agent.assessed_host().await;
        let text = "Failed - Unable to read from the discovery media. It was either disconnected or poor network conditions \
                    prevented it from being read. Try using the minimal ISO option and be sure to keep the media \
                    connected until the installation is completed";
        let text = format!("{text}. {before}");
        assert_eq!((&host["status"], &host["status_info"]), (&json!("error"), &json!(text)));
    });
}

#[test]
fn progress_never_goes_back() {
    on_each_database(async |service| {
        let cluster = create_cluster(service, &json!({})).await;
        let agent =
            FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        agent.register().await.json_with_status(201);
        let path = format!("{}/progress", agent.path());
        let say = async |stage: &str, info: &str| {
            service.put(&path, &json!({"current_stage": stage, "progress_info": info})).await
        };
        say("Installing", "").await.refusal_reason(409);
        say("Sleeping", "").await.refusal_reason(400);
        service.patch(&agent.path(), &json!({"host_role": "worker"})).await.json_with_status(201);
        alter_host(service, &agent, |host| *host = with_status(host, HostStatus::Installing)).await;
        say("Starting installation", "").await.json_with_status(200);
        let host = agent.get_host().await;
        assert_eq!(host["status"], "installing-in-progress");
        assert_eq!(host["progress"]["current_stage"], "Starting installation");
        assert_eq!(host["progress"]["installation_percentage"], 11);
        assert_eq!(host["progress"]["stage_started_at"], host["stage_started_at"]);
        say("Writing image to disk", "10%").await.json_with_status(200);
        let before = agent.get_host().await;
        say("Writing image to disk", "10%").await.json_with_status(200);
        assert_eq!(agent.get_host().await["stage_updated_at"], before["stage_updated_at"]);
        say("Writing image to disk", "90%").await.json_with_status(200);
        let host = agent.get_host().await;
        assert_eq!(host["progress"]["progress_info"], "90%");
        assert_eq!(host["stage_started_at"], before["stage_started_at"]);
        let reason = say("Installing", "").await.refusal_reason(409);
        assert!(reason.starts_with("Stage Installing comes before stage Writing image to disk"), "{reason}");
        let reason = say("Waiting for bootkube", "").await.refusal_reason(409);
        assert!(reason.starts_with("Stage Waiting for bootkube is not valid for host"), "{reason}");
        say("Rebooting", &"x".repeat(2049)).await.refusal_reason(400);
        say("Done", "").await.json_with_status(200);
        let host = agent.get_host().await;
        assert_eq!(
            (&host["status"], &host["progress"]["installation_percentage"]),
            (&json!("installed"), &json!(100))
        );
        let events = events_of_infra_env(service, &agent.infra_env).await;
        let name = agent.id.clone();
        assert!(has_event(
            &events,
            "host_install_progress_updated",
            &format!("Host: {name}, reached installation stage Writing image to disk: 10%")
        ));

        alter_host(service, &agent, |host| *host = with_status(host, HostStatus::Installing)).await;
        say("Failed", "no disk").await.json_with_status(200);
        let host = agent.get_host().await;
        assert_eq!((&host["status"], &host["status_info"]), (&json!("error"), &json!("Failed - no disk")));
        assert_eq!(host["progress"]["current_stage"], "Done");

        let free = FakeAgent::register_in_new_infra_env(service).await;
        let path = format!("{}/progress", free.path());
        service.put(&path, &json!({"current_stage": "Installing"})).await.refusal_reason(400);
        let absent = FakeAgent::new(service, &free.infra_env);
        service
            .put(&format!("{}/progress", absent.path()), &json!({"current_stage": "Done"}))
            .await
            .refusal_reason(404);
    });
}

#[test]
fn day_2_host_is_done_after_its_reboot() {
    on_each_database(async |service| {
        let old = import_cluster(service).await;
        let agent = FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": old})).await);
        agent.register().await.json_with_status(201);
        alter_host(service, &agent, |host| {
            *host = with_status(host, HostStatus::Installing);
            set_installation_disk(host);
        })
        .await;
        let path = format!("{}/progress", agent.path());
        service.put(&path, &json!({"current_stage": "Installing"})).await.json_with_status(200);
        service.put(&path, &json!({"current_stage": "Rebooting"})).await.json_with_status(200);
        let host = agent.get_host().await;
        assert_eq!(host["status"], "added-to-existing-cluster");
        assert_eq!(host["progress"]["current_stage"], "Done");
        assert_eq!(host["progress"]["installation_percentage"], 100);
        assert_eq!(
            host["status_info"],
            "Host has rebooted and no further updates will be posted. Please check console for progress and to possibly \
             approve pending CSRs"
        );
        agent.register().await.json_with_status(201);
        let host = agent.get_host().await;
        assert_eq!(host["status"], "installing-pending-user-action");
        assert_eq!(
            host["status_info"],
            "Expected the host to boot from disk, but it booted the installation image - please reboot and fix boot order \
             to boot from disk s1 (sda, /dev/disk/by-id/wwn-0x5000000000000001)"
        );
        agent.register().await.refusal_reason(400);
    });
}

#[test]
fn log_upload_state_is_stored() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let path = format!("{}/logs-progress", agent.path());
        assert!(agent.get_host().await.get("logs_info").is_none());
        assert_eq!(service.put(&path, &json!({"logs_state": "requested"})).await.status, 204);
        let host = agent.get_host().await;
        assert_eq!(host["logs_info"], "requested");
        assert!(host["logs_started_at"].as_str().unwrap().starts_with("20"));
        service.put(&path, &json!({"logs_state": "collecting"})).await.json_with_status(204);
        assert_eq!(agent.get_host().await["logs_started_at"], host["logs_started_at"]);
        service.put(&path, &json!({"logs_state": ""})).await.json_with_status(204);
        service.put(&path, &json!({"logs_state": "lost"})).await.refusal_reason(400);
        assert_eq!(
            service.put(&path, &json!({})).await.refusal_reason(400),
            "logs_state in body is required"
        );

        let cluster = format!("/v2/clusters/{}", create_cluster(service, &json!({})).await);
        let path = format!("{cluster}/logs-progress");
        service.put(&path, &json!({"logs_state": "requested"})).await.json_with_status(204);
        let response = service.get(&cluster).await.json_with_status(200);
        assert_eq!(response["logs_info"], "requested");
        assert!(response["controller_logs_started_at"].as_str().unwrap().starts_with("20"));
        let unknown = format!("/v2/clusters/{}/logs-progress", Uuid::new_v4());
        service.put(&unknown, &json!({"logs_state": "requested"})).await.refusal_reason(404);
    });
}

#[test]
fn installation_actions_are_refused() {
    on_each_database_with(only_own_validations, async |service| {
        let free = FakeAgent::register_with_report(service, "node-1").await;
        service.post(&format!("{}/actions/reset", free.path()), &json!({})).await.refusal_reason(409);
        service.post(&format!("{}/actions/install", free.path()), &json!({})).await.refusal_reason(404);
        let validation =
            |agent: &FakeAgent<'_>, id: &str| format!("{}/actions/reset-validation/{id}", agent.path());
        service.patch(&validation(&free, "connected"), &json!({})).await.refusal_reason(400);
        service.patch(&validation(&free, "container-images-available"), &json!({})).await.refusal_reason(409);

        let old = import_cluster(service).await;
        let agent = FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": old})).await);
        agent.register().await.json_with_status(201);
        service.post(&format!("{}/actions/install", agent.path()), &json!({})).await.refusal_reason(409);
        agent.reply_to_step("inventory", &inventory_report("node-2")).await.json_with_status(204);
        assert_eq!(agent.host_status().await, "known");
        for answer in [
            service.post(&format!("{}/actions/install", agent.path()), &json!({})).await,
            service.post(&format!("{}/actions/reset", agent.path()), &json!({})).await,
            service.patch(&validation(&agent, "container-images-available"), &json!({})).await,
        ] {
            let body = answer.json_with_status(501);
            assert_eq!((&body["code"], &body["kind"]), (&json!("501"), &json!("Error")));
            assert!(
                body["reason"].as_str().unwrap().ends_with("this service does not install clusters"),
                "{body}"
            );
        }
        assert_eq!(agent.host_status().await, "known");
    });
}

#[test]
fn deleted_host_keeps_no_secrets() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let change = json!({
            "ignition_endpoint_token": "secret-token",
            "ignition_endpoint_http_headers": [{"key": "X-A", "value": "secret-header"}],
        });
        service.patch(&agent.path(), &change).await.json_with_status(201);
        let config = r#"{"ignition": {"version": "3.1.0"}, "storage": {"files": [{"path": "/k", "contents": {"source": "data:,secret-file"}}]}}"#;
        let path = format!("{}/ignition", agent.path());
        service.patch(&path, &json!({"config": config})).await.json_with_status(201);
        service.delete(&agent.path()).await.json_with_status(204);
        let (parent, id) = (agent.infra_env.parse().unwrap(), agent.id.parse().unwrap());
        let stored: Option<Stored<HostRecord>> =
            service.inventory.records().find(Some(parent), id).await.unwrap();
        let document = serde_json::to_string(&stored.unwrap().record).unwrap();
        assert!(!document.contains("secret-"), "{document}");
    });
}

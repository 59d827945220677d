//! Stored records that break an invariant: the service responds with 500 instead of assuming a default.

use kindling::inventory::cluster::ClusterRecord;
use kindling::inventory::id::{ClusterId, HostId, InfraEnvId};
use kindling::inventory::infra_env::InfraEnvRecord;
use kindling::inventory::store::{Change, Changes, Key, Kind, Outcome, Record, ReportKind, Row, Step};
use kindling::inventory::time::Micros;
use serde_json::{Value, json};

use crate::agent::{FakeAgent, create_infra_env, inventory_report};
use crate::service::{PULL_SECRET, ServiceAnswer, TestService, on_each_database};

/// Changes a stored record in a way that no operation of the API does.
async fn alter_record<R: Record>(service: &TestService, key: Key, how: impl Fn(&mut R)) {
    let records = service.inventory.records();
    let altered = records.change(|_| async {
        let mut change = Change::new();
        let mut stored = records.find::<R>(key.parent, key.id).await?.unwrap();
        how(&mut stored.record);
        change.replace(&stored.record, stored.generation)?;
        Ok((change, ()))
    });
    altered.await.unwrap();
}

async fn commit_step(service: &TestService, step: Step) {
    let changes = Changes { steps: vec![step], events: Vec::new() };
    assert_eq!(service.inventory.records().store().commit(changes).await.unwrap(), Outcome::Done);
}

fn infra_env_key(agent: &FakeAgent<'_>) -> Key {
    let id: InfraEnvId = agent.infra_env.parse().unwrap();
    Key { kind: Kind::InfraEnv, parent: None, id: id.0 }
}

fn host_key(agent: &FakeAgent<'_>) -> Key {
    let id: HostId = agent.id.parse().unwrap();
    Key { kind: Kind::Host, parent: Some(infra_env_key(agent).id), id: id.0 }
}

#[track_caller]
fn assert_failed(answer: &ServiceAnswer) {
    let reason = answer.refusal_reason(500);
    assert!(
        reason == "internal error while processing the request; see the service's log"
            || reason == "the database failed",
        "{reason}"
    );
}

#[test]
fn damaged_inventory_report_or_summary_is_an_internal_error() {
    on_each_database(async |service| {
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.json_with_status(201)["id"].clone();
        let agent =
            FakeAgent::new(service, &create_infra_env(service, &json!({"cluster_id": cluster})).await);
        agent.register().await.json_with_status(201);
        agent.reply_to_step("inventory", &inventory_report("node-1")).await.json_with_status(204);
        commit_step(service, Step::PutReport(host_key(&agent), ReportKind::Inventory, "{".to_owned())).await;
        let path = format!("/v2/clusters/{}", cluster.as_str().unwrap());
        assert_failed(&service.get(&path).await);
        commit_step(service, Step::PutReport(host_key(&agent), ReportKind::Summary, "{".to_owned())).await;
        let disk = json!({"disks_selected_config": [{"id": "sda", "role": "install"}]});
        assert_failed(&service.patch(&agent.path(), &disk).await);
        let formatting = json!({"disks_skip_formatting": [{"disk_id": "sda", "skip_formatting": true}]});
        assert_failed(&service.patch(&agent.path(), &formatting).await);
    });
}

#[test]
fn damaged_report_is_not_replaced_by_the_next_reply() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let images = json!({"images": [{"name": "a", "result": "success"}]});
        agent.reply_to_step("container-image-availability", &images).await.json_with_status(204);
        let speed = json!({"path": "/dev/sda", "io_sync_duration": 2});
        agent.reply_to_step("installation-disk-speed-check", &speed).await.json_with_status(204);
        let host = host_key(&agent);
        commit_step(service, Step::PutReport(host, ReportKind::ImagesStatus, "{".to_owned())).await;
        commit_step(service, Step::PutReport(host, ReportKind::DisksInfo, "[]".to_owned())).await;
        assert_failed(&agent.reply_to_step("container-image-availability", &images).await);
        let speed = json!({"path": "/dev/sda", "io_sync_duration": 3});
        assert_failed(&agent.reply_to_step("installation-disk-speed-check", &speed).await);
        let host = agent.get_host().await;
        assert_eq!((&host["images_status"], &host["disks_info"]), (&json!("{"), &json!("[]")));
    });
}

/// According to the record, the report exists. An empty report would hide the damage.
#[test]
fn missing_report_is_an_internal_error() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let images = json!({"images": [{"name": "a", "result": "success"}]});
        agent.reply_to_step("container-image-availability", &images).await.json_with_status(204);
        commit_step(service, Step::RemoveReport(host_key(&agent), ReportKind::ImagesStatus)).await;
        assert_failed(&agent.reply_to_step("container-image-availability", &images).await);
        assert_failed(&service.get(&agent.path()).await);
        assert_failed(&service.get(&format!("/v2/infra-envs/{}/hosts", agent.infra_env)).await);
        // After a new boot, the host has no reports.
        agent.register().await.json_with_status(201);
        assert_eq!(agent.get_host().await["images_status"], Value::Null);
    });
}

#[test]
fn damaged_document_is_an_internal_error() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let key = host_key(&agent);
        let row = service.inventory.records().store().get(key).await.unwrap().unwrap();
        let mut document: Value = serde_json::from_str(&row.document).unwrap();
        document["status"] = json!("on fire");
        let generation = row.generation + 1;
        commit_step(service, Step::Replace(Row { generation, document: document.to_string(), ..row })).await;
        assert_failed(&service.get(&agent.path()).await);
        assert_failed(&agent.request_steps().await);
    });
}

#[test]
fn host_without_its_infra_env_gets_no_steps() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let key = infra_env_key(&agent);
        let generation = service.inventory.records().store().get(key).await.unwrap().unwrap().generation;
        commit_step(service, Step::Remove(key, generation)).await;
        assert_failed(&agent.request_steps().await);
    });
}

#[test]
fn infra_env_without_the_time_of_its_change_has_no_files() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let path = format!("/v2/infra-envs/{}/downloads/files?file_name=discovery.ign", agent.infra_env);
        service.get(&path).await.json_with_status(200);
        alter_record::<InfraEnvRecord>(service, infra_env_key(&agent), |one| {
            one.image_changed_at = Micros(None)
        })
        .await;
        assert_failed(&service.get(&path).await);
    });
}

#[test]
fn infra_env_whose_last_change_is_at_the_end_of_time_cannot_change() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let last = "9999-12-31T23:59:59Z".parse().unwrap();
        alter_record::<InfraEnvRecord>(service, infra_env_key(&agent), |one| {
            one.image_changed_at = Micros(Some(last))
        })
        .await;
        let path = format!("/v2/infra-envs/{}", agent.infra_env);
        assert_failed(&service.patch(&path, &json!({"additional_ntp_sources": "ntp.example"})).await);
    });
}

#[test]
fn infra_env_with_an_invalid_version_has_no_config() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        let path = format!("/v2/infra-envs/{}/downloads/files?file_name=discovery.ign", agent.infra_env);
        service.get(&path).await.json_with_status(200);
        for version in ["latest", "4.18-a b", ""] {
            alter_record::<InfraEnvRecord>(service, infra_env_key(&agent), |one| {
                one.image.openshift_version = version.to_owned();
            })
            .await;
            assert_failed(&service.get(&path).await);
        }
    });
}

#[test]
fn cluster_with_an_invalid_version_is_an_internal_error() {
    on_each_database(async |service| {
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.json_with_status(201);
        let id: ClusterId = cluster["id"].as_str().unwrap().parse().unwrap();
        let key = Key { kind: Kind::Cluster, parent: None, id: id.0 };
        alter_record::<ClusterRecord>(service, key, |cluster| {
            cluster.openshift_version = "latest".to_owned()
        })
        .await;
        let path = format!("/v2/clusters/{id}");
        assert_failed(&service.patch(&path, &json!({"name": "other"})).await);
        assert_failed(&service.patch(&path, &json!({"control_plane_count": 3})).await);
        let body = json!({"name": "demo", "pull_secret": PULL_SECRET, "cluster_id": id});
        assert_failed(&service.post("/v2/infra-envs", &body).await);
    });
}

#[test]
fn added_os_image_with_an_invalid_version_is_an_internal_error() {
    on_each_database(async |service| {
        let image = json!({
            "openshift_version": "latest", "cpu_architecture": "x86_64", "version": "1", "type": "full-iso",
            "url": "http://127.0.0.1:1/a.iso",
        });
        let key = Key { kind: Kind::OsImage, parent: None, id: uuid::Uuid::new_v4() };
        let row = Row::new(key, image.to_string());
        commit_step(service, Step::Insert(row)).await;
        assert_failed(&service.get("/v2/os-images").await);
        assert_failed(&service.get("/v2/openshift-versions").await);
        let body = json!({"name": "demo", "pull_secret": PULL_SECRET, "openshift_version": "4.18"});
        assert_failed(&service.post("/v2/infra-envs", &body).await);
    });
}

#[test]
fn infra_env_with_an_invalid_delay_has_no_config() {
    on_each_database(async |service| {
        let agent = FakeAgent::register_in_new_infra_env(service).await;
        alter_record::<InfraEnvRecord>(service, infra_env_key(&agent), |one| {
            one.image.network_discovery_delay_seconds = Some(-1);
        })
        .await;
        let path = format!("/v2/infra-envs/{}/downloads/files?file_name=discovery.ign", agent.infra_env);
        assert_failed(&service.get(&path).await);
    });
}

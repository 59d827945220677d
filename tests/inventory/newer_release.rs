//! Records of a newer release: an older release keeps the fields that it does not support.

use kindling::inventory::store::{Changes, Key, Kind, Outcome, Row, SCHEMA_VERSION, Step};
use serde_json::{Value, json};

use crate::agent::FakeAgent;
use crate::service::{PULL_SECRET, TestService, on_each_database};

/// Adds fields to a stored document, like a newer release.
async fn write_as_newer_release(service: &TestService, key: Key, add: impl Fn(&mut Value)) {
    let store = service.inventory.records().store();
    let row = store.get(key).await.unwrap().unwrap();
    let mut document: Value = serde_json::from_str(&row.document).unwrap();
    add(&mut document);
    let row = Row {
        generation: row.generation + 1,
        schema_version: SCHEMA_VERSION + 1,
        document: document.to_string(),
        ..row
    };
    let changes = Changes { steps: vec![Step::Replace(row)], events: Vec::new() };
    assert_eq!(store.commit(changes).await.unwrap(), Outcome::Done);
}

async fn stored(service: &TestService, key: Key) -> (i64, Value) {
    let row = service.inventory.records().store().get(key).await.unwrap().unwrap();
    (row.schema_version, serde_json::from_str(&row.document).unwrap())
}

#[test]
fn newer_and_older_release_write_in_turn_without_loss() {
    on_each_database(async |service| {
        let body = json!({"name": "demo", "openshift_version": "4.18", "pull_secret": PULL_SECRET});
        let cluster = service.post("/v2/clusters", &body).await.json_with_status(201)["id"].clone();
        let cluster = cluster.as_str().unwrap();
        let agent = FakeAgent::register_with_report(service, "node-1").await;
        let env = agent.infra_env.parse().unwrap();
        let key = |kind, parent, id: &str| Key { kind, parent, id: id.parse().unwrap() };
        let host = key(Kind::Host, Some(env), &agent.id);
        let infra_env = key(Kind::InfraEnv, None, &agent.infra_env);
        let in_cluster = key(Kind::Cluster, None, cluster);
        for turn in 0..3 {
            let field = format!("new{turn}");
            write_as_newer_release(service, host, |document| {
                for path in ["", "/choices", "/findings", "/findings/reports/inventory", "/progress", "/logs"]
                {
                    document.pointer_mut(path).unwrap()[&field] = json!({"a": [turn]});
                }
            })
            .await;
            write_as_newer_release(service, in_cluster, |document| {
                document["spec"][&field] = json!(turn);
                document["spec"]["disk_encryption"][&field] = json!(turn);
            })
            .await;
            write_as_newer_release(service, infra_env, |document| {
                document["image"][&field] = json!(turn);
            })
            .await;
            let names = [format!("node-{turn}"), format!("{turn}.example.com")];
            service.patch(&agent.path(), &json!({"host_name": names[0]})).await.json_with_status(201);
            agent.request_steps().await.json_with_status(200);
            let change = json!({"base_dns_domain": names[1]});
            service.patch(&format!("/v2/clusters/{cluster}"), &change).await.json_with_status(201);
            let change = json!({"additional_ntp_sources": names[1], "proxy": {"no_proxy": names[1]}});
            service
                .patch(&format!("/v2/infra-envs/{}", agent.infra_env), &change)
                .await
                .json_with_status(201);
        }
        let (version, document) = stored(service, host).await;
        assert_eq!(version, SCHEMA_VERSION + 1);
        assert_eq!(document["choices"]["hostname"], "node-2");
        for turn in 0..3 {
            let field = format!("new{turn}");
            for path in ["", "/choices", "/findings", "/findings/reports/inventory", "/progress", "/logs"] {
                assert_eq!(document.pointer(path).unwrap()[&field], json!({"a": [turn]}), "{path}");
            }
            let (version, document) = stored(service, in_cluster).await;
            assert_eq!((version, &document["spec"][&field]), (SCHEMA_VERSION + 1, &json!(turn)));
            assert_eq!(document["spec"]["disk_encryption"][&field], json!(turn));
            let (version, document) = stored(service, infra_env).await;
            assert_eq!((version, &document["image"][&field]), (SCHEMA_VERSION + 1, &json!(turn)));
        }
    });
}

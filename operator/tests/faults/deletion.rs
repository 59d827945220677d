//! Tests the deletion of a namespace together with all its objects.

use std::time::Duration;

use inventory::ErrorKind;
use inventory::id::HostId;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::DeleteParams;
use operator::crds::{AgentClassification, AgentClassificationSpec, MirrorRef};
use serde_json::json;
use tokio::time::sleep;

use crate::machine::Machine;
use crate::pool::{id_of, open_site, state, wait_for_agent, wait_until};
use crate::site::{hub, network};

#[tokio::test]
async fn namespace_with_all_kinds_of_objects_disappears() {
    let Some(hub) = hub().await else { return };
    let mut site = open_site(hub).await;
    // The lease is in another namespace. Without a lease, no replica may write, so nothing would remove the finalizers.
    site.lease_namespace = hub.namespace("lease").await;
    site.start_operator("replica", site.client());
    site.create_pull_secret("pull-secret").await;
    let registries = "[[registry]]\nlocation = 'quay.io'\n[[registry.mirror]]\nlocation = 'mirror.example'\n";
    let config_map = json!({"metadata": {"name": "mirrors"}, "data": {"registries.conf": registries}});
    site.create::<ConfigMap>(&serde_json::from_value(config_map).unwrap()).await;
    site.create(&network("node", "52:54:00:00:00:01", "192.0.2.11")).await;
    let query = ".cpu.count > 1".to_owned();
    let spec =
        AgentClassificationSpec { label_key: "size".to_owned(), label_value: "large".to_owned(), query };
    site.create(&AgentClassification::new("large", spec)).await;
    let mirrors = MirrorRef { name: "mirrors".to_owned(), namespace: site.namespace.clone() };
    site.create_infra_env("pool", |spec| {
        spec.mirror_registry_ref = Some(mirrors);
        spec.nm_state_config_label_selector.match_labels.insert("net".to_owned(), "site".to_owned());
    })
    .await;
    let id = id_of(&site.wait_for_image("pool").await);
    let mut machines = Vec::new();
    for _ in 0..3 {
        let machine = Machine::boot(&site.inventory, id, HostId::fresh()).await;
        machine.report(33_000_000_000).await;
        machine.synchronize_clock().await;
        machines.push(machine);
    }
    for machine in &machines {
        wait_for_agent(&site, machine.key.host_id, |agent| state(agent) == "known-unbound").await;
    }

    let namespaces: Api<Namespace> = Api::all(hub.admin());
    namespaces.delete(&site.namespace, &DeleteParams::default()).await.unwrap();
    wait_until("deleted", async || {
        // The machines still run and poll, which must not delay the deletion.
        for machine in &machines {
            machine.poll().await;
        }
        sleep(Duration::from_millis(500)).await;
        namespaces.get_opt(&site.namespace).await.unwrap().is_none()
    })
    .await;
    assert_eq!(site.inventory.infra_env(id).await.unwrap_err().kind(), ErrorKind::NotFound);
    for machine in &machines {
        assert_eq!(site.inventory.host(machine.key).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
}

//! Tests an outage during which the API server refuses all connections.

use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use inventory::id::{HostId, InfraEnvId};
use operator::crds::Agent;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::ServiceExt as _;

use crate::machine::Machine;
use crate::pool::{create_pool, edit_agent, open_site, state, wait_for_agent, wait_until};
use crate::site::{Site, hub, iso_url};

async fn download(site: &Site, id: InfraEnvId) -> StatusCode {
    let uri = format!("/api/assisted-install/v2/infra-envs/{id}/downloads/files?file_name=discovery.ign");
    let request = Request::get(uri).body(Body::empty()).unwrap();
    site.inventory.router().oneshot(request).await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_register_during_an_outage_of_the_kubernetes_api() {
    register_during_an_outage(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes more than a minute; .ci/full runs it"]
async fn hosts_register_during_a_long_outage_of_the_kubernetes_api() {
    register_during_an_outage(Duration::from_secs(60)).await;
}

/// Requires that images are served and hosts register during an outage, and that the resources show the changes after
/// it.
async fn register_during_an_outage(duration: Duration) {
    let Some(hub) = hub().await else { return };
    let (mut site, proxy) = (open_site(hub).await, hub.fault_proxy());
    site.start_operator("replica", proxy.client(&site.user.token));
    let id = create_pool(&site).await;
    let url = iso_url(&site.wait_for_image("pool").await);
    let [old, new, gone] = [(); 3].map(|()| HostId::fresh());
    for host in [old, gone] {
        Machine::boot(&site.inventory, id, host).await;
        wait_for_agent(&site, host, |agent| agent.status.is_some()).await;
    }

    proxy.refuse(true);
    let begin = Instant::now();
    let machine = Machine::boot(&site.inventory, id, new).await;
    site.patch_spec("pool", json!({"additionalNTPSources": ["a.example.com"]})).await;
    edit_agent(&site, old, json!({"hostname": "later"})).await;
    site.delete::<Agent>(&gone.to_string()).await;
    while begin.elapsed() < duration {
        assert_eq!(download(&site, id).await, StatusCode::OK);
        assert!(machine.poll().await.is_success());
        machine.report(33_000_000_000).await;
        machine.synchronize_clock().await;
        sleep(Duration::from_secs(1)).await;
    }
    assert!(site.api::<Agent>().get_opt(&new.to_string()).await.unwrap().is_none());

    proxy.refuse(false);
    wait_for_agent(&site, new, |agent| state(agent) == "known-unbound").await;
    site.wait_for("pool", |object| iso_url(object) != url).await;
    site.wait_until_gone::<Agent>(&gone.to_string()).await;
    wait_until("hostname", async || {
        let key = inventory::id::HostKey { infra_env_id: id, host_id: old };
        site.inventory.host(key).await.unwrap().choices.hostname == "later"
    })
    .await;
}

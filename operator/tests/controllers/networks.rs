//! Tests the selection of NMStateConfigs by InfraEnvs.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use operator::crds::{NMStateConfig, Selector};
use serde_json::json;
use tokio::time::sleep;

use crate::site::{Site, hub, image_created, iso_url, network};

/// Returns a selector for the label `net: site`.
pub(crate) fn selector() -> Selector {
    let match_labels = BTreeMap::from([("net".to_owned(), "site".to_owned())]);
    Selector { match_labels, ..Selector::default() }
}

/// Returns a site with the InfraEnv `one`, which selects NMStateConfigs.
pub(crate) async fn open_with_selector() -> Option<Site> {
    let site = Site::open(hub().await?).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("one", |spec| spec.nm_state_config_label_selector = selector()).await;
    site.wait_for_image("one").await;
    Some(site)
}

#[tokio::test]
async fn image_follows_the_selected_configs() {
    let Some(site) = open_with_selector().await else { return };
    let without = iso_url(&site.wait_for_image("one").await);
    site.create(&network("a", "52:54:00:00:00:01", "192.0.2.11")).await;
    let with = iso_url(&site.wait_for("one", |it| iso_url(it) != without).await);
    let unlabelled = Patch::Merge(json!({"metadata": {"labels": {"net": null}}}));
    let configs = site.api::<NMStateConfig>();
    configs.patch("a", &PatchParams::default(), &unlabelled).await.unwrap();
    site.wait_for("one", |it| iso_url(it) == without).await;
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"net": "site"}}}));
    configs.patch("a", &PatchParams::default(), &labelled).await.unwrap();
    let object = site.wait_for("one", |it| iso_url(it) == with).await;
    assert!(object.status.unwrap().debug_info.static_network_download_url.contains("static-network-config"));
    site.delete::<NMStateConfig>("a").await;
    site.wait_for("one", |it| iso_url(it) == without).await;
}

#[tokio::test]
async fn duplicate_mac_address_is_reported_with_both_config_names() {
    let Some(site) = open_with_selector().await else { return };
    site.create(&network("a", "52:54:00:00:00:0a", "192.0.2.11")).await;
    site.create(&network("b", "52:54:00:00:00:0A", "192.0.2.12")).await;
    let message = "Failed to create image: NMStateConfig a and NMStateConfig b both have the MAC address \
                   52:54:00:00:00:0A";
    site.wait_for_message("one", message).await;
    site.delete::<NMStateConfig>("b").await;
    site.wait_for_image("one").await;
}

#[tokio::test]
async fn fault_in_a_config_is_reported_with_its_name_and_field_path() {
    let Some(site) = open_with_selector().await else { return };
    let mut config = network("broken", "52:54:00:00:00:01", "192.0.2.11");
    config.spec.config["interfaces"][0]["ipv4"]["address"][0]["prefix-length"] = json!(99);
    site.create(&config).await;
    let object =
        site.wait_for("one", |it| image_created(it).is_some_and(|(status, ..)| status == "False")).await;
    let (_, _, message) = image_created(&object).unwrap();
    assert!(message.starts_with("Failed to create image: NMStateConfig broken: interfaces[0]"), "{message}");
}

#[tokio::test]
async fn burst_of_configs_costs_few_images() {
    let Some(site) = open_with_selector().await else { return };
    let mark = site.hub.audit_mark().await;
    let configs = (0..200_u8).map(|number| {
        let config = network(
            &format!("host-{number}"),
            &format!("52:54:00:00:01:{number:02x}"),
            &format!("198.51.100.{number}"),
        );
        let site = &site;
        async move { site.create(&config).await }
    });
    futures_util::future::join_all(configs).await;
    let begin = tokio::time::Instant::now();
    let record = || async {
        let object = site.wait_for_image("one").await;
        let id =
            object.metadata.annotations.unwrap()["infraenv.agent-install.openshift.io/infra-env-id"].parse();
        site.inventory.infra_env(id.unwrap()).await.unwrap()
    };
    while record().await.image.static_network_config.len() < 200 {
        assert!(begin.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(1)).await;
    let requests = site.requests_since(mark).await;
    assert!(requests.iter().all(|request| request == "patch infraenvs/status"), "{requests:?}");
    assert!(requests.len() <= 6, "{} images of 200 configs", requests.len());
}

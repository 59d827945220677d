//! Tests the Kubernetes events that report faults of InfraEnvs and NMStateConfigs.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use operator::crds::{InfraEnv, NMStateConfig};
use serde_json::json;
use tokio::time::sleep;

use crate::hub::{AuditMark, Fault, Rule};
use crate::networks::{open_with_selector, selector};
use crate::site::{Site, hub, image_created, network};

impl Site {
    /// Returns the events as `kind name reason: note`, sorted by name.
    async fn events(&self) -> Vec<String> {
        let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let text = |event: Event| {
            assert_eq!(event.type_.as_deref(), Some("Warning"));
            let object = event.regarding.unwrap();
            assert!(object.uid.is_some_and(|uid| !uid.is_empty()));
            let [kind, name, reason, note] =
                [object.kind, object.name, event.reason, event.note].map(Option::unwrap);
            format!("{kind} {name} {reason}: {note}")
        };
        let mut events: Vec<_> = events.into_iter().map(text).collect();
        events.sort();
        events
    }

    async fn wait_for_fault(&self, name: &str) -> InfraEnv {
        self.wait_for(name, |it| image_created(it).is_some_and(|(status, ..)| status == "False")).await
    }

    /// Waits until the operator has reconciled all earlier changes.
    async fn settle(&self, marker: &str) {
        self.create_infra_env(marker, |_| ()).await;
        self.wait_for_image(marker).await;
        // Configs are queued as part of a burst, which ends a little later.
        sleep(Duration::from_secs(1)).await;
    }

    async fn event_requests_since(&self, mark: AuditMark) -> usize {
        self.requests_since(mark).await.iter().filter(|request| request.ends_with(" events")).count()
    }

    /// Kills the operator, and starts it again with the same inventory.
    async fn restart_operator(&mut self, client: kube::Client) {
        self.kill_operators().await;
        self.start_operator("replica", client);
    }
}

/// Returns an NMStateConfig with the label `net: site` and an invalid prefix length.
fn broken_network(name: &str) -> NMStateConfig {
    let mut config = serde_json::to_value(network(name, "52:54:00:00:00:01", "192.0.2.11")).unwrap();
    let path = "/spec/config/interfaces/0/ipv4/address/0/prefix-length";
    *config.pointer_mut(path).unwrap() = json!(99);
    serde_json::from_value(config).unwrap()
}

#[tokio::test]
async fn config_fault_is_one_event_on_the_config_with_the_field_path() {
    let Some(mut site) = open_with_selector().await else { return };
    assert_eq!(site.events().await, Vec::<String>::new());
    site.create(&broken_network("broken")).await;
    site.wait_for_fault("one").await;
    let events = site.events().await;
    let expected = "NMStateConfig broken InvalidNetwork: spec.config.interfaces[0].ipv4.address[0].prefix-length: \
                    a prefix of 99 bits is not within 0 to 32";
    assert_eq!(events, [expected]);

    // The InfraEnv is reconciled again, first by the same operator and then by a new one.
    let mark = site.hub.audit_mark().await;
    site.patch_spec("one", json!({"additionalNTPSources": ["a.example.com"]})).await;
    let labels = Patch::Merge(json!({"metadata": {"labels": {"other": "label"}}}));
    site.api::<NMStateConfig>().patch("broken", &PatchParams::default(), &labels).await.unwrap();
    site.settle("marker").await;
    let client = site.hub.client_to(&site.hub.url(), &site.user.token);
    site.restart_operator(client).await;
    site.settle("marker-2").await;
    assert_eq!(site.event_requests_since(mark).await, 0);

    // Another InfraEnv selects the same faulty config. The API server refuses the duplicate event.
    let mark = site.hub.audit_mark().await;
    site.create_infra_env("two", |spec| spec.nm_state_config_label_selector = selector()).await;
    site.wait_for_fault("two").await;
    assert_eq!(site.event_requests_since(mark).await, 1);
    assert_eq!(site.events().await, events);
}

#[tokio::test]
async fn shared_mac_address_is_an_event_on_both_configs() {
    let Some(site) = open_with_selector().await else { return };
    site.create(&network("a", "52:54:00:00:00:0a", "192.0.2.11")).await;
    site.create(&network("b", "52:54:00:00:00:0A", "192.0.2.12")).await;
    site.wait_for_fault("one").await;
    let event = |name: &str, other: &str| {
        format!(
            "NMStateConfig {name} InvalidNetwork: spec.interfaces[0].macAddress: NMStateConfig {other} also has the \
             MAC address 52:54:00:00:00:0A"
        )
    };
    assert_eq!(site.events().await, [event("a", "b"), event("b", "a")]);
}

#[tokio::test]
async fn input_error_is_one_event_on_the_infra_env() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    site.create_pull_secret("pull-secret").await;
    site.create_infra_env("one", |_| ()).await;
    site.wait_for_image("one").await;
    for _ in 0..2 {
        site.patch_spec("one", json!({"osImageVersion": "4.99"})).await;
        site.wait_for_fault("one").await;
        site.patch_spec("one", json!({"osImageVersion": null})).await;
        site.wait_for_image("one").await;
    }
    let event = "InfraEnv one ImageCreationError: No OS image for Openshift version 4.99 and architecture x86_64: The \
                 requested OS image for version (4.99) and CPU architecture (x86_64) isn't specified in OS images list";
    assert_eq!(site.events().await, [event]);
}

#[tokio::test]
async fn condition_appears_even_if_events_fail() {
    let Some(mut site) = open_with_selector().await else { return };
    let proxy = site.hub.fault_proxy();
    let rule = proxy.add(Rule::new(Fault::InternalError).path("/events"));
    site.restart_operator(proxy.client(&site.user.token)).await;
    site.create(&broken_network("broken")).await;
    site.wait_for_fault("one").await;
    assert_eq!(proxy.counts(rule).faults, 1);
}

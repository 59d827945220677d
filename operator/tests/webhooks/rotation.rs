//! Tests the renewal of the certificates, and the repair of the webhook configurations.

use std::time::Duration;

use chrono::TimeDelta;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::site::{NAMES, Site, hub, infra_env};

fn certificates(bundle: &str) -> usize {
    bundle.matches("BEGIN CERTIFICATE").count()
}

/// Checks that the API server can reach the webhook and trusts its certificate.
async fn require_review(site: &Site) {
    let faulty = infra_env("faulty", &json!({"sshAuthorizedKey": "key"}));
    let error = site.dry_run(&faulty).await.unwrap_err();
    assert!(error.contains("spec.sshAuthorizedKey: "), "{error}");
}

/// Waits until the serving certificate differs from `certificate`, and returns the new one.
async fn wait_for_another(site: &Site, certificate: &str) -> String {
    let begin = Instant::now();
    loop {
        let current = site.certificate("tls.crt").await;
        if current != certificate {
            return current;
        }
        require_review(site).await;
        assert!(begin.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn authority_and_certificate_are_renewed_without_a_failed_review() {
    let Some(hub) = hub().await else { return };
    // The clock of the API server cannot be changed. So the first certificates are created in the past.
    let mut site = Site::prepare(hub, TimeDelta::days(-720)).await;
    site.start_replica("one").await;
    let begin = Instant::now();
    while site.configurations().await.iter().any(Option::is_none) {
        assert!(begin.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(50)).await;
    }
    let (expired, first) = (site.certificate("tls.crt").await, site.certificate("ca.crt").await);
    assert_eq!(certificates(&first), 1);

    site.clock.shift(TimeDelta::hours(-2));
    site.wait_for_configurations(|bundle| certificates(bundle) == 2).await;
    let by_first = site.certificate("tls.crt").await;
    assert_ne!(by_first, expired);
    require_review(&site).await;

    site.clock.shift(TimeDelta::zero());
    let by_second = wait_for_another(&site, &by_first).await;
    assert_ne!(by_second, by_first);
    let bundle = site.certificate("ca.crt").await;
    assert!(certificates(&bundle) == 2 && bundle.ends_with(&first), "{bundle}");
    site.wait_for_configurations(|stored| stored == bundle).await;
    for _ in 0..10 {
        require_review(&site).await;
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(site.secret().await.type_.as_deref(), Some("Opaque"));
}

#[tokio::test]
async fn configurations_are_repaired_and_otherwise_not_written() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let versions = async || {
        let configurations = site.configurations().await;
        let version = |it: &Option<_>| it.as_ref().map(kube::ResourceExt::resource_version);
        configurations.iter().map(version).collect::<Vec<_>>()
    };
    let before = versions().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(versions().await, before);

    let configurations = site.configurations().await;
    for (configuration, kind) in configurations.iter().flatten().zip(NAMES) {
        let webhook = &configuration.webhooks.as_ref().unwrap()[0];
        assert_eq!(webhook.name, format!("{kind}validators.admission.agentinstall.openshift.io"));
        assert_eq!((webhook.side_effects.as_str(), webhook.timeout_seconds), ("None", Some(10)));
        assert_eq!(webhook.failure_policy.as_deref(), Some("Fail"));
        let operations = webhook.rules.as_ref().unwrap()[0].operations.clone().unwrap();
        let expected: &[&str] = if kind == "agent" { &["UPDATE"] } else { &["CREATE", "UPDATE"] };
        assert_eq!(operations, expected);
    }
    let names: Vec<_> = configurations.iter().flatten().map(|it| it.metadata.name.clone().unwrap()).collect();
    let api: Api<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration> =
        Api::all(hub.admin());
    let _ = api.delete(&names[0], &DeleteParams::default()).await.unwrap();
    let none = Patch::Merge(json!({"webhooks": []}));
    api.patch(&names[1], &PatchParams::default(), &none).await.unwrap();
    let begin = Instant::now();
    loop {
        let repaired = site.configurations().await;
        let webhooks = |it: &Option<_>| {
            let it: &k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration =
                it.as_ref()?;
            it.webhooks.clone()
        };
        if repaired.iter().map(webhooks).eq(configurations.iter().map(webhooks)) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(30));
        sleep(Duration::from_millis(50)).await;
    }
}

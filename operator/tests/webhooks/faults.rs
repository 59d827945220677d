//! Tests the denials of objects with faults that a reconciliation would report later.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::site::{Site, hub, infra_env, nmstate_config};

fn faulty_specs() -> [(Value, &'static str); 10] {
    let append = json!({"operation": "append", "value": "a"});
    let delete = json!({"operation": "delete", "value": "a"});
    [
        (json!({"proxy": {"httpProxy": "p"}}), "spec.proxy.httpProxy: "),
        (json!({"proxy": {"httpsProxy": "p"}}), "spec.proxy.httpsProxy: "),
        (json!({"proxy": {"noProxy": "a,a"}}), "spec.proxy.noProxy: "),
        (json!({"ntpSources": ["1.2.3.4", "a;b"]}), "spec.ntpSources[1]: Invalid NTP source: a;b"),
        (json!({"additionalNTPSources": ["a;b"]}), "spec.additionalNTPSources[0]: "),
        (json!({"sshAuthorizedKey": "key"}), "spec.sshAuthorizedKey: "),
        (json!({"additionalTrustBundle": "x"}), "spec.additionalTrustBundle: "),
        (
            json!({"kernelArguments": [append, delete]}),
            "spec.kernelArguments[1]: Only kernel argument operation append is supported.  Got delete",
        ),
        (json!({"ignitionConfigOverride": "{"}), "spec.ignitionConfigOverride: error parsing ignition: "),
        (json!({"imageType": "small"}), "spec.imageType: \"small\" is not full-iso or minimal-iso"),
    ]
}

#[tokio::test]
async fn faulty_infra_env_is_denied_with_the_field_path() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    for (spec, message) in faulty_specs() {
        let error = site.dry_run(&infra_env("faulty", &spec)).await.unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let two = json!({"proxy": {"httpProxy": "p"}, "sshAuthorizedKey": "key"});
    let error = site.dry_run(&infra_env("faulty", &two)).await.unwrap_err();
    assert!(error.contains("spec.proxy.httpProxy: ") && error.contains("spec.sshAuthorizedKey: "), "{error}");
    let good = json!({"proxy": {"httpProxy": "http://192.0.2.9:3128"}, "ntpSources": ["ntp.example.org"],
        "ignitionConfigOverride": "{\"ignition\": {\"version\": \"3.1.0\"}}"});
    site.dry_run(&infra_env("good", &good)).await.unwrap();
}

#[tokio::test]
async fn undecided_check_allows_with_a_warning() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    // No base image has this architecture, so the Ignition spec version for the override is unknown.
    let spec = json!({"cpuArchitecture": "s390x", "ignitionConfigOverride": "{"});
    let output = site.dry_run(&infra_env("undecided", &spec)).await.unwrap();
    assert!(output.contains("Warning: spec.ignitionConfigOverride: not checked: "), "{output}");
}

#[tokio::test]
async fn faulty_network_is_denied_with_the_field_path() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let error = site.dry_run(&nmstate_config("faulty", "52:54:00:00:00:01", 99)).await.unwrap_err();
    assert!(error.contains("spec.config.interfaces[0].ipv4.address[0]"), "{error}");
    let mut twice = nmstate_config("faulty", "52:54:00:00:00:0a", 24);
    let other = json!({"name": "nic1", "macAddress": "52:54:00:00:00:0A"});
    twice["spec"]["interfaces"].as_array_mut().unwrap().push(other);
    let error = site.dry_run(&twice).await.unwrap_err();
    assert!(error.contains("spec.interfaces[1].macAddress: "), "{error}");
    site.dry_run(&nmstate_config("good", "52:54:00:00:00:01", 24)).await.unwrap();
}

#[tokio::test]
async fn mac_address_of_another_selected_config_is_denied() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let one = nmstate_config("one", "52:54:00:00:00:0a", 24);
    site.apply(&one).await.unwrap();
    let two = nmstate_config("two", "52:54:00:00:00:0A", 24);
    site.dry_run(&two).await.unwrap();
    let selector = json!({"nmStateConfigLabelSelector": {"matchLabels": {"net": "site"}}});
    site.apply(&infra_env("env", &selector)).await.unwrap();
    // The replica sees the InfraEnv only when its watch reports the InfraEnv, so the first reviews may still allow the
    // object.
    let begin = tokio::time::Instant::now();
    let error = loop {
        if let Err(error) = site.dry_run(&two).await {
            break error;
        }
        assert!(begin.elapsed().as_secs() < 30);
    };
    assert!(
        error.contains("spec.interfaces[0].macAddress: NMStateConfig one also has the MAC address")
            && error.contains("InfraEnv env selects both"),
        "{error}"
    );
    let mut elsewhere = two.clone();
    elsewhere["metadata"]["labels"] = json!({"net": "other"});
    site.apply(&elsewhere).await.unwrap();
    let error = site.merge(("nmstateconfig", "two"), &json!({"metadata": {"labels": {"net": "site"}}})).await;
    assert!(error.unwrap_err().contains("NMStateConfig one"));
    site.apply(&one).await.unwrap();
}

#[tokio::test]
async fn object_with_a_stored_fault_stays_editable_and_deletable() {
    let Some(hub) = hub().await else { return };
    let mut site = Site::prepare(hub, TimeDelta::zero()).await;
    let mut env = infra_env("stored", &json!({"sshAuthorizedKey": "key", "proxy": {"httpProxy": "p"}}));
    env["metadata"]["finalizers"] = json!(["example.com/test"]);
    site.apply(&env).await.unwrap();
    let mut network = nmstate_config("stored", "52:54:00:00:00:01", 99);
    network["metadata"]["finalizers"] = json!(["example.com/test"]);
    site.apply(&network).await.unwrap();
    site.start().await;

    let env = ("infraenv", "stored");
    for patch in [
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"spec": {"imageType": "full-iso"}}),
        json!({"spec": {"proxy": null}}),
    ] {
        site.merge(env, &patch).await.unwrap();
    }
    assert!(site.merge(env, &json!({"spec": {"sshAuthorizedKey": "other"}})).await.is_err());
    let network_name = ("nmstateconfig", "stored");
    site.merge(network_name, &json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    let interface = network["spec"]["config"]["interfaces"][0].clone();
    let with_mtu = |mtu: i64| {
        let mut interface = interface.clone();
        interface["mtu"] = json!(mtu);
        json!({"spec": {"config": {"interfaces": [interface]}}})
    };
    let output = site.merge(network_name, &with_mtu(1400)).await.unwrap();
    assert!(output.contains("Warning: spec.config.interfaces[0].ipv4.address[0]"), "{output}");
    let error = site.merge(network_name, &with_mtu(-1)).await.unwrap_err();
    assert!(error.contains("spec.config.interfaces[0].mtu"), "{error}");
    for (kind, name) in [env, network_name] {
        let namespace = format!("--namespace={}", site.namespace);
        site.hub.kubectl(&[&namespace, "delete", kind, name, "--wait=false"]).await;
        let object = site.hub.kubectl(&[&namespace, "get", kind, name, "--ignore-not-found"]).await;
        assert!(!object.is_empty());
        site.merge((kind, name), &json!({"metadata": {"finalizers": null}})).await.unwrap();
    }
}

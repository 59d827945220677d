//! Tests the admission rules of the Assisted Installer's webhooks.

use serde_json::{Value, json};

use crate::site::{Site, agent, classification, hub, infra_env};

#[tokio::test]
async fn infra_env_rules_are_enforced() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let cluster = json!({"name": "a", "namespace": "b"});
    let both = infra_env("both", &json!({"clusterRef": cluster, "osImageVersion": "4.18"}));
    let error = site.dry_run(&both).await.unwrap_err();
    assert!(
        error.contains("Either Spec.ClusterRef or Spec.OSImageVersion should be specified (not both)."),
        "{error}"
    );
    site.apply(&infra_env("bound", &json!({"clusterRef": cluster}))).await.unwrap();
    site.apply(&infra_env("free", &json!({}))).await.unwrap();
    let immutable = "Attempted to change Spec.ClusterRef which is immutable after InfraEnv creation.";
    let rows = [
        ("bound", json!({"clusterRef": {"name": "c"}}), immutable),
        ("bound", json!({"clusterRef": null}), immutable),
        ("free", json!({"clusterRef": cluster}), immutable),
        (
            "free",
            json!({"cpuArchitecture": "aarch64"}),
            "Attempted to change Spec.CpuArchitecture which is immutable after InfraEnv creation.",
        ),
        (
            "bound",
            json!({"osImageVersion": "4.18"}),
            "spec.OSImageVersion is not valid. It can't be added alongside with a clusterRef when the cluster is not \
             installed yet.",
        ),
    ];
    for (name, spec, message) in rows {
        let error = site.merge(("infraenv", name), &json!({"spec": spec})).await.unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    for spec in [json!({"osImageVersion": "4.18"}), json!({"cpuArchitecture": "x86_64"})] {
        site.merge(("infraenv", "free"), &json!({"spec": spec})).await.unwrap();
    }
}

#[tokio::test]
async fn agent_rules_are_enforced_for_updates_only() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let disks = json!({"installation_disk_id": "a", "installation_disk_path": "/dev/a"});
    site.apply(&agent("both", &disks)).await.unwrap();
    site.merge(("agent", "both"), &json!({"spec": {"hostname": "h"}})).await.unwrap();
    site.apply(&agent("one", &json!({"installation_disk_id": "a"}))).await.unwrap();
    let error = site.merge(("agent", "one"), &json!({"spec": disks})).await.unwrap_err();
    assert!(
        error.contains("Either InstallationDiskID or InstallationDiskPath can be set, not both."),
        "{error}"
    );

    let cluster = json!({"clusterDeploymentName": {"name": "a", "namespace": "b"}});
    let set_status = async |name: &str, state: &str, kind: &str| {
        let status = json!({"status": {"debugInfo": {"state": state}, "kind": kind}}).to_string();
        let namespace = format!("--namespace={}", site.namespace);
        let arguments =
            [&namespace, "patch", "agent", name, "--subresource=status", "--type=merge", "-p", &status];
        site.hub.kubectl(&arguments).await;
    };
    let change = async |name: &str, cluster: Value| {
        site.merge(("agent", name), &json!({"spec": {"clusterDeploymentName": cluster}})).await
    };
    for name in ["day-1", "day-2", "known"] {
        site.apply(&agent(name, &cluster)).await.unwrap();
    }
    set_status("day-1", "installing", "Host").await;
    set_status("day-2", "installing", "AddToExistingClusterHost").await;
    set_status("known", "known", "Host").await;
    let other = json!({"name": "c", "namespace": "b"});
    for (name, cluster) in [("day-1", Value::Null), ("day-1", other.clone()), ("day-2", other.clone())] {
        let error = change(name, cluster).await.unwrap_err();
        let message =
            "Attempted to change Spec.ClusterDeploymentName which is immutable during Agent installation.";
        assert!(error.contains(message), "{error}");
    }
    change("day-2", Value::Null).await.unwrap();
    change("known", other).await.unwrap();
}

#[tokio::test]
async fn agent_classification_rules_are_enforced() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    for (spec, message) in [
        (json!({"labelKey": "a b"}), "name part must consist of alphanumeric characters"),
        (json!({"labelValue": "QUERYERROR-a"}), "label must not start with QUERYERROR as this is reserved"),
        (json!({"query": ".cpu["}), "unexpected end of the query, expected closing bracket"),
    ] {
        let error = site.dry_run(&classification("bad", &spec)).await.unwrap_err();
        assert!(error.contains("denied the request: ") && error.contains(message), "{error}");
    }
    site.apply(&classification("good", &json!({}))).await.unwrap();
    for spec in [json!({"labelKey": "other"}), json!({"labelValue": "small"})] {
        let error = site.merge(("agentclassification", "good"), &json!({"spec": spec})).await.unwrap_err();
        assert!(
            error.contains("Label modified: the specified label may not be modified after creation"),
            "{error}"
        );
    }
    site.merge(("agentclassification", "good"), &json!({"spec": {"query": ".cpu["}})).await.unwrap();
}

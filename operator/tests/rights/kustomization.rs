//! Applies the kustomization with `kubectl apply -k`.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::hub::Hub;

pub(crate) const NAMESPACE: &str = "kindling";

static INSTALLATION: OnceCell<String> = OnceCell::const_new();

/// Applies the kustomization to the hub. Returns the hub and the output of kubectl, or `None` if the hub is not
/// available.
pub(crate) async fn installed() -> Option<(&'static Hub, &'static str)> {
    let hub = Hub::shared().await?;
    let output = INSTALLATION
        .get_or_init(|| async {
            let output = install(hub).await;
            // Also waits until the API server serves the kinds.
            hub.install_crds(&operator::crds::to_yaml().unwrap()).await;
            output
        })
        .await;
    Some((hub, output))
}

async fn install(hub: &Hub) -> String {
    hub.kubectl(&["create", "namespace", NAMESPACE]).await;
    let standard = |mode: &str| format!("pod-security.kubernetes.io/{mode}=restricted");
    hub.kubectl(&["label", "namespace", NAMESPACE, &standard("enforce"), &standard("warn")]).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/kubernetes-hub");
    let output = hub.run_kubectl(&["apply", "-k", &folder.to_string_lossy()], &[]).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout) + &text(&output.stderr)
}

#[tokio::test]
async fn kustomization_is_applied_without_warnings() {
    let Some((hub, output)) = installed().await else { return };
    assert!(!output.to_lowercase().contains("warning"), "{output}");
    for object in [
        "clusterrole.rbac.authorization.k8s.io/kindling-webhooks created",
        "deployment.apps/kindling created",
        "networkpolicy.networking.k8s.io/kindling created",
        "service/kindling-webhooks created",
    ] {
        assert!(output.contains(object), "{output}");
    }
    // The API server refuses unknown members, such as misspelt ones, or warns about them.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/kubernetes-hub");
    let again = ["apply", "--dry-run=server", "--validate=strict", "-k", &folder.to_string_lossy()];
    let output = hub.run_kubectl(&again, &[]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn pod_is_admitted_in_a_restricted_namespace() {
    let Some((hub, _)) = installed().await else { return };
    let unrestricted = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "other", "image": "other"}]}});
    let create = ["create", "--dry-run=server", "--filename=-"];
    let output = hub.run_kubectl(&create, unrestricted.to_string().as_bytes()).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("violates PodSecurity \"restricted:latest\""), "{error}");

    // The controllers of the hub create the pod of the Deployment.
    let pods: Api<Pod> = Api::namespaced(hub.admin(), NAMESPACE);
    let selector = ListParams::default().labels("app=kindling");
    let begin = Instant::now();
    let pod = loop {
        if let Some(pod) = pods.list(&selector).await.unwrap().items.pop() {
            break pod;
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(100)).await;
    };
    let container = &pod.spec.unwrap().containers[0];
    let ports = container.ports.iter().flatten();
    let ports: Vec<_> = ports.map(|port| (port.name.as_deref().unwrap(), port.container_port)).collect();
    assert_eq!(ports, [("webhooks", 9443), ("http", 8090)]);
    let variable = |name: &str| {
        let variables = container.env.iter().flatten();
        variables.filter(|variable| variable.name == name).find_map(|variable| variable.value.clone())
    };
    assert_eq!(variable("KINDLING_KUBE_WEBHOOKS_LISTEN").as_deref(), Some("0.0.0.0:9443"));
    assert_eq!(variable("KINDLING_KUBE_WEBHOOKS_SERVICE").as_deref(), Some("kindling-webhooks"));
}

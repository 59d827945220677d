//! The metrics and the health of `kindling serve` for its controllers of custom resources.

use serde_json::json;

use crate::serve::ServeProcess;
use crate::support::Scratch;

fn metrics(server: &ServeProcess) -> String {
    String::from_utf8(server.request("GET /metrics", "").body).unwrap()
}

/// Images and the registration of hosts do not need the Kubernetes API, so the server stays healthy without it.
#[test]
fn controllers_are_visible_while_the_kubernetes_api_is_away() {
    let scratch = Scratch::new();
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hub", "cluster": {"server": format!("http://{away}")}}],
        "users": [{"name": "user", "user": {}}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "user", "namespace": "kindling"}}],
        "current-context": "hub",
    });
    scratch.write("kubeconfig", kubeconfig.to_string());
    let server = ServeProcess::start(&scratch, &[], &["--kube-api", "--kubeconfig", "kubeconfig"]);
    let health = server.request("GET /health", "");
    let expected = json!({"leader": false, "synced": false});
    assert_eq!((health.status, &health.json()["kubernetes"]), (200, &expected), "{health:?}");
    let text = metrics(&server);
    for line in [
        "kindling_kube_leader 0",
        "# TYPE kindling_kube_queue_depth gauge",
        r#"kindling_kube_queue_depth{controller="infra_env"} 0"#,
        r#"kindling_kube_failing_objects{controller="agent"} 0"#,
        "# TYPE kindling_kube_reconciliation_seconds histogram",
        r#"kindling_kube_reconciliation_seconds_count{controller="agent_classification"} 0"#,
        r#"kindling_kube_reconciliation_failures_total{controller="infra_env"} 0"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
    server.stop();
}

#[test]
fn server_without_controllers_has_no_metrics_of_them() {
    let server = ServeProcess::start(&Scratch::new(), &[], &[]);
    assert!(!metrics(&server).contains("kindling_kube"));
    server.stop();
}

//! The admission webhooks of the program, as `docs/kubernetes.md` describes them.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::hub::Hub;
use crate::service::Service;

/// Maximum time until the leader has registered the webhooks.
const LIMIT: Duration = Duration::from_secs(60);

fn infra_env(namespace: &str, proxy: &str) -> Value {
    json!({"apiVersion": "agent-install.openshift.io/v1beta1", "kind": "InfraEnv",
        "metadata": {"name": "edge", "namespace": namespace}, "spec": {"pullSecretRef": {"name": "pull-secret"}, "proxy": {"httpProxy": proxy}}})
}

async fn dry_run(hub: &Hub, manifest: &Value) -> Output {
    hub.run_kubectl(&["apply", "--dry-run=server", "-f", "-"], manifest.to_string().as_bytes()).await
}

#[test]
fn dry_run_of_a_faulty_infra_env_names_the_field_as_the_page_shows() {
    Runtime::new().unwrap().block_on(async {
        let Some(hub) = Hub::shared().await else { return };
        hub.install_crds(&operator::crds::to_yaml().unwrap()).await;
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let url = format!("https://{address}");
        let options = ["--kube-webhooks-listen", &address, "--kube-webhooks-url", &url];
        let service = Service::start_with(hub, &options).await;
        let (faulty, good) =
            (infra_env(&service.namespace, "p"), infra_env(&service.namespace, "http://192.0.2.9:3128"));
        let begin = Instant::now();
        let denial = loop {
            let output = dry_run(hub, &faulty).await;
            if !output.status.success() {
                break String::from_utf8(output.stderr).unwrap();
            }
            assert!(begin.elapsed() < LIMIT, "the webhooks are not registered");
            sleep(Duration::from_millis(100)).await;
        };
        let page =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes.md")).unwrap();
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(denial.trim_end()), "{denial}");
        let output = dry_run(hub, &good).await;
        assert!(output.status.success(), "{output:?}");
        drop(service);
        let output = dry_run(hub, &good).await;
        assert!(!output.status.success(), "allowed although no replica responds: {output:?}");
        delete_configurations(hub).await;
        let output = dry_run(hub, &faulty).await;
        assert!(output.status.success(), "{output:?}");
    });
}

async fn delete_configurations(hub: &Hub) {
    let names = ["infraenv", "agent", "nmstateconfig", "agentclassification"]
        .map(|kind| format!("{kind}validators.admission.agentinstall.openshift.io"));
    let names = names.iter().map(String::as_str);
    let arguments =
        ["delete", "validatingwebhookconfigurations"].into_iter().chain(names).collect::<Vec<_>>();
    hub.kubectl(&arguments).await;
}

//! A fixed sequence of events in which the operator sends every kind of request.

use std::net::Ipv4Addr;
use std::time::Duration;

use inventory::id::{HostId, HostKey};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt as _};
use operator::crds::{Agent, AgentClassification, InfraEnv, NMStateConfig};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::machine::Machine;
use crate::replica::{Place, Replica};

const LIMIT: Duration = Duration::from_secs(60);
const ID: &str = "infraenv.agent-install.openshift.io/infra-env-id";
const LABEL: &str = "agentclassification.agent-install.openshift.io/size";

/// A kind of object in the scenario.
trait Kind:
    Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
    + Clone
    + std::fmt::Debug
    + Serialize
    + DeserializeOwned
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned
{
}

/// Runs the scenario with a service account. The scenario does not end if a permission is missing.
pub(crate) async fn run(place: &Place) {
    let replica = Replica::start(place, Ipv4Addr::new(127, 0, 0, 1)).await;
    place.create_objects().await;
    place.wait_for_denial().await;
    let infra_env = place.wait_for::<InfraEnv>("env", has_image).await;
    place.wait_for::<InfraEnv>("faulty", has_fault).await;
    let infra_env_id = infra_env.annotations()[ID].parse().unwrap();
    let key = HostKey { infra_env_id, host_id: HostId::fresh() };
    Machine::boot(&replica.inventory, infra_env_id, key.host_id).await.report(33_000_000_000).await;
    let agent = key.host_id.to_string();
    place.wait_for::<Agent>(&agent, |agent| agent.labels().contains_key(LABEL)).await;
    let is_counted = |it: &AgentClassification| it.status.as_ref().is_some_and(|it| it.matched_count == 1);
    place.wait_for("big", is_counted).await;
    place.remove_owner(&agent).await;
    place.wait_for::<Agent>(&agent, |agent| !agent.owner_references().is_empty()).await;
    place.delete::<AgentClassification>("big").await;
    replica.stop().await;

    // The next leader has an empty database and another webhook address.
    let replica = Replica::start(place, Ipv4Addr::new(127, 0, 0, 2)).await;
    eventually("host", async || replica.inventory.host(key).await.ok()).await;
    place.wait_for_configurations("127.0.0.2").await;
    place.wait_for_denial().await;
    place.delete::<InfraEnv>("env").await;
    place.delete::<InfraEnv>("faulty").await;
    replica.stop().await;
}

/// Returns `true` if the condition reports the fault. The operator writes it after the event.
fn has_fault(object: &InfraEnv) -> bool {
    object.status.as_ref().is_some_and(|status| status.conditions.iter().any(|it| it.status == "False"))
}

fn has_image(object: &InfraEnv) -> bool {
    object.status.as_ref().is_some_and(|status| !status.iso_download_url.is_empty())
}

/// Repeats an attempt until it returns `Some`.
async fn eventually<T>(subject: &str, attempt: impl AsyncFn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = attempt().await {
            return value;
        }
        assert!(begin.elapsed() < LIMIT, "{subject}");
        sleep(Duration::from_millis(50)).await;
    }
}

impl Place {
    fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.hub.admin(), &self.namespace)
    }

    /// Creates an object. Retries, because a webhook may be configured before it can respond.
    async fn create<K: Kind>(&self, object: Value) {
        let object: K = serde_json::from_value(object).unwrap();
        let api = self.api::<K>();
        eventually("creation", async || api.create(&PostParams::default(), &object).await.ok()).await;
    }

    async fn create_objects(&self) {
        // The Secret and the ConfigMap have no label, so the operator must read and label them.
        self.create::<Secret>(json!({
            "metadata": {"name": "pull-secret"},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#},
        }))
        .await;
        let registries =
            "[[registry]]\nlocation = \"quay.io\"\n\n[[registry.mirror]]\nlocation = \"mirror.example\"\n";
        self.create::<ConfigMap>(
            json!({"metadata": {"name": "mirrors"}, "data": {"registries.conf": registries}}),
        )
        .await;
        self.create::<AgentClassification>(json!({
            "metadata": {"name": "big"},
            "spec": {"labelKey": "size", "labelValue": "big", "query": ".cpu.count >= 4"},
        }))
        .await;
        let interface = json!({"name": "nic0", "type": "ethernet", "state": "up",
            "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": "192.0.2.11", "prefix-length": 24}]}});
        self.create::<NMStateConfig>(json!({
            "metadata": {"name": "net", "labels": {"net": "site"}},
            "spec": {
                "interfaces": [{"name": "nic0", "macAddress": "52:54:00:00:00:01"}],
                "config": {"interfaces": [interface]},
            },
        }))
        .await;
        self.create::<InfraEnv>(self.infra_env("env", "")).await;
        // The webhooks accept an OpenShift version without a base image, because the image may be added later.
        let mut faulty = self.infra_env("faulty", "");
        faulty["spec"]["osImageVersion"] = json!("4.99");
        self.create::<InfraEnv>(faulty).await;
    }

    fn infra_env(&self, name: &str, ssh_key: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {
            "pullSecretRef": {"name": "pull-secret"},
            "mirrorRegistryRef": {"name": "mirrors", "namespace": self.namespace},
            "nmStateConfigLabelSelector": {"matchLabels": {"net": "site"}},
            "sshAuthorizedKey": ssh_key,
        }})
    }

    /// Waits until the webhooks deny a faulty InfraEnv.
    async fn wait_for_denial(&self) {
        let denied: InfraEnv = serde_json::from_value(self.infra_env("denied", "key")).unwrap();
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let api = self.api::<InfraEnv>();
        eventually("denial", async || {
            let error = api.create(&params, &denied).await.err()?.to_string();
            error.contains("spec.sshAuthorizedKey: ").then_some(())
        })
        .await;
    }

    /// Waits until the URLs of all configurations contain `host`.
    async fn wait_for_configurations(&self, host: &str) {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.hub.admin());
        for kind in ["agentclassification", "agent", "infraenv", "nmstateconfig"] {
            let name = format!("{kind}validators.admission.agentinstall.openshift.io{}", self.suffix);
            eventually(&name, async || {
                let webhooks = api.get(&name).await.ok()?.webhooks?;
                webhooks.first()?.client_config.url.as_ref()?.contains(host).then_some(())
            })
            .await;
        }
    }

    async fn wait_for<K: Kind>(&self, name: &str, is_met: impl Fn(&K) -> bool) -> K {
        let api = self.api::<K>();
        eventually(name, async || api.get(name).await.ok().filter(&is_met)).await
    }

    async fn remove_owner(&self, agent: &str) {
        let (api, params) = (self.api::<Agent>(), PatchParams::default());
        let patch = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
        eventually("removal of the owner", async || api.patch(agent, &params, &patch).await.ok()).await;
    }

    /// Deletes an object, and waits until the operator has removed its finalizer.
    async fn delete<K: Kind>(&self, name: &str) {
        let api = self.api::<K>();
        let _ = api.delete(name, &DeleteParams::default()).await.unwrap();
        eventually(name, async || api.get_opt(name).await.unwrap().is_none().then_some(())).await;
    }
}

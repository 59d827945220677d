//! Runs the life cycles of an InfraEnv and of an Agent, with the actions of a user.

use inventory::ErrorKind;
use inventory::id::{HostId, InfraEnvId};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use operator::crds::{Agent, InfraEnv};
use serde_json::json;

use crate::machine::Machine;
use crate::pool::{edit_agent, id_of, reason, role, state, wait_for_agent};
use crate::site::{Site, iso_url};

/// The kind of object whose life cycle is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    InfraEnv,
    /// An Agent. Its InfraEnv exists before and after the life cycle.
    Agent(InfraEnvId),
}

impl Life {
    /// Creates, changes and deletes the object. Panics if a state is not the expected one.
    pub(crate) async fn run(self, site: &Site) {
        match self {
            Self::InfraEnv => infra_env(site).await,
            Self::Agent(id) => agent(site, id).await,
        }
    }
}

async fn infra_env(site: &Site) {
    site.create_pull_secret("pull-secret").await;
    let created = site.create_infra_env("pool", |_| ()).await;
    let object = site.wait_for_image("pool").await;
    let id = id_of(&object);
    assert_eq!(id.to_string(), created.uid().unwrap());
    assert_eq!(object.finalizers(), ["infraenv.agent-install.openshift.io/ai-deprovision"]);
    let secret = site.api::<Secret>().get("pull-secret").await.unwrap();
    assert_eq!(secret.labels()["agent-install.openshift.io/watch"], "true");
    let first = iso_url(&object);
    assert!(first.contains(&id.to_string()), "{first}");

    site.patch_spec("pool", json!({"additionalNTPSources": ["a.example.com"]})).await;
    let object = site.wait_for("pool", |it| iso_url(it) != first).await;
    assert_eq!(id_of(&object), id);
    let record = site.inventory.infra_env(id).await.unwrap();
    let urls = site.inventory.image_urls(&record).await.unwrap();
    assert_eq!(iso_url(&object), urls.iso.reveal());
    site.patch_spec("pool", json!({"additionalNTPSources": null})).await;
    site.wait_for("pool", |it| iso_url(it) == first).await;

    site.delete::<InfraEnv>("pool").await;
    site.wait_until_gone::<InfraEnv>("pool").await;
    assert_eq!(site.inventory.infra_env(id).await.unwrap_err().kind(), ErrorKind::NotFound);
}

async fn agent(site: &Site, id: InfraEnvId) {
    let host = HostId::fresh();
    let machine = Machine::boot(&site.inventory, id, host).await;
    let created = wait_for_agent(site, host, |agent| agent.status.is_some()).await;
    machine.report(33_000_000_000).await;
    wait_for_agent(site, host, |agent| {
        let label = "inventory.agent-install.openshift.io/cpu-architecture";
        let status = agent.status.as_ref();
        agent.labels().contains_key(label)
            && status.is_some_and(|it| it.inventory.cpu.clock_megahertz == 2400)
    })
    .await;
    machine.synchronize_clock().await;
    wait_for_agent(site, host, |agent| state(agent) == "known-unbound").await;

    edit_agent(site, host, json!({"approved": true})).await;
    wait_for_agent(site, host, |agent| reason(agent, "RequirementsMet") == "AgentIsReady").await;
    assert!(site.inventory.host(machine.key).await.unwrap().choices.approved);
    edit_agent(site, host, json!({"hostname": "first", "role": "worker"})).await;
    let agent = wait_for_agent(site, host, |agent| role(agent) == "worker").await;
    assert_eq!(agent.uid(), created.uid());
    assert_eq!(site.inventory.host(machine.key).await.unwrap().choices.hostname, "first");

    site.delete::<Agent>(&host.to_string()).await;
    site.wait_until_gone::<Agent>(&host.to_string()).await;
    assert_eq!(site.inventory.host(machine.key).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(site.wait_for_image("pool").await.finalizers().len(), 1);
}

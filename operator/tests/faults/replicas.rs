//! Tests a leader paused for longer than its lease, while the leader's writes are in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::{Method, StatusCode};
use inventory::id::{HostId, InfraEnvId};
use kube::ResourceExt as _;
use kube::api::ListParams;
use operator::Leadership;
use operator::crds::{Agent, InfraEnv};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::hub::{Fault, FaultProxy, Rule};
use crate::machine::Machine;
use crate::pool::{
    create_pool, edit_agent, open_site, reason, role, state, summary, wait_for_agent, wait_until,
};
use crate::site::{Site, hub, iso_url};

/// A running operator and its leadership.
struct Replica {
    leadership: Leadership,
    task: JoinHandle<()>,
    end: oneshot::Sender<()>,
}

impl Replica {
    fn start(site: &Site, identity: &str, client: kube::Client) -> Self {
        let operator = site.operator(identity, client);
        let leadership = operator.leadership();
        let (end, ended) = oneshot::channel::<()>();
        let task = tokio::spawn(operator.run(async {
            let _ = ended.await;
        }));
        Self { leadership, task, end }
    }
}

/// A site with an InfraEnv and Agents.
struct Pool {
    site: Site,
    id: InfraEnvId,
    /// A host whose Agent the test edits.
    edited: HostId,
    /// A host whose Agent the test deletes.
    deleted: HostId,
}

impl Pool {
    async fn boot(&self, host: HostId) -> Machine {
        let machine = Machine::boot(&self.site.inventory, self.id, host).await;
        machine.report(33_000_000_000).await;
        machine.synchronize_clock().await;
        machine
    }

    /// Waits for the Agent of a host. The host must have sent all reports.
    async fn wait_until_known(&self, host: HostId) {
        wait_for_agent(&self.site, host, |agent| state(agent) == "known-unbound").await;
    }

    /// Returns the uid and version of each object.
    async fn versions(&self) -> BTreeMap<String, (Option<String>, Option<String>)> {
        let params = ListParams::default();
        let agents = self.site.api::<Agent>().list(&params).await.unwrap().items;
        let infra_envs = self.site.api::<InfraEnv>().list(&params).await.unwrap().items;
        let agents = agents.iter().map(|it| (it.name_any(), (it.uid(), it.resource_version())));
        let infra_envs = infra_envs.iter().map(|it| (it.name_any(), (it.uid(), it.resource_version())));
        agents.chain(infra_envs).collect()
    }

    /// Waits until no object changes any more, and returns the versions.
    async fn settled_versions(&self) -> BTreeMap<String, (Option<String>, Option<String>)> {
        let mut versions = self.versions().await;
        loop {
            sleep(Duration::from_secs(2)).await;
            let next = self.versions().await;
            if next == versions {
                return versions;
            }
            versions = next;
        }
    }
}

/// Holds one write of each kind by the leader, and then pauses the leader. Returns the previous image URL.
async fn pause_with_writes(pool: &Pool, proxy: &FaultProxy, new: HostId) -> String {
    let site = &pool.site;
    let url = iso_url(&site.wait_for_image("pool").await);
    proxy.add(Rule::new(Fault::Hold).filter(|method, _| method != Method::GET));
    site.patch_spec("pool", json!({"additionalNTPSources": ["a.example.com"]})).await;
    edit_agent(site, pool.edited, json!({"approved": true})).await;
    site.delete::<Agent>(&pool.deleted.to_string()).await;
    pool.boot(new).await;
    let expected =
        ["PATCH agents", "PATCH agents/status", "PATCH infraenvs/status", "PATCH leases", "POST agents"];
    let expected = BTreeSet::from(expected.map(str::to_owned));
    wait_until("writes in flight", async || {
        let requests = proxy.requests().into_iter().filter(|request| request.fault == Some(Fault::Hold));
        expected == requests.map(|request| summary(&request.method, &request.uri)).collect()
    })
    .await;
    proxy.freeze();
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_writes_of_a_paused_leader_change_nothing() {
    let Some(hub) = hub().await else { return };
    let (site, proxy) = (open_site(hub).await, hub.fault_proxy());
    let first = Replica::start(&site, "first", proxy.client(&site.user.token));
    let id = create_pool(&site).await;
    let [edited, deleted, new] = [(); 3].map(|()| HostId::fresh());
    let pool = Pool { site, id, edited, deleted };
    let site = &pool.site;
    let machine = pool.boot(edited).await;
    pool.boot(deleted).await;
    pool.wait_until_known(edited).await;
    pool.wait_until_known(deleted).await;
    let second = Replica::start(site, "second", site.client());
    let url = pause_with_writes(&pool, &proxy, new).await;
    let mark = hub.audit_mark().await;

    wait_until("another leader", async || second.leadership.is_valid()).await;
    assert!(!first.leadership.is_valid());
    site.wait_for("pool", |object| iso_url(object) != url).await;
    wait_for_agent(site, edited, |agent| reason(agent, "RequirementsMet") == "AgentIsReady").await;
    site.wait_until_gone::<Agent>(&deleted.to_string()).await;
    pool.wait_until_known(new).await;
    edit_agent(site, edited, json!({"hostname": "later"})).await;
    wait_until("hostname", async || {
        site.inventory.host(machine.key).await.unwrap().choices.hostname == "later"
    })
    .await;
    let before = pool.settled_versions().await;

    let held_count = proxy.requests().iter().filter(|request| request.fault == Some(Fault::Hold)).count();
    proxy.remove_all();
    proxy.release();
    proxy.thaw();
    wait_until("late writes", async || proxy.held_responses().len() >= held_count).await;
    for response in proxy.held_responses() {
        let expected = match summary(&response.method, &response.uri).as_str() {
            // This Agent was deleted while the leader was paused.
            "PATCH agents" if response.uri.path().contains(&deleted.to_string()) => StatusCode::NOT_FOUND,
            _ => StatusCode::CONFLICT,
        };
        assert_eq!(response.status, expected, "{response:?}");
    }
    assert_eq!(pool.settled_versions().await, before);
    assert!(second.leadership.is_valid() && !first.leadership.is_valid());
    assert_eq!(site.inventory.host(machine.key).await.unwrap().choices.hostname, "later");
    let writes = site.accepted_writes_since(mark).await;
    assert_eq!(writes.iter().filter(|write| *write == "create agents").count(), 1, "{writes:?}");

    // When the first replica is the leader again, it must also reconcile the objects that it had claimed before the
    // pause.
    second.end.send(()).unwrap();
    second.task.await.unwrap();
    wait_until("the first leader", async || first.leadership.is_valid()).await;
    let url = iso_url(&site.wait_for_image("pool").await);
    site.patch_spec("pool", json!({"additionalNTPSources": ["b.example.com"]})).await;
    site.wait_for("pool", |object| iso_url(object) != url).await;
    for host in [edited, new] {
        edit_agent(site, host, json!({"role": "worker"})).await;
        wait_for_agent(site, host, |agent| role(agent) == "worker").await;
    }
    drop(first.end);
    first.task.await.unwrap();
}

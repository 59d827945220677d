use assisted::HostId;
use assisted::cluster::{ClusterCreateParams, ClusterUpdateParams};
use assisted::infra_env::InfraEnvCreateParams;
use assisted::reply::StepReply;
use serde_json::json;

use super::*;
use crate::Inventory;
use crate::Secret;
use crate::id::{HostKey, InfraEnvId};
use crate::service::hosts::recent_replies::ReplyDigest;
use crate::service::hosts::registration::Registration;
use crate::service::test_inventory::{PULL_SECRET, TestInventory, infra_env_params};

/// An inventory with a cluster and an infra-env.
struct Site {
    test: TestInventory,
    cluster: ClusterId,
    infra_env: InfraEnvId,
}

impl Site {
    async fn open() -> Self {
        let test = TestInventory::open().await;
        let cluster = register_cluster(&test.inventory).await;
        let params = InfraEnvCreateParams { cluster_id: Some(cluster), ..infra_env_params() };
        let infra_env = test.inventory.register_infra_env(params, None).await.unwrap().id;
        Self { test, cluster, infra_env }
    }

    fn inventory(&self) -> &Inventory {
        &self.test.inventory
    }

    async fn add_host(&self) -> HostKey {
        add_host(self.inventory(), self.infra_env).await
    }

    async fn view(&self) -> Arc<CurrentView> {
        self.inventory().cluster_view(Some(self.cluster)).await.unwrap().unwrap()
    }

    async fn report(&self, host: HostKey, hostname: &str) {
        let output = json!({"hostname": hostname, "cpu": {"count": 4}, "disks": []}).to_string();
        let reply = json!({"step_type": "inventory", "step_id": "inventory-1", "output": output}).to_string();
        let digest = ReplyDigest::new(reply.as_bytes());
        let reply: StepReply = serde_json::from_str(&reply).unwrap();
        self.inventory().store_reply(host, (&reply, digest), None).await.unwrap();
    }
}

async fn register_cluster(inventory: &Inventory) -> ClusterId {
    let params = ClusterCreateParams::new("site", "4.18", Secret::new(PULL_SECRET));
    inventory.register_cluster(params, None).await.unwrap().id
}

async fn add_host(inventory: &Inventory, infra_env_id: InfraEnvId) -> HostKey {
    let key = HostKey { infra_env_id, host_id: HostId::fresh() };
    let registration = Registration { key, agent_version: String::new(), request: None };
    inventory.register_host(&registration).await.unwrap();
    key
}

fn names(view: &CurrentView) -> Vec<String> {
    let mut names: Vec<_> = view.hosts().iter().map(|host| host.view.hostname().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn unchanged_view_is_shared_and_only_changed_hosts_are_read_again() {
    let site = Site::open().await;
    let (one, other) = (site.add_host().await, site.add_host().await);
    site.report(one, "one").await;
    let first = site.view().await;
    assert!(Arc::ptr_eq(&first, &site.view().await));
    assert_eq!(names(&first), ["", "one"]);
    site.report(other, "other").await;
    let second = site.view().await;
    assert_eq!(names(&second), ["one", "other"]);
    let view_of =
        |view: &CurrentView, host: HostKey| Arc::clone(&view.host(&host.record_key()).unwrap().view);
    assert!(Arc::ptr_eq(&view_of(&first, one), &view_of(&second, one)), "it was not read again");
}

#[tokio::test]
async fn view_follows_hosts_that_join_and_leave() {
    let site = Site::open().await;
    let inventory = site.inventory();
    assert_eq!(site.view().await.hosts().len(), 0);
    let host = site.add_host().await;
    assert_eq!(site.view().await.hosts().len(), 1);
    inventory.deregister_host(host, None).await.unwrap();
    assert_eq!(site.view().await.hosts().len(), 0);
    site.add_host().await;
    let pool = inventory.register_infra_env(infra_env_params(), None).await.unwrap().id;
    for _ in 0..3 {
        add_host(inventory, pool).await;
    }
    assert_eq!(site.view().await.hosts().len(), 1);
    assert_eq!(inventory.cluster_views().known_cluster(&host.record_key()), None);
}

#[tokio::test]
async fn view_follows_the_cluster_and_its_infra_envs() {
    let site = Site::open().await;
    let inventory = site.inventory();
    let before = site.view().await;
    assert_eq!(before.facts().cluster.infra_env_ntp_sources, ["ntp.example.com".into()]);
    let params = ClusterUpdateParams { name: Some("renamed".to_owned()), ..ClusterUpdateParams::default() };
    inventory.update_cluster(site.cluster, params, None).await.unwrap();
    let after = site.view().await;
    assert_eq!(&*after.facts().cluster.name, "renamed");
    assert!(after.cluster_generation() > before.cluster_generation());
    inventory.deregister_cluster(site.cluster, None).await.unwrap();
    assert!(inventory.cluster_view(Some(site.cluster)).await.unwrap().is_none());
}

#[tokio::test]
async fn views_are_bounded_in_bytes() {
    let site = Site::open().await;
    let inventory = site.inventory();
    site.add_host().await;
    let views = ClusterViews::with_max_bytes(inventory.records().store().feed(), 1);
    let other = register_cluster(inventory).await;
    let view = |cluster| views.of_cluster(inventory.records(), cluster);
    let first = view(site.cluster).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &view(site.cluster).await.unwrap().unwrap()), "the last view stays");
    view(other).await.unwrap().unwrap();
    assert!(!Arc::ptr_eq(&first, &view(site.cluster).await.unwrap().unwrap()));
    let content = |read: fn(&mut Content) -> usize| views.shared.with_content(read);
    assert_eq!(content(|content| content.next_compared().len()), 2, "a cluster and its host");
    views.shared.drop_all();
    assert_eq!(content(|content| content.next_compared().len()), 0);
}

#[tokio::test]
async fn change_during_a_load_is_not_hidden_by_its_result() {
    let site = Site::open().await;
    let host = site.add_host().await;
    let views = site.inventory().cluster_views();
    let (log, _) = views.shared.with_content(|content| content.begin_load(site.cluster));
    let loaded = load::full(site.inventory().records(), site.cluster).await.unwrap().map(Arc::new);
    site.report(host, "late").await;
    let joined = site.add_host().await;
    views.shared.with_content(|content| content.end_load(site.cluster, &log, loaded));
    let view = site.view().await;
    assert_eq!(names(&view), ["", "late"]);
    assert!(view.host(&joined.record_key()).is_some());
}

#[tokio::test]
async fn refreshed_view_includes_unreported_joins_and_leaves() {
    let site = Site::open().await;
    let (known, leaving) = (site.add_host().await, site.add_host().await);
    let before = site.view().await;
    let joined = site.add_host().await;
    site.inventory().deregister_host(leaving, None).await.unwrap();
    site.report(known, "known").await;
    // Simulates that another replica made these changes and the feed has reported only the last one.
    let outdated = content::Outdated { hosts: [known.record_key()].into(), settings: false };
    let records = site.inventory().records();
    let after = load::refresh(records, &before, &outdated).await.unwrap().unwrap();
    assert_eq!(names(&after), ["", "known"]);
    assert!(after.host(&joined.record_key()).is_some() && after.host(&leaving.record_key()).is_none());
    assert_eq!(after.membership_changes(), records.membership_changes(site.cluster.0).await.unwrap());
}

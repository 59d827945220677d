//! A leader whose process is stopped for longer than its lease, while its writes are in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use kube::Resource;
use kube::api::{Api, ListParams, Patch, PatchParams};
use operator::crds::{Agent, InfraEnv};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::database::{TestDatabase, postgres_url};
use crate::hub::Hub;
use crate::objects::{create_infra_envs, create_pull_secret, infra_env_id};
use crate::service::Service;

const INFRA_ENVS: usize = 60;
const HOSTS: usize = 200;
/// Number of Agents after which the leader is stopped: others are being created then.
const FIRST_AGENTS: usize = 20;
const LIMIT: Duration = Duration::from_secs(120);
/// Time in which a resumed process sends what it had prepared.
const AFTER_RESUMPTION: Duration = Duration::from_secs(8);
/// Time without changes after which the objects count as settled.
const QUIET: Duration = Duration::from_secs(3);
const NTP: &str = "ntp.example.org";

/// Waits until a condition holds.
async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !condition().await {
        assert!(begin.elapsed() < LIMIT, "{what}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// The objects of one namespace.
struct Objects {
    infra_envs: Api<InfraEnv>,
    agents: Api<Agent>,
}

impl Objects {
    async fn agents(&self) -> Vec<Agent> {
        self.agents.list(&ListParams::default()).await.unwrap().items
    }

    /// Returns the URL of the image of each InfraEnv. Empty: it has no image.
    async fn image_urls(&self) -> BTreeMap<String, String> {
        let infra_envs = self.infra_envs.list(&ListParams::default()).await.unwrap().items;
        let entry = |infra_env: InfraEnv| {
            let url = infra_env.status.map_or_else(String::new, |status| status.iso_download_url);
            (infra_env.metadata.name.unwrap(), url)
        };
        infra_envs.into_iter().map(entry).collect()
    }

    /// Changes the images of some InfraEnvs.
    async fn change_images(&self, numbers: Range<usize>) {
        for number in numbers {
            let name = format!("site-{number}");
            let patch = Patch::Merge(json!({"spec": {"additionalNTPSources": [NTP]}}));
            self.infra_envs.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        }
    }

    /// Returns `true` if every host has an Agent with its inventory.
    async fn has_all_inventories(&self) -> bool {
        let agents = self.agents().await;
        let has_inventory =
            |agent: &Agent| agent.status.as_ref().is_some_and(|status| !status.inventory.hostname.is_empty());
        agents.len() == HOSTS && agents.iter().all(has_inventory)
    }

    /// Returns the versions after a time without changes.
    async fn settled_versions(&self) -> BTreeSet<(String, String)> {
        let mut versions = self.versions().await;
        loop {
            sleep(QUIET).await;
            let later = self.versions().await;
            if later == versions {
                return versions;
            }
            versions = later;
        }
    }

    async fn versions(&self) -> BTreeSet<(String, String)> {
        let agents = versions(&self.agents).await;
        versions(&self.infra_envs).await.into_iter().chain(agents).collect()
    }
}

fn has_images(urls: &BTreeMap<String, String>) -> bool {
    urls.values().all(|url| !url.is_empty())
}

async fn versions<K>(api: &Api<K>) -> Vec<(String, String)>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let version = |object: &K| {
        let metadata = object.meta();
        (metadata.uid.clone().unwrap(), metadata.resource_version.clone().unwrap())
    };
    api.list(&ListParams::default()).await.unwrap().items.iter().map(version).collect()
}

#[test]
fn leader_stopped_beyond_its_lease_overwrites_nothing() {
    let Some(server) = postgres_url() else { return };
    let runtime = Runtime::new().unwrap();
    let Some(hub) = runtime.block_on(Hub::shared()) else { return };
    let database = runtime.block_on(TestDatabase::create(&server));
    runtime.block_on(stop_and_resume_a_leader(hub, &database.url));
    runtime.block_on(database.drop());
}

async fn stop_and_resume_a_leader(hub: &Hub, database: &str) {
    hub.install_crds(&operator::crds::to_yaml().unwrap()).await;
    let options = ["--database-url", database];
    let stopped = Service::start_with(hub, &options).await;
    let (admin, namespace) = (hub.admin(), stopped.namespace.clone());
    until("no leader", async || stopped.is_leader().await).await;
    let successor = stopped.start_replica(&options).await;
    let objects = Objects {
        infra_envs: Api::namespaced(admin.clone(), &namespace),
        agents: Api::namespaced(admin.clone(), &namespace),
    };
    create_pull_secret(&admin, &namespace).await;
    create_infra_envs(&admin, &namespace, "site", INFRA_ENVS).await;
    until("InfraEnvs without images", async || has_images(&objects.image_urls().await)).await;
    let first_urls = objects.image_urls().await;
    let id = infra_env_id(&admin, &namespace, "site-0").await.to_string();
    let number = HOSTS.to_string();
    let hosts = ["simulate", "--url", &successor.url, "--infra-env", &id, "--hosts", &number];
    let mut hosts = successor.run(&[&hosts[..], &["--poll-interval", "1s", "--duration", "5m"]].concat());
    until("no Agents", async || objects.agents().await.len() >= FIRST_AGENTS).await;
    objects.change_images(0..INFRA_ENVS / 2).await;
    stopped.pause();
    objects.change_images(INFRA_ENVS / 2..INFRA_ENVS).await;
    let before = objects.agents().await.len();
    assert!(before < HOSTS, "the leader was stopped after its work");
    until("no successor", async || successor.is_leader().await).await;
    until("Agents without inventories", async || objects.has_all_inventories().await).await;
    let has_new_images = async || {
        let urls = objects.image_urls().await;
        has_images(&urls) && urls.iter().all(|(name, url)| *url != first_urls[name])
    };
    until("old images", has_new_images).await;
    hosts.kill().unwrap();
    hosts.wait().unwrap();
    let settled = objects.settled_versions().await;
    stopped.resume();
    until("two leaders", async || !stopped.is_leader().await).await;
    sleep(AFTER_RESUMPTION).await;
    assert!(successor.is_leader().await);
    assert_eq!(objects.versions().await, settled);
    assert_eq!(objects.agents().await.len(), HOSTS);
}

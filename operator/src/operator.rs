//! The operator: the watches, queues and controllers of this process.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use inventory::Inventory;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::bridge::{self, HostBridge, HostIndex, InfraEnvIndex};
use crate::cached_agent::CachedAgent;
use crate::caches::{Cache, CachedObject};
use crate::controllers::agent::{AgentController, StatusTimes};
use crate::controllers::classification::ClassificationController;
use crate::controllers::infra_env::{AppliedReferences, InfraEnvController};
use crate::controllers::{self, Controller};
use crate::crds::AgentClassification;
use crate::crds::names::{LABEL_TRUE, WATCH_LABEL};
use crate::events::EventRecorder;
use crate::leader::{Election, Leadership};
use crate::mapping::{self, InfraEnvCaches};
use crate::memory;
use crate::metrics::ControllerMetrics;
use crate::object::ObjectKey;
use crate::paced_client::paced;
use crate::queue::Queue;
use crate::requests::RequestCounts;
use crate::settings::Settings;
use crate::watches;
use crate::webhooks::{WebhookSettings, Webhooks};
use crate::writer::{NamespacedKind, Writer};

/// Maximum number of objects of one kind to reconcile at the same time.
const WORKERS: usize = 8;
/// Maximum duration of a watch. A new watch is needed because a broken connection goes unnoticed if the network drops
/// its packets.
const MAX_WATCH_SECONDS: u32 = 90;

/// The operator of this process. It runs until [`Operator::run`] ends.
pub struct Operator {
    client: Client,
    inventory: Inventory,
    settings: Settings,
    leadership: Leadership,
    election: Option<Election>,
    caches: InfraEnvCaches,
    agents: Cache<CachedAgent>,
    classifications: Cache<AgentClassification>,
    queues: Queues,
    bridge: HostBridge,
    index: InfraEnvIndex,
    metrics: OperatorMetrics,
    webhooks: Option<Webhooks>,
}

#[derive(Clone, Debug, Default)]
struct Queues {
    infra_envs: Queue<ObjectKey>,
    agents: Queue<ObjectKey>,
    classifications: Queue<ObjectKey>,
}

/// The measurements of the operator, for metrics. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct OperatorMetrics {
    /// Counts of requests to the Kubernetes API, without watches and lease requests.
    pub requests: RequestCounts,
    /// Queue depths and counts of the controllers.
    pub controllers: Vec<ControllerMetrics>,
    is_synced: Arc<AtomicBool>,
}

impl OperatorMetrics {
    /// Returns `true` if the initial lists of all watches are complete. The controllers then run if this replica is the
    /// leader.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.is_synced.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Operator {
    /// Creates an operator. It does nothing before [`Operator::run`] is called.
    #[must_use]
    pub fn new(client: Client, inventory: Inventory, settings: Settings) -> Self {
        let election = Election::new(client.clone(), &settings.lease_namespace, settings.identity.clone());
        let watches = settings.namespaces.len().max(1);
        let caches = InfraEnvCaches {
            infra_envs: Cache::new(watches),
            networks: Cache::new(watches),
            secrets: Cache::new(watches),
            config_maps: Cache::new(watches),
        };
        let queues = Queues::default();
        let metrics = OperatorMetrics {
            requests: RequestCounts::default(),
            controllers: vec![
                ControllerMetrics::new(InfraEnvController::NAME, queues.infra_envs.clone()),
                ControllerMetrics::new(AgentController::NAME, queues.agents.clone()),
                ControllerMetrics::new(ClassificationController::NAME, queues.classifications.clone()),
            ],
            is_synced: Arc::default(),
        };
        let agents = Cache::new(watches);
        let bridge = HostBridge {
            inventory: inventory.clone(),
            hosts: HostIndex::default(),
            agents: queues.agents.clone(),
            cached_agents: agents.clone(),
        };
        let index = InfraEnvIndex::following(&caches.infra_envs);
        Self {
            client,
            inventory,
            settings,
            leadership: election.leadership(),
            election: Some(election),
            caches,
            agents,
            classifications: Cache::new(watches),
            queues,
            bridge,
            index,
            metrics,
            webhooks: None,
        }
    }

    /// Enables the admission webhooks.
    #[must_use]
    pub fn with_webhooks(self, webhooks: WebhookSettings) -> Self {
        let (client, inventory) = (self.client.clone(), self.inventory.clone());
        let webhooks = Webhooks::new(client, inventory, &self.settings, webhooks);
        Self { webhooks: Some(webhooks), ..self }
    }

    /// Returns the leadership of this replica, which decides whether the replica may write.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Returns the metrics, which are updated while the operator runs.
    #[must_use]
    pub fn metrics(&self) -> OperatorMetrics {
        self.metrics.clone()
    }

    /// Watches and reconciles until `shutdown` completes, and then releases the lease.
    ///
    /// If the future is dropped, the operator stops as if the process was killed: the lease expires later.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let Some(election) = self.election.take() else { return };
        let mut tasks = JoinSet::new();
        self.watch_all(&mut tasks);
        if let Some(webhooks) = &self.webhooks {
            webhooks.start(&mut tasks, &self.caches);
        }
        let (end, ended) = watch::channel(false);
        let mut electing = JoinSet::new();
        electing.spawn(election.run(self.inventory.leadership(), ended));
        tokio::select! {
            () = self.work() => {}
            () = shutdown => {}
        }
        drop(tasks);
        // The tasks that write to the Kubernetes API have ended, so the election may release the lease.
        end.send_replace(true);
        electing.join_all().await;
    }

    /// Starts the watches, and registers the functions that fill the queues.
    fn watch_all(&self, tasks: &mut JoinSet<()>) {
        let caches = &self.caches;
        caches.fill(&self.queues.infra_envs);
        mapping::fill_agents(&self.queues.agents, &self.agents, &caches.infra_envs);
        let queues = (&self.queues.classifications, &self.queues.agents);
        mapping::fill_classifications(queues, &self.classifications, &self.agents);
        let all = watcher::Config::default().timeout(MAX_WATCH_SECONDS);
        self.watch(tasks, &self.classifications, &all);
        self.watch(tasks, &caches.infra_envs, &all);
        self.watch(tasks, &caches.networks, &all);
        let labelled = all.clone().labels(&format!("{WATCH_LABEL}={LABEL_TRUE}"));
        self.watch(tasks, &caches.secrets, &labelled);
        self.watch(tasks, &caches.config_maps, &labelled);
        self.watch(tasks, &self.agents, &all);
        let infra_envs = (caches.infra_envs.clone(), self.queues.infra_envs.clone());
        tasks.spawn(bridge::follow(self.bridge.clone(), self.index.clone(), infra_envs));
    }

    fn watch<O>(&self, tasks: &mut JoinSet<()>, cache: &Cache<O>, config: &watcher::Config)
    where
        O: CachedObject<Kind: NamespacedKind>,
    {
        if self.settings.namespaces.is_empty() {
            let api = Api::all(paced(self.client.clone()));
            tasks.spawn(watches::follow(cache.clone(), api, None, config.clone()));
        }
        for namespace in &self.settings.namespaces {
            let api = Api::namespaced(paced(self.client.clone()), namespace);
            tasks.spawn(watches::follow(cache.clone(), api, Some(namespace.clone()), config.clone()));
        }
    }

    /// Waits for the initial lists, and then runs the controllers and returns freed memory. Never returns.
    async fn work(&self) {
        let caches = &self.caches;
        tokio::join!(
            caches.infra_envs.synced(),
            caches.networks.synced(),
            caches.secrets.synced(),
            caches.config_maps.synced(),
            self.agents.synced(),
            self.classifications.synced()
        );
        self.metrics.is_synced.store(true, Ordering::Relaxed);
        let release = self.inventory.settings().after_large_work;
        tokio::join!(self.lead(), memory::release_after_work(&self.metrics.controllers, release));
    }

    /// Runs the controllers while this replica is the leader. Never returns.
    async fn lead(&self) {
        let (caches, mut leadership) = (&self.caches, self.leadership.clone());
        loop {
            leadership.gained().await;
            // The previous leader may have left unfinished work, so all objects are reconciled.
            self.index.clear();
            self.queues.infra_envs.clear();
            self.queues.agents.clear();
            self.queues.classifications.clear();
            caches.infra_envs.keys().into_iter().for_each(|key| self.queues.infra_envs.push(key));
            self.agents.keys().into_iter().for_each(|key| self.queues.agents.push(key));
            let classifications = self.classifications.keys();
            classifications.into_iter().for_each(|key| self.queues.classifications.push(key));
            tokio::select! {
                () = self.reconcile() => {}
                () = leadership.lost() => {}
            }
        }
    }

    /// Runs all controllers. Never returns.
    async fn reconcile(&self) {
        let writer = Writer::new(
            self.client.clone(),
            self.leadership.clone(),
            self.settings.requests_per_second,
            self.metrics.requests.clone(),
        );
        let webhooks = async {
            if let Some(webhooks) = &self.webhooks {
                webhooks.lead(&writer).await;
            }
        };
        let infra_envs = InfraEnvController {
            inventory: self.inventory.clone(),
            writer: writer.clone(),
            events: EventRecorder::new(writer.clone(), &self.settings.identity),
            caches: self.caches.clone(),
            bridge: self.bridge.clone(),
            index: self.index.clone(),
            applied: AppliedReferences::default(),
        };
        let agents = AgentController {
            inventory: self.inventory.clone(),
            writer: writer.clone(),
            infra_envs: self.caches.infra_envs.clone(),
            agents: self.agents.clone(),
            infra_env_ids: self.index.clone(),
            hosts: self.bridge.hosts.clone(),
            classifications: self.classifications.clone(),
            queries: Arc::default(),
            status_times: StatusTimes::default(),
        };
        let classifications = ClassificationController {
            inventory: self.inventory.clone(),
            writer: writer.clone(),
            agents: self.agents.clone(),
            classifications: self.classifications.clone(),
        };
        tokio::join!(
            self.run_controller(infra_envs, &self.queues.infra_envs),
            self.run_controller(agents, &self.queues.agents),
            self.run_controller(classifications, &self.queues.classifications),
            webhooks
        );
    }

    async fn run_controller<C: Controller>(&self, controller: C, queue: &Queue<ObjectKey>) {
        let metrics = self.metrics.controllers.iter().find(|metrics| metrics.name() == C::NAME);
        let metrics = metrics.cloned().unwrap_or_else(|| ControllerMetrics::new(C::NAME, queue.clone()));
        controllers::run(Arc::new(controller), queue.clone(), WORKERS, metrics).await;
    }
}

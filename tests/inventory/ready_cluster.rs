//! A cluster of three hosts that is ready to be installed.

use std::collections::BTreeMap;

use kindling::inventory::event::{Event, EventQuery};
use kindling::inventory::store::{Filter, Key, Kind, Row};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::FakeAgent;
use crate::fleet::{Fleet, commits, poll, reply_to_all, report_of, with_vips};
use crate::service::TestService;

/// The statuses in which clusters are assessed.
const ASSESSED: [&str; 3] = ["insufficient", "pending-for-input", "ready"];

/// A cluster whose first assessment makes it ready.
pub(crate) struct ReadyCluster<'a> {
    pub(crate) fleet: Fleet<'a>,
}

/// The effects of assessments: the generations of records, and the numbers of commits and of written hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writes {
    pub(crate) generations: BTreeMap<Key, i64>,
    commits: u64,
    hosts: u64,
}

/// Returns an inventory report of a host with too few CPU cores.
pub(crate) fn poor_report_of(number: usize) -> Value {
    let mut report = report_of(number);
    report["cpu"]["count"] = json!(1);
    report
}

/// Returns the status of a validation in the `validations_info` of a host or a cluster. Null before the first
/// assessment.
pub(crate) fn validation_status(resource: &Value, id: &str) -> Value {
    let text = resource["validations_info"].as_str().unwrap();
    let categories: BTreeMap<String, Vec<Value>> = serde_json::from_str(text).unwrap();
    let validation = categories.values().flatten().find(|validation| validation["id"] == id);
    validation.map_or(Value::Null, |validation| validation["status"].clone())
}

/// Returns the clusters that have changed since their last assessment.
pub(crate) async fn stale_clusters(service: &TestService) -> Vec<Uuid> {
    let basis = service.inventory.settings().assessment_basis();
    service.inventory.records().stale_clusters(&ASSESSED, basis.as_str(), 100).await.unwrap()
}

/// Returns the writes so far.
pub(crate) async fn writes(service: &TestService) -> Writes {
    let records = service.inventory.records();
    records.store_check_ins().await.unwrap();
    let mut generations = BTreeMap::new();
    for kind in [Kind::Cluster, Kind::InfraEnv, Kind::Host, Kind::Assessment] {
        let rows = records.store().list(Filter::all(kind)).await.unwrap();
        generations.extend(rows.into_iter().map(|row| (row.key, row.generation)));
    }
    Writes { generations, commits: commits(service), hosts: service.inventory.tasks().written_results() }
}

impl<'a> ReadyCluster<'a> {
    /// Number of hosts of the cluster.
    pub(crate) const HOSTS: usize = 3;

    /// Registers the cluster and its hosts, sends the replies of all agents, and assesses the cluster.
    pub(crate) async fn assemble(service: &'a TestService) -> Self {
        let fleet = Fleet::with_reports(service, Self::HOSTS, &with_vips()).await;
        let cluster = Self { fleet };
        // An agent receives the other steps only after an assessment of its inventory report.
        cluster.assess().await;
        for (number, agent) in cluster.agents().iter().enumerate() {
            let steps = poll(agent).await;
            reply_to_all(agent, &steps, number).await;
        }
        cluster.assess().await;
        let response = cluster.get().await;
        assert_eq!(response["status"], "ready", "{response:#}");
        cluster
    }

    pub(crate) fn service(&self) -> &'a TestService {
        self.fleet.service
    }

    pub(crate) fn agents(&self) -> &[FakeAgent<'a>] {
        &self.fleet.agents
    }

    pub(crate) fn id(&self) -> Uuid {
        self.fleet.cluster.parse().unwrap()
    }

    pub(crate) fn path(&self) -> String {
        format!("/v2/clusters/{}", self.fleet.cluster)
    }

    /// Returns the cluster as users see it.
    pub(crate) async fn get(&self) -> Value {
        self.fleet.get_cluster().await
    }

    pub(crate) async fn status(&self) -> String {
        self.get().await["status"].as_str().unwrap().to_owned()
    }

    /// Returns the statuses of the hosts, in the order of their registration.
    pub(crate) async fn host_statuses(&self) -> Vec<String> {
        let mut statuses = Vec::new();
        for agent in self.agents() {
            statuses.push(agent.stored_status().await);
        }
        statuses
    }

    /// Assesses all changed clusters. Returns the number of written hosts.
    pub(crate) async fn assess(&self) -> u64 {
        self.service().inventory.assess_clusters().await.unwrap()
    }

    /// Sends an inventory report with which a host cannot be installed.
    pub(crate) async fn report_poor(&self, number: usize) {
        let reply = self.agents()[number].reply_to_step("inventory", &poor_report_of(number)).await;
        reply.json_with_status(204);
    }

    /// Sends an inventory report with which a host can be installed.
    pub(crate) async fn report_good(&self, number: usize) {
        let reply = self.agents()[number].reply_to_step("inventory", &report_of(number)).await;
        reply.json_with_status(204);
    }

    /// Sends an inventory report that changes a host, but no status.
    pub(crate) async fn report_other_memory(&self, number: usize) {
        let mut report = report_of(number);
        report["memory"]["usable_bytes"] = json!(34_000_000_000_i64);
        let reply = self.agents()[number].reply_to_step("inventory", &report).await;
        reply.json_with_status(204);
    }

    pub(crate) async fn assessment(&self) -> Row {
        let key = Key { kind: Kind::Assessment, parent: None, id: self.id() };
        self.service().inventory.records().store().get(key).await.unwrap().unwrap()
    }

    pub(crate) async fn is_stale(&self) -> bool {
        stale_clusters(self.service()).await.contains(&self.id())
    }

    /// Returns the events with this name of the cluster and its hosts, oldest first.
    pub(crate) async fn events(&self, name: &str) -> Vec<Event> {
        let query = EventQuery { cluster: Some(self.id().into()), ..EventQuery::default() };
        let page = self.service().inventory.records().store().events(&query).await.unwrap();
        page.events.into_iter().filter(|event| event.name == name).collect()
    }

    pub(crate) async fn event_count(&self) -> usize {
        let query = EventQuery { cluster: Some(self.id().into()), ..EventQuery::default() };
        self.service().inventory.records().store().events(&query).await.unwrap().events.len()
    }
}

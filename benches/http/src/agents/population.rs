//! Fills the inventory of a server through its API, so that any build can be measured.

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::fleet::{AgentFleet, SimulatedHost};
use super::hardware::ReportSize;
use crate::client::{Connection, Target, write_get, write_post};
use crate::exchange::ExpectedResponse;
use crate::infra_env::{self, API, NewInfraEnv};
use crate::interrupt;
use crate::scale::{VERSION, network};

pub(crate) const CLUSTERS: &str = "/api/assisted-install/v2/clusters";
/// Number of hosts of each cluster.
pub(crate) const CLUSTER_HOSTS: u32 = 3;
/// Number of clients that fill the inventory concurrently.
const CLIENTS: usize = 16;

#[derive(Debug, Clone, Copy)]
pub(crate) struct HostPlan {
    pub(crate) infra_envs: u32,
    /// Number of static networks of each infra-env.
    pub(crate) networks: u32,
    /// Total number of hosts in all infra-envs.
    pub(crate) hosts: u32,
    pub(crate) report: ReportSize,
}

/// The contents of a server's inventory.
#[derive(Debug)]
pub(crate) struct Population {
    pub(crate) infra_envs: Vec<String>,
    pub(crate) fleet: AgentFleet,
}

/// Creates infra-envs, and registers hosts that have sent all their reports.
///
/// # Errors
///
/// Returns an error if the server refuses, or if a host does not become ready for the installation.
pub(crate) fn hosts(target: &Target, plan: HostPlan) -> Result<Population> {
    let mut connection = Connection::open(target)?;
    let infra_envs = infra_envs(target, plan.infra_envs, plan.networks)?;
    let hosts = (0..plan.hosts).zip(infra_envs.iter().cycle());
    let hosts = hosts.map(|(number, infra_env)| SimulatedHost::new(infra_env, number)).collect();
    let mut fleet = AgentFleet::new(hosts, plan.report)?;
    fleet.learn_version(&mut connection, target)?;
    boot(target, &fleet)?;
    for host in fleet.hosts.iter().take(1).chain(fleet.hosts.last()) {
        let response = get(&mut connection, &target.at(host.path()))?;
        let (status, info) = (text(&response, "status")?, text(&response, "status_info")?);
        ensure!(status == "known-unbound", "the status of a host is {status}: {info}");
    }
    Ok(Population { infra_envs, fleet })
}

/// Creates infra-envs with `networks` static networks each, and returns their ids.
///
/// # Errors
///
/// Returns an error if the server refuses.
pub(crate) fn infra_envs(target: &Target, count: u32, networks: u32) -> Result<Vec<String>> {
    let mut connection = Connection::open(target)?;
    let create = |number: u32| {
        let networks = network::hosts(u64::from(networks), u64::from(number))?;
        let name = format!("agents-{number}");
        let body = NewInfraEnv { name: &name, version: VERSION, networks: &networks }.body();
        infra_env::post(&mut connection, target, &body)
    };
    (0..count).map(create).collect()
}

/// Creates clusters, each with an infra-env and [`CLUSTER_HOSTS`] hosts.
///
/// # Errors
///
/// Returns an error if the server refuses.
pub(crate) fn clusters(target: &Target, count: u32) -> Result<()> {
    let numbers: Vec<u32> = (0..count).collect();
    let mut connection = Connection::open(target)?;
    let mut fleet = AgentFleet::new(cluster(&mut connection, target, 0)?, ReportSize::Small)?;
    fleet.learn_version(&mut connection, target)?;
    boot(target, &fleet)?;
    in_parallel(target, numbers.get(1..).unwrap_or_default(), |connection, number| {
        for host in cluster(connection, target, *number)? {
            fleet.register(connection, target, &host)?;
            fleet.check_in(connection, target, &host)?;
        }
        Ok(())
    })
}

/// Creates a cluster and its infra-env, and returns its hosts, which are not registered yet.
fn cluster(connection: &mut Connection, target: &Target, number: u32) -> Result<Vec<SimulatedHost>> {
    let pull_secret = json!({"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}).to_string();
    let name = format!("cluster-{number}");
    let body = json!({
        "name": name, "openshift_version": VERSION, "base_dns_domain": "example.com", "pull_secret": pull_secret,
    });
    let mut request = Vec::new();
    write_post(&mut request, &target.at(CLUSTERS), "", body.to_string().as_bytes());
    let answer = connection.fetch(&request, ExpectedResponse::Status(201)).context("creating a cluster")?;
    let answer: Value = serde_json::from_slice(&answer).context("a new cluster")?;
    let body = NewInfraEnv { name: &name, version: VERSION, networks: &[] }.body();
    let mut body: Value = serde_json::from_str(&body)?;
    if let Some(body) = body.as_object_mut() {
        body.insert("cluster_id".to_owned(), text(&answer, "id")?.into());
    }
    let infra_env = infra_env::post(connection, target, &body.to_string())?;
    let first = number * CLUSTER_HOSTS;
    Ok((first..first + CLUSTER_HOSTS).map(|host| SimulatedHost::new(&infra_env, host)).collect())
}

/// Registers all hosts of a fleet, and checks each in once.
fn boot(target: &Target, fleet: &AgentFleet) -> Result<()> {
    in_parallel(target, &fleet.hosts, |connection, host| {
        fleet.register(connection, target, host)?;
        fleet.check_in(connection, target, host)?;
        Ok(())
    })
}

/// Calls `work` with each item, over a few concurrent connections.
///
/// # Errors
///
/// Returns an error if `work` returns one for any item.
pub(crate) fn in_parallel<T: Sync>(
    target: &Target,
    items: &[T],
    work: impl Fn(&mut Connection, &T) -> Result<()> + Sync,
) -> Result<()> {
    let some = |client: usize| -> Result<()> {
        let mut connection = Connection::open(target)?;
        for item in items.iter().skip(client).step_by(CLIENTS) {
            interrupt::check()?;
            work(&mut connection, item)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || some(client))).collect();
        let joined: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        joined.into_iter().try_for_each(|done| done.unwrap_or_else(|_| Err(anyhow!("a client panicked"))))
    })
}

pub(crate) fn list_of_hosts(infra_env: &str) -> String {
    format!("{API}/{infra_env}/hosts")
}

fn get(connection: &mut Connection, target: &Target) -> Result<Value> {
    let mut request = Vec::new();
    write_get(&mut request, target, None);
    let answer = connection.fetch(&request, ExpectedResponse::Status(200))?;
    serde_json::from_slice(&answer).with_context(|| target.path.clone())
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value.get(key).and_then(Value::as_str).with_context(|| format!("{key} is missing in a response"))
}

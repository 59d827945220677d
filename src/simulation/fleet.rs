//! Runs the agents of a simulation, and reports their progress.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agent::simulated::{SimulatedMachine, SimulatedSite};
use agent::{Agent, AgentError};
use assisted::client::{ApiClient, ClientError};
use assisted::{HostId, InfraEnvId};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};

use super::boot_image::BootImage;
use super::error::SimulationError;
use super::figures::{SimulationFigures, error_text};
use super::report::{HostCounts, SimulationReport};

/// Container image of the agents if the server does not return its configured image. It is upstream's default.
const USUAL_AGENT: &str = "quay.io/edge-infrastructure/assisted-installer-agent:latest";
/// Time that a host takes to reboot.
const BOOT_TIME: Duration = Duration::from_secs(30);
/// Ratio of the pause after a read of the list of hosts to the duration of the read. A long list is expensive for the
/// server.
const LIST_SHARE: u32 = 20;
/// Maximum time to read the list of hosts for the last report.
const LAST_LIST_TIME: Duration = Duration::from_secs(10);
/// The status that reports show for hosts that the server does not list.
const NOT_LISTED: &str = "not registered";

/// Settings of a simulation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SimulationOptions {
    /// Container image with which agents register. Default: the image configured on the server, or else upstream's.
    pub agent_version: Option<String>,
    /// Pause between the polls of a host. Default: the pause in the response of the server.
    pub poll_interval: Option<Duration>,
    /// Image that each host reads before its agent starts. Default: none.
    pub boot_image: Option<BootImage>,
    /// Maximum number of hosts to start per second. Default: 100.
    pub hosts_per_second: u32,
    /// Maximum number of concurrent requests and connections. Default: 64.
    pub connections: usize,
    /// Time between two reports. Default: 10 seconds.
    pub report_interval: Duration,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self {
            agent_version: None,
            poll_interval: None,
            boot_image: None,
            hosts_per_second: 100,
            connections: 64,
            report_interval: Duration::from_secs(10),
        }
    }
}

/// Simulated hosts of one infra-env.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use agent::simulated::SimulatedSite;
/// use assisted::client::ApiClient;
/// use kindling::simulation::{Simulation, SimulationOptions, read_profile};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let site = Arc::new(SimulatedSite::new(read_profile("compact")?, 3, 1)?);
/// let infra_env = "4f630ba3-0297-4d99-a7c7-f62e7bca1332".parse()?;
/// let url = "http://127.0.0.1:8090";
/// let simulation = Simulation::new((url, ApiClient::new(url)?), infra_env, site, SimulationOptions::default());
/// let end = tokio::time::sleep(Duration::from_secs(60));
/// let report = simulation.run(end, |report| println!("{}", report.progress_line())).await?;
/// print!("{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Simulation {
    url: String,
    client: ApiClient,
    infra_env: InfraEnvId,
    site: Arc<SimulatedSite>,
    options: SimulationOptions,
}

/// The hosts of a running simulation.
struct Fleet {
    settings: Arc<AgentSettings>,
    options: SimulationOptions,
    started_at: Instant,
    /// Machines that have not started yet. The last one starts next.
    waiting: Vec<SimulatedMachine>,
    ids: Arc<HashSet<HostId>>,
    agents: JoinSet<AgentError>,
    hosts: HostCounts,
    statuses: Option<BTreeMap<String, u64>>,
    lists: JoinSet<Result<BTreeMap<String, u64>, ClientError>>,
    /// Earliest time to read the list of hosts again.
    next_list: Instant,
    list_started_at: Instant,
}

impl Simulation {
    /// Creates a simulation, which does not start yet. The URL is for messages only.
    #[must_use]
    pub fn new(
        (url, client): (&str, ApiClient),
        infra_env: InfraEnvId,
        site: Arc<SimulatedSite>,
        options: SimulationOptions,
    ) -> Self {
        Self { url: url.to_owned(), client, infra_env, site, options }
    }

    /// Runs the agents until `end` completes. Calls `observe` with a report periodically, and returns the last report.
    /// `observe` must not block, because it would delay all hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env cannot be read, if all agents have given up, or if all requests failed.
    pub async fn run(
        self,
        end: impl Future<Output = ()>,
        mut observe: impl FnMut(&SimulationReport),
    ) -> Result<SimulationReport, SimulationError> {
        let mut end = std::pin::pin!(end);
        let version = tokio::select! {
            () = &mut end => return Err(SimulationError::NoResponse { url: self.url }),
            version = self.prepare() => version?,
        };
        let url = self.url.clone();
        let mut fleet = Fleet::new(self, version);
        let result = fleet.run(end, &mut observe).await;
        fleet.agents.shutdown().await;
        fleet.read_last_list().await;
        let report = fleet.report();
        let failed = report.failed_requests();
        match result {
            Ok(()) if failed == 0 || failed < report.all_requests() => Ok(report),
            Ok(()) => {
                observe(&report);
                let error = report.most_frequent_error();
                Err(SimulationError::NoneSucceeded { url, requests: failed, error })
            }
            Err(source) => {
                observe(&report);
                Err(SimulationError::AllEnded { hosts: fleet.hosts.total, source })
            }
        }
    }

    /// Checks that the infra-env is available, and returns the container image of the agents.
    async fn prepare(&self) -> Result<String, SimulationError> {
        let failed = |source| SimulationError::from_preflight(self.infra_env, &self.url, source);
        self.client.get_infra_env(self.infra_env).await.map_err(failed)?;
        let version = self.agent_version().await;
        self.client.with_agent_version(&version).map_err(SimulationError::AgentVersion)?;
        Ok(version)
    }

    /// Returns the container image of the agents. Uses the default if the server refuses to return the configured
    /// image, because the token is for an infra-env only.
    async fn agent_version(&self) -> String {
        if let Some(version) = &self.options.agent_version {
            return version.clone();
        }
        let components = self.client.component_versions().await.ok();
        let version = components.and_then(|mut components| components.versions.remove("discovery-agent"));
        version.unwrap_or_else(|| USUAL_AGENT.to_owned())
    }
}

impl Fleet {
    fn new(simulation: Simulation, version: String) -> Self {
        let Simulation { client, infra_env, site, options, .. } = simulation;
        let mut waiting: Vec<_> = site.machines().collect();
        let ids = Arc::new(waiting.iter().map(SimulatedMachine::id).collect());
        let total = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        // Sort by id, so that the order in which hosts start depends on the seed, as the ids do.
        waiting.sort_by_cached_key(SimulatedMachine::id);
        let now = Instant::now();
        let settings = AgentSettings {
            client,
            infra_env,
            version,
            figures: Arc::default(),
            slots: Arc::new(Semaphore::new(options.connections.max(1))),
            poll_interval: options.poll_interval,
            boot_image: options.boot_image.clone(),
        };
        Self {
            settings: Arc::new(settings),
            hosts: HostCounts { total, ..HostCounts::default() },
            next_list: now + options.report_interval,
            list_started_at: now,
            options,
            started_at: now,
            waiting,
            ids,
            agents: JoinSet::new(),
            statuses: None,
            lists: JoinSet::new(),
        }
    }

    /// Starts hosts and reports progress, until the simulation ends or no agent is left.
    async fn run(
        &mut self,
        mut end: Pin<&mut impl Future<Output = ()>>,
        observe: &mut impl FnMut(&SimulationReport),
    ) -> Result<(), AgentError> {
        let interval = self.options.report_interval;
        let mut reports = interval_at(self.started_at + interval, interval);
        reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let start = self.next_start();
            tokio::select! {
                () = &mut end => return Ok(()),
                _ = reports.tick() => {
                    self.list_if_due();
                    observe(&self.report());
                }
                () = sleep_until(start), if !self.waiting.is_empty() => self.start_next(),
                Some(ended) = self.agents.join_next() => {
                    if let Some(error) = self.count_ended(ended) {
                        return Err(error);
                    }
                }
                Some(listed) = self.lists.join_next() => self.keep_list(listed),
            }
        }
    }

    /// Returns the time at which the next host starts.
    fn next_start(&self) -> Instant {
        let rate = f64::from(self.options.hosts_per_second.max(1));
        self.started_at + Duration::from_secs_f64(f64::from(self.hosts.started) / rate)
    }

    fn start_next(&mut self) {
        let Some(machine) = self.waiting.pop() else { return };
        self.hosts.started += 1;
        self.agents.spawn(run_agent(Arc::clone(&self.settings), machine));
    }

    /// Counts an agent that gave up. Returns the error of the agent if it was the last one.
    fn count_ended(&mut self, ended: Result<AgentError, tokio::task::JoinError>) -> Option<AgentError> {
        self.hosts.ended += 1;
        match ended {
            // The error of the agent's last request is already counted.
            Ok(error) => (self.hosts.ended == self.hosts.total).then_some(error),
            Err(error) => {
                self.settings.figures.lock().count_error(error.to_string());
                None
            }
        }
    }

    /// Starts to read the list of hosts, unless it is too early or the previous read is still in progress.
    fn list_if_due(&mut self) {
        let now = Instant::now();
        if self.lists.is_empty() && now >= self.next_list {
            self.list_started_at = now;
            self.lists.spawn(count_statuses(Arc::clone(&self.settings), Arc::clone(&self.ids)));
        }
    }

    fn keep_list(
        &mut self,
        listed: Result<Result<BTreeMap<String, u64>, ClientError>, tokio::task::JoinError>,
    ) {
        self.next_list = Instant::now() + self.list_started_at.elapsed() * LIST_SHARE;
        match listed {
            Ok(Ok(statuses)) => self.statuses = Some(statuses),
            Ok(Err(error)) => self.settings.figures.lock().count_error(error_text(&error)),
            Err(error) => self.settings.figures.lock().count_error(error.to_string()),
        }
    }

    /// Reads the list of hosts for the last report.
    async fn read_last_list(&mut self) {
        self.lists.abort_all();
        let list = count_statuses(Arc::clone(&self.settings), Arc::clone(&self.ids));
        if let Ok(Ok(statuses)) = timeout(LAST_LIST_TIME, list).await {
            self.statuses = Some(statuses);
        }
    }

    fn report(&self) -> SimulationReport {
        let counters = self.settings.figures.lock();
        SimulationReport {
            // Round to milliseconds.
            elapsed_seconds: (self.started_at.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            hosts: HostCounts { registrations: counters.registered, ..self.hosts },
            statuses: self.statuses.clone(),
            requests: counters.requests(),
            steps: counters.steps.clone(),
            errors: counters.errors(),
        }
    }
}

/// The common data of all agents in a fleet.
struct AgentSettings {
    client: ApiClient,
    infra_env: InfraEnvId,
    version: String,
    figures: Arc<SimulationFigures>,
    slots: Arc<Semaphore>,
    poll_interval: Option<Duration>,
    boot_image: Option<BootImage>,
}

impl AgentSettings {
    /// Reads the boot image of a machine, if one is configured. Retries after errors, as firmware does.
    async fn boot(&self, machine: &SimulatedMachine) {
        let Some(image) = &self.boot_image else { return };
        while let Err(error) = image.read(machine.number()).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error, host = %machine.id(),
                "simulated host cannot boot, retrying"
            );
            self.figures.lock().count_error(error_text(&error));
            sleep(BOOT_TIME).await;
        }
    }
}

/// Runs the agent of a machine until it ends with an error. Starts the agent again after a reboot.
async fn run_agent(settings: Arc<AgentSettings>, machine: SimulatedMachine) -> AgentError {
    loop {
        settings.boot(&machine).await;
        let AgentSettings { client, infra_env, version, figures, slots, poll_interval, .. } = &*settings;
        let agent = match Agent::new(client.clone(), *infra_env, version.clone(), machine.clone()) {
            Ok(agent) => agent,
            // Unlikely, because the version was checked before the start.
            Err(source) => return AgentError::RegistrationRefused { host: machine.id(), source },
        };
        let agent = agent
            .observer(Arc::clone(figures) as _)
            .request_slots(Arc::clone(slots))
            .seed(machine.id().0.as_u64_pair().1);
        let agent = match poll_interval {
            Some(interval) => agent.poll_interval(*interval),
            None => agent,
        };
        match agent.run().await {
            // The host reboots into the discovery image.
            Ok(_) => sleep(BOOT_TIME).await,
            Err(error) => return error,
        }
    }
}

/// The fields of a host that a simulation needs.
#[derive(Deserialize)]
struct ListedHost {
    id: HostId,
    status: String,
}

/// Counts the hosts of a fleet by status. Ignores other hosts of the infra-env.
async fn count_statuses(
    settings: Arc<AgentSettings>,
    ids: Arc<HashSet<HostId>>,
) -> Result<BTreeMap<String, u64>, ClientError> {
    let (mut statuses, mut listed) = (BTreeMap::new(), 0);
    let count = |host: ListedHost| {
        if ids.contains(&host.id) {
            *statuses.entry(host.status).or_default() += 1;
            listed += 1;
        }
        ControlFlow::Continue(())
    };
    settings.client.visit_hosts(settings.infra_env, count).await?;
    let missing = u64::try_from(ids.len()).unwrap_or(u64::MAX).saturating_sub(listed);
    if missing > 0 {
        statuses.insert(NOT_LISTED.to_owned(), missing);
    }
    Ok(statuses)
}

//! The agent of a host: it registers, polls for steps and runs them until the host reboots.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use assisted::InfraEnvId;
use assisted::client::{ApiClient, ClientError};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::error::AgentError;
use crate::jitter::Jitter;
use crate::machine::Machine;
use crate::observer::AgentObserver;
use crate::requests::Requests;
use crate::runner::{Runner, RunnerEnd};

/// The reason why an agent ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentEnd {
    /// A step reboots the host.
    Rebooting,
}

/// The agent of one host. The crate documentation has an example.
pub struct Agent<M> {
    pub(crate) client: ApiClient,
    pub(crate) infra_env: InfraEnvId,
    /// Container image of this agent.
    pub(crate) version: String,
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) last_registration: Option<Instant>,
}

/// State that an agent shares with its running steps.
pub(crate) struct Shared<M> {
    pub(crate) machine: M,
    pub(crate) requests: Requests,
    /// Pause between polls. `None`: the pause that the service requests.
    pub(crate) poll_interval: Option<Duration>,
    /// Whether the installer has started. Its container exists until the host reboots.
    pub(crate) has_installer: AtomicBool,
}

impl<M> fmt::Debug for Agent<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("infra_env", &self.infra_env)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl<M: Machine> Agent<M> {
    /// Creates the agent of a host. `version` is the container image of this agent. The service compares it with the
    /// image in its own settings.
    ///
    /// # Errors
    ///
    /// Returns an error if `version` contains characters that an HTTP header cannot contain.
    pub fn new(
        client: ApiClient,
        infra_env: InfraEnvId,
        version: impl Into<String>,
        machine: M,
    ) -> Result<Self, ClientError> {
        let version = version.into();
        let client = client.with_agent_version(&version)?;
        let jitter = Arc::new(Jitter::new(uuid_seed(infra_env)));
        let requests = Requests { slots: None, observer: Arc::new(()), jitter };
        let has_installer = AtomicBool::new(false);
        let shared = Arc::new(Shared { machine, requests, poll_interval: None, has_installer });
        Ok(Self { client, infra_env, version, shared, last_registration: None })
    }

    /// Sets the receiver of events. By default, no receiver is set.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn AgentObserver>) -> Self {
        self.with_shared(|shared| shared.requests.observer = observer)
    }

    /// Sets the pause between polls. It replaces the pause that the service requests.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use agent::{Agent, Machine};
    /// use std::time::Duration;
    ///
    /// # fn example<M: Machine>(agent: Agent<M>) {
    /// let agent = agent.poll_interval(Duration::from_secs(5));
    /// # }
    /// ```
    #[must_use]
    pub fn poll_interval(self, interval: Duration) -> Self {
        self.with_shared(|shared| shared.poll_interval = Some(interval))
    }

    /// Limits concurrent requests: each request waits for one of `slots`. Agents in one process can share the slots, so
    /// that an unresponsive service does not make every agent open a connection. Default: no limit.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use agent::{Agent, Machine};
    /// use std::sync::Arc;
    ///
    /// use tokio::sync::Semaphore;
    ///
    /// # fn example<M: Machine>(agents: Vec<Agent<M>>) {
    /// let slots = Arc::new(Semaphore::new(64));
    /// let agents = agents.into_iter().map(|agent| agent.request_slots(Arc::clone(&slots)));
    /// # }
    /// ```
    #[must_use]
    pub fn request_slots(self, slots: Arc<Semaphore>) -> Self {
        self.with_shared(|shared| shared.requests.slots = Some(slots))
    }

    /// Sets the seed of the random pauses before retries. By default, the seed is derived from the infra-env id.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.with_shared(|shared| shared.requests.jitter = Arc::new(Jitter::new(seed)))
    }

    /// Registers the host and runs the steps that the service requests, until the host reboots.
    ///
    /// # Errors
    ///
    /// Returns an error if the service permanently refuses the registration, or if the host was deleted. The caller
    /// must not restart the agent immediately.
    pub async fn run(mut self) -> Result<AgentEnd, AgentError> {
        loop {
            let session = self.register().await?;
            match Runner::new(Arc::clone(&self.shared), session).run().await? {
                RunnerEnd::RegisterAgain => {}
                RunnerEnd::Rebooting => return Ok(AgentEnd::Rebooting),
            }
        }
    }

    /// Changes a setting. This works only before `run`, while no step shares the settings.
    fn with_shared(mut self, change: impl FnOnce(&mut Shared<M>)) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            change(shared);
        }
        self
    }
}

fn uuid_seed(id: InfraEnvId) -> u64 {
    id.0.as_u64_pair().0
}

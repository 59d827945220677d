//! The agent: registration and polling until its end.

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

/// Why an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentEnd {
    /// The host reboots.
    Rebooting,
}

/// The agent of one host. The crate's documentation has an example.
pub struct Agent<M> {
    pub(crate) client: ApiClient,
    pub(crate) infra_env: InfraEnvId,
    /// Container image of this agent.
    pub(crate) version: String,
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) last_registration: Option<Instant>,
}

/// What an agent and its steps share.
pub(crate) struct Shared<M> {
    pub(crate) machine: M,
    pub(crate) requests: Requests,
    /// Replaces the pause that the service asks for.
    pub(crate) poll_interval: Option<Duration>,
    /// Whether the installer was started. Its container exists until the host reboots.
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
    /// Returns the agent of a host. `version` is the container image of this agent: the service compares the text with
    /// its own setting.
    ///
    /// # Errors
    ///
    /// Returns an error if the version contains characters that a header cannot have.
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

    /// Sets the receiver of events. Default: none.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn AgentObserver>) -> Self {
        self.with_shared(|shared| shared.requests.observer = observer)
    }

    /// Sets the pause between polls, instead of the one that the service asks for.
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

    /// Sets the slots of concurrent requests. Many agents of one process share them, so that a service that does not
    /// answer does not make each open a connection. Default: no limit.
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

    /// Sets the seed of the random parts of pauses. Default: a fixed one for each infra-env.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.with_shared(|shared| shared.requests.jitter = Arc::new(Jitter::new(seed)))
    }

    /// Registers the host, and runs the steps that the service asks for, until the host reboots.
    ///
    /// # Errors
    ///
    /// Returns an error if the service refuses the registration for good, or if the host was deleted. The caller must
    /// not start the agent again at once.
    pub async fn run(mut self) -> Result<AgentEnd, AgentError> {
        loop {
            let session = self.register().await?;
            match Runner::new(Arc::clone(&self.shared), session).run().await? {
                RunnerEnd::RegisterAgain => {}
                RunnerEnd::Rebooting => return Ok(AgentEnd::Rebooting),
            }
        }
    }

    /// Changes settings. No step has a reference to them before `run`.
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

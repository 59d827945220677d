//! Registration of the host, with retries until the service accepts it.

use std::time::Duration;

use assisted::HostId;
use assisted::client::ClientError;
use assisted::host::{HostCreateParams, RegisteredHost};
use tokio::time::{Instant, sleep, sleep_until};

use crate::agent::Agent;
use crate::error::AgentError;
use crate::machine::Machine;
use crate::observer::{AgentEvent, RequestKind};
use crate::session::HostSession;

/// Pause after a failed registration.
const RETRY_PAUSE: Duration = Duration::from_secs(60);
/// Pause after a response without a valid agent command, unless the response contains another pause.
const UNUSABLE_PAUSE: Duration = Duration::from_secs(3600);
/// Minimum time between two registrations. The minimum prevents a flood of requests if the service always asks the
/// agent to exit.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

impl<M: Machine> Agent<M> {
    /// Registers the host, with retries until the service accepts it.
    pub(crate) async fn register(&mut self) -> Result<HostSession, AgentError> {
        loop {
            if let Some(last) = self.last_registration {
                sleep_until(last + MIN_INTERVAL).await;
            }
            self.last_registration = Some(Instant::now());
            let host = self.shared.machine.host_id().await;
            let pause = match self.send_registration(host).await {
                Ok(registered) => match self.session(&registered) {
                    Ok(session) => return Ok(session),
                    Err(pause) => pause,
                },
                Err(source) if is_final(&source) => {
                    return Err(AgentError::RegistrationRefused { host, source });
                }
                Err(error) => {
                    let pause = error.retry_after().unwrap_or_default().clamp(RETRY_PAUSE, UNUSABLE_PAUSE);
                    tracing::warn!(%host, %error, ?pause, "registration failed, retrying");
                    pause
                }
            };
            sleep(pause).await;
        }
    }

    async fn send_registration(&self, host: HostId) -> Result<RegisteredHost, ClientError> {
        let params = HostCreateParams { host_id: host, discovery_agent_version: Some(self.version.clone()) };
        let request = || Box::pin(self.client.register_host(self.infra_env, &params)) as _;
        let registered = self.shared.requests.send(RequestKind::Register, request).await?;
        self.shared.requests.observer.observe(&AgentEvent::Registered { host: &registered });
        Ok(registered)
    }

    /// Returns the session described by the response to a registration. Its requests carry the agent version that the
    /// service is configured with. This is how an outdated agent upgrades.
    ///
    /// # Errors
    ///
    /// Returns the pause until the next registration if the response contains no valid command.
    fn session(&self, registered: &RegisteredHost) -> Result<HostSession, Duration> {
        let Some(command) = &registered.next_step_runner_command else {
            tracing::warn!("registration has no command for the agent, retrying in an hour");
            return Err(UNUSABLE_PAUSE);
        };
        let pause = match u64::try_from(command.retry_seconds) {
            Ok(seconds) if seconds > 0 => Duration::from_secs(seconds).min(UNUSABLE_PAUSE),
            _ => UNUSABLE_PAUSE,
        };
        let arguments = command.arguments().map_err(|error| {
            tracing::warn!(%error, ?pause, "registration has an invalid command for the agent, retrying");
            pause
        })?;
        let client = self.client.with_agent_version(&arguments.agent_version).map_err(|error| {
            tracing::warn!(%error, ?pause, "registration has an invalid agent version, retrying");
            pause
        })?;
        Ok(HostSession::new(client, arguments.infra_env_id, arguments.host_id))
    }
}

/// Returns `true` if a retry cannot change the response.
fn is_final(error: &ClientError) -> bool {
    matches!(error.status(), Some(401 | 403 | 404 | 409 | 410))
}

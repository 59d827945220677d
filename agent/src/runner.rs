//! Polls for the steps of one registration, with pauses between polls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use assisted::client::ClientError;
use assisted::step::{PostStepAction, Steps};
use tokio::time::{Instant, sleep_until};

use crate::agent::Shared;
use crate::error::AgentError;
use crate::machine::Machine;
use crate::observer::{AgentEvent, RequestKind};
use crate::sent_replies::SentReplies;
use crate::session::HostSession;
use crate::steps::{HostIds, RunningSteps, StepContext};

/// Average pause after the first failed poll. It grows by half with each failure, up to `LONGEST_BACK_OFF`.
const FIRST_BACK_OFF: Duration = Duration::from_millis(500);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);
/// Time without a successful poll after which the agent registers again.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Minimum pause between polls, even if the service requests no pause.
const MIN_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunnerEnd {
    RegisterAgain,
    Rebooting,
}

/// A runner that polls for the steps of one registration and starts them.
pub(crate) struct Runner<M> {
    context: Arc<StepContext<M>>,
    running: RunningSteps,
}

impl<M: Machine> Runner<M> {
    pub(crate) fn new(shared: Arc<Shared<M>>, session: HostSession) -> Self {
        let context = StepContext { shared, session, sent: Mutex::new(SentReplies::default()) };
        Self { context: Arc::new(context), running: RunningSteps::new() }
    }

    /// Polls until the agent must register again or the host reboots. The running steps are then cancelled.
    pub(crate) async fn run(mut self) -> Result<RunnerEnd, AgentError> {
        loop {
            let steps = match self.poll().await? {
                PollResult::Steps(steps) => steps,
                PollResult::End(end) => return Ok(end),
            };
            let (action, count) = (steps.post_step_action, steps.instructions.len());
            self.context.observe(&AgentEvent::StepsReceived { count, action: &action });
            let is_last = action == PostStepAction::Exit;
            for step in steps.instructions {
                self.running.start(&self.context, step);
            }
            let service_pause = Duration::from_secs(steps.next_instruction_seconds.into());
            let pause = match self.context.shared.poll_interval {
                _ if is_last => service_pause,
                Some(interval) => interval,
                None => service_pause.max(MIN_PAUSE),
            };
            if let Some(end) = self.wait(pause).await {
                return Ok(end);
            }
            if is_last {
                return Ok(RunnerEnd::RegisterAgain);
            }
        }
    }

    /// Repeats a poll until it succeeds, the host is deleted, or the agent must register again.
    async fn poll(&mut self) -> Result<PollResult, AgentError> {
        let start = Instant::now();
        let mut average = FIRST_BACK_OFF;
        loop {
            let error = match self.send_poll().await {
                Ok(steps) => return Ok(PollResult::Steps(steps)),
                Err(source) if matches!(source.status(), Some(404 | 410)) => {
                    return Err(AgentError::HostDeleted { host: self.context.session.host(), source });
                }
                Err(error) => error,
            };
            // The service may have lost its data, so the agent sends all outputs again.
            self.context.sent().clear();
            let pause = self.context.shared.requests.jitter.around(average);
            let pause = pause.max(error.retry_after().unwrap_or_default().min(LONGEST_BACK_OFF));
            if start.elapsed() + pause > PATIENCE {
                tracing::warn!(host = %self.context.session.host(), %error, "polls fail, registering again");
                return Ok(PollResult::End(RunnerEnd::RegisterAgain));
            }
            tracing::debug!(host = %self.context.session.host(), %error, ?pause, "poll failed, retrying");
            if let Some(end) = self.wait(pause).await {
                return Ok(PollResult::End(end));
            }
            average = average.mul_f64(1.5).min(LONGEST_BACK_OFF);
        }
    }

    async fn send_poll(&self) -> Result<Steps, ClientError> {
        let HostIds { infra_env, host } = self.context.ids();
        let (client, machine) = (self.context.session.client(), &self.context.shared.machine);
        let request = || Box::pin(client.next_steps(infra_env, host, machine.unix_time())) as _;
        self.context.shared.requests.send(RequestKind::Poll, request).await
    }

    /// Waits for `pause`, or until a step ends the registration.
    async fn wait(&mut self, pause: Duration) -> Option<RunnerEnd> {
        let due = Instant::now() + pause;
        loop {
            tokio::select! {
                Some(end) = self.running.next_end() => {
                    if end.is_some() {
                        return end;
                    }
                }
                () = sleep_until(due) => return None,
            }
        }
    }
}

enum PollResult {
    Steps(Steps),
    End(RunnerEnd),
}

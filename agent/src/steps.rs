//! The running steps of a host, and the rules for steps that must not run twice.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use assisted::client::ClientError;
use assisted::reply::{ExitCode, ReplyPayload, StepReply, UpgradeReport};
use assisted::request::StepRequest;
use assisted::step::{Step, StepType};
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::agent::Shared;
use crate::machine::{Machine, StepFailure, StepOutcome};
use crate::observer::{AgentEvent, RequestKind};
use crate::runner::RunnerEnd;
use crate::sent_replies::{self, OutputDigest, SendingReply, SentReplies};
use crate::session::HostSession;

/// Maximum number of concurrent steps. The service returns at most eight steps with each poll.
const MAX_RUNNING: usize = 128;

/// State shared by all steps of one registration.
pub(crate) struct StepContext<M> {
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) session: HostSession,
    pub(crate) sent: Mutex<SentReplies>,
}

/// The running steps of one registration. Dropping this value cancels them.
pub(crate) struct RunningSteps {
    tasks: JoinSet<Option<RunnerEnd>>,
    types: Vec<(Id, StepType, AbortHandle)>,
}

impl RunningSteps {
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), types: Vec::new() }
    }

    /// Starts a step, unless a step of its type must not run twice or too many steps are running.
    pub(crate) fn start<M: Machine>(&mut self, context: &Arc<StepContext<M>>, step: Step) {
        let step_type = step.step_type.known();
        if step_type == Some(StepType::StopInstallation) {
            self.cancel(StepType::Install);
        }
        let busy = step_type.and_then(|step_type| self.busy_reply(context, &step, step_type));
        if self.tasks.len() >= MAX_RUNNING || matches!(busy, Some(BusyReply::Skip)) {
            tracing::debug!(step_type = %step.step_type, "step skipped");
            context.observe(&AgentEvent::StepSkipped { step_type: &step.step_type });
            return;
        }
        let (context, is_first) = (Arc::clone(context), busy.is_none());
        let task = self.tasks.spawn(async move {
            match busy {
                Some(BusyReply::Send(reply)) => {
                    context.send(&step, &reply).await;
                    None
                }
                _ => context.run(&step).await,
            }
        });
        if let Some(step_type) = step_type.filter(|_| is_first) {
            self.types.push((task.id(), step_type, task));
        }
    }

    /// Waits until a step ends. Returns `None` if no step is running. The inner value is the reason if the step ends
    /// the registration.
    pub(crate) async fn next_end(&mut self) -> Option<Option<RunnerEnd>> {
        let (id, end) = match self.tasks.join_next_with_id().await? {
            Ok((id, end)) => (id, end),
            Err(error) => {
                if error.is_panic() {
                    tracing::error!(%error, "step failed in the agent; it has no reply");
                }
                (error.id(), None)
            }
        };
        self.types.retain(|(running, ..)| *running != id);
        Some(end)
    }

    /// Cancels the running steps of a type. They send no reply.
    fn cancel(&mut self, step_type: StepType) {
        self.types.iter().filter(|(_, running, _)| *running == step_type).for_each(|(.., task)| task.abort());
    }

    fn is_running(&self, step_type: StepType) -> bool {
        self.types.iter().any(|(_, running, _)| *running == step_type)
    }

    /// Returns the action for a step that must not run twice and is already running. `None`: the step can start.
    fn busy_reply<M>(&self, context: &StepContext<M>, step: &Step, step_type: StepType) -> Option<BusyReply> {
        if step_type == StepType::Install {
            let has_installer = context.shared.has_installer.swap(true, Ordering::Relaxed);
            return has_installer.then(|| name_in_use(step, "assisted-installer"));
        }
        if !self.is_running(step_type) {
            return None;
        }
        match step_type {
            StepType::ContainerImageAvailability | StepType::InstallationDiskSpeedCheck => {
                Some(BusyReply::Send(StepReply::done(step)))
            }
            StepType::UpgradeAgent => Some(upgrade_running(step)),
            StepType::LogsGather => Some(name_in_use(step, "logs-sender")),
            // The service refuses an empty list of addresses, so the agent sends no reply.
            StepType::FreeNetworkAddresses => Some(BusyReply::Skip),
            _ => None,
        }
    }
}

/// Action for a step that must not run twice and is already running.
enum BusyReply {
    Send(StepReply),
    Skip,
}

fn name_in_use(step: &Step, name: &str) -> BusyReply {
    let error = format!("the container name {name:?} is already in use");
    BusyReply::Send(StepReply::failure(step, ExitCode::CONTAINER_EXISTS, error))
}

/// Returns the reply while another upgrade is running: a report without a result.
fn upgrade_running(step: &Step) -> BusyReply {
    let reply = match StepRequest::parse(step) {
        Ok(StepRequest::Upgrade(request)) => {
            let report =
                UpgradeReport { agent_image: request.agent_image.into(), ..UpgradeReport::default() };
            StepReply::success(step, &ReplyPayload::Upgrade(report))
        }
        Ok(_) => return BusyReply::Skip,
        Err(error) => Ok(StepReply::failure(step, ExitCode::INVALID, text_with_causes(&error))),
    };
    reply.map_or(BusyReply::Skip, BusyReply::Send)
}

impl<M> StepContext<M> {
    pub(crate) fn observe(&self, event: &AgentEvent<'_>) {
        self.shared.requests.observer.observe(event);
    }

    /// Sends a reply, unless the service already has its output.
    async fn send(&self, step: &Step, reply: &StepReply) {
        let (step_type, exit_code) = (&step.step_type, reply.exit_code());
        self.observe(&AgentEvent::StepEnded { step_type, exit_code });
        let recorded_type = step_type.known().filter(|_| exit_code.is_success());
        let sending = recorded_type.map(|step_type| {
            // A missing output has the same meaning as an empty one, so both have the same digest.
            let digest = OutputDigest::new(reply.output.as_deref().unwrap_or_default());
            SendingReply::start(&self.sent, step_type, digest)
        });
        if matches!(sending, Some(None)) {
            self.observe(&AgentEvent::ReplyOmitted { step_type });
            return;
        }
        match self.post(reply).await {
            Ok(()) => sending.flatten().into_iter().for_each(SendingReply::accepted),
            Err(error) => tracing::warn!(%step_type, %error, "reply lost"),
        }
    }

    async fn post(&self, reply: &StepReply) -> Result<(), ClientError> {
        let HostIds { infra_env, host } = self.ids();
        let client = self.session.client();
        let request = || Box::pin(client.post_reply(infra_env, host, reply)) as _;
        self.shared.requests.send(RequestKind::Reply, request).await
    }

    pub(crate) fn ids(&self) -> HostIds {
        HostIds { infra_env: self.session.infra_env(), host: self.session.host() }
    }

    pub(crate) fn sent(&self) -> MutexGuard<'_, SentReplies> {
        sent_replies::lock(&self.sent)
    }
}

/// The ids in the URL path of a host.
#[derive(Clone, Copy)]
pub(crate) struct HostIds {
    pub(crate) infra_env: assisted::InfraEnvId,
    pub(crate) host: assisted::HostId,
}

impl<M: Machine> StepContext<M> {
    /// Runs a step and sends the reply. Returns a reason if the step ends the registration.
    async fn run(&self, step: &Step) -> Option<RunnerEnd> {
        let result = match StepRequest::parse(step) {
            Ok(request) => self.run_request(request).await,
            Err(error) => Err(StepFailure::new(ExitCode::INVALID, text_with_causes(&error))),
        };
        let (reply, end) = match result {
            Ok(StepOutcome::Rebooting) => return Some(RunnerEnd::Rebooting),
            Ok(StepOutcome::Output(output)) => (StepReply::success(step, &output), end_after(&output)),
            Ok(StepOutcome::Done) => (Ok(StepReply::done(step)), None),
            Err(failure) => (failure_reply(step, &failure), None),
        };
        let reply = reply.unwrap_or_else(|error| {
            let text = format!("cannot write the output as JSON: {error}");
            StepReply::failure(step, ExitCode::INVALID, text)
        });
        self.send(step, &reply).await;
        end
    }

    /// Runs a step on the machine, unless the machine cannot read its boot media.
    async fn run_request(&self, request: StepRequest) -> Result<StepOutcome, StepFailure> {
        let machine = &self.shared.machine;
        if let Some(reason) = machine.media_error().await {
            return Err(StepFailure::new(ExitCode::MEDIA_LOST, reason));
        }
        match machine.run_step(request, &self.session).await {
            Err(failure) if machine.media_error().await.is_some() => {
                Err(failure.with_exit_code(ExitCode::MEDIA_LOST))
            }
            result => result,
        }
    }
}

/// Returns [`RunnerEnd::RegisterAgain`] after a successful upgrade, because the next registration starts the new agent.
fn end_after(output: &ReplyPayload<'_>) -> Option<RunnerEnd> {
    match output {
        ReplyPayload::Upgrade(report) if report.result == "success" => Some(RunnerEnd::RegisterAgain),
        _ => None,
    }
}

fn failure_reply(step: &Step, failure: &StepFailure) -> Result<StepReply, serde_json::Error> {
    let reply = StepReply::failure(step, failure.exit_code(), failure.message());
    match failure.output() {
        Some(output) => reply.with_payload(output),
        None => Ok(reply),
    }
}

fn text_with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

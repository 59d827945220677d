//! A machine whose steps are defined by the test.

use std::sync::{Arc, Mutex};

use agent::session::HostSession;
use agent::{Agent, AgentEnd, AgentError, Machine, StepFailure, StepOutcome};
use assisted::HostId;
use assisted::reply::ReplyPayload;
use assisted::request::StepRequest;
use tokio::task::JoinHandle;

use crate::service::{AGENT_VERSION, Boxed, ScriptedService};

type StepResult = Result<StepOutcome, StepFailure>;
type RunStep = Arc<dyn Fn(StepRequest) -> Boxed<StepResult> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct ScriptedMachine {
    host: HostId,
    run: RunStep,
    media_error: Arc<Mutex<Option<String>>>,
}

impl ScriptedMachine {
    /// Creates a machine whose steps take no time.
    pub(crate) fn new(
        service: &ScriptedService,
        run: impl Fn(StepRequest) -> StepResult + Send + Sync + 'static,
    ) -> Self {
        Self::with_slow_steps(service, move |request| {
            let result = run(request);
            Box::pin(async move { result })
        })
    }

    pub(crate) fn with_slow_steps(
        service: &ScriptedService,
        run: impl Fn(StepRequest) -> Boxed<StepResult> + Send + Sync + 'static,
    ) -> Self {
        Self { host: service.host, run: Arc::new(run), media_error: Arc::default() }
    }

    /// Creates a machine whose steps all succeed without output.
    pub(crate) fn idle(service: &ScriptedService) -> Self {
        Self::new(service, |_| Ok(StepOutcome::Done))
    }

    pub(crate) fn lose_media(&self) {
        *self.media_error.lock().unwrap() = Some("cannot access the media (ISO)".to_owned());
    }

    /// Returns this machine with the boot media of `other`.
    pub(crate) fn with_media_of(self, other: &Self) -> Self {
        Self { media_error: Arc::clone(&other.media_error), ..self }
    }

    pub(crate) fn agent(&self, service: &ScriptedService) -> Agent<Self> {
        Agent::new(service.client(), service.infra_env, AGENT_VERSION, self.clone()).unwrap()
    }

    pub(crate) fn run(&self, service: &ScriptedService) -> JoinHandle<Result<AgentEnd, AgentError>> {
        tokio::spawn(self.agent(service).run())
    }
}

impl Machine for ScriptedMachine {
    async fn host_id(&self) -> HostId {
        self.host
    }

    fn unix_time(&self) -> i64 {
        1_700_000_000
    }

    async fn media_error(&self) -> Option<String> {
        self.media_error.lock().unwrap().clone()
    }

    async fn run_step(&self, request: StepRequest, _session: &HostSession) -> StepResult {
        (self.run)(request).await
    }
}

/// Returns the result of a successful step whose output is plain text, not a report.
pub(crate) fn text(output: &str) -> StepResult {
    Ok(StepOutcome::Output(ReplyPayload::Text(output.to_owned().into())))
}

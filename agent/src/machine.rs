//! The host that an agent runs on.

use std::future::Future;

use assisted::HostId;
use assisted::reply::{ExitCode, ReplyPayload};
use assisted::request::StepRequest;

use crate::session::HostSession;

/// A host: what an agent asks of it. [`Agent`](crate::Agent) shows an implementation.
///
/// Several steps run at once, so methods take `&self`. The agent may drop the future of a step before it is ready: the
/// step is then cancelled.
pub trait Machine: Send + Sync + 'static {
    /// Returns the id of the host. The agent asks for it before each registration.
    fn host_id(&self) -> impl Future<Output = HostId> + Send;

    /// Returns the clock of the host, in seconds since 1970.
    fn unix_time(&self) -> i64 {
        chrono::Utc::now().timestamp()
    }

    /// Returns why the host cannot read the media that it booted from. The default is `None`: the media are readable,
    /// or the host does not need them.
    fn media_error(&self) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }

    /// Runs a step. The arguments of the step are valid JSON of the right form.
    ///
    /// # Errors
    ///
    /// Returns an error if the step failed. The agent reports it to the service.
    fn run_step(
        &self,
        request: StepRequest,
        session: &HostSession,
    ) -> impl Future<Output = Result<StepOutcome, StepFailure>> + Send;
}

/// The result of a step that did not fail.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The step succeeded, with this output.
    Output(ReplyPayload<'static>),
    /// The step succeeded, without output.
    Done,
    /// The host reboots. The agent ends, and does not reply.
    Rebooting,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message} (exit code {exit_code})")]
pub struct StepFailure {
    exit_code: ExitCode,
    message: String,
    payload: Option<Box<ReplyPayload<'static>>>,
}

impl StepFailure {
    /// Returns a failure without output.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent::StepFailure;
    /// use assisted::reply::ExitCode;
    ///
    /// let failure = StepFailure::new(ExitCode::TIMED_OUT, "chronyc did not end in 30 seconds");
    /// assert_eq!(failure.to_string(), "chronyc did not end in 30 seconds (exit code 124)");
    /// ```
    pub fn new(exit_code: ExitCode, message: impl Into<String>) -> Self {
        Self { exit_code, message: message.into(), payload: None }
    }

    /// Adds output. The service reads the output of failed checks of disks and container images.
    #[must_use]
    pub fn with_output(self, payload: ReplyPayload<'static>) -> Self {
        Self { payload: Some(Box::new(payload)), ..self }
    }

    /// Replaces the exit code.
    #[must_use]
    pub(crate) fn with_exit_code(self, exit_code: ExitCode) -> Self {
        Self { exit_code, ..self }
    }

    /// Returns the exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        self.exit_code
    }

    /// Returns the error text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the output.
    #[must_use]
    pub fn output(&self) -> Option<&ReplyPayload<'static>> {
        self.payload.as_deref()
    }
}

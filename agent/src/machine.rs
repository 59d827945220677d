//! The interface between the agent and its host.

use std::future::Future;

use assisted::HostId;
use assisted::reply::{ExitCode, ReplyPayload};
use assisted::request::StepRequest;

use crate::session::HostSession;

/// The host of an agent: its id, clock and boot media, and the execution of its steps. The [crate documentation](crate)
/// has an example.
///
/// Methods take `&self` because several steps run concurrently. The agent cancels a step by dropping its future.
pub trait Machine: Send + Sync + 'static {
    /// Returns the id of the host. The agent calls this before each registration.
    fn host_id(&self) -> impl Future<Output = HostId> + Send;

    /// Returns the time of the host's clock, in seconds since 1970.
    fn unix_time(&self) -> i64 {
        chrono::Utc::now().timestamp()
    }

    /// Returns an error text if the host cannot read its boot media. The default is `None`: the media are readable, or
    /// the host does not need them.
    fn media_error(&self) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }

    /// Runs a step. The agent has already checked that the step's arguments are valid JSON of the expected form.
    ///
    /// # Errors
    ///
    /// Returns an error if the step failed. The agent reports the failure to the service.
    fn run_step(
        &self,
        request: StepRequest,
        session: &HostSession,
    ) -> impl Future<Output = Result<StepOutcome, StepFailure>> + Send;
}

/// The result of a step without a failure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The step succeeded, with this output.
    Output(ReplyPayload<'static>),
    /// The step succeeded, without output.
    Done,
    /// The step reboots the host. The agent stops without a reply.
    Rebooting,
}

/// The failure of a step: its exit code, an error text and optional output.
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

    /// Adds output to the failure. The service reads the output of failed checks of disks and container images.
    #[must_use]
    pub fn with_output(self, payload: ReplyPayload<'static>) -> Self {
        Self { payload: Some(Box::new(payload)), ..self }
    }

    #[must_use]
    pub(crate) fn with_exit_code(self, exit_code: ExitCode) -> Self {
        Self { exit_code, ..self }
    }

    /// Returns the exit code that the agent reports to the service.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        self.exit_code
    }

    /// Returns the error text that the agent reports to the service.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the output, if `with_output` added one.
    #[must_use]
    pub fn output(&self) -> Option<&ReplyPayload<'static>> {
        self.payload.as_deref()
    }
}

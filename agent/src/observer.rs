//! The events that an agent reports to an observer, for counters and logs.

use std::time::Duration;

use assisted::Extensible;
use assisted::client::ClientError;
use assisted::host::RegisteredHost;
use assisted::reply::ExitCode;
use assisted::step::{PostStepAction, StepType};

/// A receiver of events. It must not block, because agents call it from async tasks.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use agent::observer::{AgentEvent, AgentObserver};
///
/// #[derive(Default)]
/// struct FailureCounter(AtomicU64);
///
/// impl AgentObserver for FailureCounter {
///     fn observe(&self, event: &AgentEvent<'_>) {
///         if let AgentEvent::Request { outcome: Err(_), .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait AgentObserver: Send + Sync {
    /// Handles an event.
    fn observe(&self, event: &AgentEvent<'_>);
}

/// Ignores all events.
impl AgentObserver for () {
    fn observe(&self, _event: &AgentEvent<'_>) {}
}

/// The purpose of a request to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RequestKind {
    /// Registration of the host.
    Register,
    /// Poll for steps.
    Poll,
    /// Reply to a step.
    Reply,
}

/// An event that an agent reports to its observer.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A request ended. Each attempt of a retried request is an event.
    Request {
        /// Purpose of the request.
        kind: RequestKind,
        /// Time from the start of the request until the response was read.
        took: Duration,
        /// The failure, if the request failed.
        outcome: Result<(), &'a ClientError>,
    },
    /// The service registered the host.
    Registered {
        /// The host in the response of the service.
        host: &'a RegisteredHost,
    },
    /// A poll succeeded. It may have returned no steps.
    StepsReceived {
        /// Number of steps.
        count: usize,
        /// What the agent does after it has started the steps.
        action: &'a Extensible<PostStepAction>,
    },
    /// A step ended.
    StepEnded {
        /// Type of the step.
        step_type: &'a Extensible<StepType>,
        /// Exit code of the reply.
        exit_code: ExitCode,
    },
    /// The agent did not send the reply of a step, because the service already has the same output.
    ReplyOmitted {
        /// Type of the step.
        step_type: &'a Extensible<StepType>,
    },
    /// A step was not started: too many steps are running, or a step of this type is running and must not run twice.
    StepSkipped {
        /// Type of the step.
        step_type: &'a Extensible<StepType>,
    },
}

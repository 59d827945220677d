//! Errors of Kubernetes API requests and of reconciliations, and the time of the next attempt after each error.

use std::time::Duration;

use inventory::ErrorKind;

use crate::networks::{ConfigFault, SelectionError};
use crate::queue::Next;

/// Delay after a conflict or a deletion. Usually the watch reports the conflicting change before the delay has passed,
/// and the object is queued again.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// An error of a request to the Kubernetes API.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RequestError {
    /// This replica is not the leader, so it must not write.
    #[error("this replica is not the leader")]
    NotLeader,
    /// The object has changed since the controller read it, or it already exists.
    #[error("the object has changed")]
    Conflict,
    /// The object does not exist.
    #[error("the object does not exist")]
    Gone,
    /// The API server is overloaded. It requests a retry after this duration.
    #[error("the Kubernetes API allows no request for {0:?}")]
    Busy(Duration),
    /// The API server did not respond in time.
    #[error("the Kubernetes API did not respond within {seconds} s")]
    TimedOut {
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The request failed.
    #[error("request to the Kubernetes API failed")]
    Failed(#[source] Box<kube::Error>),
}

impl RequestError {
    /// Returns the name of the error in metrics.
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::NotLeader => "not_leader",
            Self::Conflict => "conflict",
            Self::Gone => "not_found",
            Self::Busy(_) => "busy",
            Self::TimedOut { .. } => "timed_out",
            Self::Failed(_) => "failed",
        }
    }

    /// Returns the time of the next attempt.
    pub(crate) fn next(&self) -> Next {
        match self {
            // A retry is needed after all three errors. A leader that regains its lease in time continues with the same
            // queue; otherwise the next leader reconciles all objects. The cache reports no event for the deletion of
            // an object that it does not contain.
            Self::NotLeader | Self::Gone | Self::Conflict => Next::After(AFTER_CONFLICT),
            Self::Busy(delay) => Next::After(*delay),
            Self::TimedOut { .. } | Self::Failed(_) => Next::BackOff,
        }
    }
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) => match status.code {
                404 => Self::Gone,
                409 => Self::Conflict,
                429 => {
                    let seconds = status.details.as_ref().map_or(1, |details| details.retry_after_seconds);
                    Self::Busy(Duration::from_secs(seconds.clamp(1, 60).into()))
                }
                _ => Self::Failed(Box::new(error)),
            },
            _ => Self::Failed(Box::new(error)),
        }
    }
}

/// The error of a failed reconciliation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReconcileError {
    /// A user must change the object, or an object that it refers to.
    #[error("{0}")]
    Input(String),
    /// A user must change NMStateConfigs that the resource selects.
    #[error("{message}")]
    Networks {
        /// The summary, for the condition of the resource.
        message: String,
        /// The faults, each with the name of its config.
        faults: Vec<ConfigFault>,
    },
    /// A referenced object is missing or unusable. Creating or changing it can help.
    #[error("{0}")]
    Reference(String),
    /// The inventory failed. A retry may succeed.
    #[error("{0}")]
    Backend(String),
    /// A request to the Kubernetes API failed.
    #[error("{0}")]
    Request(#[from] RequestError),
}

impl ReconcileError {
    /// Returns the time of the next attempt.
    pub(crate) fn next(&self) -> Next {
        match self {
            Self::Input(_) | Self::Networks { .. } | Self::Reference(_) => Next::Wait,
            Self::Backend(_) => Next::BackOff,
            Self::Request(error) => error.next(),
        }
    }
}

impl From<SelectionError> for ReconcileError {
    fn from(SelectionError { message, faults }: SelectionError) -> Self {
        match faults.is_empty() {
            true => Self::Input(message),
            false => Self::Networks { message, faults },
        }
    }
}

impl From<inventory::Error> for ReconcileError {
    fn from(error: inventory::Error) -> Self {
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Internal | ErrorKind::InsufficientStorage => {
                Self::Backend(error.to_string())
            }
            _ => Self::Input(error.to_string()),
        }
    }
}

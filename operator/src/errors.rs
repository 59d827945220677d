//! Errors of requests to the Kubernetes API and of reconciliations.

use std::time::Duration;

use inventory::ErrorKind;

use crate::networks::{ConfigFault, SelectionError};
use crate::queue::Next;

/// Delay after a conflict or a deletion. The watch usually shows the other change earlier, and adds the object again.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// An error of a request to the Kubernetes API.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RequestError {
    /// This replica is not the leader, so it does not write.
    #[error("this replica is not the leader")]
    NotLeader,
    /// The object has changed since the controller saw it, or exists already.
    #[error("the object has changed")]
    Conflict,
    /// The object does not exist.
    #[error("the object does not exist")]
    Gone,
    /// The API server has too many requests.
    #[error("the Kubernetes API allows no request for {0:?}")]
    Busy(Duration),
    /// The API server sent no response in time.
    #[error("the Kubernetes API did not respond within {seconds} s")]
    TimedOut {
        /// The time.
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

    /// Returns when to try again.
    pub(crate) fn next(&self) -> Next {
        match self {
            // A leader that regains its lease in time continues with the same queue. Otherwise the next leader reconciles
            // everything. The cache does not announce the deletion of objects that it does not hold.
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

/// An error of a reconciliation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReconcileError {
    /// The object or an object that it refers to must be changed.
    #[error("{0}")]
    Input(String),
    /// NMStateConfigs that the resource selects must be changed.
    #[error("{message}")]
    Networks {
        /// The cause.
        message: String,
        /// The faults by config.
        faults: Vec<ConfigFault>,
    },
    /// An object that the resource refers to cannot be used. A change of it, or its creation, can help.
    #[error("{0}")]
    Reference(String),
    /// The inventory failed. A retry can succeed.
    #[error("{0}")]
    Backend(String),
    /// A request to the Kubernetes API failed.
    #[error("{0}")]
    Request(#[from] RequestError),
}

impl ReconcileError {
    /// Returns when to try again.
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

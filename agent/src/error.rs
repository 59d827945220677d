//! Errors that end an agent.

use assisted::HostId;
use assisted::client::ClientError;

/// The reason why an agent gave up. A restarted agent of the same host fails again until a user fixes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The service refused the registration with a status that a retry does not change: the infra-env does not exist,
    /// the token does not grant access to it, or the cluster does not accept new hosts in its current state.
    #[error("the service does not accept host {host}")]
    RegistrationRefused {
        /// Id that the agent sent in the registration.
        host: HostId,
        /// Response to the registration, with status 401, 403, 404, 409 or 410.
        source: ClientError,
    },
    /// The host no longer exists in the service.
    #[error("the service does not know host {host}; it was deleted")]
    HostDeleted {
        /// Id of the deleted host.
        host: HostId,
        /// Response to the failed poll, with status 404 or 410.
        source: ClientError,
    },
}

impl AgentError {
    /// Returns the error response of the service.
    #[must_use]
    pub fn client_error(&self) -> &ClientError {
        match self {
            Self::RegistrationRefused { source, .. } | Self::HostDeleted { source, .. } => source,
        }
    }
}

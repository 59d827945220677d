//! Errors of the agent.

use assisted::HostId;
use assisted::client::ClientError;

/// Why an agent gave up. A restarted agent of the same host fails again until a user acts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The service refused the registration with a status that a retry does not change: the infra-env does not exist,
    /// the token does not grant access to it, or the cluster does not accept hosts in its state.
    #[error("the service does not accept host {host}")]
    RegistrationRefused {
        /// The host.
        host: HostId,
        /// The response.
        source: ClientError,
    },
    /// The service does not know the host any more.
    #[error("the service does not know host {host}; it was deleted")]
    HostDeleted {
        /// The host.
        host: HostId,
        /// The response.
        source: ClientError,
    },
}

impl AgentError {
    /// Returns the response of the service.
    #[must_use]
    pub fn client_error(&self) -> &ClientError {
        match self {
            Self::RegistrationRefused { source, .. } | Self::HostDeleted { source, .. } => source,
        }
    }
}

//! Errors that prevent or end a simulation.

use agent::AgentError;
use assisted::InfraEnvId;
use assisted::client::ClientError;

/// The reason why a simulation cannot start, or why it ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// No server accepts connections at the URL.
    #[error("cannot reach the server at {url}")]
    Unreachable {
        /// URL of the server.
        url: String,
        /// The error of the first request.
        source: ClientError,
    },
    /// The simulation was ended before the server responded to the first requests.
    #[error("the simulation ended before the server at {url} responded; no host was started")]
    NoResponse {
        /// URL of the server.
        url: String,
    },
    /// All requests of agents failed.
    #[error("none of {requests} requests of agents to the server at {url} succeeded: {error}")]
    NoneSucceeded {
        /// URL of the server.
        url: String,
        /// Number of requests by all agents.
        requests: u64,
        /// Text of the most frequent error.
        error: String,
    },
    /// The server requires a token, or the token is not valid.
    #[error("the server does not accept the token (status 401); a token of the infra-env is needed")]
    Unauthorized {
        /// The response with status 401.
        source: ClientError,
    },
    /// The token does not grant access to the infra-env.
    #[error("the token does not grant access to infra-env {infra_env} (status 403)")]
    Forbidden {
        /// Id of the infra-env in which the hosts register.
        infra_env: InfraEnvId,
        /// The response with status 403.
        source: ClientError,
    },
    /// The infra-env does not exist, or the token is for another infra-env. Services return the same status for both.
    #[error(
        "infra-env {infra_env} does not exist on the server at {url}, or the token is of another infra-env"
    )]
    NotFound {
        /// Id of the infra-env in which the hosts register.
        infra_env: InfraEnvId,
        /// URL of the server.
        url: String,
        /// The response with status 404.
        source: ClientError,
    },
    /// The server returned an error, or does not provide the API of the Assisted Installer.
    #[error("cannot read infra-env {infra_env} from the server at {url}")]
    Server {
        /// Id of the infra-env in which the hosts register.
        infra_env: InfraEnvId,
        /// URL of the server.
        url: String,
        /// The error of the request for the infra-env.
        source: ClientError,
    },
    /// The version of the agent is invalid.
    #[error("invalid agent version")]
    AgentVersion(#[source] ClientError),
    /// All agents gave up, so no host is left to simulate.
    #[error("all {hosts} agents have ended")]
    AllEnded {
        /// Number of simulated hosts.
        hosts: u32,
        /// The error that ended the last agent.
        source: AgentError,
    },
}

impl SimulationError {
    /// Converts an error of the initial request for the infra-env to the variant that describes it.
    pub(super) fn from_preflight(infra_env: InfraEnvId, url: &str, source: ClientError) -> Self {
        let url = url.to_owned();
        match (source.status(), &source) {
            (Some(401), _) => Self::Unauthorized { source },
            (Some(403), _) => Self::Forbidden { infra_env, source },
            (Some(404), _) => Self::NotFound { infra_env, url, source },
            (None, ClientError::Connect { .. } | ClientError::Timeout { .. }) => {
                Self::Unreachable { url, source }
            }
            _ => Self::Server { infra_env, url, source },
        }
    }
}

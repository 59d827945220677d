//! Credentials of a client, and the headers that carry them.

use http::{HeaderName, HeaderValue};

use super::ClientError;
use crate::secret::Secret;

/// Header with the container image of the agent.
pub(super) const AGENT_VERSION: &str = "discovery_agent_version";

pub(super) fn agent_version_value(image: &str) -> Result<HeaderValue, ClientError> {
    HeaderValue::from_str(image).map_err(|_| ClientError::Header { name: AGENT_VERSION })
}

/// A token. The variant determines the header that carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientCredential {
    /// Token of a user: `Authorization: Bearer TOKEN`.
    Bearer(Secret),
    /// Token of a user of the agent-based installer: `Authorization: TOKEN`.
    Authorization(Secret),
    /// Token of an agent, an installer or a controller: `X-Secret-Key: TOKEN`.
    Agent(Secret),
    /// Token of a program with read-only access to an agent-based installation: `Watcher-Authorization: TOKEN`.
    Watcher(Secret),
}

impl ClientCredential {
    /// The headers that can carry a credential. A request has at most one of them.
    pub(super) const HEADERS: [&'static str; 3] = ["authorization", "x-secret-key", "watcher-authorization"];

    pub(super) fn header(&self) -> Result<(HeaderName, HeaderValue), ClientError> {
        let (name, text) = match self {
            Self::Bearer(token) => ("authorization", format!("Bearer {}", token.reveal())),
            Self::Authorization(token) => ("authorization", token.reveal().to_owned()),
            Self::Agent(token) => ("x-secret-key", token.reveal().to_owned()),
            Self::Watcher(token) => ("watcher-authorization", token.reveal().to_owned()),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| ClientError::Header { name })?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(name), value))
    }
}

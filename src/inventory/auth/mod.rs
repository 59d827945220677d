//! Authentication and authorisation.
//!
//! A [`Policy`] verifies tokens. The signature of an operation says which [kinds](AuthKind) of token it accepts and which ids a
//! request names: `Caller<User, ClusterId>` and so on. Before the operation begins, the token is checked against these ids.
//! `docs/auth.md` has the table of all routes.

mod access;
mod caller;
mod keys;
mod local;
mod reach;
mod target;
#[cfg(test)]
mod tests;
mod token;

use std::fmt;

use axum::http::StatusCode;
use uuid::Uuid;

pub use access::RouteAccess;
pub(crate) use access::{GuardedRouter, Operation, Operations, operation};
pub(crate) use caller::{
    Accepts, Agent, Caller, Downloader, Files, Initrd, Lister, Logs, Reader, User, UserOrAgent,
};
pub use keys::{KeyError, KeyHalf, KeyTexts, LocalKeys};
pub use local::LocalPolicy;
pub use target::IdSource;
pub(crate) use target::{ClusterLogs, EventsOf, LogsSource, Named, NamedInBody, Target, WholeService};

use super::id::{ClusterId, InfraEnvId};
use super::store::{Records, StoreError};
use super::{Inventory, Secret};
use crate::api_error::ApiError;

/// Where a token stands in a request, and so what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthKind {
    /// A person, or a program that acts for one: the header `Authorization`.
    User,
    /// A machine: the header `X-Secret-Key`.
    Agent,
    /// Whoever has the URL: `api_key` in the query.
    Url,
    /// Whoever downloads an image: the header `Image-Token`.
    Image,
    /// Whoever has the URL of an image: `image_token` in the query.
    ImageUrl,
    /// A program that watches: the header `Watcher-Authorization`.
    Watcher,
}

impl AuthKind {
    /// Its place in a request.
    #[must_use]
    pub fn place(self) -> &'static str {
        match self {
            Self::User => "Authorization",
            Self::Agent => "X-Secret-Key",
            Self::Url => "api_key",
            Self::Image => "Image-Token",
            Self::ImageUrl => "image_token",
            Self::Watcher => "Watcher-Authorization",
        }
    }
}

impl fmt::Display for AuthKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.place())
    }
}

/// What a caller may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everything.
    Everything,
    /// One infra-env, with its hosts and the clusters that these belong to.
    InfraEnv(InfraEnvId),
    /// One cluster.
    Cluster(ClusterId),
}

/// How tokens are judged. There is no usual one: it has to be chosen.
#[derive(Clone, Debug)]
pub enum Policy {
    /// Not at all: whoever reaches the service may do everything.
    Open,
    /// By the key pair of this service.
    Local(LocalPolicy),
}

/// The name of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// [`Policy::Open`].
    None,
    /// [`Policy::Local`].
    Local,
}

impl PolicyKind {
    /// As `AUTH_TYPE` has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Policy {
    /// Tokens of a key pair.
    #[must_use]
    pub fn local(keys: LocalKeys) -> Self {
        Self::Local(LocalPolicy::new(keys))
    }

    /// Which one it is.
    #[must_use]
    pub fn kind(&self) -> PolicyKind {
        match self {
            Self::Open => PolicyKind::None,
            Self::Local(_) => PolicyKind::Local,
        }
    }

    /// The token for the URLs and machines of an infra-env, if the policy wants any. Each one differs, and all of them are
    /// good.
    #[must_use]
    pub fn url_token(&self, infra_env: InfraEnvId) -> Option<Secret> {
        match self {
            Self::Open => None,
            Self::Local(local) => Some(local.keys().infra_env_token(infra_env)),
        }
    }

    /// The key that tokens for URLs are signed with, if the policy wants any.
    pub(crate) fn token_key(&self) -> Option<Uuid> {
        match self {
            Self::Open => None,
            Self::Local(local) => Some(local.keys().id()),
        }
    }

    /// Whether a token is what [`url_token`](Self::url_token) could give for an infra-env.
    pub(crate) fn takes_url_token(&self, infra_env: InfraEnvId, token: &Secret) -> bool {
        match self {
            Self::Open => token.is_empty(),
            Self::Local(local) => local.is_of(infra_env, token.reveal()),
        }
    }

    /// The token for the URLs of a cluster, if the policy wants any.
    #[must_use]
    pub fn cluster_url_token(&self, cluster: ClusterId) -> Option<Secret> {
        match self {
            Self::Open => None,
            Self::Local(local) => Some(local.keys().cluster_token(cluster)),
        }
    }

    /// What a token of a kind reaches. Nothing if there is no token, and the policy wants one.
    pub(crate) async fn judge(
        &self,
        records: &Records,
        kind: AuthKind,
        token: Option<&str>,
    ) -> Result<Option<Scope>, ApiError> {
        match (self, token) {
            (Self::Open, _) => Ok(Some(Scope::Everything)),
            (Self::Local(_), None) => Ok(None),
            (Self::Local(local), Some(token)) => local.judge(records, kind, token).await.map(Some),
        }
    }
}

/// The database cannot say whether a token is good. Agents ask again after a 503; what they take for a final answer stops
/// them until somebody boots the machine anew.
fn unavailable(error: &StoreError) -> ApiError {
    tracing::error!(error = error as &dyn std::error::Error, "a token cannot be judged");
    ApiError::at_gate(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer; try again")
}

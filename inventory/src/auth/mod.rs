//! Authentication and authorisation.
//!
//! A [`Policy`] verifies tokens. The type of a handler's first argument, for example `Caller<User, ClusterId>`,
//! declares which [kinds](AuthKind) of token the operation accepts and which ids a request names. The token is checked
//! against these ids before the operation begins. `docs/auth.md` has the table of all routes.

mod keys;
mod local;
mod reach;
mod token;

use std::fmt;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use keys::{KeyError, KeyHalf, KeyTexts, LocalKeys};
pub use local::LocalPolicy;
pub use reach::Named;

use super::id::{ClusterId, InfraEnvId};
use super::store::StoreError;
use super::{Inventory, Secret};
use crate::error::Error;

/// The kind of a token, which is the place in the request that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthKind {
    /// A user, or a program that acts for one: the header `Authorization`.
    User,
    /// An agent: the header `X-Secret-Key`.
    Agent,
    /// Any client that has the URL: `api_key` in the query.
    Url,
    /// A client that downloads an image: the header `Image-Token`.
    Image,
    /// Any client that has the URL of an image: `image_token` in the query.
    ImageUrl,
    /// A program that watches resources: the header `Watcher-Authorization`.
    Watcher,
    /// A browser that opens the stream of changes: `ticket` in the query.
    Ticket,
}

impl AuthKind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::User, Self::Agent, Self::Url, Self::Image, Self::ImageUrl, Self::Watcher, Self::Ticket];

    /// Returns the name of the header or query parameter.
    #[must_use]
    pub fn place(self) -> &'static str {
        match self {
            Self::User => "Authorization",
            Self::Agent => "X-Secret-Key",
            Self::Url => "api_key",
            Self::Image => "Image-Token",
            Self::ImageUrl => "image_token",
            Self::Watcher => "Watcher-Authorization",
            Self::Ticket => "ticket",
        }
    }
}

impl fmt::Display for AuthKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.place())
    }
}

/// The resources that a token gives access to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All resources.
    Everything,
    /// One infra-env, with its hosts and their clusters.
    InfraEnv(InfraEnvId),
    /// One cluster.
    Cluster(ClusterId),
}

/// The authentication policy. It has no default.
#[derive(Clone, Debug)]
pub enum Policy {
    /// No authentication: any client may do everything.
    Open,
    /// Tokens that are signed with the key pair of this service.
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
    /// Returns the value of `AUTH_TYPE` for this policy.
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
    /// Returns a policy that checks tokens with a key pair.
    #[must_use]
    pub fn local(keys: LocalKeys) -> Self {
        Self::Local(LocalPolicy::new(keys))
    }

    /// Returns the name of the policy.
    #[must_use]
    pub fn kind(&self) -> PolicyKind {
        match self {
            Self::Open => PolicyKind::None,
            Self::Local(_) => PolicyKind::Local,
        }
    }

    /// Returns a token for the URLs and hosts of an infra-env. It is empty under [`Policy::Open`]. Each call returns
    /// another token, and all of them are valid.
    ///
    /// # Errors
    ///
    /// Returns an error if signing fails.
    pub fn url_token(&self, infra_env: InfraEnvId) -> Result<Secret, Error> {
        match self {
            Self::Open => Ok(Secret::default()),
            Self::Local(local) => local
                .keys()
                .infra_env_token(infra_env)
                .map_err(|error| Error::broken(format_args!("no token for infra-env {infra_env}: {error}"))),
        }
    }

    /// Returns a ticket for the stream of changes. It is empty under [`Policy::Open`].
    ///
    /// # Errors
    ///
    /// Returns an error if signing fails.
    pub fn ticket(&self, expires: DateTime<Utc>) -> Result<Secret, Error> {
        match self {
            Self::Open => Ok(Secret::default()),
            Self::Local(local) => local
                .keys()
                .ticket(expires)
                .map_err(|error| Error::broken(format_args!("no ticket: {error}"))),
        }
    }

    /// Returns the id of the key that signs tokens for URLs, or `None` if URLs carry no token.
    pub fn token_key(&self) -> Option<Uuid> {
        match self {
            Self::Open => None,
            Self::Local(local) => Some(local.keys().id()),
        }
    }

    /// Returns `true` if [`url_token`](Self::url_token) could return this token for the infra-env.
    pub fn takes_url_token(&self, infra_env: InfraEnvId, token: &Secret) -> bool {
        match self {
            Self::Open => token.is_empty(),
            Self::Local(local) => local.is_for_infra_env(infra_env, token.reveal()),
        }
    }

    /// Returns the scope of a token of a kind, or `None` if the policy requires a token and the request has none.
    ///
    /// # Errors
    ///
    /// Returns an error if the token is invalid or of another kind, if its infra-env or cluster does not exist, or if
    /// the database does not answer.
    pub async fn judge(
        &self,
        inventory: &Inventory,
        kind: AuthKind,
        token: Option<&str>,
    ) -> Result<Option<Scope>, Error> {
        match (self, token) {
            (Self::Open, _) => Ok(Some(Scope::Everything)),
            (Self::Local(_), None) => Ok(None),
            (Self::Local(local), Some(token)) => local.judge(inventory, kind, token).await.map(Some),
        }
    }
}

/// Returns the error for a failed database lookup. It is 503, because agents retry after it. After an answer that an
/// agent takes as final, it stops until the machine is booted again.
fn unavailable(error: &StoreError) -> Error {
    error.log("cannot check a token");
    Error::unavailable("the database does not answer; try again").of_request()
}

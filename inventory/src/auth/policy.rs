//! The authentication policy: no tokens, or tokens signed by this service.

use std::fmt;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::facts::TokenFacts;
use super::keys::LocalKeys;
use super::kind::{AuthKind, Scope};
use super::local::LocalPolicy;
use crate::Secret;
use crate::error::Error;
use crate::id::InfraEnvId;

/// The authentication policy. It has no default value.
#[derive(Clone, Debug)]
pub enum Policy {
    /// No authentication: every client may perform every operation.
    Open,
    /// Requests need tokens signed with the key pair of this service.
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
    /// Returns the name: `none` or `local`.
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

    /// Returns a token for the URLs and hosts of an infra-env. The token is empty under [`Policy::Open`]. Each call
    /// returns a different token, and all these tokens are valid.
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

    /// Returns a ticket for the stream of changes, issued at `now`. The ticket is empty under [`Policy::Open`].
    ///
    /// # Errors
    ///
    /// Returns an error if signing fails.
    pub fn ticket(&self, now: DateTime<Utc>, expires: DateTime<Utc>) -> Result<Secret, Error> {
        match self {
            Self::Open => Ok(Secret::default()),
            Self::Local(local) => local
                .keys()
                .ticket(now, expires)
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

    /// Returns `true` if the token is valid at `now` and [`url_token`](Self::url_token) could have returned it for this
    /// infra-env.
    pub fn takes_url_token(&self, now: DateTime<Utc>, infra_env: InfraEnvId, token: &Secret) -> bool {
        match self {
            Self::Open => token.is_empty(),
            Self::Local(local) => local.is_for_infra_env(now, infra_env, token.reveal()),
        }
    }

    /// Returns the scope of a token of a kind, or `None` if the policy requires a token and the request has none.
    ///
    /// # Errors
    ///
    /// Returns an error if the token is invalid or of another kind, if its infra-env or cluster does not exist, or if
    /// the database does not respond.
    pub async fn judge(
        &self,
        facts: &impl TokenFacts,
        kind: AuthKind,
        token: Option<&str>,
    ) -> Result<Option<Scope>, Error> {
        match (self, token) {
            (Self::Open, _) => Ok(Some(Scope::Everything)),
            (Self::Local(_), None) => Ok(None),
            (Self::Local(local), Some(token)) => local.judge(facts, kind, token).await.map(Some),
        }
    }
}

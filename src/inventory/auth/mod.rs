//! Who may do what.
//!
//! A [`Policy`] says how a token is judged. An operation says, in its signature, which [kinds](AuthKind) of token it takes:
//! [`Caller<User>`](Caller) and so on.

mod caller;

use std::fmt;

pub(crate) use caller::{Agent, Caller, Files, Initrd, Logs, Reader, User, UserOrAgent};

use super::id::{ClusterId, InfraEnvId};
use super::{Refusal, Secret};

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

/// How tokens are judged.
#[derive(Clone, Default)]
pub enum Policy {
    /// Not at all: whoever reaches the service may do everything.
    #[default]
    Open,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("Open"),
        }
    }
}

impl Policy {
    /// The token in the URLs of an infra-env's images, where there has to be one.
    pub(crate) fn url_token(&self, _infra_env: InfraEnvId) -> Option<Secret> {
        match self {
            Self::Open => None,
        }
    }

    /// What a token of a kind reaches. Nothing if there is no token, and the policy wants one.
    pub(crate) fn judge(&self, _kind: AuthKind, _token: Option<&str>) -> Result<Option<Scope>, Refusal> {
        match self {
            Self::Open => Ok(Some(Scope::Everything)),
        }
    }
}

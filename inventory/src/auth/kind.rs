//! The kinds of tokens, and the resources that a token grants access to.

use std::fmt;

use crate::id::{ClusterId, InfraEnvId};

/// The kind of a token. It determines which header or query parameter carries the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthKind {
    /// For users, and for programs that act for them: the header `Authorization`.
    User,
    /// For agents: the header `X-Secret-Key`.
    Agent,
    /// For any client with the URL: `api_key` in the query.
    Url,
    /// For clients that download an image: the header `Image-Token`.
    Image,
    /// For any client with the URL of an image: `image_token` in the query.
    ImageUrl,
    /// For programs that watch resources: the header `Watcher-Authorization`.
    Watcher,
    /// For browsers that open the stream of changes: `ticket` in the query.
    Ticket,
}

impl AuthKind {
    /// All kinds of token.
    pub const ALL: [Self; 7] =
        [Self::User, Self::Agent, Self::Url, Self::Image, Self::ImageUrl, Self::Watcher, Self::Ticket];

    /// Returns the name of the header or query parameter that carries the token.
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

/// The resources that a token grants access to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All resources.
    Everything,
    /// One infra-env, with its hosts and their clusters.
    InfraEnv(InfraEnvId),
    /// One cluster.
    Cluster(ClusterId),
}

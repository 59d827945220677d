//! The caller of an operation.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};

use super::{AuthKind, Scope};
use crate::inventory::request::Query;
use crate::inventory::{Inventory, Refusal};

/// Which kinds of token an operation takes, in the order in which they are tried.
pub(crate) trait Accepts: Send + 'static {
    const KINDS: &'static [AuthKind];
}

macro_rules! callers {
    ($($(#[$doc:meta])* $name:ident: $($kind:ident),+;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Accepts for $name {
            const KINDS: &'static [AuthKind] = &[$(AuthKind::$kind),+];
        }
    )*};
}

callers! {
    /// People, or programs that act for them.
    User: User;
    /// People, and programs that watch.
    Reader: User, Agent, Watcher;
    /// Machines.
    Agent: Agent;
    /// People and machines.
    UserOrAgent: User, Agent;
    /// Whoever downloads files of an infra-env.
    Files: User, Agent, Url, Image, ImageUrl;
    /// Whoever downloads the initrd of an infra-env.
    Initrd: User, Url, Image;
    /// Whoever reads events and logs.
    Logs: User, Url, Watcher;
}

/// Who calls, and what that reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<A> {
    pub(crate) kind: AuthKind,
    pub(crate) scope: Scope,
    accepts: PhantomData<A>,
}

impl<A: Accepts> FromRequestParts<Inventory> for Caller<A> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, inventory: &Inventory) -> Result<Self, Refusal> {
        let Ok(query) = Query::from_request_parts(parts, inventory).await;
        let mut last = None;
        for kind in A::KINDS {
            match inventory.policy().judge(*kind, token(*kind, &parts.headers, &query)) {
                Ok(Some(scope)) => return Ok(Self { kind: *kind, scope, accepts: PhantomData }),
                Ok(None) => {}
                Err(refusal) => last = Some(refusal),
            }
        }
        Err(last.unwrap_or_else(|| {
            Refusal::at_gate(StatusCode::UNAUTHORIZED, "unauthenticated for invalid credentials")
        }))
    }
}

/// The token of a kind, if there is one.
fn token<'a>(kind: AuthKind, headers: &'a HeaderMap, query: &'a Query) -> Option<&'a str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let found = match kind {
        AuthKind::User => header("authorization"),
        AuthKind::Agent => header("x-secret-key"),
        AuthKind::Url => query.text("api_key"),
        AuthKind::Image => header("image-token"),
        AuthKind::ImageUrl => query.text("image_token"),
        AuthKind::Watcher => header("watcher-authorization"),
    };
    found.filter(|token| !token.is_empty())
}

//! The caller of an operation.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};

use super::{AuthKind, Scope, Target};
use crate::inventory::request::Query;
use crate::inventory::{Inventory, Refusal};

/// Which kinds of token an operation takes, in the order in which they are tried.
pub(crate) trait Accepts: Send + Sync + 'static {
    const KINDS: &'static [AuthKind];
    const TARGET: TargetIn = TargetIn::Request;
}

/// Where it is said what an operation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetIn {
    /// In the path or the query: tokens that reach only a part of everything are checked against it.
    Request,
    /// In the body: the operation has to ask [`Caller::require`].
    Body,
}

macro_rules! callers {
    ($($(#[$doc:meta])* $name:ident: $($kind:ident),+ $(=> $place:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Accepts for $name {
            const KINDS: &'static [AuthKind] = &[$(AuthKind::$kind),+];
            $(const TARGET: TargetIn = TargetIn::$place;)?
        }
    )*};
}

callers! {
    /// People, or programs that act for them.
    User: User;
    /// People, and programs that watch. For lists of everything.
    Lister: User, Watcher;
    /// People, machines, and programs that watch.
    Reader: User, Agent, Watcher;
    /// Machines.
    Agent: Agent;
    /// Machines, which tell of something that the body names.
    EventSource: Agent => Body;
    /// People and machines.
    UserOrAgent: User, Agent;
    /// Whoever downloads files of an infra-env.
    Files: User, Agent, Url, Image, ImageUrl;
    /// Whoever downloads the initrd of an infra-env.
    Initrd: User, Url, Image;
    /// Whoever reads events.
    Logs: User, Url, Watcher;
    /// Whoever downloads logs.
    Downloader: User, Url;
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
        let caller = Self::authenticate(parts, &query, inventory).await?;
        if A::TARGET == TargetIn::Request && caller.scope != Scope::Everything {
            caller.require(inventory, &Target::of(parts, &query).await).await?;
        }
        Ok(caller)
    }
}

impl<A: Accepts> Caller<A> {
    async fn authenticate(parts: &Parts, query: &Query, inventory: &Inventory) -> Result<Self, Refusal> {
        let mut last = None;
        for kind in A::KINDS {
            let token = token(*kind, &parts.headers, query);
            match inventory.policy().judge(inventory.records(), *kind, token).await {
                Ok(Some(scope)) => return Ok(Self { kind: *kind, scope, accepts: PhantomData }),
                Ok(None) => {}
                Err(refusal) => last = Some(refusal),
            }
        }
        Err(last.unwrap_or_else(|| {
            Refusal::at_gate(StatusCode::UNAUTHORIZED, "unauthenticated for invalid credentials")
        }))
    }

    /// Refuses what the caller's token does not reach.
    pub(crate) async fn require(&self, inventory: &Inventory, target: &Target) -> Result<(), Refusal> {
        let records = inventory.records();
        // An operation looks for the host in a path, but takes the one in a body as it is.
        let is_looked_for = A::TARGET == TargetIn::Request || self.scope == Scope::Everything;
        if target.is_within(self.kind, self.scope, records).await?
            && (is_looked_for || target.has_its_hosts(records).await?)
        {
            return Ok(());
        }
        tracing::info!(kind = %self.kind, scope = ?self.scope, "a token does not reach what was asked for");
        Err(Refusal::not_found("Object Not Found"))
    }
}

/// The token of a kind, if there is one.
fn token<'a>(kind: AuthKind, headers: &'a HeaderMap, query: &'a Query) -> Option<&'a str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let found = match kind {
        AuthKind::Url | AuthKind::ImageUrl => query.text(kind.place()),
        _ => header(kind.place()),
    };
    found.filter(|token| !token.is_empty())
}

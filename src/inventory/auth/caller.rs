//! The caller of an operation.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};

use super::target::{Ids, Named, NamedInBody, Target};
use super::{AuthKind, Scope};
use crate::api_error::ApiError;
use crate::inventory::Inventory;
use crate::inventory::request::Query;

/// The kinds of token that an operation accepts, in the order in which they are tried.
pub(crate) trait Accepts: Send + Sync + 'static {
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
    /// Users, or programs that act for them.
    User: User;
    /// Users, and programs that watch. For lists of everything.
    Lister: User, Watcher;
    /// Users, agents, and programs that watch.
    Reader: User, Agent, Watcher;
    /// Agents.
    Agent: Agent;
    /// Users and agents.
    UserOrAgent: User, Agent;
    /// Clients that download files of an infra-env.
    Files: User, Agent, Url, Image, ImageUrl;
    /// Clients that download the initrd of an infra-env.
    Initrd: User, Url, Image;
    /// Clients that read events.
    Logs: User, Url, Watcher;
    /// Clients that download logs.
    Downloader: User, Url;
}

/// The caller of an operation, whose token gives access to the target of the operation.
///
/// `A` is the kinds of token that the operation accepts. `T` is the target: the ids that a request names. An operation takes
/// these ids from here alone, so that it uses the ids that the token was checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<A, T> {
    pub(crate) target: T,
    pub(crate) scope: Scope,
    kind: AuthKind,
    accepts: PhantomData<A>,
}

impl<A: Accepts, T: Target> FromRequestParts<Inventory> for Caller<A, T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, inventory: &Inventory) -> Result<Self, ApiError> {
        let Ok(query) = Query::from_request_parts(parts, inventory).await;
        let (kind, scope) = authenticate(A::KINDS, (&parts.headers, &query), inventory).await?;
        let target = T::read(&Ids::of_request(parts, &query).await?)?;
        let caller = Self { target, scope, kind, accepts: PhantomData };
        if let Some(named) = caller.target.named()
            && !named.is_within(kind, scope, inventory.records()).await?
        {
            return Err(caller.out_of_scope());
        }
        Ok(caller)
    }
}

impl<A, T> Caller<A, T> {
    /// The refusal of a token that does not give access to all that a request names: as if that did not exist.
    fn out_of_scope(&self) -> ApiError {
        tracing::info!(kind = %self.kind, scope = ?self.scope, "token does not grant access to the requested resource");
        ApiError::not_found("Object Not Found")
    }
}

impl<A> Caller<A, NamedInBody> {
    /// Refuses a body that names a resource outside of the token's scope, or a host that does not exist.
    pub(crate) async fn require(&self, inventory: &Inventory, named: &Named) -> Result<(), ApiError> {
        let records = inventory.records();
        let is_within = named.is_within(self.kind, self.scope, records).await?;
        // An operation looks for a host of a path itself, but takes one of a body as it is.
        if is_within && (self.scope == Scope::Everything || named.has_its_hosts(records).await?) {
            return Ok(());
        }
        Err(self.out_of_scope())
    }
}

/// The first kind of token that the request has a valid one of, and the scope of that token.
async fn authenticate(
    kinds: &[AuthKind],
    (headers, query): (&HeaderMap, &Query),
    inventory: &Inventory,
) -> Result<(AuthKind, Scope), ApiError> {
    let mut last = None;
    for kind in kinds {
        match inventory.policy().judge(inventory.records(), *kind, token(*kind, headers, query)).await {
            Ok(Some(scope)) => return Ok((*kind, scope)),
            Ok(None) => {}
            Err(refusal) => last = Some(refusal),
        }
    }
    Err(last.unwrap_or_else(|| {
        ApiError::at_gate(StatusCode::UNAUTHORIZED, "unauthenticated for invalid credentials")
    }))
}

/// The token of a kind, if the request has one.
fn token<'a>(kind: AuthKind, headers: &'a HeaderMap, query: &'a Query) -> Option<&'a str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let found = match kind {
        AuthKind::Url | AuthKind::ImageUrl => query.text(kind.place()),
        _ => header(kind.place()),
    };
    found.filter(|token| !token.is_empty())
}

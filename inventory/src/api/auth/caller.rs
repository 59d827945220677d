//! The caller of an operation: the scope of its token, and the resources that its request names.

use std::borrow::Cow;
use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::target::{Ids, NamedInBody, Target};
use crate::Inventory;
use crate::api::{ApiState, Query};
use crate::auth::{AuthKind, Named, Scope};
use crate::error::Error;

/// The kinds of token that an operation accepts, in the order in which the service tries them.
pub trait AcceptedTokens: Send + Sync + 'static {
    /// The accepted kinds, in the order in which the service tries them.
    const KINDS: &'static [AuthKind];
}

macro_rules! callers {
    ($($(#[$doc:meta])* $name:ident: $($kind:ident),+;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl AcceptedTokens for $name {
            const KINDS: &'static [AuthKind] = &[$(AuthKind::$kind),+];
        }
    )*};
}

callers! {
    /// Users, and programs that act for them.
    User: User;
    /// Users, and programs that watch resources. For lists of the whole service.
    Lister: User, Watcher;
    /// Users, agents, and programs that watch resources.
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
    /// Clients that read the stream of changes.
    Streamer: User, Url, Watcher, Ticket;
    /// Clients that download logs.
    Downloader: User, Url;
}

/// The caller of an operation. The caller's token grants access to the target of the operation.
///
/// `A` is the set of token kinds that the operation accepts. `T` is the target: the ids that the request names. An
/// operation reads these ids only from its caller, so it uses exactly the ids that the token was checked against.
#[derive(Clone, Copy, Debug)]
pub struct Caller<A, T> {
    /// The resources that the request names.
    pub target: T,
    /// The scope of the caller's token.
    pub scope: Scope,
    kind: AuthKind,
    accepts: PhantomData<A>,
}

impl<A: AcceptedTokens, T: Target> FromRequestParts<ApiState> for Caller<A, T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState) -> Result<Self, Error> {
        let Ok(query) = Query::from_request_parts(parts, api).await;
        let inventory = api.inventory();
        let (kind, scope) = authenticate(A::KINDS, (&parts.headers, &query), inventory).await?;
        let target = T::read(&Ids::of_request(parts, &query).await?)?;
        let caller = Self { target, scope, kind, accepts: PhantomData };
        if let Some(resources) = caller.target.named()
            && !resources.is_within(kind, scope, inventory.records()).await?
        {
            return Err(caller.out_of_scope());
        }
        Ok(caller)
    }
}

impl<A, T> Caller<A, T> {
    /// Returns the error for a token without access to the target. A resource that does not exist causes the same
    /// error.
    fn out_of_scope(&self) -> Error {
        tracing::info!(kind = %self.kind, scope = ?self.scope, "token does not grant access to the requested resource");
        Error::not_found("Object Not Found")
    }
}

impl<A> Caller<A, NamedInBody> {
    /// Checks that the token grants access to the resources that a body names.
    ///
    /// # Errors
    ///
    /// Returns an error if a resource is outside the token's scope, or if a limited token names a host that does not
    /// exist.
    pub async fn require(&self, inventory: &Inventory, resources: &Named) -> Result<(), Error> {
        let records = inventory.records();
        let is_within = resources.is_within(self.kind, self.scope, records).await?;
        // Hosts in the body must be checked here, because the operation itself looks up only a host in the path.
        if is_within && (self.scope == Scope::Everything || resources.has_its_hosts(records).await?) {
            return Ok(());
        }
        Err(self.out_of_scope())
    }
}

/// Returns the first kind for which the request has a valid token, and the scope of that token.
async fn authenticate(
    kinds: &[AuthKind],
    (headers, query): (&HeaderMap, &Query),
    inventory: &Inventory,
) -> Result<(AuthKind, Scope), Error> {
    let mut last = None;
    for kind in kinds {
        let token = token_of_kind(*kind, headers, query);
        match inventory.policy().judge(inventory, *kind, token.as_deref()).await {
            Ok(Some(scope)) => return Ok((*kind, scope)),
            Ok(None) => {}
            Err(refusal) => last = Some(refusal),
        }
    }
    Err(last.unwrap_or_else(|| Error::unauthorized("unauthenticated for invalid credentials")))
}

/// Returns the token of a kind, if the request has one. A token with bytes that are not text is invalid, not missing.
fn token_of_kind<'a>(kind: AuthKind, headers: &'a HeaderMap, query: &'a Query) -> Option<Cow<'a, str>> {
    let token = match kind {
        AuthKind::Url | AuthKind::ImageUrl | AuthKind::Ticket => query.text(kind.place()).map(Cow::Borrowed),
        _ => headers.get(kind.place()).map(|value| String::from_utf8_lossy(value.as_bytes())),
    };
    token.filter(|token| !token.is_empty())
}

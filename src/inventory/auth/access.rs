//! Which tokens each route accepts.
//!
//! Every route is registered with a [`RouteAccess`]. An operation of the API has its own from the type of its [`Caller`], which
//! is its first argument: a handler without one cannot be registered. `docs/auth.md` shows all of them.

use std::fmt;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::routing::MethodRouter;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter, UtoipaMethodRouterExt};

use super::caller::{Accepts, Caller};
use super::target::{IdSource, Target};
use super::{AuthKind, Inventory};

/// The access to one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteAccess {
    /// The method. A route for GET answers HEAD as well.
    pub method: Method,
    /// The path, with names of parameters in braces.
    pub path: String,
    /// The kinds of token that the route accepts.
    pub tokens: &'static [AuthKind],
    /// The ids that a token is checked against.
    pub ids: &'static [IdSource],
}

impl RouteAccess {
    /// A route for GET that needs no token.
    #[must_use]
    pub fn open(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), tokens: &[], ids: &[] }
    }

    /// A route for GET of an infra-env's images.
    #[must_use]
    pub fn image(path: &str, tokens: &'static [AuthKind], ids: &'static [IdSource]) -> Self {
        Self { method: Method::GET, path: path.to_owned(), tokens, ids }
    }

    /// Whether the route needs no token.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty() && self.ids.is_empty()
    }
}

/// A row of the table in `docs/auth.md`.
impl fmt::Display for RouteAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |texts: Vec<String>, none: &str| {
            if texts.is_empty() { none.to_owned() } else { texts.join(", ") }
        };
        let tokens = self.tokens.iter().map(|kind| format!("`{kind}`"));
        let in_path = self.ids.iter().filter_map(|id| match id {
            IdSource::PathToken(name, kind) => Some(format!("`{{{name}}}` as `{kind}`")),
            _ => None,
        });
        let tokens = list(tokens.chain(in_path).collect(), "open");
        let ids = list(self.ids.iter().map(ToString::to_string).collect(), "-");
        write!(f, "| {} | `{}` | {tokens} | {ids} |", self.method, self.path)
    }
}

impl fmt::Display for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(name) => write!(f, "`{name}`"),
            Self::PathToken(name, _) => write!(f, "the one of token `{name}`"),
            Self::Query(name) => write!(f, "`?{name}`"),
            Self::Body(name) => write!(f, "`{name}` in the body"),
        }
    }
}

/// Routes, and the access to each of them.
pub(crate) struct GuardedRouter<S = ()> {
    router: Router<S>,
    access: Vec<RouteAccess>,
}

impl<S: Clone + Send + Sync + 'static> GuardedRouter<S> {
    /// No routes yet.
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), access: Vec::new() }
    }

    /// The operations of the API.
    pub(crate) fn of_operations(router: Router<S>, access: Vec<RouteAccess>) -> Self {
        Self { router, access }
    }

    /// Adds a route at the path of its access.
    pub(crate) fn route(mut self, access: RouteAccess, handler: MethodRouter<S>) -> Self {
        self.router = self.router.route(&access.path, handler);
        self.access.push(access);
        self
    }

    /// Adds the routes of another router.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.access.extend(other.access);
        self
    }

    /// The same routes under a path.
    pub(crate) fn under(self, prefix: &str) -> Self {
        let access = self.access.into_iter().map(|route| {
            let path = format!("{prefix}{}", route.path);
            RouteAccess { path, ..route }
        });
        Self { access: access.collect(), router: Router::new().nest(prefix, self.router) }
    }

    /// Adds the routes of another router, for requests that no route of this one matches.
    pub(crate) fn or(mut self, other: GuardedRouter) -> Self {
        self.router = self.router.fallback_service(other.router);
        self.access.extend(other.access);
        self
    }

    /// Adds layers or state, and no routes.
    pub(crate) fn map<T>(self, change: impl FnOnce(Router<S>) -> Router<T>) -> GuardedRouter<T> {
        GuardedRouter { router: change(self.router), access: self.access }
    }

    /// The routes, and the access to each.
    pub(crate) fn into_parts(self) -> (Router<S>, Vec<RouteAccess>) {
        (self.router, self.access)
    }
}

/// The routes of the API, their description, and the access to each of them.
pub(crate) struct Operations {
    pub(crate) router: OpenApiRouter<Inventory>,
    pub(crate) access: Vec<RouteAccess>,
}

impl Operations {
    /// No operations yet, for a document that says what it says of the whole API.
    pub(crate) fn new(document: utoipa::openapi::OpenApi) -> Self {
        Self { router: OpenApiRouter::with_openapi(document), access: Vec::new() }
    }

    /// Adds an operation.
    pub(crate) fn with(mut self, operation: Operation) -> Self {
        for (path, item) in &operation.routes.1.paths {
            let methods = methods(item);
            debug_assert_eq!(methods.len(), 1, "{path}: one handler has one method");
            for method in methods {
                let (tokens, ids) = operation.guard;
                self.access.push(RouteAccess { method, path: path.clone(), tokens, ids });
            }
        }
        self.router = self.router.routes(operation.routes);
        self
    }
}

fn methods(item: &utoipa::openapi::PathItem) -> Vec<Method> {
    let all = [
        (&item.get, Method::GET),
        (&item.put, Method::PUT),
        (&item.post, Method::POST),
        (&item.delete, Method::DELETE),
        (&item.patch, Method::PATCH),
    ];
    all.into_iter().filter(|(operation, _)| operation.is_some()).map(|(_, method)| method).collect()
}

/// The kinds of token that a handler accepts, and the ids that they are checked against.
type Guard = (&'static [AuthKind], &'static [IdSource]);

/// An operation of the API. [`operation!`] makes it from a handler.
pub(crate) struct Operation {
    routes: UtoipaMethodRouter<Inventory>,
    guard: Guard,
}

impl Operation {
    /// An operation with the access that its handler declares.
    pub(crate) fn new<M, H: Guarded<M>>(routes: UtoipaMethodRouter<Inventory>, _: H) -> Self {
        Self { routes, guard: H::GUARD }
    }

    /// The same with another limit for its body, in bytes.
    pub(crate) fn with_body_limit(self, bytes: usize) -> Self {
        Self { routes: UtoipaMethodRouterExt::layer(self.routes, DefaultBodyLimit::max(bytes)), ..self }
    }
}

/// An [`Operation`] of a handler that is described by `utoipa::path`.
macro_rules! operation {
    ($handler:ident) => {
        $crate::inventory::auth::Operation::new(utoipa_axum::routes!($handler), $handler)
    };
}
pub(crate) use operation;

/// A handler whose first argument is its [`Caller`]. The parameter `M` tells handlers of different arguments apart.
pub(crate) trait Guarded<M> {
    const GUARD: Guard;
}

macro_rules! guarded {
    ($($argument:ident)*) => {
        impl<F, Answer, A: Accepts, T: Target, $($argument),*> Guarded<(A, T, $($argument,)*)> for F
        where
            F: Fn(Caller<A, T>, $($argument),*) -> Answer,
        {
            const GUARD: Guard = (A::KINDS, T::IDS);
        }
    };
}

guarded!();
guarded!(B);
guarded!(B C);
guarded!(B C D);
guarded!(B C D E);

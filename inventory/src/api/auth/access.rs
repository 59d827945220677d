//! Access rules: the tokens that each route accepts.
//!
//! Every route is registered with a [`RouteAccess`]. For an API operation, the rule is derived from the type of the
//! handler's first argument, a [`Caller`]. A handler without a caller cannot be registered. `docs/auth.md` lists all
//! routes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::{Route, any, get};
use tower::{Layer, Service};
use utoipa::openapi::{ComponentsBuilder, OpenApiBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter, UtoipaMethodRouterExt};

use super::caller::{AcceptedTokens, Caller};
use super::target::{IdSource, Target};
use crate::Settings;
use crate::api::{ApiError, ApiState};
use crate::auth::AuthKind;

/// The access rule of one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteAccess {
    /// The method. A GET route also serves HEAD requests.
    pub method: Method,
    /// The path, with parameter names in braces.
    pub path: String,
    /// The kinds of token that the route accepts.
    pub tokens: &'static [AuthKind],
    /// The parts of the request that contain the ids. The token must grant access to these ids.
    pub ids: &'static [IdSource],
}

impl RouteAccess {
    /// Returns the rule of a GET route that requires no token.
    #[must_use]
    pub fn open(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), tokens: &[], ids: &[] }
    }

    /// Returns the rule of a GET route that serves images of an infra-env.
    #[must_use]
    pub fn image(path: &str, tokens: &'static [AuthKind], ids: &'static [IdSource]) -> Self {
        Self { method: Method::GET, path: path.to_owned(), tokens, ids }
    }
}

/// Formats a row of the table in `docs/auth.md`.
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

/// Routes together with their access rules.
#[derive(Debug)]
pub struct GuardedRouter<S = ()> {
    router: Router<S>,
    access: Vec<RouteAccess>,
}

impl<S: Clone + Send + Sync + 'static> Default for GuardedRouter<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Clone + Send + Sync + 'static> GuardedRouter<S> {
    /// Creates a router without routes.
    pub fn new() -> Self {
        Self { router: Router::new(), access: Vec::new() }
    }

    /// Adds a GET route at the path of its access rule.
    pub fn route<H: Handler<T, S>, T: 'static>(mut self, access: RouteAccess, handler: H) -> Self {
        self.router = self.router.route(&access.path, get(handler));
        self.access.push(access);
        self
    }

    /// Adds the routes of another router.
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.access.extend(other.access);
        self
    }

    /// Wraps a layer around each route added so far, and around the refusals of other requests. One call with a tuple
    /// of layers is cheaper than several calls, because each call makes the router clone its routes once more per
    /// request.
    pub fn layer<L>(self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request, Error: Into<Infallible>, Future: Send> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Future: 'static,
    {
        Self { router: self.router.layer(layer), access: self.access }
    }

    /// Sets the handler of requests whose method is not supported by their route.
    pub fn method_not_allowed_fallback<H: Handler<T, S>, T: 'static>(self, handler: H) -> Self {
        Self { router: self.router.method_not_allowed_fallback(handler), access: self.access }
    }

    /// Refuses methods that a path does not support. The error lists the supported methods.
    ///
    /// # Panics
    ///
    /// A second call panics. A merge panics if both routers refuse other methods of the same path.
    pub fn refuse_other_methods(mut self) -> Self {
        for (path, allowed) in allowed_methods(&self.access) {
            let refuse = async move |method: Method| {
                let message = format!("method {method} is not allowed, but [{allowed}] are");
                ([(header::ALLOW, allowed)], ApiError::infra_error(StatusCode::METHOD_NOT_ALLOWED, message))
            };
            // `any` prevents axum from adding its own `Allow`, which axum would also add to refusals by layers.
            self.router = self.router.route(&path, any(refuse));
        }
        self
    }

    /// Refuses requests for unknown paths with 404.
    ///
    /// # Panics
    ///
    /// A merge panics if both routers refuse unknown paths.
    pub fn refuse_unknown_paths(self) -> Self {
        let refuse = async |uri: Uri| {
            ApiError::infra_error(StatusCode::NOT_FOUND, format!("path {} was not found", uri.path()))
        };
        Self { router: self.router.fallback(refuse), access: self.access }
    }

    /// Sets the state that the handlers receive.
    pub fn with_state<T>(self, state: S) -> GuardedRouter<T> {
        GuardedRouter { router: self.router.with_state(state), access: self.access }
    }

    /// Returns the router and the access rules. The access rules no longer follow later changes to the router.
    pub fn into_parts(self) -> (Router<S>, Vec<RouteAccess>) {
        (self.router, self.access)
    }
}

/// Returns the methods of each path, in the format of the header `Allow`.
fn allowed_methods(access: &[RouteAccess]) -> BTreeMap<String, String> {
    let mut allowed: BTreeMap<String, String> = BTreeMap::new();
    for RouteAccess { method, path, .. } in access {
        let methods = allowed.entry(path.clone()).or_default();
        if !methods.is_empty() {
            methods.push(',');
        }
        methods.push_str(if method == Method::GET { "GET,HEAD" } else { method.as_str() });
    }
    allowed
}

/// The operations of the API, with their routes, OpenAPI document and access rules.
pub struct Operations {
    pub(crate) router: OpenApiRouter<ApiState>,
    access: Vec<RouteAccess>,
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Operations {
    /// Creates an empty set of operations. `document` describes the API as a whole.
    pub fn new(document: utoipa::openapi::OpenApi) -> Self {
        Self { router: OpenApiRouter::with_openapi(document), access: Vec::new() }
    }

    /// Returns the routes, under the path prefix of the API, and the OpenAPI document.
    #[must_use]
    pub fn into_parts(self) -> (GuardedRouter<ApiState>, utoipa::openapi::OpenApi) {
        let (router, document) = self.router.split_for_parts();
        let access = self.access.into_iter().map(|route| {
            let path = format!("{}{}", Settings::API, route.path);
            RouteAccess { path, ..route }
        });
        (GuardedRouter { router, access: access.collect() }, document)
    }

    /// Returns the access rules of all operations, without the path prefix of the API.
    pub(crate) fn access(&self) -> &[RouteAccess] {
        &self.access
    }

    /// Adds an operation to the routes, the OpenAPI document and the access rules.
    #[must_use]
    pub fn with(mut self, operation: Operation) -> Self {
        let (schemas, paths, handler) = operation.routes;
        for (path, item) in &paths.paths {
            let methods = methods(item);
            debug_assert_eq!(methods.len(), 1, "{path}: one handler has one method");
            for method in methods {
                let (tokens, ids) = operation.guard;
                self.access.push(RouteAccess { method, path: path.clone(), tokens, ids });
            }
            // The route contains the whole path, because a nested router would rewrite the URL of each request.
            self.router = self.router.route(&format!("{}{path}", Settings::API), handler.clone());
        }
        let components = ComponentsBuilder::new().schemas_from_iter(schemas).build();
        let described = OpenApiBuilder::new().paths(paths).components(Some(components)).build();
        self.router.get_openapi_mut().merge(described);
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

/// The kinds of token that a handler accepts, and the ids that the token must grant access to.
type Guard = (&'static [AuthKind], &'static [IdSource]);

/// An operation of the API, created from its handler.
pub struct Operation {
    routes: UtoipaMethodRouter<ApiState>,
    guard: Guard,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl Operation {
    /// Creates an operation with the access rule that its handler declares.
    pub fn new<M, H: Guarded<M>>(routes: UtoipaMethodRouter<ApiState>, _: H) -> Self {
        Self { routes, guard: H::GUARD }
    }

    /// Sets the maximum size of the request body, in bytes.
    pub fn with_body_limit(self, bytes: usize) -> Self {
        Self { routes: UtoipaMethodRouterExt::layer(self.routes, DefaultBodyLimit::max(bytes)), ..self }
    }
}

/// Creates an [`Operation`] from a handler with the attribute `utoipa::path`.
macro_rules! operation {
    ($handler:ident) => {
        $crate::api::auth::Operation::new(utoipa_axum::routes!($handler), $handler)
    };
}
pub(crate) use operation;

/// A handler whose first argument is a [`Caller`]. The parameter `M` distinguishes handlers by their arguments.
///
/// A handler without a caller declares neither tokens nor a target, so it cannot become an operation:
///
/// ```compile_fail
/// fn require_guard<M>(_: impl inventory::api::auth::Guarded<M>) {}
/// require_guard(|_: String| async {});
/// ```
///
/// ```
/// use inventory::api::auth::{Caller, User, WholeService};
///
/// fn require_guard<M>(_: impl inventory::api::auth::Guarded<M>) {}
/// require_guard(|_: Caller<User, WholeService>, _: String| async {});
/// ```
pub trait Guarded<M> {
    /// The access rule that the caller declares.
    const GUARD: Guard;
}

macro_rules! guarded {
    ($($argument:ident)*) => {
        impl<F, Answer, A: AcceptedTokens, T: Target, $($argument),*> Guarded<(A, T, $($argument,)*)> for F
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

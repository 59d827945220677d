//! Security schemes in the OpenAPI document: the kinds of token, and the kinds that each operation accepts.

use axum::http::Method;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, OpenApi, PathItem};

use crate::api::auth::{IdSource, RouteAccess};
use crate::auth::AuthKind;

/// Adds the access rules of `routes` to the operations of a document. Routes missing from the document are skipped.
pub fn add_access(document: &mut OpenApi, routes: &[RouteAccess]) {
    let components = document.components.get_or_insert_with(Components::default);
    for kind in AuthKind::ALL {
        components.security_schemes.insert(scheme_name(kind).to_owned(), scheme(kind).into());
    }
    for route in routes {
        let item = document.paths.paths.get_mut(&route.path);
        if let Some(operation) = item.and_then(|item| operation_mut(item, &route.method)) {
            operation.security = Some(alternatives(route));
        }
    }
}

/// Returns the tokens that a route accepts. An empty requirement represents a token in the path, for which OpenAPI has
/// no scheme.
fn alternatives(route: &RouteAccess) -> Vec<SecurityRequirement> {
    let has_token_in_path = route.ids.iter().any(|id| matches!(id, IdSource::PathToken(..)));
    let in_path = has_token_in_path.then(SecurityRequirement::default);
    let requirements = route.tokens.iter().map(|kind| SecurityRequirement::new(scheme_name(*kind), [""; 0]));
    requirements.chain(in_path).collect()
}

fn operation_mut<'a>(item: &'a mut PathItem, method: &Method) -> Option<&'a mut Operation> {
    match *method {
        Method::GET => item.get.as_mut(),
        Method::PUT => item.put.as_mut(),
        Method::POST => item.post.as_mut(),
        Method::DELETE => item.delete.as_mut(),
        Method::PATCH => item.patch.as_mut(),
        _ => None,
    }
}

/// Returns the name of a security scheme. The Assisted Service uses the same names, except for tickets.
fn scheme_name(kind: AuthKind) -> &'static str {
    match kind {
        AuthKind::User => "userAuth",
        AuthKind::Agent => "agentAuth",
        AuthKind::Url => "urlAuth",
        AuthKind::Image => "imageAuth",
        AuthKind::ImageUrl => "imageURLAuth",
        AuthKind::Watcher => "watcherAuth",
        AuthKind::Ticket => "ticketAuth",
    }
}

fn scheme(kind: AuthKind) -> SecurityScheme {
    let key = ApiKeyValue::with_description(kind.place(), description(kind));
    SecurityScheme::ApiKey(match kind {
        AuthKind::Url | AuthKind::ImageUrl | AuthKind::Ticket => ApiKey::Query(key),
        AuthKind::User | AuthKind::Agent | AuthKind::Image | AuthKind::Watcher => ApiKey::Header(key),
    })
}

fn description(kind: AuthKind) -> &'static str {
    match kind {
        AuthKind::User => "User token, with or without the prefix `Bearer `",
        AuthKind::Agent => "Token of an infra-env or a cluster, for agents",
        AuthKind::Url => "Token of an infra-env or a cluster, for clients that have only a URL",
        AuthKind::Image | AuthKind::ImageUrl => {
            "Image token. Documented for compatibility: the policy `local` does not accept it"
        }
        AuthKind::Watcher => {
            "Watcher token. Documented for compatibility: the policy `local` does not accept it"
        }
        AuthKind::Ticket => "Ticket of a user, valid for one minute",
    }
}

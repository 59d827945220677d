//! The OpenAPI document of the service: the operations of the inventory, and the routes outside of its API.

use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem, PathsBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, OpenApi, OpenApiBuilder, ResponseBuilder, Server};

use super::{health, images, network_files};

/// Path, operation id, summary, and media type of each route that serves a static document.
const STATIC: [(&str, &str, &str, &str); 5] = [
    ("/", "GetPage", "Returns the page for browsers", "text/html"),
    ("/docs", "GetApiDocs", "Returns the page that shows this document", "text/html"),
    ("/openapi.json", "GetOpenApi", OPENAPI_SUMMARY, "application/json"),
    ("/api/assisted-install/openapi", "GetOpenApiUnderPrefix", OPENAPI_SUMMARY, "application/json"),
    ("/api/assisted-install/v2/openapi", "GetOpenApiOfVersion", OPENAPI_SUMMARY, "application/json"),
];
const OPENAPI_SUMMARY: &str = "Returns this document";

/// Returns the OpenAPI document of a service with an inventory and images.
#[must_use]
pub fn openapi() -> OpenApi {
    inventory::api::openapi([network_files::operation()], outside_of_api())
}

/// Returns the description of all routes without the path prefix of the API.
pub(super) fn outside_of_api() -> OpenApi {
    let mut document = images::document().merge_from(health::document()).merge_from(static_documents());
    for item in document.paths.paths.values_mut() {
        item.servers = Some(vec![Server::new("/")]);
    }
    document
}

fn static_documents() -> OpenApi {
    let paths = STATIC.into_iter().fold(PathsBuilder::new(), |paths, (path, id, summary, media_type)| {
        let schema = match media_type {
            "text/html" => Type::String,
            _ => Type::Object,
        };
        let content = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(schema))).build();
        let response = ResponseBuilder::new()
            .description("The document of this path.")
            .content(media_type, content)
            .build();
        let operation = OperationBuilder::new()
            .tag("service")
            .operation_id(Some(id))
            .summary(Some(summary))
            .securities(Some([]))
            .response("200", response)
            .build();
        paths.path(path, PathItem::new(HttpMethod::Get, operation))
    });
    OpenApiBuilder::new().paths(paths).build()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::http::access_tests::AccessSite;
    use inventory::api::auth::RouteAccess;

    /// Returns `true` for a file that only the service's own pages load.
    fn is_part_of_page(route: &RouteAccess) -> bool {
        [".css", ".js", ".svg"].iter().any(|end| route.path.ends_with(end))
    }

    /// Returns the security requirements of each operation, by method and full path.
    fn documented_operations(document: &Value) -> BTreeMap<String, Value> {
        let mut operations = BTreeMap::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            let server = item.get("servers").unwrap_or(&document["servers"])[0]["url"].as_str().unwrap();
            for (method, operation) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "servers")
            {
                let path = format!("{} {}{path}", method.to_uppercase(), server.trim_end_matches('/'));
                operations.insert(path, operation["security"].clone());
            }
        }
        operations
    }

    /// Returns the security requirements that a route must have: the headers and parameters for its tokens.
    fn expected_security(document: &Value, route: &RouteAccess) -> Vec<Value> {
        let schemes = document["components"]["securitySchemes"].as_object().unwrap();
        let scheme = |place: &str| schemes.iter().find(|(_, scheme)| scheme["name"] == place).unwrap().0;
        let mut security: Vec<_> =
            route.tokens.iter().map(|kind| json!({ scheme(kind.place()): [] })).collect();
        if ["/byapikey/", "/bytoken/", "/i/"].iter().any(|start| route.path.starts_with(start)) {
            security.push(json!({}));
        }
        security
    }

    #[tokio::test]
    async fn document_has_exactly_the_routes_with_their_access() {
        let document = serde_json::to_value(openapi()).unwrap();
        let site = AccessSite::new().await;
        let routes = site.table.iter().filter(|route| !is_part_of_page(route));
        let routes: BTreeMap<_, _> = routes
            .map(|route| {
                let security = expected_security(&document, route);
                (format!("{} {}", route.method, route.path), Value::from(security))
            })
            .collect();
        assert_eq!(documented_operations(&document), routes);
        assert!(routes.len() > 100, "{}", routes.len());
    }

    #[test]
    fn operation_ids_are_unique_and_tags_have_descriptions() {
        let document = serde_json::to_value(openapi()).unwrap();
        let tags: Vec<_> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
        let mut ids = BTreeMap::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "servers")
            {
                let id = operation["operationId"].as_str().unwrap();
                assert_eq!(ids.insert(id, path), None, "{method} {path}: {id}");
                assert!(tags.contains(&&operation["tags"][0]), "{id}");
            }
        }
    }
}

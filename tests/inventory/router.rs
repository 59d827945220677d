//! What answers where no operation does.

use reqwest::Method;

use crate::service::{on_each_database, send};

#[test]
fn an_unknown_path_is_named() {
    on_each_database(async |service| {
        let answer = service.get("/v2/nothing").await;
        assert_eq!(answer.refused(404), "path /api/assisted-install/v2/nothing was not found");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        service.get("/v1/clusters").await.refused(404);
    });
}

#[test]
fn a_wrong_method_is_told_the_right_ones() {
    on_each_database(async |service| {
        let answer = send(service.request(Method::PUT, "/v2/component-versions")).await;
        assert_eq!(answer.header("allow"), Some("GET,HEAD"));
        assert_eq!(answer.refused(405), "method PUT is not allowed, but [GET,HEAD] are");
    });
}

/// What the document says is not there answers so, in the form of an operation.
#[test]
fn operations_that_are_not_there_say_so() {
    on_each_database(async |service| {
        let document = serde_json::to_value(kindling::inventory::Inventory::openapi()).unwrap();
        let mut count = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if operation["tags"] != serde_json::json!(["not implemented"]) {
                    continue;
                }
                let id = "3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10";
                let parts: Vec<_> =
                    path.split('/').map(|part| if part.starts_with('{') { id } else { part }).collect();
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let answer = send(service.request(method, &parts.join("/"))).await;
                let name = operation["operationId"].as_str().unwrap();
                assert_eq!(answer.refused(501), format!("{name} is not implemented by this service yet"));
                assert_eq!(answer.json()["kind"], "Error");
                count += 1;
            }
        }
        assert!(count > 30, "{count} operations were asked for");
        let answer = send(service.request(Method::POST, "/v2/domains")).await;
        assert_eq!(answer.refused(405), "method POST is not allowed, but [GET,HEAD] are");
    });
}

/// A supervisor that asks must hear of a database that is gone, and must not kill the process for it.
#[test]
fn health_is_that_of_the_database() {
    on_each_database(async |service| {
        let ask = async |path: &str| send(service.request_at_root(Method::GET, path)).await.status;
        assert_eq!((ask("/health").await, ask("/ready").await, ask("/live").await), (200, 200, 200));
        service.inventory.records().store().close().await;
        assert_eq!((ask("/health").await, ask("/live").await), (503, 200));
    });
}

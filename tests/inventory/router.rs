//! Tests the responses to requests that match no implemented operation, and the health of the service.

use std::time::{Duration, Instant};

use reqwest::Method;

use crate::service::{on_each_database, send_request};

#[test]
fn unknown_path_is_named() {
    on_each_database(async |service| {
        let answer = service.get("/v2/nothing").await;
        assert_eq!(answer.refusal_reason(404), "path /api/assisted-install/v2/nothing was not found");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        service.get("/v1/clusters").await.refusal_reason(404);
    });
}

#[test]
fn wrong_method_is_refused_with_the_allowed_methods() {
    on_each_database(async |service| {
        let answer = send_request(service.request(Method::PUT, "/v2/component-versions")).await;
        assert_eq!(answer.header("allow"), Some("GET,HEAD"));
        assert_eq!(answer.refusal_reason(405), "method PUT is not allowed, but [GET,HEAD] are");
    });
}

/// Operations that the document marks as unimplemented return an API error.
#[test]
fn unimplemented_operations_return_501() {
    on_each_database(async |service| {
        let document = serde_json::to_value(kindling::http::openapi()).unwrap();
        let mut count = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if operation["tags"] != serde_json::json!(["not implemented"]) {
                    continue;
                }
                assert_eq!(operation["x-not-implemented"], true, "{method} {path}");
                let id = "3f3a0a3c-60b4-4c4b-8a3c-0d7c1b1d3c10";
                let parts: Vec<_> =
                    path.split('/').map(|part| if part.starts_with('{') { id } else { part }).collect();
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let answer = send_request(service.request(method, &parts.join("/"))).await;
                let name = operation["operationId"].as_str().unwrap();
                assert_eq!(
                    answer.refusal_reason(501),
                    format!("{name} is not implemented by this service yet")
                );
                assert_eq!(answer.json()["kind"], "Error");
                count += 1;
            }
        }
        assert!(count > 30, "{count} operations were called");
        let answer = send_request(service.request(Method::POST, "/v2/domains")).await;
        assert_eq!(answer.refusal_reason(405), "method POST is not allowed, but [GET,HEAD] are");
    });
}

/// A supervisor must see that the database is unreachable, and must not restart the process because of it.
#[test]
fn health_follows_the_database() {
    on_each_database(async |service| {
        let ask = async |path: &str| send_request(service.request_at_root(Method::GET, path)).await.status;
        assert_eq!((ask("/health").await, ask("/ready").await, ask("/live").await), (200, 200, 200));
        service.inventory.records().store().close().await;
        // Further requests reuse the result of a check for a moment.
        let start = Instant::now();
        while ask("/health").await == 200 {
            assert!(start.elapsed() < Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!((ask("/health").await, ask("/ready").await, ask("/live").await), (503, 503, 200));
    });
}

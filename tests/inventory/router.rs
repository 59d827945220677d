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

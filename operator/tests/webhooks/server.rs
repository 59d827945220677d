//! Tests the HTTPS server of the webhooks: the requests that it accepts, and the replicas on which it runs.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use operator::LEASE;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::https::send;
use crate::site::{Site, hub, infra_env};

const PATH: &str = "/apis/admission.agentinstall.openshift.io/v1/infraenvs";
const JSON: &str = "application/json";

fn request(method: &Method, path: &str, content_type: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let builder = Request::builder().method(method).uri(path).header("host", "webhook");
    builder.header("content-type", content_type).body(Full::new(body.into())).unwrap()
}

fn review(operation: &str, object: &Value) -> Value {
    let resource =
        json!({"group": "agent-install.openshift.io", "version": "v1beta1", "resource": "infraenvs"});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "resource": resource, "namespace": "ns", "name": "a", "operation": operation,
        "object": object, "oldObject": null, "dryRun": true}})
}

async fn ask(address: SocketAddr, authorities: &str, review: &Value) -> Value {
    let request = request(&Method::POST, PATH, JSON, review.to_string());
    let (status, body) = send(address, authorities, request).await.unwrap();
    assert_eq!(status, 200, "{body}");
    let mut body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(body["response"]["uid"], "1");
    body["response"].take()
}

#[tokio::test]
async fn server_accepts_only_reviews() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let authorities = site.certificate("ca.crt").await;
    let valid = review("CREATE", &infra_env("a", &json!({}))).to_string();
    let too_large = " ".repeat((3 << 20) + 1);
    let rows = [
        (Method::POST, PATH, JSON, valid.clone(), 200),
        (Method::POST, PATH, "application/json; charset=utf-8", valid.clone(), 200),
        (Method::GET, PATH, JSON, String::new(), 405),
        (Method::POST, "/", JSON, valid.clone(), 404),
        (Method::POST, "/apis/admission.agentinstall.openshift.io/v1/pods", JSON, valid.clone(), 404),
        (Method::POST, PATH, "text/plain", valid.clone(), 415),
        (Method::POST, PATH, JSON, "{".to_owned(), 400),
        (Method::POST, PATH, JSON, json!({"apiVersion": "v1", "kind": "Pod"}).to_string(), 400),
        (Method::POST, PATH, JSON, too_large, 413),
    ];
    for (method, path, content_type, body, status) in rows {
        let request = request(&method, path, content_type, body);
        let response = send(site.address, &authorities, request).await.unwrap();
        assert_eq!(response.0, status, "{method} {path} {content_type}: {}", response.1);
    }
}

#[tokio::test]
async fn objects_are_reviewed_by_kind_and_operation() {
    let Some(hub) = hub().await else { return };
    let site = Site::open(hub).await;
    let authorities = site.certificate("ca.crt").await;
    let faulty = infra_env("a", &json!({"sshAuthorizedKey": "key"}));
    let ask = async |review: Value| ask(site.address, &authorities, &review).await;
    let denied = ask(review("CREATE", &faulty)).await;
    assert_eq!(denied["allowed"], false);
    assert_eq!((&denied["status"]["code"], &denied["status"]["reason"]), (&json!(422), &json!("Invalid")));
    assert_eq!(denied["status"]["details"]["causes"][0]["field"], "spec.sshAuthorizedKey");

    let undecodable = json!({"spec": {"sshAuthorizedKey": 1}});
    for object in [undecodable, json!("text"), Value::Null] {
        let denied = ask(review("CREATE", &object)).await;
        assert_eq!((&denied["allowed"], &denied["status"]["code"]), (&json!(false), &json!(400)), "{object}");
    }
    let both = json!({"clusterRef": {"name": "a"}, "osImageVersion": "4.18"});
    let denied = ask(review("CREATE", &infra_env("a", &both))).await;
    assert_eq!((&denied["status"]["code"], &denied["status"]["reason"]), (&json!(400), &json!("BadRequest")));

    for operation in ["DELETE", "CONNECT"] {
        assert_eq!(ask(review(operation, &faulty)).await["allowed"], true);
    }
    for (member, value) in [("resource", "pods"), ("group", "apps"), ("version", "v2")] {
        let mut other = review("CREATE", &faulty);
        other["request"]["resource"][member] = json!(value);
        assert_eq!(ask(other).await["allowed"], true, "{member}");
    }
    let mut status = review("CREATE", &faulty);
    status["request"]["subResource"] = json!("status");
    assert_eq!(ask(status).await["allowed"], true);
}

#[tokio::test]
async fn replica_without_leadership_responds() {
    let Some(hub) = hub().await else { return };
    let mut site = Site::open(hub).await;
    let address = site.start_replica("two").await;
    let authorities = site.certificate("ca.crt").await;
    let faulty = review("CREATE", &infra_env("a", &json!({"sshAuthorizedKey": "key"})));
    let begin = Instant::now();
    // The replica has no certificate until it has read the Secret, so the first connections may fail.
    loop {
        let request = request(&Method::POST, PATH, JSON, faulty.to_string());
        if send(address, &authorities, request).await.is_ok() {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(30));
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ask(address, &authorities, &faulty).await["allowed"], false);
    let namespace = format!("--namespace={}", site.namespace);
    let holder =
        hub.kubectl(&[&namespace, "get", "lease", LEASE, "-o", "jsonpath={.spec.holderIdentity}"]).await;
    assert_eq!(holder, "one");
}

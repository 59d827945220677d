//! Responses of the image server when the inventory service fails: a clear error, and never a part of an image.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kindling::http::images::ExternalSettings;
use serde_json::Value;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::go_service::GoService;
use crate::peer_service::{InjectedFault, PeerService, ServiceReply};
use crate::server::{ExternalImageServer, ID, assert_refused, strict_settings};

/// A time limit that no step needs on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The three calls, each with a text that occurs only in its target.
const CALLS: [&str; 3] = ["discovery.ign", "minimal-initrd", "9c11$"];

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_of_each_call_has_its_status() {
    let go = GoService::start().await;
    go.change(|record| record.early_boot = Some(b"\x1f\x8b an archive".to_vec()));
    let (_closed, gate) = watch::channel(false);
    let hasty = ExternalSettings { patience: Duration::from_millis(300), ..strict_settings(&go.peer.url()) };
    let expected = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let minimal = format!("/byid/{ID}/4.14/x86_64/minimal.iso");
    let whole = expected.image(&minimal).await;
    let answer = |status| InjectedFault::Answer(ServiceReply::new(status, "some page"));
    let elsewhere = ServiceReply::new(302, "").header("Location", "http://elsewhere.invalid/");
    for what in CALLS {
        go.peer.inject_fault(what, InjectedFault::Held(gate.clone()));
        assert_refused(&ExternalImageServer::start(&hasty).await.get(&minimal).await, 503, what);
        let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
        for (fault, status) in [
            (InjectedFault::Down, 503),
            (InjectedFault::Cut, 503),
            (answer(400), 400),
            (answer(401), 401),
            (answer(403), 403),
            (answer(404), 404),
            (answer(500), 500),
            (answer(503), 503),
            (answer(304), 502),
            (InjectedFault::Answer(elsewhere.clone()), 502),
        ] {
            let case = format!("{what}: {fault:?}");
            go.peer.inject_fault(what, fault);
            assert_refused(&server.get(&minimal).await, status, &case);
        }
        go.peer.clear_faults();
        assert!(server.image(&minimal).await == whole, "{what}");
    }
}

/// An HTML page of a proxy is neither a config nor an infra-env.
#[tokio::test(flavor = "multi_thread")]
async fn rejects_html_page_from_the_service() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    for (what, body) in [
        ("discovery.ign", "<html>log in</html>"),
        ("discovery.ign", ""),
        ("discovery.ign", "[]"),
        ("9c11$", "<html>log in</html>"),
        ("9c11$", r#"{"kernel_arguments": "quiet"}"#),
        ("9c11$", r#"{"kernel_arguments": "[{\"value\": \"a b\"}]"}"#),
    ] {
        go.peer.inject_fault(what, InjectedFault::Answer(ServiceReply::new(200, body)));
        assert_refused(&server.get(&full).await, 502, body);
    }
}

/// Redirects within the same origin are followed without a `Referer`. Credentials are sent to no other server.
#[tokio::test(flavor = "multi_thread")]
async fn redirect_is_followed_only_within_the_origin() {
    let go = GoService::start().await;
    let other = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let full = format!("/images/{ID}?version=4.14&type=full-iso&image_token=t");
    let moved = format!("/api/assisted-install/v2/infra-envs/{ID}/downloads/files?file_name=discovery.ign");
    let to = |url: String| InjectedFault::Answer(ServiceReply::new(307, "").header("Location", url));
    go.peer.inject_fault("discovery_iso_type", to(moved.clone()));
    assert_eq!(server.get(&full).await.status(), 200);
    assert!(go.peer.take_calls().iter().all(|call| call.header("image-token") == Some("t")));
    let with_key = format!("/images/{ID}?version=4.14&type=full-iso&api_key=s3cret");
    assert_eq!(server.get(&with_key).await.status(), 200);
    let calls = go.peer.take_calls();
    assert!(calls.iter().any(|call| call.target == moved), "{calls:?}");
    assert!(calls.iter().all(|call| call.header("referer").is_none()), "{calls:?}");
    let elsewhere = other.peer.url();
    for target in [elsewhere.clone(), elsewhere.replace("127.0.0.1", "localhost")] {
        go.peer.inject_fault("discovery_iso_type", to(format!("{target}{moved}")));
        assert_refused(&server.get(&full).await, 502, "another port or host");
        assert!(other.peer.take_calls().is_empty());
    }
    let encrypted = go.peer.url().replace("http:", "https:");
    go.peer.inject_fault("discovery_iso_type", to(format!("{encrypted}{moved}")));
    assert_refused(&server.get(&full).await, 502, "another scheme");
    go.peer.inject_fault("discovery.ign", to(moved));
    assert_refused(&server.get(&full).await, 502, "round and round");
    assert!(go.peer.take_calls().len() < 10);
}

/// Returns the status of `/ready`, and the state of the external inventory in its body.
async fn readiness(server: &ExternalImageServer) -> (u16, String) {
    let response = server.get("/ready").await;
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["ready"], status == 200);
    (status, body["inventory"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_image_survives_an_outage_of_the_service() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    let before = server.image(&full).await;
    let unavailable = |status| InjectedFault::Answer(ServiceReply::new(status, "from a proxy"));
    for fault in
        [unavailable(502), unavailable(503), unavailable(504), InjectedFault::Down, InjectedFault::Cut]
    {
        go.peer.inject_fault("", fault.clone());
        assert!(server.image(&full).await == before, "{fault:?}");
        let stranger = server.get(&format!("{full}?api_key=another")).await;
        let status = if let InjectedFault::Answer(reply) = &fault { reply.status } else { 503 };
        assert_refused(&stranger, status, "another caller");
    }
    go.peer.inject_fault("", InjectedFault::Down);
    assert_refused(&server.get(&format!("{full}?api_key=more")).await, 503, "another caller");
    assert_eq!(readiness(&server).await, (200, "unreachable".to_owned()));
    let kernel = server.get("/boot-artifacts/kernel?version=4.14").await;
    assert_eq!(kernel.status(), 200, "the kernel needs no token");
    go.peer.clear_faults();
    assert_eq!(readiness(&server).await, (200, "reachable".to_owned()));
    assert!(server.image(&full).await == before);
}

/// A fault of one infra-env affects only requests for its images.
#[tokio::test(flavor = "multi_thread")]
async fn broken_responses_for_one_infra_env_affect_only_its_images() {
    const OTHER: &str = "8c5b3a6e-6f5f-4e22-9b7c-1a3b2f0d9c11";
    let go = GoService::start().await;
    let (_closed, gate) = watch::channel(false);
    let settings =
        ExternalSettings { patience: Duration::from_millis(300), ..strict_settings(&go.peer.url()) };
    let server = ExternalImageServer::start(&settings).await;
    let [one, other] = [ID, OTHER].map(|id| format!("/byid/{id}/4.14/x86_64/full.iso"));
    let (before, _) = (server.image(&one).await, server.image(&other).await);
    let answer = |status, body: &str| InjectedFault::Answer(ServiceReply::new(status, body));
    for (fault, is_known) in [
        (InjectedFault::Held(gate.clone()), true),
        (InjectedFault::Down, true),
        (InjectedFault::Cut, true),
        (InjectedFault::Answer(ServiceReply::new(200, "{}").header("bad header", "x")), true),
        (answer(503, ""), true),
        (answer(500, ""), false),
        (answer(200, "<html>"), false),
    ] {
        let case = format!("{fault:?}");
        go.peer.inject_fault(ID, fault);
        if is_known {
            assert!(server.image(&one).await == before, "{case}");
        } else {
            assert!(server.get(&one).await.status().as_u16() >= 500, "{case}");
        }
        let unknown = server.get(&format!("{one}?api_key=new")).await;
        assert!(unknown.status().as_u16() >= 500, "{case}");
        assert_eq!(readiness(&server).await, (200, "reachable".to_owned()), "{case}");
        go.peer.take_calls();
        assert_eq!(server.get(&other).await.status(), 200, "{case}");
        assert_eq!(server.get(&format!("{other}?api_key=new")).await.status(), 200, "{case}");
        let calls = go.peer.take_calls();
        assert!(calls.iter().any(|call| call.target.contains(OTHER)), "{case}: {calls:?}");
        go.peer.clear_faults();
        // Waits until the pause after a failed call ends.
        go.peer.take_calls();
        let start = Instant::now();
        while go.peer.take_calls().is_empty() {
            assert!(start.elapsed() < PATIENCE, "{case}");
            server.image(&one).await;
        }
    }
}

/// During the pause after a slow failed call, the server sends an image without a call.
#[tokio::test(flavor = "multi_thread")]
async fn failed_call_pauses_calls_for_its_image() {
    let go = GoService::start().await;
    let settings = ExternalSettings { retry: Duration::from_secs(3600), ..strict_settings(&go.peer.url()) };
    let server = ExternalImageServer::start(&settings).await;
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    let before = server.image(&full).await;
    go.peer.inject_fault(ID, InjectedFault::Down);
    assert!(server.image(&full).await == before);
    go.peer.take_calls();
    for _ in 0..10 {
        assert!(server.image(&full).await == before);
    }
    assert!(go.peer.take_calls().is_empty());
    assert_eq!(readiness(&server).await, (200, "reachable".to_owned()));
}

/// The last response of the service decides, even if the service is unreachable afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn cached_refusal_applies_during_an_outage() {
    let go = GoService::start().await;
    let server = ExternalImageServer::start(&strict_settings(&go.peer.url())).await;
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    server.image(&full).await;
    for status in [401, 403, 404] {
        go.peer.inject_fault("", InjectedFault::Answer(ServiceReply::new(status, "no")));
        assert_refused(&server.get(&full).await, status, "a refusal");
        go.peer.inject_fault("", InjectedFault::Down);
        assert_refused(&server.get(&full).await, 503, "an outage after the refusal");
        go.peer.clear_faults();
        server.image(&full).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outage_ends_access_after_the_grace_period() {
    let go = GoService::start().await;
    let grace = Duration::from_millis(1500);
    let settings = ExternalSettings { outage_grace: grace, ..strict_settings(&go.peer.url()) };
    let server = ExternalImageServer::start(&settings).await;
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    let start = Instant::now();
    let before = server.image(&full).await;
    go.peer.inject_fault("", InjectedFault::Down);
    while server.get(&full).await.status() == 200 {
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(start.elapsed() >= grace);
    assert_refused(&server.get(&full).await, 503, "after the grace period");
    while readiness(&server).await != (503, "unreachable".to_owned()) {
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    go.peer.clear_faults();
    assert!(server.image(&full).await == before);
    assert_eq!(readiness(&server).await, (200, "reachable".to_owned()));
}

/// During a detected outage of the service, requests make no calls.
#[tokio::test(flavor = "multi_thread")]
async fn requests_during_an_outage_make_no_calls() {
    let go = GoService::start().await;
    let settings = ExternalSettings { retry: Duration::from_secs(3600), ..strict_settings(&go.peer.url()) };
    let server = ExternalImageServer::start(&settings).await;
    let path = |key: usize| format!("/byid/{ID}/4.14/x86_64/full.iso?api_key={key}");
    go.peer.inject_fault("", InjectedFault::Down);
    assert_refused(&server.get(&path(0)).await, 503, "the first request");
    go.peer.take_calls();
    for key in 0..10 {
        let refused = server.get(&path(key)).await;
        assert_refused(&refused, 503, "a later request");
        assert_eq!(refused.headers()["retry-after"], "5");
    }
    assert!(go.peer.take_calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn service_is_verified_by_its_certificate() {
    let key = rcgen::KeyPair::generate().unwrap();
    let name = "127.0.0.1".to_owned();
    let mut params = rcgen::CertificateParams::new([name]).unwrap();
    // A certificate like the output of `openssl req -x509`.
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let answer = |call: &crate::peer_service::ServiceCall| match call.target.contains("discovery.ign") {
        true => ServiceReply::new(200, r#"{"ignition": {"version": "3.1.0"}}"#),
        false => ServiceReply::new(200, "{}"),
    };
    let peer = PeerService::with_tls(Some(TlsAcceptor::from(Arc::new(config))), answer).await;
    let directory = tempfile::TempDir::new().unwrap();
    let ca_file = directory.path().join("ca.pem");
    std::fs::write(&ca_file, certificate.pem()).unwrap();
    let mut settings = strict_settings(&format!("https://{}", peer.address()));
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    assert_refused(&ExternalImageServer::start(&settings).await.get(&full).await, 503, "a stranger");
    assert!(peer.take_calls().is_empty());
    settings.ca_file = Some(ca_file.clone());
    assert_eq!(ExternalImageServer::start(&settings).await.get(&full).await.status(), 200);
    std::fs::write(&ca_file, "no certificate").unwrap();
    let error = kindling::http::images::ExternalInputs::new(&settings).unwrap_err();
    assert!(error.to_string().contains("ca.pem"), "{error}");
}

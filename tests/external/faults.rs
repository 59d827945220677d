//! What a client gets when the service fails: an error that says so, and nothing half.

use std::sync::Arc;
use std::time::Duration;

use kindling::http::images::ExternalSettings;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::go::Go;
use crate::peer::{Fault, Peer, Reply};
use crate::server::{ID, Server, assert_refused, strict};

/// The three calls, by what is in their targets alone.
const CALLS: [&str; 3] = ["discovery.ign", "minimal-initrd", "9c11$"];

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_of_each_call_has_its_status() {
    let go = Go::start().await;
    go.change(|record| record.early_boot = Some(b"\x1f\x8b an archive".to_vec()));
    let (_closed, gate) = watch::channel(false);
    let hasty = ExternalSettings { patience: Duration::from_millis(300), ..strict(&go.peer.url()) };
    let expected = Server::start(&strict(&go.peer.url())).await;
    let minimal = format!("/byid/{ID}/4.14/x86_64/minimal.iso");
    let whole = expected.image(&minimal).await;
    let answer = |status| Fault::Answer(Reply::new(status, "some page"));
    let elsewhere = Reply::new(302, "").header("Location", "http://elsewhere.invalid/");
    for what in CALLS {
        go.peer.fail(what, Fault::Held(gate.clone()));
        assert_refused(&Server::start(&hasty).await.get(&minimal).await, 500, what);
        let server = Server::start(&strict(&go.peer.url())).await;
        for (fault, status) in [
            (Fault::Down, 500),
            (Fault::Cut, 500),
            (answer(400), 400),
            (answer(401), 401),
            (answer(403), 403),
            (answer(404), 404),
            (answer(500), 500),
            (answer(503), 503),
            (answer(304), 502),
            (Fault::Answer(elsewhere.clone()), 502),
        ] {
            let case = format!("{what}: {fault:?}");
            go.peer.fail(what, fault);
            assert_refused(&server.get(&minimal).await, status, &case);
        }
        go.peer.work_again();
        assert!(server.image(&minimal).await == whole, "{what}");
    }
}

/// A page of something in front of the service is no config and no infra-env.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_no_answer() {
    let go = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    for (what, body) in [
        ("discovery.ign", "<html>log in</html>"),
        ("discovery.ign", ""),
        ("discovery.ign", "[]"),
        ("9c11$", "<html>log in</html>"),
        ("9c11$", r#"{"kernel_arguments": "quiet"}"#),
        ("9c11$", r#"{"kernel_arguments": "[{\"value\": \"a b\"}]"}"#),
    ] {
        go.peer.fail(what, Fault::Answer(Reply::new(200, body)));
        assert_refused(&server.get(&full).await, 502, body);
    }
}

/// A service that moved on its host is found there, and what a caller shows is shown to no other host.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_may_move_on_its_host() {
    let go = Go::start().await;
    let other = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
    let full = format!("/images/{ID}?version=4.14&type=full-iso&image_token=t");
    let moved = format!("/api/assisted-install/v2/infra-envs/{ID}/downloads/files?file_name=discovery.ign");
    let to = |url: String| Fault::Answer(Reply::new(307, "").header("Location", url));
    go.peer.fail("discovery_iso_type", to(moved.clone()));
    assert_eq!(server.get(&full).await.status(), 200);
    assert!(go.peer.calls().iter().all(|call| call.header("image-token") == Some("t")));
    let elsewhere = other.peer.url().replace("127.0.0.1", "localhost");
    go.peer.fail("discovery_iso_type", to(format!("{elsewhere}{moved}")));
    assert_refused(&server.get(&full).await, 502, "another host");
    assert!(other.peer.calls().is_empty());
    go.peer.fail("discovery.ign", to(moved));
    assert_refused(&server.get(&full).await, 502, "round and round");
    assert!(go.peer.calls().len() < 10);
}

/// What was kept is not given out as long as nobody says that the caller may have it.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_gone_lets_nobody_in() {
    let go = Go::start().await;
    let server = Server::start(&strict(&go.peer.url())).await;
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    let before = server.image(&full).await;
    for fault in [Fault::Down, Fault::Cut] {
        go.peer.fail("", fault);
        assert_refused(&server.get_with(&full, &[("range", "bytes=0-99")]).await, 500, "a range");
    }
    let kernel = server.get("/boot-artifacts/kernel?version=4.14").await;
    assert_eq!(kernel.status(), 200, "that is everybody's");
    go.peer.work_again();
    assert!(server.image(&full).await == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_known_by_its_certificate() {
    let key = rcgen::KeyPair::generate().unwrap();
    let name = "127.0.0.1".to_owned();
    let mut params = rcgen::CertificateParams::new([name]).unwrap();
    // As `openssl req -x509` makes them.
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let answer = |call: &crate::peer::Call| match call.target.contains("discovery.ign") {
        true => Reply::new(200, r#"{"ignition": {"version": "3.1.0"}}"#),
        false => Reply::new(200, "{}"),
    };
    let peer = Peer::with_tls(Some(TlsAcceptor::from(Arc::new(config))), answer).await;
    let directory = tempfile::TempDir::new().unwrap();
    let ca_file = directory.path().join("ca.pem");
    std::fs::write(&ca_file, certificate.pem()).unwrap();
    let mut settings = strict(&format!("https://{}", peer.address()));
    let full = format!("/byid/{ID}/4.14/x86_64/full.iso");
    assert_refused(&Server::start(&settings).await.get(&full).await, 500, "a stranger");
    assert!(peer.calls().is_empty());
    settings.ca_file = Some(ca_file.clone());
    assert_eq!(Server::start(&settings).await.get(&full).await.status(), 200);
    std::fs::write(&ca_file, "no certificate").unwrap();
    let error = kindling::http::images::External::new(&settings).unwrap_err();
    assert!(error.to_string().contains("ca.pem"), "{error}");
}

//! Servers with trusted and untrusted certificates.

use std::sync::Arc;

use kindling::images::library::{Library, ServerTrust};
use rcgen::{BasicConstraints, CertificateParams, IsCa};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::server::{ImageFileServer, ImageReply};
use crate::support::{LibraryFolder, first_image, os_image, unavailability_reason, within_time_limit};

/// Starts a server for a host name. Returns the server and its certificate.
async fn server_for_name(name: &str, plain: Option<String>) -> (ImageFileServer, String) {
    server_with_params(CertificateParams::new([name.to_owned()]).unwrap(), plain).await
}

/// Parameters of a self-signed certificate like the output of `openssl req -x509`, which is also a certificate of an
/// authority.
pub(crate) fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

pub(crate) async fn server_with_params(
    params: CertificateParams,
    plain: Option<String>,
) -> (ImageFileServer, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let server =
        ImageFileServer::with_tls(TlsAcceptor::from(Arc::new(config)), move |request, _| match &plain {
            Some(plain) => ImageReply::new(302, "").with_header("location", plain),
            None => ImageReply::from_file(request, first_image(), "\"one\""),
        });
    (server.await, certificate.pem())
}

async fn fetch_image(
    server: &ImageFileServer,
    place: &LibraryFolder,
    trust: ServerTrust,
) -> Result<(), String> {
    let os_image = os_image(&server.url("a.iso"));
    let mut settings = place.patient_settings();
    settings.trust = trust;
    let library = Library::open(settings, [os_image.clone()]).unwrap();
    let outcome = within_time_limit(library.base(&os_image)).await;
    if outcome.is_ok() { Ok(()) } else { Err(unavailability_reason(outcome)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn unverified_server_is_refused_unless_allowed() {
    let (server, pem) = server_for_name("127.0.0.1", None).await;
    let place = LibraryFolder::new();
    let reason = fetch_image(&server, &place, ServerTrust::System).await.unwrap_err();
    assert!(reason.contains("certificate"), "{reason}");
    place.assert_empty();

    let other = self::server_for_name("127.0.0.1", None).await.1;
    let path = place.write("ca.pem", other.as_bytes());
    let reason = fetch_image(&server, &place, ServerTrust::SystemAnd(path.clone())).await.unwrap_err();
    assert!(reason.contains("certificate"), "{reason}");

    place.write("ca.pem", format!("{other}\n{pem}").as_bytes());
    fetch_image(&server, &place, ServerTrust::SystemAnd(path)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_for_another_name_is_refused() {
    let (server, pem) = server_for_name("mirror.example", None).await;
    let place = LibraryFolder::new();
    let path = place.write("ca.pem", pem.as_bytes());
    let reason = fetch_image(&server, &place, ServerTrust::SystemAnd(path)).await.unwrap_err();
    assert!(reason.contains("certificate"), "{reason}");
    fetch_image(&server, &place, ServerTrust::DangerouslyAnybody).await.unwrap();
}

/// Mirrors often have a self-signed certificate, and only this certificate is configured in their clients.
#[tokio::test(flavor = "multi_thread")]
async fn self_signed_certificate_is_trusted_when_configured() {
    let place = LibraryFolder::new();
    let trust_in = |pem: &str| ServerTrust::SystemAnd(place.write("ca.pem", pem.as_bytes()));
    let (server, pem) = server_with_params(authority_params("127.0.0.1"), None).await;
    let other = server_with_params(authority_params("127.0.0.1"), None).await.1;
    fetch_image(&server, &place, trust_in(&other)).await.unwrap_err();
    fetch_image(&server, &place, trust_in(&pem)).await.unwrap();

    let place = LibraryFolder::new();
    let trust_in = |pem: &str| ServerTrust::SystemAnd(place.write("ca.pem", pem.as_bytes()));
    let (server, pem) = server_with_params(authority_params("mirror.example"), None).await;
    let reason = fetch_image(&server, &place, trust_in(&pem)).await.unwrap_err();
    assert!(reason.contains("not valid for name"), "{reason}");
    let mut ended = authority_params("127.0.0.1");
    ended.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let (server, pem) = server_with_params(ended, None).await;
    let reason = fetch_image(&server, &place, trust_in(&pem)).await.unwrap_err();
    assert!(reason.contains("certificate expired"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_redirect_from_https_to_http() {
    let plain = ImageFileServer::with_file(first_image()).await;
    let (server, _) = server_for_name("127.0.0.1", Some(plain.url("a.iso"))).await;
    let place = LibraryFolder::new();
    let reason = fetch_image(&server, &place, ServerTrust::DangerouslyAnybody).await.unwrap_err();
    assert!(reason.contains("redirects from https to http"), "{reason}");
    assert!(plain.requests().is_empty());
    place.assert_empty();
}

//! Servers with certificates that are trusted, and others.

use std::sync::Arc;

use kindling::images::library::{Library, Trust};
use rcgen::{BasicConstraints, CertificateParams, IsCa};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::server::{Reply, Server};
use crate::support::{Place, image, os_image, reason, soon};

/// A server for a name, and its certificate.
async fn server(name: &str, plain: Option<String>) -> (Server, String) {
    server_with(CertificateParams::new([name.to_owned()]).unwrap(), plain).await
}

/// A certificate as `openssl req -x509` makes it: also that of an authority.
pub(crate) fn of_an_authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

pub(crate) async fn server_with(params: CertificateParams, plain: Option<String>) -> (Server, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let server = Server::with_tls(TlsAcceptor::from(Arc::new(config)), move |request, _| match &plain {
        Some(plain) => Reply::new(302, "").header("location", plain),
        None => Reply::file(request, image(), "\"one\""),
    });
    (server.await, certificate.pem())
}

async fn fetched(server: &Server, place: &Place, trust: Trust) -> Result<(), String> {
    let os_image = os_image(&server.url("a.iso"));
    let mut settings = place.patient_settings();
    settings.trust = trust;
    let library = Library::open(settings, [os_image.clone()]).unwrap();
    let outcome = soon(library.base(&os_image)).await;
    if outcome.is_ok() { Ok(()) } else { Err(reason(outcome)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_vouches_for_a_server_unless_it_is_said() {
    let (server, pem) = server("127.0.0.1", None).await;
    let place = Place::new();
    let told = fetched(&server, &place, Trust::System).await.unwrap_err();
    assert!(told.contains("certificate"), "{told}");
    place.assert_empty();

    let other = self::server("127.0.0.1", None).await.1;
    let path = place.write("ca.pem", other.as_bytes());
    let told = fetched(&server, &place, Trust::SystemAnd(path.clone())).await.unwrap_err();
    assert!(told.contains("certificate"), "{told}");

    place.write("ca.pem", format!("{other}\n{pem}").as_bytes());
    fetched(&server, &place, Trust::SystemAnd(path)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_for_a_name() {
    let (server, pem) = server("mirror.example", None).await;
    let place = Place::new();
    let path = place.write("ca.pem", pem.as_bytes());
    let told = fetched(&server, &place, Trust::SystemAnd(path)).await.unwrap_err();
    assert!(told.contains("certificate"), "{told}");
    fetched(&server, &place, Trust::DangerouslyAnybody).await.unwrap();
}

/// Mirrors often have a certificate that signs itself, and clients are given just that.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_signs_itself_is_trusted_where_it_is_given() {
    let place = Place::new();
    let given = |pem: &str| Trust::SystemAnd(place.write("ca.pem", pem.as_bytes()));
    let (server, pem) = server_with(of_an_authority("127.0.0.1"), None).await;
    let other = server_with(of_an_authority("127.0.0.1"), None).await.1;
    fetched(&server, &place, given(&other)).await.unwrap_err();
    fetched(&server, &place, given(&pem)).await.unwrap();

    let place = Place::new();
    let given = |pem: &str| Trust::SystemAnd(place.write("ca.pem", pem.as_bytes()));
    let (server, pem) = server_with(of_an_authority("mirror.example"), None).await;
    let told = fetched(&server, &place, given(&pem)).await.unwrap_err();
    assert!(told.contains("not valid for name"), "{told}");
    let mut ended = of_an_authority("127.0.0.1");
    ended.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let (server, pem) = server_with(ended, None).await;
    let told = fetched(&server, &place, given(&pem)).await.unwrap_err();
    assert!(told.contains("certificate expired"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_redirect_leads_to_where_anybody_may_change_the_image() {
    let plain = Server::of(image()).await;
    let (server, _) = server("127.0.0.1", Some(plain.url("a.iso"))).await;
    let place = Place::new();
    let told = fetched(&server, &place, Trust::DangerouslyAnybody).await.unwrap_err();
    assert!(told.contains("redirects from https to http"), "{told}");
    assert!(plain.requests().is_empty());
    place.assert_empty();
}

//! Certificate problems. The doctor sends no request to a server with an untrusted certificate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kindling::doctor::{CheckOutcome, ClientVerdict, DoctorCheck, DoctorOptions};
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, date_time_ymd};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ServerConfig, SupportedProtocolVersion};

use crate::raw_server::{SharedReplyChange, serve_file};
use crate::support::{CertificateAuthority, Scratch};
use crate::{bootable_image, checks_with_outcome, examine_url, refusing_clients};

const BOTH: &[&SupportedProtocolVersion] = &[&TLS12, &TLS13];

fn server_config(
    pair: &(String, String),
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(pair.0.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.1.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_protocol_versions(versions).unwrap().with_no_client_auth();
    Arc::new(config.with_single_cert(chain, key).unwrap())
}

/// Counts the received requests.
fn request_counter() -> (SharedReplyChange, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    (
        Arc::new(move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
        }),
        count,
    )
}

/// Returns certificate parameters with an end date a number of days from now. This calendar is simplified: every month
/// has 28 days.
fn certificate_valid_in_days(days: i64) -> rcgen::CertificateParams {
    let mut params = CertificateParams::default();
    let day = chrono::Utc::now() + chrono::TimeDelta::days(days);
    let part = |format: &str| day.format(format).to_string().parse::<u8>().unwrap();
    params.not_after = date_time_ymd(day.format("%Y").to_string().parse().unwrap(), part("%m"), part("%d"));
    params
}

#[test]
fn certificate_problems_are_reported() {
    let scratch = Scratch::new();
    let authority = CertificateAuthority::new();
    let ca = scratch.write("ca.pem", &authority.pem);
    let ours = &["127.0.0.1"][..];
    let rsa = {
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        (params.signed_by(&key, &authority.issuer).unwrap().pem(), key.serialize_pem())
    };
    let until = |days: i64| {
        authority.issue_for_names(ours, |params| params.not_after = certificate_valid_in_days(days).not_after)
    };
    let later =
        authority.issue_for_names(ours, |params| params.not_before = certificate_valid_in_days(3).not_after);
    let checking = &["bmc", "ipxe", "uefi", "qemu", "download"][..];
    // All URLs are https, and all keys except one are ECDSA.
    for (name, pair, versions, failing, refused) in [
        ("good", rsa, BOTH, &[][..], &[][..]),
        ("ECDSA", authority.issue_for_names(ours, |_| {}), BOTH, &["certificate-rsa"], &[]),
        ("soon", until(5), BOTH, &["certificate-lasts", "certificate-rsa"], &[]),
        (
            "TLS 1.3 alone",
            authority.issue_for_names(ours, |_| {}),
            &[&TLS13][..],
            &["tls-1.2", "certificate-rsa"],
            &["ipxe"],
        ),
        ("over", until(-1), BOTH, &["certificate-dates", "certificate-lasts", "certificate-rsa"], checking),
        ("not yet", later, BOTH, &["certificate-dates", "certificate-rsa"], checking),
        (
            "of another host",
            authority.issue_for_names(&["other.example"], |_| {}),
            BOTH,
            &["certificate-name", "certificate-rsa"],
            checking,
        ),
        (
            "of another authority",
            CertificateAuthority::new().issue_for_names(ours, |_| {}),
            BOTH,
            &["certificate-trusted", "certificate-rsa"],
            checking,
        ),
    ] {
        let (count_requests, count) = request_counter();
        let address = serve_file(bootable_image(), count_requests, Some(server_config(&pair, versions)));
        let mut options = DoctorOptions::default();
        options.ca_file = Some(ca.clone());
        let report = examine_url(&format!("https://{address}/full.iso?token=secret"), &options);
        let failed: Vec<_> = checks_with_outcome(&report, CheckOutcome::Fails)
            .into_iter()
            .filter(|it| !it.starts_with("url") && *it != "reachable")
            .collect();
        assert_eq!(failed, failing, "{name}: {report:#?}");
        // BMCs refuse the query of the URL in any case.
        let refusing: Vec<_> =
            refusing_clients(&report).into_iter().filter(|client| *client != "bmc").collect();
        let refused: Vec<_> = refused.iter().copied().filter(|client| *client != "bmc").collect();
        assert_eq!(refusing, refused, "{name}: {report:#?}");
        let is_trusted = !failing
            .iter()
            .any(|it| ["certificate-trusted", "certificate-name", "certificate-dates"].contains(it));
        assert_eq!(count.load(Ordering::SeqCst) > 0, is_trusted, "{name}: wrong number of requests");
        let reachable = report.finding(DoctorCheck::Reachable).unwrap().outcome;
        assert_eq!(reachable, if is_trusted { CheckOutcome::Holds } else { CheckOutcome::Untried }, "{name}");
        if !is_trusted {
            options.dangerously_any_certificate = true;
            let report = examine_url(&format!("https://{address}/full.iso?token=secret"), &options);
            assert_eq!(report.finding(DoctorCheck::Range).unwrap().outcome, CheckOutcome::Holds, "{name}");
            assert_eq!(
                report.client(kindling::doctor::ClientKind::Qemu).unwrap().verdict,
                ClientVerdict::Refuses,
                "{name}"
            );
        }
    }
}

/// Clients trust a self-signed certificate, as `openssl req -x509` makes it, if they are configured with it.
#[test]
fn self_signed_certificate_can_be_trusted() {
    let scratch = Scratch::new();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    let (change, count) = request_counter();
    let address =
        serve_file(bootable_image(), change, Some(server_config(&(pem.clone(), key.serialize_pem()), BOTH)));
    let mut options = DoctorOptions::default();
    let url = format!("https://{address}/full.iso");
    let report = examine_url(&url, &options);
    let finding = report.finding(DoctorCheck::CertificateTrusted).unwrap();
    assert_eq!(finding.outcome, CheckOutcome::Fails);
    assert!(finding.detail.contains("certificate is a CA certificate"), "{finding:?}");
    assert_eq!(count.load(Ordering::SeqCst), 0);
    options.ca_file = Some(scratch.write("ca.pem", &pem));
    let report = examine_url(&url, &options);
    assert_eq!(refusing_clients(&report), [""; 0], "{report:#?}");
}

#[test]
fn https_to_http_redirect_is_reported_and_drops_headers() {
    let scratch = Scratch::new();
    let authority = CertificateAuthority::new();
    let leaked = Arc::new(AtomicUsize::new(0));
    let leaks = Arc::clone(&leaked);
    let there = serve_file(
        bootable_image(),
        Arc::new(move |request, _| {
            leaks.fetch_add(usize::from(request.header("authorization").is_some()), Ordering::SeqCst);
        }),
        None,
    );
    let authorized = Arc::new(AtomicUsize::new(0));
    let count_authorized = Arc::clone(&authorized);
    let change: SharedReplyChange = Arc::new(move |request, reply| {
        count_authorized.fetch_add(
            usize::from(request.header("authorization") == Some("Bearer secret")),
            Ordering::SeqCst,
        );
        reply.status(307);
        reply.set("Location", &format!("http://{there}/full.iso"));
    });
    let here = serve_file(bootable_image(), change, Some(server_config(&authority.issue(), BOTH)));
    let mut options = DoctorOptions::default().with_header("Authorization", "Bearer secret").unwrap();
    options.ca_file = Some(scratch.write("ca.pem", &authority.pem));
    let report = examine_url(&format!("https://{here}/full.iso"), &options);
    assert_eq!(
        report.finding(DoctorCheck::RedirectScheme).unwrap().outcome,
        CheckOutcome::Fails,
        "{report:#?}"
    );
    assert_eq!(report.redirects, [format!("http://{there}/full.iso")]);
    assert!(authorized.load(Ordering::SeqCst) > 0);
    assert_eq!(leaked.load(Ordering::SeqCst), 0);
}

#[test]
fn plain_http_on_a_tls_port_is_reported() {
    let address = serve_file(bootable_image(), Arc::new(|_, _| {}), None);
    let report = examine_url(&format!("https://{address}/full.iso"), &DoctorOptions::default());
    let finding = report.finding(DoctorCheck::Reachable).unwrap();
    assert!(finding.detail.starts_with("TLS handshake failed"), "{finding:?}");
    assert!(report.is_refused());
}

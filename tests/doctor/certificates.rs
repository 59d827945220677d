//! What certificates are worth, and that nothing is sent to a server whose certificate is not trusted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kindling::doctor::{Check, Options, Outcome, Verdict};
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, date_time_ymd};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ServerConfig, SupportedProtocolVersion};

use crate::raw::{Change, serve};
use crate::support::{Authority, Scratch};
use crate::{examined, image, refusing, with};

const BOTH: &[&SupportedProtocolVersion] = &[&TLS12, &TLS13];

fn config(pair: &(String, String), versions: &[&'static SupportedProtocolVersion]) -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(pair.0.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.1.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_protocol_versions(versions).unwrap().with_no_client_auth();
    Arc::new(config.with_single_cert(chain, key).unwrap())
}

/// Counts the requests that arrive.
fn counting() -> (Change, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    (
        Arc::new(move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
        }),
        count,
    )
}

/// A time some days from now. Calendars of tests are coarse: months have 28 days.
fn in_days(days: i64) -> rcgen::CertificateParams {
    let mut params = CertificateParams::default();
    let day = chrono::Utc::now() + chrono::TimeDelta::days(days);
    let part = |format: &str| day.format(format).to_string().parse::<u8>().unwrap();
    params.not_after = date_time_ymd(day.format("%Y").to_string().parse().unwrap(), part("%m"), part("%d"));
    params
}

#[test]
fn certificates_are_judged() {
    let scratch = Scratch::new();
    let authority = Authority::new();
    let ca = scratch.write("ca.pem", &authority.pem);
    let ours = &["127.0.0.1"][..];
    let rsa = {
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        (params.signed_by(&key, &authority.issuer).unwrap().pem(), key.serialize_pem())
    };
    let until = |days: i64| authority.issue_as(ours, |params| params.not_after = in_days(days).not_after);
    let later = authority.issue_as(ours, |params| params.not_before = in_days(3).not_after);
    let checking = &["bmc", "ipxe", "uefi", "qemu", "download"][..];
    // The URL is https in all of them, and keys are ECDSA but for one.
    for (name, pair, versions, failing, refused) in [
        ("good", rsa, BOTH, &[][..], &[][..]),
        ("ECDSA", authority.issue_as(ours, |_| {}), BOTH, &["certificate-rsa"], &[]),
        ("soon", until(5), BOTH, &["certificate-lasts", "certificate-rsa"], &[]),
        (
            "TLS 1.3 alone",
            authority.issue_as(ours, |_| {}),
            &[&TLS13][..],
            &["tls-1.2", "certificate-rsa"],
            &["ipxe"],
        ),
        ("over", until(-1), BOTH, &["certificate-dates", "certificate-lasts", "certificate-rsa"], checking),
        ("not yet", later, BOTH, &["certificate-dates", "certificate-rsa"], checking),
        (
            "of another host",
            authority.issue_as(&["other.example"], |_| {}),
            BOTH,
            &["certificate-name", "certificate-rsa"],
            checking,
        ),
        (
            "of another authority",
            Authority::new().issue_as(ours, |_| {}),
            BOTH,
            &["certificate-trusted", "certificate-rsa"],
            checking,
        ),
    ] {
        let (count_requests, count) = counting();
        let address = serve(image(), count_requests, Some(config(&pair, versions)));
        let mut options = Options::default();
        options.ca_file = Some(ca.clone());
        let report = examined(&format!("https://{address}/full.iso?token=secret"), &options);
        let found: Vec<_> = with(&report, Outcome::Fails)
            .into_iter()
            .filter(|it| !it.starts_with("url") && *it != "reachable")
            .collect();
        assert_eq!(found, failing, "{name}: {report:#?}");
        // A query is what BMCs refuse anyway.
        let refusing: Vec<_> = refusing(&report).into_iter().filter(|client| *client != "bmc").collect();
        let refused: Vec<_> = refused.iter().copied().filter(|client| *client != "bmc").collect();
        assert_eq!(refusing, refused, "{name}: {report:#?}");
        let is_trusted = !failing
            .iter()
            .any(|it| ["certificate-trusted", "certificate-name", "certificate-dates"].contains(it));
        assert_eq!(count.load(Ordering::SeqCst) > 0, is_trusted, "{name}: a request was sent, or none");
        let reachable = report.finding(Check::Reachable).unwrap().outcome;
        assert_eq!(reachable, if is_trusted { Outcome::Holds } else { Outcome::Untried }, "{name}");
        if !is_trusted {
            options.dangerously_any_certificate = true;
            let report = examined(&format!("https://{address}/full.iso?token=secret"), &options);
            assert_eq!(report.finding(Check::Range).unwrap().outcome, Outcome::Holds, "{name}");
            assert_eq!(
                report.client(kindling::doctor::Client::Qemu).unwrap().verdict,
                Verdict::Refuses,
                "{name}"
            );
        }
    }
}

/// A certificate that signs itself, as `openssl req -x509` makes it, is trusted by whoever was given it.
#[test]
fn a_certificate_may_be_its_own_authority() {
    let scratch = Scratch::new();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    let (change, count) = counting();
    let address = serve(image(), change, Some(config(&(pem.clone(), key.serialize_pem()), BOTH)));
    let mut options = Options::default();
    let url = format!("https://{address}/full.iso");
    let report = examined(&url, &options);
    let finding = report.finding(Check::CertificateTrusted).unwrap();
    assert_eq!(finding.outcome, Outcome::Fails);
    assert!(finding.detail.contains("it is that of an authority itself"), "{finding:?}");
    assert_eq!(count.load(Ordering::SeqCst), 0);
    options.ca_file = Some(scratch.write("ca.pem", &pem));
    let report = examined(&url, &options);
    assert_eq!(refusing(&report), [""; 0], "{report:#?}");
}

#[test]
fn a_redirect_from_https_to_http_is_told_and_headers_stay_behind() {
    let scratch = Scratch::new();
    let authority = Authority::new();
    let leaked = Arc::new(AtomicUsize::new(0));
    let leaks = Arc::clone(&leaked);
    let there = serve(
        image(),
        Arc::new(move |asked, _| {
            leaks.fetch_add(usize::from(asked.header("authorization").is_some()), Ordering::SeqCst);
        }),
        None,
    );
    let shown = Arc::new(AtomicUsize::new(0));
    let shows = Arc::clone(&shown);
    let change: Change = Arc::new(move |asked, reply| {
        shows
            .fetch_add(usize::from(asked.header("authorization") == Some("Bearer secret")), Ordering::SeqCst);
        reply.status(307);
        reply.set("Location", &format!("http://{there}/full.iso"));
    });
    let here = serve(image(), change, Some(config(&authority.issue(), BOTH)));
    let mut options = Options::default().header("Authorization", "Bearer secret").unwrap();
    options.ca_file = Some(scratch.write("ca.pem", &authority.pem));
    let report = examined(&format!("https://{here}/full.iso"), &options);
    assert_eq!(report.finding(Check::RedirectScheme).unwrap().outcome, Outcome::Fails, "{report:#?}");
    assert_eq!(report.redirects, [format!("http://{there}/full.iso")]);
    assert!(shown.load(Ordering::SeqCst) > 0);
    assert_eq!(leaked.load(Ordering::SeqCst), 0);
}

#[test]
fn plain_http_at_the_port_of_tls_is_told() {
    let address = serve(image(), Arc::new(|_, _| {}), None);
    let report = examined(&format!("https://{address}/full.iso"), &Options::default());
    let finding = report.finding(Check::Reachable).unwrap();
    assert!(finding.detail.starts_with("no TLS"), "{finding:?}");
    assert!(report.is_refused());
}

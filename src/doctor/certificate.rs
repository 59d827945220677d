//! Checks whether clients would trust the certificate of a server.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use super::DoctorError;
use super::report::{DoctorCheck, quote_for_report};

/// Maximum size of a file with CA certificates. The file of a typical system is a few hundred KiB.
const MAX_FILE: u64 = 4 << 20;
/// A certificate that expires within this time is reported.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);
/// Maximum number of subject alternative names in an error.
const MAX_NAMES: usize = 5;

/// The certificate authorities that clients trust.
#[derive(Debug)]
pub(super) struct TrustedAuthorities {
    roots: RootCertStore,
    /// All certificates from the file or the system. Most clients trust a self-signed server certificate if it is among
    /// these.
    certificates: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
    /// The source of the authorities, for messages.
    whose: &'static str,
}

/// The certificate chain and TLS parameters of one handshake.
#[derive(Clone, Debug)]
pub(super) struct HandshakeReport {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) version: &'static str,
    pub(super) scheme: Option<SignatureScheme>,
}

impl TrustedAuthorities {
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, DoctorError> {
        let mut roots = RootCertStore::empty();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let Some(path) = ca_file else {
            let certificates = rustls_native_certs::load_native_certs().certs;
            roots.add_parsable_certificates(certificates.iter().cloned());
            return Ok(Self { roots, certificates, provider, whose: "the system" });
        };
        let failed = |source| DoctorError::Authorities { path: path.to_owned(), source };
        let certificates = read_certificates(path).map_err(failed)?;
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| failed(io::Error::other(error)))?;
        }
        Ok(Self { roots, certificates, provider, whose: "the given file" })
    }

    /// Creates a configuration that accepts every certificate. The caller must check the certificate after the
    /// handshake.
    pub(super) fn client_config(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        recorder: &Arc<SchemeRecorder>,
    ) -> Result<ClientConfig, Error> {
        let config = ClientConfig::builder_with_provider(Arc::clone(&self.provider));
        let verifier = Arc::clone(recorder) as Arc<dyn ServerCertVerifier>;
        let mut config = config
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    pub(super) fn recorder(&self) -> Arc<SchemeRecorder> {
        Arc::new(SchemeRecorder { provider: Arc::clone(&self.provider), scheme: Mutex::new(None) })
    }

    /// Returns `true` if a client would accept the certificate's authority, dates and name.
    pub(super) fn is_trusted(&self, handshake: &HandshakeReport, host: &str) -> bool {
        let decisive =
            [DoctorCheck::CertificateTrusted, DoctorCheck::CertificateDates, DoctorCheck::CertificateName];
        let results = self.check_certificate(handshake, host);
        results.iter().all(|(check, result)| !decisive.contains(check) || result.is_ok())
    }

    /// Returns the result of each check of the certificate and of its key type.
    pub(super) fn check_certificate(
        &self,
        handshake: &HandshakeReport,
        host: &str,
    ) -> Vec<(DoctorCheck, Result<String, String>)> {
        let Some((certificate, others)) = handshake.chain.split_first() else {
            return vec![(
                DoctorCheck::CertificateTrusted,
                Err("the server sends no certificate".to_owned()),
            )];
        };
        let parsed = match ParsedCertificate::try_from(certificate) {
            Ok(parsed) => parsed,
            Err(error) => {
                return vec![(DoctorCheck::CertificateTrusted, Err(quote_for_report(&error.to_string())))];
            }
        };
        let verify = |at: Duration| {
            let algorithms = self.provider.signature_verification_algorithms.all;
            let time = UnixTime::since_unix_epoch(at);
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, time, algorithms)
        };
        let now = Duration::from_secs(u64::try_from(Utc::now().timestamp()).unwrap_or_default());
        let dates = check_validity(verify(now).err().as_ref());
        // Verify an expired certificate at a time when it was valid, because the dates are a separate check.
        let trusted = match dates {
            Ok(()) => verify(now),
            Err((_, at)) => verify(at),
        };
        let trusted = if self.certificates.contains(certificate) { Ok(()) } else { trusted };
        let lasts = check_validity(verify(now.saturating_add(SOON)).err().as_ref());
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{} is not a valid host name", quote_for_report(host)))
            .and_then(|name| verify_server_name(&parsed, &name).map_err(|error| describe_error(&error)));
        let count = handshake.chain.len();
        let chain = format!(
            "{count} certificate{} over {}, verified with the CAs of {}",
            plural_ending(count),
            handshake.version,
            self.whose
        );
        vec![
            (
                DoctorCheck::CertificateTrusted,
                trusted
                    .map(|()| chain.clone())
                    .map_err(|error| format!("{}; {chain}", describe_error(&error))),
            ),
            (DoctorCheck::CertificateName, name.map(|()| quote_for_report(host))),
            (DoctorCheck::CertificateDates, dates.map(|()| "valid now".to_owned()).map_err(|(why, _)| why)),
            (
                DoctorCheck::CertificateLasts,
                lasts.map(|()| "valid for at least two more weeks".to_owned()).map_err(|(why, _)| why),
            ),
            (DoctorCheck::CertificateRsa, check_key(handshake.scheme)),
        ]
    }
}

fn plural_ending(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Returns an error if the certificate is not valid at this time: the reason, and a time at which it is valid.
fn check_validity(error: Option<&Error>) -> Result<(), (String, Duration)> {
    let second = Duration::from_secs(1);
    match error {
        Some(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            let end = Duration::from_secs(not_after.as_secs());
            Err((format!("certificate expires on {}", format_date(end)), end.saturating_sub(second)))
        }
        Some(Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
            let begin = Duration::from_secs(not_before.as_secs());
            Err((format!("certificate is valid from {}", format_date(begin)), begin.saturating_add(second)))
        }
        _ => Ok(()),
    }
}

fn format_date(since_epoch: Duration) -> String {
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, 0).map_or_else(|| "an invalid date".to_owned(), |it| it.to_rfc3339())
}

/// Describes why a client would refuse a certificate.
fn describe_error(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "issued by an unknown CA, or the server does not send the intermediate certificates".to_owned()
        }
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            let names: Vec<String> =
                presented.iter().take(MAX_NAMES).map(|name| quote_for_report(name)).collect();
            match names.as_slice() {
                [] => "certificate has no subjectAltName".to_owned(),
                names => format!("certificate is for {}", names.join(", ")),
            }
        }
        // rustls reports this webpki error only as text.
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string() == "CaUsedAsEndEntity" =>
        {
            "certificate is a CA certificate, and not one of the trusted CAs".to_owned()
        }
        other => quote_for_report(&other.to_string()),
    }
}

fn check_key(scheme: Option<SignatureScheme>) -> Result<String, String> {
    let name = scheme.and_then(|scheme| scheme.as_str().map(str::to_owned)).unwrap_or_default();
    match name.starts_with("RSA") {
        true => Ok(name),
        false => Err(format!(
            "the server signs with {}",
            if name.is_empty() { "another type of key" } else { &name }
        )),
    }
}

fn read_certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let mut pem = Vec::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut pem)?;
    if u64::try_from(pem.len()).is_ok_and(|len| len > MAX_FILE) {
        return Err(io::Error::other(format!("file is too large (limit {MAX_FILE} bytes)")));
    }
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(io::Error::other)?;
    match certificates.is_empty() {
        true => Err(io::Error::other("no certificates found")),
        false => Ok(certificates),
    }
}

/// A verifier that accepts every certificate and records the signature scheme of the handshake. The session checks the
/// certificate before it sends a request.
#[derive(Debug)]
pub(super) struct SchemeRecorder {
    provider: Arc<CryptoProvider>,
    scheme: Mutex<Option<SignatureScheme>>,
}

impl SchemeRecorder {
    pub(super) fn scheme(&self) -> Option<SignatureScheme> {
        *self.scheme.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, scheme: SignatureScheme) {
        *self.scheme.lock().unwrap_or_else(PoisonError::into_inner) = Some(scheme);
    }
}

impl ServerCertVerifier for SchemeRecorder {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.record(signed.scheme);
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.record(signed.scheme);
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

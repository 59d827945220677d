//! What servers show of themselves, and whether it is to be trusted.

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
use super::report::{Check, quoted};

/// The largest file of authorities that is read. That of a system has some hundred KiB.
const MAX_FILE: u64 = 4 << 20;
/// A certificate that ends within this time is one to renew.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);
/// The names of a certificate that are shown.
const MAX_NAMES: usize = 5;

/// Whom we trust, as clients would.
#[derive(Debug)]
pub(super) struct Trust {
    roots: RootCertStore,
    /// The same as they were given. One that signs itself may be that of a server: most clients take it for trusted then.
    given: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
    /// Where they are from.
    whose: &'static str,
}

/// What a server has shown.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) version: &'static str,
    pub(super) scheme: Option<SignatureScheme>,
}

impl Trust {
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, DoctorError> {
        let mut roots = RootCertStore::empty();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let Some(path) = ca_file else {
            let given = rustls_native_certs::load_native_certs().certs;
            roots.add_parsable_certificates(given.iter().cloned());
            return Ok(Self { roots, given, provider, whose: "this system" });
        };
        let failed = |source| DoctorError::Authorities { path: path.to_owned(), source };
        let given = read(path).map_err(failed)?;
        for certificate in &given {
            roots.add(certificate.clone()).map_err(|error| failed(io::Error::other(error)))?;
        }
        Ok(Self { roots, given, provider, whose: "the given file" })
    }

    /// How to speak TLS with a server whose certificate is looked at afterwards.
    pub(super) fn config(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        recorder: &Arc<Recorder>,
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

    pub(super) fn recorder(&self) -> Arc<Recorder> {
        Arc::new(Recorder { provider: Arc::clone(&self.provider), scheme: Mutex::new(None) })
    }

    /// Whether a server is who it says, as clients see it.
    pub(super) fn is_trusted(&self, shown: &Shown, host: &str) -> bool {
        let decisive = [Check::CertificateTrusted, Check::CertificateDates, Check::CertificateName];
        let judged = self.judge(shown, host);
        judged.iter().all(|(check, result)| !decisive.contains(check) || result.is_ok())
    }

    /// What is right and wrong with a certificate.
    pub(super) fn judge(&self, shown: &Shown, host: &str) -> Vec<(Check, Result<String, String>)> {
        let Some((certificate, others)) = shown.chain.split_first() else {
            return vec![(Check::CertificateTrusted, Err("the server shows none".to_owned()))];
        };
        let parsed = match ParsedCertificate::try_from(certificate) {
            Ok(parsed) => parsed,
            Err(error) => return vec![(Check::CertificateTrusted, Err(quoted(&error.to_string())))],
        };
        let verify = |at: Duration| {
            let algorithms = self.provider.signature_verification_algorithms.all;
            let time = UnixTime::since_unix_epoch(at);
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, time, algorithms)
        };
        let now = Duration::from_secs(u64::try_from(Utc::now().timestamp()).unwrap_or_default());
        let dates = validity(verify(now).err().as_ref());
        // Whether it would be trusted if it were valid is another question.
        let trusted = match dates {
            Ok(()) => verify(now),
            Err((_, at)) => verify(at),
        };
        let trusted = if self.given.contains(certificate) { Ok(()) } else { trusted };
        let lasts = validity(verify(now.saturating_add(SOON)).err().as_ref());
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{} is no name that certificates have", quoted(host)))
            .and_then(|name| verify_server_name(&parsed, &name).map_err(|error| told(&error)));
        let count = shown.chain.len();
        let chain = format!(
            "{count} certificate{} over {}, by the authorities of {}",
            plural(count),
            shown.version,
            self.whose
        );
        vec![
            (
                Check::CertificateTrusted,
                trusted.map(|()| chain.clone()).map_err(|error| format!("{}; {chain}", told(&error))),
            ),
            (Check::CertificateName, name.map(|()| quoted(host))),
            (Check::CertificateDates, dates.map(|()| "valid now".to_owned()).map_err(|(why, _)| why)),
            (
                Check::CertificateLasts,
                lasts.map(|()| "valid for two weeks yet".to_owned()).map_err(|(why, _)| why),
            ),
            (Check::CertificateRsa, key(shown.scheme)),
        ]
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Whether a certificate is valid, and if not, why, and when it was or will be.
fn validity(error: Option<&Error>) -> Result<(), (String, Duration)> {
    let second = Duration::from_secs(1);
    match error {
        Some(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            let end = Duration::from_secs(not_after.as_secs());
            Err((format!("it ends on {}", date(end)), end.saturating_sub(second)))
        }
        Some(Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
            let begin = Duration::from_secs(not_before.as_secs());
            Err((format!("it begins on {}", date(begin)), begin.saturating_add(second)))
        }
        _ => Ok(()),
    }
}

fn date(since_epoch: Duration) -> String {
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, 0)
        .map_or_else(|| "a day of no calendar".to_owned(), |it| it.to_rfc3339())
}

/// What is wrong with a certificate, for people.
fn told(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "it leads to no authority that is trusted: the authority is another one, or the server leaves out the \
             certificates between"
                .to_owned()
        }
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            let names: Vec<String> = presented.iter().take(MAX_NAMES).map(|name| quoted(name)).collect();
            match names.as_slice() {
                [] => "it is for no name at all (of subjectAltName)".to_owned(),
                names => format!("it is for {}", names.join(", ")),
            }
        }
        // As rustls passes on what webpki says of it.
        Error::InvalidCertificate(CertificateError::Other(other)) if other.to_string() == "CaUsedAsEndEntity" => {
            "it is that of an authority itself, and none of those that are trusted".to_owned()
        }
        other => quoted(&other.to_string()),
    }
}

fn key(scheme: Option<SignatureScheme>) -> Result<String, String> {
    let name = scheme.and_then(|scheme| scheme.as_str().map(str::to_owned)).unwrap_or_default();
    match name.starts_with("RSA") {
        true => Ok(name),
        false => {
            Err(format!("the server signs with {}", if name.is_empty() { "another key" } else { &name }))
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let mut pem = Vec::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut pem)?;
    if u64::try_from(pem.len()).is_ok_and(|len| len > MAX_FILE) {
        return Err(io::Error::other(format!("it has more than {MAX_FILE} bytes")));
    }
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(io::Error::other)?;
    match certificates.is_empty() {
        true => Err(io::Error::other("there is none in it")),
        false => Ok(certificates),
    }
}

/// Lets every handshake come to its end, and remembers how the server has signed it. No request is sent before what was
/// shown is judged.
#[derive(Debug)]
pub(super) struct Recorder {
    provider: Arc<CryptoProvider>,
    scheme: Mutex<Option<SignatureScheme>>,
}

impl Recorder {
    pub(super) fn scheme(&self) -> Option<SignatureScheme> {
        *self.scheme.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, scheme: SignatureScheme) {
        *self.scheme.lock().unwrap_or_else(PoisonError::into_inner) = Some(scheme);
    }
}

impl ServerCertVerifier for Recorder {
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

//! The configuration of TLS clients that trust the certificates in a PEM file, in addition to the system's
//! certificates.
//!
//! A site without a certificate authority uses self-signed server certificates, which clients trust directly. The
//! command `openssl req -x509` marks such a certificate as the certificate of an authority. RFC 5280 does not allow a
//! server to use it, but the clients of OpenSSL and Go accept it. This module accepts
//! it too.

use std::error::Error;
use std::sync::Arc;

use rustls_native_certs::CertificateResult;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};

/// Returns a TLS configuration that accepts the certificates in a PEM file, and certificates signed by them.
pub(crate) fn client_config(pem: &[u8]) -> Result<ClientConfig, Box<dyn Error + Send + Sync>> {
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    if certificates.is_empty() {
        return Err("no certificates found".into());
    }
    let mut roots = RootCertStore::empty();
    add_system_roots(&mut roots, rustls_native_certs::load_native_certs());
    for certificate in &certificates {
        roots.add(certificate.clone())?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let standard =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PemCertificateVerifier {
            standard,
            pem_certificates: certificates,
        }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Adds the certificates that this system trusts. Logs invalid certificates and returns their number. They are not an
/// error, because most servers do not need them.
fn add_system_roots(roots: &mut RootCertStore, system: CertificateResult) -> usize {
    for error in &system.errors {
        tracing::warn!(%error, "cannot read some of the system's trusted certificates");
    }
    let (_, invalid) = roots.add_parsable_certificates(system.certs);
    if invalid > 0 {
        tracing::warn!(invalid, "some of the system's trusted certificates are invalid");
    }
    system.errors.len().saturating_add(invalid)
}

#[derive(Debug)]
struct PemCertificateVerifier {
    /// The verifier of rustls, which trusts the certificates of the system and of the PEM file as authorities.
    standard: Arc<WebPkiServerVerifier>,
    /// The certificates of the PEM file, which are also accepted as server certificates.
    pem_certificates: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for PemCertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        match self.standard.verify_server_cert(certificate, between, name, ocsp, now) {
            // The standard verifier checks the dates first, so after any other error the dates are valid.
            Err(refused) if !is_validity_error(&refused) && self.pem_certificates.contains(certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.standard.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.standard.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.standard.supported_verify_schemes()
    }
}

fn is_validity_error(error: &TlsError) -> bool {
    let TlsError::InvalidCertificate(error) = error else { return false };
    matches!(
        error,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair};
    use rustls_native_certs::load_certs_from_paths;

    use super::*;

    fn certificate() -> String {
        let params = CertificateParams::new(["mirror.example".to_owned()]).unwrap();
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    fn block(base64: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n")
    }

    #[test]
    fn rejects_files_without_a_valid_certificate() {
        let valid = certificate();
        client_config(valid.as_bytes()).unwrap();
        for pem in [String::new(), "\n".to_owned(), "no certificates here".to_owned()] {
            assert_eq!(client_config(pem.as_bytes()).unwrap_err().to_string(), "no certificates found");
        }
        for invalid in [block("AAAA"), block("!"), "-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned()] {
            assert!(client_config(invalid.as_bytes()).is_err(), "{invalid}");
            assert!(client_config(format!("{valid}{invalid}").as_bytes()).is_err(), "{invalid}");
        }
    }

    #[test]
    fn invalid_certificates_of_the_system_are_counted_and_not_trusted() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("ca.pem");
        for (text, invalid, trusted) in [
            (certificate(), 0, 1),
            (block("AAAA") + &certificate() + &block("AAAB"), 2, 1),
            (block("!") + &certificate(), 1, 1),
        ] {
            fs::write(&path, &text).unwrap();
            let mut roots = RootCertStore::empty();
            assert_eq!(
                add_system_roots(&mut roots, load_certs_from_paths(Some(&path), None)),
                invalid,
                "{text}"
            );
            assert_eq!(roots.len(), trusted, "{text}");
        }
        let mut roots = RootCertStore::empty();
        let missing = load_certs_from_paths(Some(&directory.path().join("missing.pem")), None);
        assert_eq!((add_system_roots(&mut roots, missing), roots.len()), (1, 0));
    }
}

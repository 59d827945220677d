//! The certificate of all servers of a run, and the TLS configuration of the clients.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::client::Tls;

/// File names in the folder of the run.
pub(crate) const CERTIFICATE: &str = "cert.pem";
pub(crate) const KEY: &str = "key.pem";

/// Writes a certificate for the loopback address, and its key, into a folder.
///
/// # Errors
///
/// Returns an error if the certificate cannot be generated or written.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    std::fs::write(folder.join(CERTIFICATE), pair.cert.pem()).context("writing the certificate")?;
    std::fs::write(folder.join(KEY), pair.signing_key.serialize_pem()).context("writing its key")
}

/// Returns a TLS client configuration that trusts only the certificates of a file.
///
/// # Errors
///
/// Returns an error if the file has no certificate or `host` is not a valid name.
pub(crate) fn trusting(file: &Path, host: &str) -> Result<Tls> {
    let about = || format!("reading certificates of {}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).with_context(about)? {
        roots.add(certificate.with_context(about)?).with_context(about)?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned())
        .with_context(|| format!("{host:?} is not a valid server name"))?;
    Ok(Tls { config: Arc::new(config), name })
}

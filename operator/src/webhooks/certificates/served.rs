//! The certificate that this replica serves. It is reloaded when it changes.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig, SupportedProtocolVersion};

use super::{SECRET, secret};

/// Interval at which certificate files are read.
const FILE_INTERVAL: Duration = Duration::from_secs(10);

/// The certificate for new connections. Clones share it. Connections fail while no certificate is loaded.
#[derive(Clone)]
pub(crate) struct ServedCertificate {
    current: Arc<RwLock<Option<Arc<CertifiedKey>>>>,
    provider: Arc<CryptoProvider>,
}

/// The reason why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
enum PairError {
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("not valid PEM")]
    Pem(#[from] pem::Error),
    #[error("certificate and key cannot be used together")]
    Pair(#[from] rustls::Error),
}

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedCertificate").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServedCertificate {
    /// Returns a value without a certificate.
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { current: Arc::default(), provider }
    }

    /// Returns the acceptor of TLS connections. Each connection uses the certificate loaded at its start.
    ///
    /// # Errors
    ///
    /// Returns an error if the provider has no cipher suite for the accepted TLS versions.
    pub(crate) fn acceptor(
        &self,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<TlsAcceptor, rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions)?;
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Replaces the certificate. If the new certificate is invalid, the previous one stays in use.
    fn replace(&self, certificate: &[u8], key: &[u8]) {
        match self.pair(certificate, key) {
            Ok(pair) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                let is_new = current.as_ref().is_none_or(|current| current.cert != pair.cert);
                if is_new {
                    *current = Some(Arc::new(pair));
                    tracing::info!("certificate of the webhooks loaded");
                }
            }
            Err(error) => warn_unusable(&error),
        }
    }

    fn pair(&self, certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, PairError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(key)?;
        Ok(CertifiedKey::from_der(chain, key, &self.provider)?)
    }
}

fn warn_unusable(error: &PairError) {
    let error = error as &dyn Error;
    tracing::warn!(error, "certificate of the webhooks cannot be used, the previous one stays in use");
}

/// Reloads the certificate whenever the Secret changes. Never returns.
pub(crate) async fn follow_secret(served: ServedCertificate, api: Api<Secret>) {
    let mut events = watch_object(api, SECRET).default_backoff().boxed();
    let mut is_failing = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(secret) => {
                is_failing = false;
                if let Some(state) = secret.as_ref().and_then(secret::state_of) {
                    let (certificate, key) = state.serving();
                    served.replace(certificate.as_bytes(), key.as_bytes());
                }
            }
            // Log an outage only once.
            Err(error) if !is_failing => {
                is_failing = true;
                let error = &error as &dyn Error;
                tracing::warn!(error, "watch of the webhooks' certificates failed, will retry");
            }
            Err(_) => {}
        }
    }
}

/// Reloads the certificate whenever its files change. Never returns.
pub(crate) async fn follow_files(served: ServedCertificate, certificate: PathBuf, key: PathBuf) {
    let mut former = None;
    loop {
        let read = async |path: &PathBuf| {
            tokio::fs::read(path).await.map_err(|source| PairError::File { path: path.clone(), source })
        };
        let pair = async { Ok((read(&certificate).await?, read(&key).await?)) }.await;
        match pair {
            Ok(pair) if former.as_ref() == Some(&pair) => {}
            Ok(pair) => {
                served.replace(&pair.0, &pair.1);
                former = Some(pair);
            }
            Err(error) => warn_unusable(&error),
        }
        tokio::time::sleep(FILE_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::crypto::aws_lc_rs;
    use tokio_rustls::rustls::version::{TLS12, TLS13};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;

    #[tokio::test]
    async fn only_accepted_versions_connect() {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let served = ServedCertificate::new(Arc::clone(&provider));
        let generated = rcgen::generate_simple_self_signed(["hook".to_owned()]).unwrap();
        let key = generated.signing_key.serialize_pem();
        served.replace(generated.cert.pem().as_bytes(), key.as_bytes());
        let mut roots = RootCertStore::empty();
        roots.add(generated.cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS12])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = TlsConnector::from(Arc::new(client));
        for (versions, is_accepted) in [(&[&TLS13, &TLS12][..], true), (&[&TLS13][..], false)] {
            let (near, far) = tokio::io::duplex(1 << 16);
            let connect = client.connect("hook".try_into().unwrap(), near);
            let (accepted, connected) = tokio::join!(served.acceptor(versions).unwrap().accept(far), connect);
            assert_eq!((accepted.is_ok(), connected.is_ok()), (is_accepted, is_accepted));
        }
    }
}

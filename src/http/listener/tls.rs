//! The server's TLS certificate and key, which can be replaced while the server runs.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use chrono::Utc;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    self, CipherSuite, InconsistentKeys, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
};

use super::validity::ValidityPeriod;

/// The interval between checks of the files for changes. A short interval is not needed, because certificates are
/// replaced days before they expire.
const INTERVAL: Duration = Duration::from_secs(5);
/// Maximum size of a file. A certificate chain is a few KiB.
const MAX_FILE: u64 = 1 << 20;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file with the certificates or the key.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file is not in PEM format.
    #[error("{} is not a PEM file", path.display())]
    Pem {
        /// The file with the certificates or the key.
        path: PathBuf,
        /// Where the PEM syntax is wrong.
        source: pem::Error,
    },
    /// The certificate file contains no certificate.
    #[error("{} contains no certificate", path.display())]
    NoCertificate {
        /// The file for the certificates.
        path: PathBuf,
    },
    /// A certificate is invalid.
    #[error("the first certificate in {} is invalid", path.display())]
    Certificate {
        /// The file with the certificates.
        path: PathBuf,
        /// Why TLS cannot use the certificate.
        source: rustls::Error,
    },
    /// The key file contains no unencrypted private key.
    #[error("{} contains no unencrypted private key", path.display())]
    NoKey {
        /// The file for the private key.
        path: PathBuf,
    },
    /// A private key has an unsupported type.
    #[error("cannot use the private key in {}", path.display())]
    Key {
        /// The file with the private key.
        path: PathBuf,
        /// Why TLS cannot use the key.
        source: rustls::Error,
    },
    /// The private key does not match the certificate.
    #[error("the private key in {} does not match the first certificate in {}", key.display(), chain.display())]
    Mismatch {
        /// The file with the certificates.
        chain: PathBuf,
        /// The file with the private key.
        key: PathBuf,
    },
    /// None of the configured TLS 1.2 cipher suites is supported.
    #[error("none of the TLS 1.2 cipher suites {names} is supported")]
    NoSuite {
        /// The names of the configured suites, separated by commas.
        names: String,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Setup(#[source] rustls::Error),
}

/// The TLS versions and cipher suites that a server accepts. rustls supports no weak ones, but the policy of a site can
/// restrict them further.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsRules {
    /// The oldest accepted version of TLS.
    pub oldest: TlsVersion,
    /// The accepted TLS 1.2 cipher suites, by their names in the IANA registry. If empty, all supported suites are
    /// accepted. Unsupported names are ignored. All TLS 1.3 suites are always accepted.
    pub suites: Vec<String>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

impl TlsRules {
    /// Returns `true` if the IANA registry contains a cipher suite with this name. The server may not support it.
    #[must_use]
    pub fn is_suite(name: &str) -> bool {
        (0..=u16::MAX).any(|id| {
            // rustls uses another prefix for TLS 1.3 suites.
            let suite = CipherSuite::from(id).as_str().map(|suite| suite.replacen("TLS13_", "TLS_", 1));
            suite.as_deref() == Some(name)
        })
    }

    /// Returns the accepted versions.
    pub(crate) fn protocol_versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        match self.oldest {
            TlsVersion::V1_2 => vec![&TLS13, &TLS12],
            TlsVersion::V1_3 => vec![&TLS13],
        }
    }

    /// Returns a provider of the accepted cipher suites alone.
    ///
    /// # Errors
    ///
    /// Returns an error if an accepted TLS version has no accepted cipher suite.
    pub(crate) fn provider(&self) -> Result<CryptoProvider, CertificateError> {
        let mut provider = aws_lc_rs::default_provider();
        if self.suites.is_empty() {
            return Ok(provider);
        }
        let is_named = |suite: &SupportedCipherSuite| {
            let name = format!("{:?}", suite.suite());
            suite.tls13().is_some() || self.suites.contains(&name)
        };
        provider.cipher_suites.retain(is_named);
        let has_old = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
        if has_old || self.oldest == TlsVersion::V1_3 {
            return Ok(provider);
        }
        Err(CertificateError::NoSuite { names: self.suites.join(", ") })
    }
}

/// A certificate chain with its private key, from two PEM files. Clones share the current certificate.
#[derive(Clone, Debug)]
pub struct Certificate {
    current: Arc<CurrentCertificate>,
    config: Arc<ServerConfig>,
}

#[derive(Debug)]
struct CurrentCertificate {
    chain: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    pair: RwLock<Arc<CertifiedKey>>,
    /// The versions of both files at the last attempt to read them.
    versions: Mutex<[Option<FileVersion>; 2]>,
    /// The signal to read the files again.
    reload_request: Notify,
}

/// The version of a file: device, inode, length, and `ctime` in seconds and nanoseconds.
type FileVersion = (u64, u64, u64, i64, i64);

impl Certificate {
    /// Reads a certificate chain and its private key. Both may be in the same file.
    ///
    /// # Errors
    ///
    /// Returns an error with the file that cannot be used, and the reason.
    pub fn open(chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Self, CertificateError> {
        Self::open_with(chain, key, &TlsRules::default())
    }

    /// Like [`open`](Self::open), but with rules for TLS.
    ///
    /// # Errors
    ///
    /// Returns an error with the file that cannot be used, and the reason. Also returns an error if `rules` permit no
    /// cipher suite.
    pub fn open_with(
        chain: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        rules: &TlsRules,
    ) -> Result<Self, CertificateError> {
        let (chain, key) = (chain.into(), key.into());
        let provider = Arc::new(rules.provider()?);
        let versions = Mutex::new([file_version(&chain), file_version(&key)]);
        let pair = RwLock::new(Arc::new(read_pair(&chain, &key, &provider)?));
        let current = Arc::new(CurrentCertificate {
            chain,
            key,
            provider,
            pair,
            versions,
            reload_request: Notify::new(),
        });
        current.warn_unless_valid();
        let config = ServerConfig::builder_with_provider(Arc::clone(&current.provider))
            .with_protocol_versions(&rules.protocol_versions())
            .map_err(CertificateError::Setup)?;
        let resolver = Arc::clone(&current) as Arc<dyn ResolvesServerCert>;
        let mut config = config.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // With tickets, a returning client needs no signature, and the server keeps no sessions in memory.
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(CertificateError::Setup)?;
        Ok(Self { current, config: Arc::new(config) })
    }

    /// Reads the files again. New connections use the new certificate.
    ///
    /// # Errors
    ///
    /// Returns an error with the file that cannot be used, and the reason. The previous certificate then stays in use.
    pub fn reload(&self) -> Result<(), CertificateError> {
        self.current.reload()
    }

    /// Makes [`reload_on_change`](Self::reload_on_change) read the files again, even if they seem unchanged.
    pub fn force_reload(&self) {
        self.current.reload_request.notify_one();
    }

    /// Reads the files again whenever they change. Runs until the future is dropped, and logs errors.
    pub async fn reload_on_change(&self) {
        loop {
            let is_forced = tokio::select! {
                () = self.current.reload_request.notified() => true,
                () = tokio::time::sleep(INTERVAL) => false,
            };
            let current = Arc::clone(&self.current);
            // Use a blocking thread, because the storage of the files may be slow or unavailable.
            let done = tokio::task::spawn_blocking(move || current.reload_if_changed(is_forced));
            if let Err(error) = done.await {
                tracing::error!(%error, "cannot check the certificate for changes");
            }
        }
    }

    /// Returns the time for which the current certificate chain is valid.
    pub(in crate::http) fn validity(&self) -> Option<ValidityPeriod> {
        self.current.validity()
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

impl CurrentCertificate {
    fn reload(&self) -> Result<(), CertificateError> {
        // Record the versions first, so that the next check detects a change after this line.
        let versions = self.file_versions();
        *self.versions.lock().unwrap_or_else(PoisonError::into_inner) = versions;
        let pair = read_pair(&self.chain, &self.key, &self.provider)?;
        *self.pair.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
        self.warn_unless_valid();
        Ok(())
    }

    fn pair(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.pair.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn validity(&self) -> Option<ValidityPeriod> {
        ValidityPeriod::of_chain(&self.pair().cert)
    }

    /// Logs a warning if clients would refuse the certificate because of its dates. The certificate stays in use,
    /// because the clock of this machine may be wrong.
    fn warn_unless_valid(&self) {
        let (Some(ValidityPeriod { begin, end }), now) = (self.validity(), Utc::now()) else { return };
        let chain = self.chain.display();
        if now < begin {
            tracing::warn!(%chain, %begin, "certificate is not valid yet, clients refuse it");
        } else if now > end {
            tracing::warn!(%chain, %end, "certificate has expired, clients refuse it");
        }
    }

    fn reload_if_changed(&self, is_forced: bool) {
        let versions = *self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_forced && self.file_versions() == versions {
            return;
        }
        match self.reload() {
            Ok(()) => tracing::info!(chain = %self.chain.display(), "certificate reloaded"),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "new certificate is invalid, the previous one stays in use");
            }
        }
    }

    fn file_versions(&self) -> [Option<FileVersion>; 2] {
        [file_version(&self.chain), file_version(&self.key)]
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair())
    }
}

fn file_version(path: &Path) -> Option<FileVersion> {
    let of = |data: Metadata| (data.dev(), data.ino(), data.len(), data.ctime(), data.ctime_nsec());
    fs::metadata(path).ok().map(of)
}

fn read_pair(chain: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, CertificateError> {
    let certificates = read_chain(chain)?;
    let text = read_file(key)?;
    let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => CertificateError::NoKey { path: key.to_owned() },
        source => CertificateError::Pem { path: key.to_owned(), source },
    })?;
    let private = provider.key_provider.load_private_key(private);
    let private = private.map_err(|source| CertificateError::Key { path: key.to_owned(), source })?;
    let pair = CertifiedKey::new(certificates, private);
    match pair.keys_match() {
        // `Unknown` means that the key does not reveal its public half.
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(CertificateError::Mismatch { chain: chain.to_owned(), key: key.to_owned() })
        }
        Err(source) => Err(CertificateError::Certificate { path: chain.to_owned(), source }),
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let text = read_file(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates =
        certificates.map_err(|source| CertificateError::Pem { path: path.to_owned(), source })?;
    if certificates.is_empty() {
        return Err(CertificateError::NoCertificate { path: path.to_owned() });
    }
    Ok(certificates)
}

fn read_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let read = || {
        let mut bytes = Vec::new();
        let len = File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        if len as u64 > MAX_FILE {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {MAX_FILE} bytes")));
        }
        Ok(bytes)
    };
    read().map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}

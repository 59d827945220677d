//! The server's certificate and its key, which can be replaced while the server runs.

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

/// The interval between checks of the files. They are replaced days before the old certificate expires.
const INTERVAL: Duration = Duration::from_secs(5);
/// The largest accepted file. A chain has some KiB.
const MAX_FILE: u64 = 1 << 20;

/// An error that makes a certificate unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file is not in PEM format.
    #[error("{} is not a PEM file", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The syntax error.
        source: pem::Error,
    },
    /// The certificate file contains no certificate.
    #[error("{} contains no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate is invalid.
    #[error("the first certificate in {} is invalid", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
    /// The key file contains no unencrypted private key.
    #[error("{} contains no unencrypted private key", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// A private key has an unsupported type.
    #[error("cannot use the private key in {}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
    /// The private key does not match the certificate.
    #[error("the private key in {} does not match the first certificate in {}", key.display(), chain.display())]
    Mismatch {
        /// The file of the certificate.
        chain: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// None of the configured TLS 1.2 cipher suites is supported.
    #[error("none of the TLS 1.2 cipher suites {names} is supported")]
    NoSuite {
        /// The names of the configured suites.
        names: String,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Setup(#[source] rustls::Error),
}

/// The TLS versions and cipher suites that a server accepts. rustls has no weak ones; a site with its own policy can
/// narrow them further.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsRules {
    /// The oldest accepted version.
    pub oldest: TlsVersion,
    /// The accepted TLS 1.2 cipher suites by their names in IANA's registry; empty for all. Suites that the server does
    /// not support are ignored. TLS 1.3 always has all of its suites.
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
    /// Returns `true` if a cipher suite has this name in IANA's registry, whether the server supports it or not.
    #[must_use]
    pub fn is_suite(name: &str) -> bool {
        (0..=u16::MAX).any(|id| {
            // rustls has its own prefix for suites of TLS 1.3.
            let known = CipherSuite::from(id).as_str().map(|known| known.replacen("TLS13_", "TLS_", 1));
            known.as_deref() == Some(name)
        })
    }

    fn protocol_versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        match self.oldest {
            TlsVersion::V1_2 => vec![&TLS13, &TLS12],
            TlsVersion::V1_3 => vec![&TLS13],
        }
    }

    /// Removes the TLS 1.2 suites that are not accepted.
    fn limit_cipher_suites(&self, mut provider: CryptoProvider) -> Result<CryptoProvider, CertificateError> {
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

/// A certificate with its chain and its key, from two PEM files. Clones share the state.
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
    /// The versions of the files at the last attempt to read them, successful or not.
    seen: Mutex<[Option<FileVersion>; 2]>,
    /// Notified to read the files again.
    asked: Notify,
}

/// The version of a file: device, inode, length, and the time of its last change (`ctime`) in seconds and nanoseconds.
type FileVersion = (u64, u64, u64, i64, i64);

impl Certificate {
    /// Reads a certificate and its chain from one file and its key from another, which may be the same file.
    ///
    /// # Errors
    ///
    /// Returns an error that names the unusable file and the reason.
    pub fn open(chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Self, CertificateError> {
        Self::open_with(chain, key, &TlsRules::default())
    }

    /// Reads a certificate as [`open`](Self::open) does, with rules for TLS.
    ///
    /// # Errors
    ///
    /// Returns an error that names the unusable file and the reason, or if `rules` leave no cipher suite.
    pub fn open_with(
        chain: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        rules: &TlsRules,
    ) -> Result<Self, CertificateError> {
        let (chain, key) = (chain.into(), key.into());
        let provider = Arc::new(rules.limit_cipher_suites(aws_lc_rs::default_provider())?);
        let seen = Mutex::new([file_version(&chain), file_version(&key)]);
        let pair = RwLock::new(Arc::new(read_pair(&chain, &key, &provider)?));
        let current = Arc::new(CurrentCertificate { chain, key, provider, pair, seen, asked: Notify::new() });
        current.warn_unless_valid();
        let config = ServerConfig::builder_with_provider(Arc::clone(&current.provider))
            .with_protocol_versions(&rules.protocol_versions())
            .map_err(CertificateError::Setup)?;
        let resolver = Arc::clone(&current) as Arc<dyn ResolvesServerCert>;
        let mut config = config.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // With tickets, a returning client costs no signature, and the server keeps no session in memory.
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(CertificateError::Setup)?;
        Ok(Self { current, config: Arc::new(config) })
    }

    /// Reads the files again. New connections use the new certificate.
    ///
    /// # Errors
    ///
    /// Returns an error that names the unusable file and the reason. The previous certificate then stays in use.
    pub fn reload(&self) -> Result<(), CertificateError> {
        self.current.reload()
    }

    /// Makes [`reload_on_change`](Self::reload_on_change) read the files again, even if they appear unchanged.
    pub fn force_reload(&self) {
        self.current.asked.notify_one();
    }

    /// Reads the files again whenever they change, for as long as the future is polled. Logs errors.
    pub async fn reload_on_change(&self) {
        loop {
            let is_asked = tokio::select! {
                () = self.current.asked.notified() => true,
                () = tokio::time::sleep(INTERVAL) => false,
            };
            let current = Arc::clone(&self.current);
            // The files may be on storage that is slow or has failed.
            let done = tokio::task::spawn_blocking(move || current.reload_if_changed(is_asked));
            if let Err(error) = done.await {
                tracing::error!(%error, "cannot check the certificate for changes");
            }
        }
    }

    /// Returns the time for which the current certificate and its chain are valid.
    pub(in crate::http) fn validity(&self) -> Option<ValidityPeriod> {
        self.current.validity()
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

impl CurrentCertificate {
    fn reload(&self) -> Result<(), CertificateError> {
        // A change after this line is detected by the next check.
        let seen = self.file_versions();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
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

    /// Warns if clients refuse the certificate because of its dates. It stays in use, because the clock of this machine
    /// may be wrong.
    fn warn_unless_valid(&self) {
        let (Some(ValidityPeriod { begin, end }), now) = (self.validity(), Utc::now()) else { return };
        let chain = self.chain.display();
        if now < begin {
            tracing::warn!(%chain, %begin, "certificate is not valid yet, clients refuse it");
        } else if now > end {
            tracing::warn!(%chain, %end, "certificate has expired, clients refuse it");
        }
    }

    fn reload_if_changed(&self, is_asked: bool) {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_asked && self.file_versions() == seen {
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
        // `Unknown`: the key does not reveal its public half.
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

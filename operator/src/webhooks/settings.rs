//! The settings that a program passes to the admission webhooks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::{ALL_VERSIONS, SupportedProtocolVersion};

/// Settings of the admission webhooks.
#[derive(Debug)]
#[non_exhaustive]
pub struct WebhookSettings {
    /// The listening socket of the HTTPS server.
    pub listener: Arc<TcpListener>,
    /// The address at which the API server reaches the webhooks.
    pub endpoint: WebhookEndpoint,
    /// The source of the serving certificate.
    pub certificate: WebhookCertificate,
    /// The TLS versions and cipher suites that the HTTPS server accepts.
    pub tls: WebhookTls,
    /// Suffix of the names of the ValidatingWebhookConfigurations.
    pub name_suffix: String,
    /// Interval at which the leader checks the certificates and the configurations.
    pub interval: Duration,
}

/// The address at which the API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookEndpoint {
    /// A Service in the same cluster as the API server.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
        /// Port of the Service.
        port: u16,
    },
    /// An address outside the cluster.
    Address {
        /// Host name or IP address. An IPv6 address must be in brackets.
        host: String,
        /// TCP port at this address.
        port: u16,
    },
}

/// The TLS versions and cipher suites that the HTTPS server of the webhooks accepts. By default, all that rustls
/// supports.
#[derive(Clone, Debug)]
pub struct WebhookTls {
    /// The accepted versions of TLS.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// The source of the accepted cipher suites.
    pub provider: Arc<CryptoProvider>,
}

impl Default for WebhookTls {
    fn default() -> Self {
        Self { versions: ALL_VERSIONS.to_vec(), provider: Arc::new(aws_lc_rs::default_provider()) }
    }
}

/// The source of the serving certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookCertificate {
    /// The leader creates the certificate and its certificate authority, and stores them in the Secret
    /// [`WEBHOOK_SECRET`](crate::WEBHOOK_SECRET) in the namespace of the lease.
    Managed,
    /// Another program creates and renews the files.
    Files {
        /// File with the certificate and its chain, in PEM.
        certificate: PathBuf,
        /// File with the private key, in PEM.
        key: PathBuf,
        /// File with the CA certificates that the API server must trust, in PEM. `None` if another program adds them to
        /// the ValidatingWebhookConfigurations.
        authorities: Option<PathBuf>,
    },
}

impl WebhookSettings {
    /// The default interval.
    pub const INTERVAL: Duration = Duration::from_secs(60);

    /// Returns settings with a managed certificate and the default interval.
    pub fn new(listener: TcpListener, endpoint: WebhookEndpoint) -> Self {
        Self {
            listener: Arc::new(listener),
            endpoint,
            certificate: WebhookCertificate::Managed,
            tls: WebhookTls::default(),
            name_suffix: String::new(),
            interval: Self::INTERVAL,
        }
    }
}

impl WebhookEndpoint {
    /// Returns the DNS names or addresses that the serving certificate must contain.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name, .. } => {
                let name = format!("{name}.{namespace}.svc");
                vec![format!("{name}.cluster.local"), name]
            }
            Self::Address { host, .. } => vec![host.trim_matches(['[', ']']).to_owned()],
        }
    }
}

//! Settings of the webhooks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

/// Settings of the admission webhooks.
#[derive(Debug)]
#[non_exhaustive]
pub struct WebhookSettings {
    /// The listener of the HTTPS server.
    pub listener: Arc<TcpListener>,
    /// The address that the API server uses.
    pub endpoint: WebhookEndpoint,
    /// The serving certificate.
    pub certificate: WebhookCertificate,
    /// Appended to the names of the ValidatingWebhookConfigurations.
    pub name_suffix: String,
    /// How often the leader checks the certificates and the configurations.
    pub interval: Duration,
}

/// The address that the API server uses for webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookEndpoint {
    /// A Service.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
        /// The port of the Service.
        port: u16,
    },
    /// An address outside of the cluster.
    Address {
        /// The host name or IP address. An IPv6 address is in brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

/// The origin of the serving certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookCertificate {
    /// The leader makes it, and its certificate authority. They are in the Secret
    /// [`WEBHOOK_SECRET`](crate::WEBHOOK_SECRET) in the namespace of the lease.
    Managed,
    /// Files that another program renews.
    Files {
        /// The certificate and its chain in PEM.
        certificate: PathBuf,
        /// The key in PEM.
        key: PathBuf,
        /// The certificates in PEM that the API server trusts. `None`: another program adds them to the
        /// ValidatingWebhookConfigurations.
        authorities: Option<PathBuf>,
    },
}

impl WebhookSettings {
    /// The default of `interval`.
    pub const INTERVAL: Duration = Duration::from_secs(60);

    /// Returns settings with a managed certificate.
    pub fn new(listener: TcpListener, endpoint: WebhookEndpoint) -> Self {
        Self {
            listener: Arc::new(listener),
            endpoint,
            certificate: WebhookCertificate::Managed,
            name_suffix: String::new(),
            interval: Self::INTERVAL,
        }
    }
}

impl WebhookEndpoint {
    /// Returns the names that the serving certificate must have.
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

//! The settings for an external inventory.

use std::path::PathBuf;
use std::time::Duration;

use ignition::discovery::HttpUrl;
use inventory::Settings;

/// How long a successful check is also valid for further requests of the same caller for the same image.
const TRUST: Duration = Duration::from_secs(1);
/// The time after a change until no other change can have the same `Last-Modified`. The service may take a few seconds
/// from setting the time to the commit of its transaction, and the clocks of its replicas differ.
const QUIET: Duration = Duration::from_secs(10);
/// The pause between calls while the service cannot be reached. Other requests fail immediately during the pause.
const RETRY: Duration = Duration::from_secs(1);

/// The address of an Assisted Service, and the timing of the checks.
#[derive(Clone, Debug)]
pub struct ExternalSettings {
    /// The URL of the service, without the path of the API.
    pub url: HttpUrl,
    /// A PEM file with certificates to trust in addition to the certificates of the system.
    pub ca_file: Option<PathBuf>,
    /// How long a successful check stays valid. Default: one second.
    pub trust: Duration,
    /// The time after a change until no other change can have the same `Last-Modified`. Default: ten seconds.
    pub quiet: Duration,
    /// The timeout of a call. The service takes a few seconds for the config of a thousand hosts.
    pub patience: Duration,
    /// How long the last confirmed responses are used while the service cannot be reached. Default: ten minutes.
    pub outage_grace: Duration,
    /// The pause between calls while the service cannot be reached. Default: one second.
    pub retry: Duration,
}

impl ExternalSettings {
    /// Creates the default settings for a service at `url`.
    #[must_use]
    pub fn new(url: HttpUrl) -> Self {
        Self {
            url,
            ca_file: None,
            trust: TRUST,
            quiet: QUIET,
            patience: Duration::from_secs(60),
            outage_grace: Settings::DATABASE_OUTAGE_GRACE,
            retry: RETRY,
        }
    }
}

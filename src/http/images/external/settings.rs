//! The settings of the external inventory.

use std::path::PathBuf;
use std::time::Duration;

use ignition::discovery::HttpUrl;
use inventory::Settings;

/// How long a successful check also covers further requests of the same caller for the same image.
const TRUST: Duration = Duration::from_secs(1);
/// How old a change of an infra-env must be before no other change can have the same time. A transaction of the service
/// may take a few seconds from the time that it writes to its commit, and the clocks of its replicas differ.
const QUIET: Duration = Duration::from_secs(10);
/// How long a call waits after the service could not be reached. Requests in between fail at once.
const RETRY: Duration = Duration::from_secs(1);

/// The address of an Assisted Service, and the timing of its checks.
#[derive(Clone, Debug)]
pub struct ExternalSettings {
    /// The URL of the service, without the path of its API.
    pub url: HttpUrl,
    /// A PEM file with certificates that are trusted in addition to those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long a successful check stays valid. Default: one second.
    pub trust: Duration,
    /// The minimum age of a change before no other change can have the same time. Default: ten seconds.
    pub quiet: Duration,
    /// The timeout of a call. A config for a thousand hosts takes the service a few seconds.
    pub patience: Duration,
    /// How long the last successful answers are used while the service cannot be reached. Default: ten minutes.
    pub outage_grace: Duration,
    /// The time from a call that did not reach the service to the next one. Default: one second.
    pub retry: Duration,
}

impl ExternalSettings {
    /// Creates the default settings for a service.
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

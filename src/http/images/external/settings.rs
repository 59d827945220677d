//! The settings of the external inventory.

use std::path::PathBuf;
use std::time::Duration;

use ignition::discovery::HttpUrl;

/// How long a successful check also covers further requests of the same caller for the same image.
pub const TRUST: Duration = Duration::from_secs(1);
/// How old a change of an infra-env must be before no other change can have the same time. A transaction of the service
/// may take a few seconds from the time that it writes to its commit, and the clocks of its replicas differ.
pub const QUIET: Duration = Duration::from_secs(10);

/// The address of an Assisted Service, and the timing of its checks.
#[derive(Clone, Debug)]
pub struct ExternalSettings {
    /// The URL of the service, without the path of its API.
    pub url: HttpUrl,
    /// A PEM file with certificates that are trusted in addition to those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long a successful check stays valid. Default: [`TRUST`].
    pub trust: Duration,
    /// The minimum age of a change. Default: [`QUIET`].
    pub quiet: Duration,
    /// The timeout of a call. A config for a thousand hosts takes the service a few seconds.
    pub patience: Duration,
}

impl ExternalSettings {
    /// Creates the default settings for a service.
    #[must_use]
    pub fn new(url: HttpUrl) -> Self {
        Self { url, ca_file: None, trust: TRUST, quiet: QUIET, patience: Duration::from_secs(60) }
    }
}

//! Which service is asked, and how.

use std::path::PathBuf;
use std::time::Duration;

use ignition::discovery::HttpUrl;

/// How long a check that said yes is good for further requests of the same caller for the same image.
pub const TRUST: Duration = Duration::from_secs(1);
/// How long a change of an infra-env has to be past until there can be no other one of the same time. A transaction of
/// the service may take some seconds from the time that it writes to its end, and clocks of its replicas differ.
pub const QUIET: Duration = Duration::from_secs(10);

/// Which service is asked, and how.
#[derive(Clone, Debug)]
pub struct ExternalSettings {
    /// Where it is, without the path of its API.
    pub url: HttpUrl,
    /// A file with certificates, in PEM, that it may have beside those that this system trusts.
    pub ca_file: Option<PathBuf>,
    /// How long a yes holds: [`TRUST`].
    pub trust: Duration,
    /// How long a change has to be past: [`QUIET`].
    pub quiet: Duration,
    /// How long an answer may take. A config for a thousand machines takes the service some seconds.
    pub patience: Duration,
}

impl ExternalSettings {
    /// The usual settings, for a service.
    #[must_use]
    pub fn new(url: HttpUrl) -> Self {
        Self { url, ca_file: None, trust: TRUST, quiet: QUIET, patience: Duration::from_secs(60) }
    }
}

//! How a library works.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// When images are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// All of them, as soon as the library is open.
    #[default]
    AtStart,
    /// Each when it is first asked for.
    OnFirstUse,
}

/// What happens to files in the directory that look like those of a library and belong to no image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// They stay.
    #[default]
    Keep,
    /// They are deleted when the library is opened. Files with names that no library gives stay even then.
    Prune,
}

/// Whose certificates servers may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those of the authorities that this system trusts.
    #[default]
    System,
    /// Those, and of the authorities in a PEM file.
    SystemAnd(PathBuf),
    /// Anybody's: who is on the way may give other images. Only a SHA-256 in the catalogue helps then.
    DangerouslyAnybody,
}

/// How often and when a download is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a download goes on at once after something that may pass: a broken connection, a 5xx. Each time that
    /// bytes have come, the count starts again.
    pub at_once: u32,
    /// How long the first pause is; each one after it is twice as long.
    pub first_pause: Duration,
    /// How long a pause may become.
    pub longest_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { at_once: 3, first_pause: Duration::from_secs(1), longest_pause: Duration::from_secs(300) }
    }
}

impl RetryPolicy {
    /// The pause after a number of failures in a row.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_pause.saturating_mul(factor).min(self.longest_pause)
    }
}

/// What a library needs to know.
#[derive(Clone)]
pub struct LibrarySettings {
    /// Where images are kept.
    pub directory: PathBuf,
    /// When they are fetched.
    pub when: When,
    /// How many are fetched at a time.
    pub parallel_downloads: usize,
    /// Headers of requests for images. They go to the server that the catalogue names, not to where it redirects.
    pub request_headers: BTreeMap<String, String>,
    /// Parameters that are added to the URLs of the catalogue.
    pub request_query: BTreeMap<String, String>,
    /// Whose certificates servers may have.
    pub trust: Trust,
    /// What happens to files of no image.
    pub unknown: Unknown,
    /// When failed downloads are tried again.
    pub retry: RetryPolicy,
    /// A server that sends nothing for so long is taken to be gone.
    pub stall: Duration,
    /// How often a file that is in use is looked at: it may have been replaced.
    pub recheck: Duration,
}

impl LibrarySettings {
    /// The usual settings, with a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            when: When::default(),
            parallel_downloads: 3,
            request_headers: BTreeMap::new(),
            request_query: BTreeMap::new(),
            trust: Trust::default(),
            unknown: Unknown::default(),
            retry: RetryPolicy::default(),
            stall: Duration::from_secs(60),
            recheck: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for LibrarySettings {
    /// Without the values of headers and parameters, which are often credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LibrarySettings")
            .field("directory", &self.directory)
            .field("when", &self.when)
            .field("parallel_downloads", &self.parallel_downloads)
            .field("request_headers", &self.request_headers.keys())
            .field("request_query", &self.request_query.keys())
            .field("trust", &self.trust)
            .field("unknown", &self.unknown)
            .field("retry", &self.retry)
            .field("stall", &self.stall)
            .field("recheck", &self.recheck)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let policy = RetryPolicy {
            at_once: 1,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(5),
        };
        let pauses: Vec<_> = [0, 1, 2, 3, 4, 40].map(|failures| policy.pause(failures).as_secs()).into();
        assert_eq!(pauses, [1, 1, 2, 4, 5, 5]);
    }

    #[test]
    fn credentials_are_not_shown() {
        let mut settings = LibrarySettings::new("/var/lib/images");
        settings.request_headers.insert("Authorization".to_owned(), "Bearer s3cret".to_owned());
        settings.request_query.insert("token".to_owned(), "s3cret".to_owned());
        let shown = format!("{settings:?}");
        assert!(shown.contains("Authorization") && !shown.contains("s3cret"), "{shown}");
    }
}

//! The settings of an image library.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::added_servers::AddedImageServers;

/// The time at which images are downloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DownloadTiming {
    /// All images, when the library is opened.
    #[default]
    AtStart,
    /// Each image on its first use.
    OnFirstUse,
}

/// The treatment of unknown files: files in the directory with names that a library uses, but that do not belong to an
/// image of the catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFiles {
    /// Keep all unknown files.
    #[default]
    Keep,
    /// Delete unknown files when the library is opened. Files with other names are always kept.
    Prune,
}

/// The server certificates that downloads trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerTrust {
    /// Certificates from authorities that this system trusts.
    #[default]
    System,
    /// Certificates from authorities that this system trusts or that are in a PEM file.
    SystemAnd(PathBuf),
    /// All certificates. An attacker on the network can then replace images, unless the catalogue contains their
    /// SHA-256 digests.
    DangerouslyAnybody,
}

/// The number of retries of failed downloads, and the pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Number of retries after temporary failures, such as a broken connection or a 5xx response, before the state of
    /// the image becomes [`Failed`](super::BaseImageState::Failed). The count starts again after an attempt that
    /// received bytes, unless they arrived too slowly.
    pub at_once: u32,
    /// The pause after the first failure. Each further pause is twice as long.
    pub first_pause: Duration,
    /// Maximum length of a pause. The pause is 288 times as long if the server provides an image that does not match
    /// the entry, because another download would fail too.
    pub longest_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { at_once: 3, first_pause: Duration::from_secs(1), longest_pause: Duration::from_secs(300) }
    }
}

impl RetryPolicy {
    /// Returns the pause after a number of consecutive failures.
    pub(super) fn pause(&self, failures: u32) -> Duration {
        // After 32 doublings, every pause has reached the maximum.
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_pause.saturating_mul(factor).min(self.longest_pause)
    }
}

/// The settings of a library.
#[derive(Clone)]
pub struct LibrarySettings {
    /// The directory of the images and records. Created if it does not exist.
    pub directory: PathBuf,
    /// The time at which images are downloaded.
    pub when: DownloadTiming,
    /// Maximum number of concurrent downloads of images of the catalogue.
    pub parallel_downloads: usize,
    /// Headers of download requests. They are sent only to the origin of the URL in the catalogue, and not to other
    /// origins after a redirect.
    pub request_headers: BTreeMap<String, String>,
    /// Query parameters to add to the URLs of the catalogue.
    pub request_query: BTreeMap<String, String>,
    /// The server certificates that downloads trust.
    pub trust: ServerTrust,
    /// The servers that may provide [added](super::Library::set_added) images. The headers, parameters and buckets in
    /// these settings are for the images of the catalogue only.
    pub added_from: AddedImageServers,
    /// The treatment of files that do not belong to an image.
    pub unknown: UnknownFiles,
    /// The retries of failed downloads.
    pub retry: RetryPolicy,
    /// The time without received bytes after which a request fails. The head of the final response must also arrive in
    /// this time, including all redirects and informational responses.
    pub stall: Duration,
    /// Minimum number of bytes per second that a server must send, on average over each period of
    /// [`stall`](Self::stall). Time spent waiting for the disk does not count. A slower request fails, and the download
    /// resumes with another request.
    pub min_rate: u64,
    /// Maximum time for which the download of an added image occupies one of two download slots. A slower download
    /// continues without a slot, concurrently with the next downloads.
    pub added_turn: Duration,
    /// The interval at which to check if a file in use was replaced.
    pub recheck: Duration,
}

impl LibrarySettings {
    /// Creates the default settings for a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            when: DownloadTiming::default(),
            parallel_downloads: 3,
            request_headers: BTreeMap::new(),
            request_query: BTreeMap::new(),
            trust: ServerTrust::default(),
            added_from: AddedImageServers::default(),
            unknown: UnknownFiles::default(),
            retry: RetryPolicy::default(),
            stall: Duration::from_secs(60),
            min_rate: 8 << 10,
            added_turn: Duration::from_secs(60),
            recheck: Duration::from_secs(10),
        }
    }

    /// Returns the minimum number of bytes that a server must send in each period of `stall`.
    pub(super) fn least_received(&self) -> u64 {
        u64::try_from(self.stall.as_millis()).unwrap_or(u64::MAX).saturating_mul(self.min_rate) / 1000
    }
}

impl fmt::Debug for LibrarySettings {
    /// Omits the values of headers and parameters, which often contain credentials.
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
            .field("min_rate", &self.min_rate)
            .field("added_turn", &self.added_turn)
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
    fn debug_hides_credentials() {
        let mut settings = LibrarySettings::new("/var/lib/images");
        settings.request_headers.insert("Authorization".to_owned(), "Bearer s3cret".to_owned());
        settings.request_query.insert("token".to_owned(), "s3cret".to_owned());
        let debug_text = format!("{settings:?}");
        assert!(debug_text.contains("Authorization") && !debug_text.contains("s3cret"), "{debug_text}");
    }
}

//! Checks whether machines can boot from the URL of an image: which kinds of clients refuse it, and why.
//!
//! [`examine`] requests the image as firmware, boot loaders and download programs do. It returns a
//! [`DoctorReport`]: the result of each check ([`DoctorFinding`]), and the verdict of each kind of client
//! ([`ClientReport`]). The server is not trusted: each response is read up to a limit, each request has a timeout, and
//! after several timeouts no more requests are sent. Requests are written byte by byte and ignore the proxies of the
//! environment, because booting machines do not use them.
//!
//! This module prints nothing, and reports contain no secrets of a URL.

mod certificate;
mod clients;
mod fault;
mod probes;
mod report;
mod session;
mod target;
mod wire;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub use report::{
    ArchiveCompression, CheckOutcome, ClientKind, ClientReport, ClientVerdict, ContentKind, DoctorCheck,
    DoctorFinding, DoctorReport, RequirementLevel, VerdictReason,
};

use session::DoctorSession;
use target::TargetUrl;

/// Default timeout of a request.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Headers that frame a message or that the probes set.
const RESERVED: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "if-none-match",
    "if-range",
    "range",
    "transfer-encoding",
    "upgrade",
];

/// Settings of an examination.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DoctorOptions {
    /// PEM file of the authorities that clients trust, instead of those of this system.
    pub ca_file: Option<PathBuf>,
    /// Timeout of each request.
    pub timeout: Duration,
    /// Whether requests, with the secrets in them, are sent to a server whose certificate is not trusted.
    pub dangerously_any_certificate: bool,
    headers: HeaderMap,
}

impl Default for DoctorOptions {
    fn default() -> Self {
        Self {
            ca_file: None,
            timeout: TIMEOUT,
            dangerously_any_certificate: false,
            headers: HeaderMap::new(),
        }
    }
}

impl DoctorOptions {
    /// Adds a header to all requests to the server of the URL, such as `Authorization`. After a redirect to another
    /// server, requests do not have it.
    ///
    /// # Errors
    ///
    /// Returns an error if the header is malformed or one that the probes set.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, DoctorError> {
        let refused = || DoctorError::Header { name: report::quote_for_report(name) };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        if RESERVED.contains(&key.as_str()) {
            return Err(refused());
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
        if value.to_str().is_err() {
            return Err(refused());
        }
        value.set_sensitive(true);
        self.headers.append(key, value);
        Ok(self)
    }
}

/// Why a URL cannot be examined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// The text is not a valid URL.
    #[error("not a valid image URL: {reason}")]
    Url {
        /// Why it is invalid.
        reason: String,
    },
    /// The scheme of the URL is neither `http` nor `https`.
    #[error("not a valid image URL: scheme is {scheme:?}, expected http or https")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The URL is too long.
    #[error("URL too long: {len} bytes (limit {most})")]
    TooLong {
        /// Its length.
        len: usize,
        /// The largest accepted length.
        most: usize,
    },
    /// The header is malformed or one that the probes set.
    #[error("cannot send header {name:?}: it is malformed, or set by the checks themselves")]
    Header {
        /// Its name.
        name: String,
    },
    /// The file of authorities cannot be read or has no certificates.
    #[error("{} contains no usable certificates", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {reason}")]
    Tls {
        /// Why TLS is unavailable.
        reason: String,
    },
}

/// Examines the URL of an image.
///
/// # Errors
///
/// Returns an error if the URL is invalid or the authorities cannot be loaded. Problems of the server are in the
/// report.
pub async fn examine(url: &str, options: &DoctorOptions) -> Result<DoctorReport, DoctorError> {
    let target = TargetUrl::parse(url)?;
    let session = DoctorSession::new(&target, options)?;
    let mut report = probes::run(&session, &target).await;
    report.clients = clients::client_reports(&report);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_headers() {
        let options = DoctorOptions::default().with_header("Authorization", "Bearer secret").unwrap();
        assert!(!format!("{options:?}").contains("secret"));
        for (name, value) in [("Range", "bytes=0-1"), ("A b", "c"), ("A", "b\r\nC: d"), ("A", "\u{e9}")] {
            assert!(DoctorOptions::default().with_header(name, value).is_err(), "{name}: {value}");
        }
    }
}

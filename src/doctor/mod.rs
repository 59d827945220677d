//! Checks whether machines can boot from an image URL. Reports which kinds of clients refuse the URL, and why.
//!
//! [`examine`] requests the image in the same way as firmware, boot loaders and download programs. It returns a
//! [`DoctorReport`] with the result of each check ([`DoctorFinding`]) and a verdict for each kind of client
//! ([`ClientReport`]). The server is not trusted: the size of each response and the time for each request are limited,
//! and several timeouts end the examination. Requests are written byte by byte. They do not use the proxies of the
//! environment, because booting machines do not use them either.
//!
//! This module prints nothing, and the report contains no secrets from the URL.

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

/// The default timeout of a request.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Headers that delimit the message or that the probes set.
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

/// Settings for [`examine`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DoctorOptions {
    /// A PEM file with the CA certificates that clients trust. Defaults to the certificates of this system.
    pub ca_file: Option<PathBuf>,
    /// Maximum time for each request.
    pub timeout: Duration,
    /// Whether to send requests, including the secrets in them, to a server with an untrusted certificate.
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
    /// Adds a header, such as `Authorization`, to all requests to the server of the URL. The header is not sent to
    /// another server after a redirect.
    ///
    /// # Errors
    ///
    /// Returns an error if the header is malformed, or if the probes set it.
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
    /// The text is not a valid image URL.
    #[error("not a valid image URL: {reason}")]
    Url {
        /// Why the URL is invalid.
        reason: String,
    },
    /// The scheme of the URL is neither `http` nor `https`.
    #[error("not a valid image URL: scheme is {scheme:?}, expected http or https")]
    Scheme {
        /// The scheme in the URL.
        scheme: String,
    },
    /// The URL is too long.
    #[error("URL too long: {len} bytes (limit {most})")]
    TooLong {
        /// The length of the URL in bytes.
        len: usize,
        /// Maximum length of a URL in bytes.
        most: usize,
    },
    /// The header is malformed, or the probes set it.
    #[error("cannot send header {name:?}: it is malformed, or set by the checks themselves")]
    Header {
        /// The name of the header, shortened and without control characters.
        name: String,
    },
    /// The file with CA certificates cannot be read, or it contains none.
    #[error("{} contains no usable certificates", path.display())]
    Authorities {
        /// The path from [`DoctorOptions::ca_file`].
        path: PathBuf,
        /// Why the file cannot be used.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {reason}")]
    Tls {
        /// Why TLS is unavailable.
        reason: String,
    },
}

/// Examines an image URL.
///
/// # Errors
///
/// Returns an error if the URL is invalid, or if the CA certificates cannot be loaded. The report contains problems of
/// the server.
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

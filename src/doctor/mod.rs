//! Whether a URL of an image is one that machines can boot from: what kinds of clients refuse it, and why.
//!
//! [`examine`] asks the server for the image in all the ways in which firmware, boot loaders and download programs do, and
//! gives a [`Report`]: what was tried ([`Finding`]), and what that means for each kind of client ([`ClientReport`]). The
//! server may be any, and is not trusted: each answer is read up to a limit, each request has its time, and a server that is
//! too slow too often is left alone. Requests are written byte by byte, without the proxies of the environment, since
//! machines do not know them either.
//!
//! Nothing is printed here, and nothing that is secret in a URL is in a report.

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
    Check, Client, ClientReport, Content, Finding, Outcome, Packing, Reason, Report, Verdict, Weight,
};

use session::Session;
use target::Target;

/// How long a request may take, unless somebody says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Headers that decide where a message ends, or what a probe asks for.
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

/// How a URL is examined.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// A PEM file of the authorities that clients trust, in the place of those that this system does.
    pub ca_file: Option<PathBuf>,
    /// How long each request may take.
    pub timeout: Duration,
    /// Whether requests, and the secrets in them, are sent to a server whose certificate is not trusted.
    pub dangerously_any_certificate: bool,
    headers: HeaderMap,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ca_file: None,
            timeout: TIMEOUT,
            dangerously_any_certificate: false,
            headers: HeaderMap::new(),
        }
    }
}

impl Options {
    /// Adds a header to all requests for the server of the URL, such as `Authorization`. Where the URL is redirected to
    /// another server, that one does not get it.
    ///
    /// # Errors
    ///
    /// A header that is malformed, or that the probes need for themselves.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, DoctorError> {
        let refused = || DoctorError::Header { name: report::quoted(name) };
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

/// Why a URL cannot be examined at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// It is no URL.
    #[error("this is no URL of an image: {reason}")]
    Url {
        /// What is wrong.
        reason: String,
    },
    /// It is the URL of something else.
    #[error("this is no URL of an image: its scheme is {scheme:?}, and images are at http: and https:")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// It is too long.
    #[error("the URL has {len} bytes, and no more than {most} are taken")]
    TooLong {
        /// Its length.
        len: usize,
        /// The longest that is taken.
        most: usize,
    },
    /// A header cannot be sent.
    #[error("the header {name:?} cannot be sent: it is malformed, or one that requests have of their own")]
    Header {
        /// Its name.
        name: String,
    },
    /// The file of authorities cannot be used.
    #[error("{} has no certificates that can be used", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// TLS cannot be had.
    #[error("TLS cannot be set up: {reason}")]
    Tls {
        /// What is wrong.
        reason: String,
    },
}

/// Examines the URL of an image.
///
/// # Errors
///
/// What is no URL, or options that cannot be followed. Whatever is wrong with the server is in the report.
pub async fn examine(url: &str, options: &Options) -> Result<Report, DoctorError> {
    let target = Target::parse(url)?;
    let session = Session::new(&target, options)?;
    let mut report = probes::run(&session, &target).await;
    report.clients = clients::judge(&report);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_not_shown() {
        let options = Options::default().header("Authorization", "Bearer secret").unwrap();
        assert!(!format!("{options:?}").contains("secret"));
        for (name, value) in [("Range", "bytes=0-1"), ("A b", "c"), ("A", "b\r\nC: d"), ("A", "\u{e9}")] {
            assert!(Options::default().header(name, value).is_err(), "{name}: {value}");
        }
    }
}

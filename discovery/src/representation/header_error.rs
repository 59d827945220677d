//! The error for an invalid header value.

use http::HeaderValue;
use http::header::HeaderName;

/// A text that is not a valid value of the header (RFC 9110, 5.5).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {header}: {value:?}")]
pub struct HeaderError {
    header: HeaderName,
    value: String,
}

impl HeaderError {
    pub(super) fn new(header: HeaderName, value: &str) -> Self {
        Self { header, value: value.to_owned() }
    }

    /// Parses the value of a header.
    pub(super) fn parse(header: HeaderName, value: &str) -> Result<HeaderValue, Self> {
        HeaderValue::from_str(value).map_err(|_| Self::new(header, value))
    }
}

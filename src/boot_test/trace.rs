//! Reads a server's boot trace: which parts of an image its clients have read.

use std::time::Duration;

use reqwest::{Client, Response};
use serde::{Deserialize, Serialize};

/// The timeout of the request. A short timeout is sufficient, because the server has the trace in memory after a boot.
const PATIENCE: Duration = Duration::from_secs(10);
/// The address of the QEMU host in the machine's network. iPXE URLs contain it.
const HOST_IN_MACHINE: &str = "10.0.2.2";

/// The error if a boot trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the boot trace from the server")]
pub struct TraceError(#[from] reqwest::Error);

/// The parts of a file that one client has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientReading {
    /// The IP address of the client.
    pub client: String,
    /// The name of the file in URLs.
    pub file: String,
    /// Length of the file in bytes.
    pub size: u64,
    /// Percentage of the file sent at least once.
    pub percent: u8,
    /// Number of bytes sent, including repeated ones.
    pub bytes_sent: u64,
    /// Number of responses with bytes of the file.
    pub answers: u64,
    /// The ranges sent at least once, in blocks of 64 KiB. The server lists only the first of many.
    #[serde(default)]
    pub ranges: Vec<ReadingRange>,
}

/// A range of bytes that the server has sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadingRange {
    /// Offset of the first byte.
    pub first: u64,
    /// Offset of the last byte, inclusive.
    pub last: u64,
    /// The files of the base image that overlap the range.
    pub files: Vec<String>,
}

#[derive(Deserialize)]
struct TraceAnswer {
    readers: Vec<ClientReading>,
}

/// Returns the URL of an image's boot trace. Returns `None` if `image` is not a Kindling image URL.
///
/// # Examples
///
/// ```
/// use kindling::boot_test::trace_url;
///
/// let url = trace_url("http://192.0.2.1:8090/i/0f2a5d3c/full.iso?api_key=a");
/// assert_eq!(url.as_deref(), Some("http://192.0.2.1:8090/i/0f2a5d3c/boot-trace?ranges=true&api_key=a"));
/// assert_eq!(trace_url("http://192.0.2.1/full.iso"), None);
/// ```
#[must_use]
pub fn trace_url(image: &str) -> Option<String> {
    let (scheme, rest) = image.split_once("://")?;
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let (host, path) = place.split_once("/i/")?;
    let (who, _) = path.split_once('/')?;
    let host = match host.strip_prefix(HOST_IN_MACHINE) {
        Some(port) if port.is_empty() || port.starts_with(':') => format!("127.0.0.1{port}"),
        _ => host.to_owned(),
    };
    let query = query.map(|query| format!("&{query}")).unwrap_or_default();
    Some(format!("{scheme}://{host}/i/{who}/boot-trace?ranges=true{query}"))
}

/// Requests the boot trace of an image from its server. Returns an empty list if `image` is not a Kindling image URL.
///
/// # Errors
///
/// Returns an error if the server does not respond, or if the response is an error or unexpected JSON.
pub async fn fetch_readings(image: &str) -> Result<Vec<ClientReading>, TraceError> {
    let Some(url) = trace_url(image) else { return Ok(Vec::new()) };
    let client = Client::builder().timeout(PATIENCE).build()?;
    // Remove the URL from errors, because it may contain a token.
    let response = client.get(url).send().await.and_then(Response::error_for_status);
    let response: TraceAnswer =
        response.map_err(reqwest::Error::without_url)?.json().await.map_err(reqwest::Error::without_url)?;
    Ok(response.readers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_qemu_host_becomes_loopback() {
        let here = "http://127.0.0.1:8090/i/ID/boot-trace?ranges=true";
        assert_eq!(trace_url("http://10.0.2.2:8090/i/ID/script.ipxe").as_deref(), Some(here));
        let elsewhere = "http://10.0.2.22/i/ID/boot-trace?ranges=true";
        assert_eq!(trace_url("http://10.0.2.22/i/ID/52:54:00:00:00:01/full.iso").as_deref(), Some(elsewhere));
        assert_eq!(trace_url("full.iso"), None);
    }
}

//! The server's side of a boot: what it says its clients have read.

use std::time::Duration;

use reqwest::{Client, Response};
use serde::Deserialize;

/// A server that has just sent an image has this at hand.
const PATIENCE: Duration = Duration::from_secs(10);
/// The address that this machine has from the one in QEMU, which URLs for iPXE have.
const HOST_IN_MACHINE: &str = "10.0.2.2";

/// Why a server's trace could not be had.
#[derive(Debug, thiserror::Error)]
#[error("the server does not tell what was read")]
pub struct TraceError(#[from] reqwest::Error);

/// What a client has read of a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Reading {
    /// Its address.
    pub client: String,
    /// The file, as it stands in URLs.
    pub file: String,
    /// How long the file is.
    pub size: u64,
    /// The share that was sent at least once.
    pub percent: u8,
    /// All bytes that were sent.
    pub bytes_sent: u64,
    /// In how many answers.
    pub answers: u64,
    /// What was sent at least once, in blocks of 64 KiB. Of very many ranges, the server tells the first.
    #[serde(default)]
    pub ranges: Vec<ReadRange>,
}

/// A range of a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ReadRange {
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
    /// The files of the live image of which there is something in it.
    pub files: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    readers: Vec<Reading>,
}

/// Where the server of an image tells which ranges were read of it, if the URL is one of ours.
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

/// What the clients of an image have read, as its server tells; nothing where the image is of no server of ours.
///
/// # Errors
///
/// When the server does not answer, or with something else.
pub async fn readings(image: &str) -> Result<Vec<Reading>, TraceError> {
    let Some(url) = trace_url(image) else { return Ok(Vec::new()) };
    let client = Client::builder().timeout(PATIENCE).build()?;
    // Tokens in URLs are no part of errors.
    let answer = client.get(url).send().await.and_then(Response::error_for_status);
    let answer: Answer =
        answer.map_err(reqwest::Error::without_url)?.json().await.map_err(reqwest::Error::without_url)?;
    Ok(answer.readers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_name_of_this_host_is_not_ours() {
        let here = "http://127.0.0.1:8090/i/ID/boot-trace?ranges=true";
        assert_eq!(trace_url("http://10.0.2.2:8090/i/ID/script.ipxe").as_deref(), Some(here));
        let elsewhere = "http://10.0.2.22/i/ID/boot-trace?ranges=true";
        assert_eq!(trace_url("http://10.0.2.22/i/ID/52:54:00:00:00:01/full.iso").as_deref(), Some(elsewhere));
        assert_eq!(trace_url("full.iso"), None);
    }
}

//! Sends the requests that every axis measures.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::server::Server;
use crate::client::{Connection, Sink, write_get};
use crate::exchange::ExpectedResponse;
use crate::figures::{Better, Measure, float, percentile};
use crate::infra_env::{self, NewInfraEnv};
use crate::measure::{MIB, lower, milliseconds};

/// The response to a request for the first byte of an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstByte {
    pub(crate) took: Duration,
    /// Length of the whole image.
    pub(crate) total: u64,
}

/// Requests the first byte of a file over an open connection.
///
/// # Errors
///
/// Returns an error if the request fails.
pub(crate) fn first_byte(connection: &mut Connection, server: &Server, path: &str) -> Result<FirstByte> {
    let mut request = Vec::new();
    write_get(&mut request, &server.target().at(path), Some((0, 0)));
    let start = Instant::now();
    let answer = connection
        .ask(&request, ExpectedResponse::Status(206), &mut Sink::Discard)
        .with_context(|| path.to_owned())?;
    let took = start.elapsed();
    let range = answer.head().and_then(|head| head.content_range);
    let range = range.with_context(|| format!("{path}: no Content-Range"))?;
    ensure!(
        (range.first, range.last, answer.len()) == (0, 0, 1),
        "{path}: expected the first byte, got {range:?}"
    );
    Ok(FirstByte { took, total: range.total })
}

/// Creates an infra-env without hosts and returns its id.
///
/// # Errors
///
/// Returns an error if the server refuses.
pub(crate) fn make(
    connection: &mut Connection,
    server: &Server,
    (name, version): (&str, &str),
) -> Result<String> {
    infra_env::post(connection, server.target(), &NewInfraEnv { name, version, networks: &[] }.body())
}

pub(crate) fn file(id: &str, name: &str) -> String {
    format!("/i/{id}/{name}")
}

/// Returns the median of `times` in milliseconds.
///
/// # Errors
///
/// Returns an error if `times` is empty.
pub(crate) fn median(times: &[Duration]) -> Result<f64> {
    let mut times: Vec<f64> = times.iter().copied().map(milliseconds).collect();
    percentile(&mut times, 50).context("nothing was measured")
}

pub(crate) fn took(name: &'static str, time: Duration) -> Measure {
    lower(name, "ms", milliseconds(time))
}

pub(crate) fn mib(name: &'static str, bytes: u64) -> Measure {
    lower(name, "MiB", float(bytes) / MIB)
}

pub(crate) fn higher(name: &'static str, unit: &'static str, value: f64) -> Measure {
    Measure { name, unit, better: Better::Higher, value }
}

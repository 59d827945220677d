//! Checks of connection handling and of older HTTP features.

use futures_util::future;

use super::super::report::DoctorCheck;
use super::super::wire::WireRequest;
use super::{CheckFailure, CheckResult, PREFIX, ProbedImage, check_range, range_request};

/// The number of requests on one connection.
const REQUESTS: usize = 4;
/// The number of bytes to read per request.
const LEN: u64 = 2048;

pub(super) async fn probe_connections(subject: &ProbedImage<'_>) -> Vec<(DoctorCheck, CheckResult)> {
    vec![
        (DoctorCheck::KeepAlive, check_keep_alive(subject).await),
        (DoctorCheck::Concurrent, check_concurrent_connections(subject).await),
        (DoctorCheck::Http10, check_http10(subject).await),
        (DoctorCheck::Expect, check_expect_continue(subject).await),
        (DoctorCheck::SameBytes, check_same_bytes(subject).await),
    ]
}

/// Sends several requests on one connection. The first request is a HEAD, because an unexpected body of its response
/// would break the next response. The other requests read ranges, if the server supports ranges.
async fn check_keep_alive(subject: &ProbedImage<'_>) -> CheckResult {
    let mut requests = vec![WireRequest::new("HEAD", 0)];
    let len = LEN.min(subject.size.unwrap_or_default());
    let has_ranges = len > 0 && subject.read_range(0, len).await.is_ok();
    for _ in 1..REQUESTS {
        requests.push(if has_ranges { range_request(0, len) } else { WireRequest::new("HEAD", 0) });
    }
    let (responses, fault) = subject.session.exchange_all(&subject.target, &requests).await?;
    for (request, response) in requests.iter().zip(&responses) {
        match request.method {
            "HEAD" if response.status == 200 => {}
            "HEAD" => return Err(CheckFailure::Fails(format!("status is {}", response.status))),
            _ => check_range(response, 0, len, subject.size)?,
        }
    }
    match fault {
        Some(fault) => Err(CheckFailure::Fails(format!("after {} requests: {fault}", responses.len()))),
        None => Ok(format!("{REQUESTS} requests on one connection")),
    }
}

async fn check_concurrent_connections(subject: &ProbedImage<'_>) -> CheckResult {
    let size = subject.required_size()?;
    let len = LEN.min(size);
    let second = (size - len).min(65_536);
    // Without ranges, read the beginning twice. Another check reports the missing support for ranges.
    if subject.read_range(second, len).await.is_err() {
        let request = WireRequest::new("GET", usize::try_from(len).unwrap_or(PREFIX));
        let (one, other) = future::join(subject.send(&request), subject.send(&request)).await;
        return match one?.body == other?.body {
            true => Ok("two concurrent reads of the beginning".to_owned()),
            false => Err(CheckFailure::from("concurrent responses differ")),
        };
    }
    let (one, other) = future::join(subject.read_range(0, len), subject.read_range(second, len)).await;
    for (first, bytes) in [(0, one?), (second, other?)] {
        if subject.known_bytes(first, len).is_some_and(|expected| expected != bytes) {
            return Err(CheckFailure::Fails(format!("the bytes from {first} differ")));
        }
    }
    Ok("two concurrent ranges".to_owned())
}

async fn check_http10(subject: &ProbedImage<'_>) -> CheckResult {
    let request = WireRequest { version: "HTTP/1.0", ..WireRequest::new("GET", 1024) };
    let response = subject.send(&request).await?;
    match response.status {
        _ if response.is_chunked() => {
            Err(CheckFailure::from("the response is chunked, which HTTP/1.0 does not support"))
        }
        200 => Ok("200".to_owned()),
        status => Err(CheckFailure::Fails(format!("status is {status}"))),
    }
}

async fn check_expect_continue(subject: &ProbedImage<'_>) -> CheckResult {
    let response = subject.send(&WireRequest::new("GET", 1).with_header("Expect", "100-continue")).await?;
    match response.status {
        200 => Ok("200".to_owned()),
        status => Err(CheckFailure::Fails(format!("status is {status}"))),
    }
}

/// Reads the start of the image again, and compares it with the first response.
async fn check_same_bytes(subject: &ProbedImage<'_>) -> CheckResult {
    let response = subject.send(&WireRequest::new("GET", PREFIX)).await?;
    let (once, again) = (&subject.whole, &response);
    if again.status != once.status {
        return Err(CheckFailure::Fails(format!("{} first, then {}", once.status, again.status)));
    }
    if again.body != once.body {
        let at = once.body.iter().zip(&again.body).position(|(one, other)| one != other);
        let at = at.unwrap_or_else(|| once.body.len().min(again.body.len()));
        return Err(CheckFailure::Fails(format!("responses differ from byte {at} on")));
    }
    if again.content_length() != once.content_length() {
        return Err(CheckFailure::from("Content-Length changes between requests"));
    }
    if again.header("etag") != once.header("etag") {
        return Err(CheckFailure::from("ETag changes between requests"));
    }
    Ok(format!("the first {} bytes", once.body.len()))
}

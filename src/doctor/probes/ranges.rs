//! Checks of range requests (RFC 9110, section 14).

use super::super::report::{DoctorCheck, quote_for_report};
use super::super::wire::WireRequest;
use super::{CheckFailure, CheckResult, PREFIX, ProbedImage, check_body, check_range};

/// Lengths of ranges that detect servers which count in 16 bits or in sectors of 512 bytes.
const EDGES: [u64; 4] = [65_024, 65_535, 65_536, 131_072];
/// Offsets of ranges with these lengths.
const STARTS: [u64; 2] = [0, 4097];
/// Length of ranges at the end of the image.
const TAIL: u64 = 1000;

pub(super) async fn probe_ranges(subject: &ProbedImage<'_>) -> Vec<(DoctorCheck, CheckResult)> {
    vec![
        (DoctorCheck::AcceptRanges, check_accept_ranges(subject)),
        (DoctorCheck::Range, check_single_ranges(subject).await),
        (DoctorCheck::RangeOpen, check_last_bytes(subject, true).await),
        (DoctorCheck::RangeSuffix, check_last_bytes(subject, false).await),
        (DoctorCheck::RangeMany, check_multiple_ranges(subject).await),
        (DoctorCheck::Range64k, check_range_edges(subject).await),
        (DoctorCheck::RangeBehindEnd, check_range_past_end(subject).await),
    ]
}

fn check_accept_ranges(subject: &ProbedImage<'_>) -> CheckResult {
    match subject.whole.header("accept-ranges") {
        Some(value) if value.eq_ignore_ascii_case("bytes") => Ok("bytes".to_owned()),
        Some(value) => Err(CheckFailure::Fails(quote_for_report(value))),
        None => Err(CheckFailure::from("no Accept-Ranges")),
    }
}

async fn check_single_ranges(subject: &ProbedImage<'_>) -> CheckResult {
    let size = subject.required_size()?;
    let first = (size / 3).min(70_001);
    let len = 512.min(size - first);
    compare_range(subject, first, len).await?;
    Ok(format!("206 for {first}-{}", first + len - 1))
}

/// Reads a range, and compares it with the same bytes of the GET without a range.
async fn compare_range(subject: &ProbedImage<'_>, first: u64, len: u64) -> Result<(), CheckFailure> {
    let bytes = subject.read_range(first, len).await?;
    match subject.known_bytes(first, len) {
        Some(expected) if expected != bytes => Err(CheckFailure::Fails(format!(
            "the {len} bytes from {first} differ from the same bytes of a GET without a range"
        ))),
        _ => Ok(()),
    }
}

async fn check_last_bytes(subject: &ProbedImage<'_>, is_open: bool) -> CheckResult {
    let size = subject.required_size()?;
    let len = TAIL.min(size);
    let first = size - len;
    let range = if is_open { format!("bytes={first}-") } else { format!("bytes=-{len}") };
    let limit = usize::try_from(len).unwrap_or(PREFIX) + 1;
    let response = subject.send(&WireRequest::new("GET", limit).with_header("Range", range.clone())).await?;
    check_range(&response, first, len, subject.size)?;
    match subject.read_range(first, len).await {
        Ok(bytes) if bytes != response.body => {
            Err(CheckFailure::from("the bytes differ from the same range with explicit first and last byte"))
        }
        _ => Ok(format!("206 for {range}")),
    }
}

async fn check_multiple_ranges(subject: &ProbedImage<'_>) -> CheckResult {
    let size = subject.required_size()?;
    if size < 10 {
        return Err(CheckFailure::Untried(format!("the file has only {size} bytes")));
    }
    let second = size - 3;
    let range = format!("bytes=0-1,{second}-{}", size - 1);
    let response = subject.send(&WireRequest::new("GET", 4096).with_header("Range", range)).await?;
    if response.status != 206 {
        return Err(CheckFailure::Fails(format!("status is {}", response.status)));
    }
    let kind = response.header("content-type").unwrap_or_default();
    if !kind.to_ascii_lowercase().starts_with("multipart/byteranges") {
        return Err(CheckFailure::Fails(format!("media type is {:?}", quote_for_report(kind))));
    }
    // Check only the headers of the parts. Other checks compare the bytes of ranges.
    let body = String::from_utf8_lossy(&response.body).to_ascii_lowercase();
    for part in [format!("bytes 0-1/{size}"), format!("bytes {second}-{}/{size}", size - 1)] {
        if !body.contains(&format!("content-range: {part}")) {
            return Err(CheckFailure::Fails(format!("no part {part:?}")));
        }
    }
    Ok("both parts".to_owned())
}

async fn check_range_edges(subject: &ProbedImage<'_>) -> CheckResult {
    let size = subject.required_size()?;
    let mut count = 0;
    for first in STARTS {
        for len in EDGES.into_iter().filter(|len| first + len <= size) {
            compare_range(subject, first, len).await.map_err(|miss| match miss {
                CheckFailure::Fails(why) => CheckFailure::Fails(format!("{len} bytes from {first}: {why}")),
                untried @ CheckFailure::Untried(_) => untried,
            })?;
            count += 1;
        }
    }
    Ok(match count {
        0 => format!("the file has only {size} bytes"),
        count => format!("{count} ranges of {} to {} bytes", EDGES.first().unwrap_or(&0), size.min(131_072)),
    })
}

async fn check_range_past_end(subject: &ProbedImage<'_>) -> CheckResult {
    let size = subject.required_size()?;
    let request = WireRequest::new("GET", 4096).with_header("Range", format!("bytes={size}-"));
    let response = subject.send(&request).await?;
    if response.status != 416 {
        return Err(CheckFailure::Fails(format!("status is {} instead of 416", response.status)));
    }
    let (found, expected) = (response.header("content-range").unwrap_or_default(), format!("bytes */{size}"));
    if found != expected {
        return Err(CheckFailure::Fails(format!(
            "Content-Range is {:?}, not {expected:?}",
            quote_for_report(found)
        )));
    }
    if let Some(len) = response.content_length().filter(|len| *len < 4096) {
        check_body(&response, len)?;
    }
    Ok("416 with the length".to_owned())
}

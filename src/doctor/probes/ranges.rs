//! Ranges, by RFC 9110, section 14.

use super::super::report::{Check, quoted};
use super::super::wire::Request;
use super::{Miss, PREFIX, Subject, Tried, check_body, check_range};

/// The lengths of ranges that go wrong where something counts with 16 bits, or in sectors of 512 bytes.
const EDGES: [u64; 4] = [65_024, 65_535, 65_536, 131_072];
/// Where they begin.
const STARTS: [u64; 2] = [0, 4097];
/// The bytes that ranges at the end have.
const TAIL: u64 = 1000;

pub(super) async fn all(subject: &Subject<'_>) -> Vec<(Check, Tried)> {
    vec![
        (Check::AcceptRanges, accepted(subject)),
        (Check::Range, single(subject).await),
        (Check::RangeOpen, at_end(subject, true).await),
        (Check::RangeSuffix, at_end(subject, false).await),
        (Check::RangeMany, many(subject).await),
        (Check::Range64k, edges(subject).await),
        (Check::RangeBehindEnd, behind_end(subject).await),
    ]
}

fn accepted(subject: &Subject<'_>) -> Tried {
    match subject.whole.header("accept-ranges") {
        Some(value) if value.eq_ignore_ascii_case("bytes") => Ok("bytes".to_owned()),
        Some(value) => Err(Miss::Fails(quoted(value))),
        None => Err(Miss::from("the header is not there")),
    }
}

async fn single(subject: &Subject<'_>) -> Tried {
    let size = subject.required_size()?;
    let first = (size / 3).min(70_001);
    let len = 512.min(size - first);
    compare(subject, first, len).await?;
    Ok(format!("206 for {first}-{}", first + len - 1))
}

/// Reads a range, and compares it with the same bytes of a GET without one.
async fn compare(subject: &Subject<'_>, first: u64, len: u64) -> Result<(), Miss> {
    let bytes = subject.range(first, len).await?;
    match subject.known(first, len) {
        Some(known) if known != bytes => {
            Err(Miss::Fails(format!("the {len} bytes from {first} are not those of a GET without a range")))
        }
        _ => Ok(()),
    }
}

async fn at_end(subject: &Subject<'_>, is_open: bool) -> Tried {
    let size = subject.required_size()?;
    let len = TAIL.min(size);
    let first = size - len;
    let asked = if is_open { format!("bytes={first}-") } else { format!("bytes=-{len}") };
    let limit = usize::try_from(len).unwrap_or(PREFIX) + 1;
    let answer = subject.ask(&Request::new("GET", limit).with("Range", asked.clone())).await?;
    check_range(&answer, first, len, subject.size)?;
    match subject.range(first, len).await {
        Ok(bytes) if bytes != answer.body => {
            Err(Miss::from("the bytes are not those of a range with both ends"))
        }
        _ => Ok(format!("206 for {asked}")),
    }
}

async fn many(subject: &Subject<'_>) -> Tried {
    let size = subject.required_size()?;
    if size < 10 {
        return Err(Miss::Untried(format!("there are {size} bytes")));
    }
    let second = size - 3;
    let asked = format!("bytes=0-1,{second}-{}", size - 1);
    let answer = subject.ask(&Request::new("GET", 4096).with("Range", asked)).await?;
    if answer.status != 206 {
        return Err(Miss::Fails(format!("answered with {}", answer.status)));
    }
    let kind = answer.header("content-type").unwrap_or_default();
    if !kind.to_ascii_lowercase().starts_with("multipart/byteranges") {
        return Err(Miss::Fails(format!("the type is {:?}", quoted(kind))));
    }
    // What the bodies are is known from other ranges.
    let body = String::from_utf8_lossy(&answer.body).to_ascii_lowercase();
    for part in [format!("bytes 0-1/{size}"), format!("bytes {second}-{}/{size}", size - 1)] {
        if !body.contains(&format!("content-range: {part}")) {
            return Err(Miss::Fails(format!("there is no part {part:?}")));
        }
    }
    Ok("both parts".to_owned())
}

async fn edges(subject: &Subject<'_>) -> Tried {
    let size = subject.required_size()?;
    let mut count = 0;
    for first in STARTS {
        for len in EDGES.into_iter().filter(|len| first + len <= size) {
            compare(subject, first, len).await.map_err(|miss| match miss {
                Miss::Fails(why) => Miss::Fails(format!("{len} bytes from {first}: {why}")),
                untried @ Miss::Untried(_) => untried,
            })?;
            count += 1;
        }
    }
    Ok(match count {
        0 => format!("there are only {size} bytes"),
        count => format!("{count} ranges of {} to {} bytes", EDGES.first().unwrap_or(&0), size.min(131_072)),
    })
}

async fn behind_end(subject: &Subject<'_>) -> Tried {
    let size = subject.required_size()?;
    let request = Request::new("GET", 4096).with("Range", format!("bytes={size}-"));
    let answer = subject.ask(&request).await?;
    if answer.status != 416 {
        return Err(Miss::Fails(format!("answered with {} in the place of 416", answer.status)));
    }
    let (found, expected) = (answer.header("content-range").unwrap_or_default(), format!("bytes */{size}"));
    if found != expected {
        return Err(Miss::Fails(format!("Content-Range is {:?}, not {expected:?}", quoted(found))));
    }
    if let Some(len) = answer.content_length().filter(|len| *len < 4096) {
        check_body(&answer, len)?;
    }
    Ok("416 with the length".to_owned())
}

//! Checks of the image's length and of HEAD requests.

use std::time::Duration;

use super::super::report::{DoctorCheck, quote_for_report};
use super::super::wire::{BodyEnd, WireRequest, WireResponse};
use super::{CheckFailure, CheckResult, ProbedImage};

/// Maximum time until a response begins: the default timeout of QEMU.
const MAX_FIRST_BYTE_DELAY: Duration = Duration::from_secs(5);
/// Headers that must be the same for HEAD and GET.
const SAME: [&str; 6] =
    ["content-type", "content-encoding", "etag", "last-modified", "accept-ranges", "content-length"];

/// The size of the image and the results of the checks of HEAD.
pub(super) struct HeadProbe {
    pub(super) size: Option<u64>,
    pub(super) tried: Vec<(DoctorCheck, CheckResult)>,
}

/// Sends a HEAD request, and compares the response with the response to GET.
pub(super) async fn probe_head(subject: &ProbedImage<'_>) -> HeadProbe {
    let of_get = subject.whole.content_length().filter(|_| subject.whole.status == 200);
    let (response, has_body) = match subject.session.exchange_head(&subject.target).await {
        Ok(result) => result,
        Err(fault) => {
            let why = fault.to_string();
            let miss = || {
                if fault.is_unsent() {
                    CheckFailure::Untried(why.clone())
                } else {
                    CheckFailure::Fails(why.clone())
                }
            };
            let checks = [DoctorCheck::Head, DoctorCheck::HeadLength, DoctorCheck::HeadSame];
            let tried = checks.into_iter().map(|check| (check, Err(miss())));
            return HeadProbe { size: of_get, tried: tried.collect() };
        }
    };
    let head = match response.status {
        200 if has_body => Err(CheckFailure::from("the response to HEAD has a body")),
        200 => Ok("200".to_owned()),
        status => Err(CheckFailure::Fails(format!("status is {status}"))),
    };
    let of_head = response.content_length().filter(|_| response.status == 200);
    let length = match (of_head, of_get) {
        (Some(head), Some(get)) if head != get => {
            Err(CheckFailure::Fails(format!("{head} bytes, but GET returns {get}")))
        }
        (Some(head), _) => Ok(format!("{head} bytes")),
        (None, _) => Err(CheckFailure::from("no Content-Length")),
    };
    let tried = vec![
        (DoctorCheck::Head, head),
        (DoctorCheck::HeadLength, length),
        (DoctorCheck::HeadSame, check_same_headers(subject, &response)),
    ];
    HeadProbe { size: of_get.or(of_head), tried }
}

fn check_same_headers(subject: &ProbedImage<'_>, head: &WireResponse) -> CheckResult {
    for name in SAME {
        let (of_head, of_get) = (head.header(name), subject.whole.header(name));
        if of_head != of_get {
            let quoted = |value: Option<&str>| value.map_or_else(|| "missing".to_owned(), quote_for_report);
            let why = format!("{name} is {}, but for GET {}", quoted(of_head), quoted(of_get));
            return Err(CheckFailure::Fails(why));
        }
    }
    Ok("same headers".to_owned())
}

/// Checks that GET returns 200 without delay, and in the usual header format.
pub(super) fn probe_get_response(subject: &ProbedImage<'_>) -> Vec<(DoctorCheck, CheckResult)> {
    let whole = &subject.whole;
    let outcome = match whole.status {
        200 => Ok("200".to_owned()),
        status @ (401 | 403) => Err(CheckFailure::Fails(format!("{status}: token missing or not accepted"))),
        status => Err(CheckFailure::Fails(status.to_string())),
    };
    let waited = format!("{:.3} s", whole.waited.as_secs_f64());
    let first_byte =
        if whole.waited <= MAX_FIRST_BYTE_DELAY { Ok(waited) } else { Err(CheckFailure::Fails(waited)) };
    let form = match &whole.odd_header {
        Some(name) => Err(CheckFailure::Fails(format!("no space after {name}:"))),
        None => Ok("as usual".to_owned()),
    };
    vec![
        (DoctorCheck::Answers, outcome),
        (DoctorCheck::FirstByte, first_byte),
        (DoctorCheck::HeaderForm, form),
    ]
}

/// Checks the length, framing and encoding of the body of a GET response.
pub(super) async fn probe_body_length(subject: &ProbedImage<'_>) -> Vec<(DoctorCheck, CheckResult)> {
    let whole = &subject.whole;
    let have = whole.body.len();
    let length = match whole.content_length() {
        None => Err(CheckFailure::from("no Content-Length")),
        Some(len) => Ok(format!("{len} bytes")),
    };
    let complete = match whole.end {
        BodyEnd::Short => {
            Err(CheckFailure::Fails(format!("the server closed the connection after {have} bytes")))
        }
        BodyEnd::Complete => Ok(format!("all {have} bytes")),
        BodyEnd::Limit => Ok(format!("at least the first {have} bytes")),
    };
    let chunked = if whole.is_chunked() {
        Err(CheckFailure::from("Transfer-Encoding: chunked"))
    } else {
        Ok("not chunked".to_owned())
    };
    vec![
        (DoctorCheck::Length, length),
        (DoctorCheck::Complete, complete),
        (DoctorCheck::NotChunked, chunked),
        (DoctorCheck::Identity, check_identity_encoding(whole)),
        (DoctorCheck::IdentityWhenAsked, check_identity_when_gzip_is_accepted(subject).await),
    ]
}

fn check_identity_encoding(response: &WireResponse) -> CheckResult {
    match response.header("content-encoding") {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            Err(CheckFailure::Fails(format!("Content-Encoding: {}", quote_for_report(encoding))))
        }
        _ => Ok("not compressed".to_owned()),
    }
}

async fn check_identity_when_gzip_is_accepted(subject: &ProbedImage<'_>) -> CheckResult {
    let request = WireRequest::new("GET", 1).with_header("Accept-Encoding", "gzip, deflate, br, zstd");
    check_identity_encoding(&subject.send(&request).await?)
}

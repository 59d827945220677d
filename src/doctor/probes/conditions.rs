//! Checks of conditional requests (RFC 9110, section 13). Clients use them to resume the download of an unchanged
//! image.

use super::super::report::{DoctorCheck, quote_for_report};
use super::super::wire::WireRequest;
use super::{CheckFailure, CheckResult, ProbedImage, check_range, range_request};

/// An entity tag that differs from the tag of every image.
const OTHER_TAG: &str = "\"kindling-doctor-no-such-image\"";
/// A time before the last change of any image.
const OTHER_TIME: &str = "Thu, 01 Jan 1970 00:00:01 GMT";

#[derive(Debug)]
enum ImageValidator {
    Tag(String),
    Time(String),
}

pub(super) async fn probe_conditions(subject: &ProbedImage<'_>) -> Vec<(DoctorCheck, CheckResult)> {
    let validator = image_validator(subject);
    let result = match &validator {
        Some(ImageValidator::Tag(tag)) => Ok(format!("ETag {}", quote_for_report(tag))),
        Some(ImageValidator::Time(time)) => {
            Ok(format!("Last-Modified {}, no strong ETag", quote_for_report(time)))
        }
        None => Err(CheckFailure::from("neither a strong ETag nor Last-Modified")),
    };
    vec![
        (DoctorCheck::Validator, result),
        (DoctorCheck::IfRange, check_if_range(subject, validator.as_ref()).await),
        (DoctorCheck::IfNoneMatch, check_if_none_match(subject, validator.as_ref()).await),
    ]
}

fn image_validator(subject: &ProbedImage<'_>) -> Option<ImageValidator> {
    let tag = subject.whole.header("etag").filter(|tag| tag.starts_with('"') && tag.len() > 2);
    let time = || subject.whole.header("last-modified").map(|time| ImageValidator::Time(time.to_owned()));
    tag.map(|tag| ImageValidator::Tag(tag.to_owned())).or_else(time)
}

async fn check_if_range(subject: &ProbedImage<'_>, validator: Option<&ImageValidator>) -> CheckResult {
    let size = subject.required_size()?;
    let (same, other) = match validator {
        Some(ImageValidator::Tag(tag)) => (tag, OTHER_TAG),
        Some(ImageValidator::Time(time)) => (time, OTHER_TIME),
        None => return Err(CheckFailure::from("no validator to send")),
    };
    let len = 100.min(size);
    let answer = subject.send(&range_request(0, len).with_header("If-Range", same.clone())).await?;
    check_range(&answer, 0, len, subject.size)?;
    let answer = subject.send(&range_request(0, len).with_header("If-Range", other)).await?;
    match answer.status {
        200 => Ok("206 for the same image, 200 for another".to_owned()),
        status => Err(CheckFailure::Fails(format!("status is {status} instead of 200 for a changed image"))),
    }
}

async fn check_if_none_match(subject: &ProbedImage<'_>, validator: Option<&ImageValidator>) -> CheckResult {
    let request = WireRequest::new("GET", 1);
    let (request, what) = match validator {
        Some(ImageValidator::Tag(tag)) => {
            (request.with_header("If-None-Match", tag.clone()), "If-None-Match")
        }
        Some(ImageValidator::Time(time)) => {
            (request.with_header("If-Modified-Since", time.clone()), "If-Modified-Since")
        }
        None => return Err(CheckFailure::from("no validator to send")),
    };
    match subject.send(&request).await?.status {
        304 => Ok(format!("304 for {what}")),
        status => Err(CheckFailure::Fails(format!("status is {status} instead of 304"))),
    }
}

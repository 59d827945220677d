//! Conditions, by RFC 9110, section 13: what makes a download that goes on one of the same image.

use super::super::report::{Check, quoted};
use super::super::wire::Request;
use super::{Miss, Subject, Tried, check_range, range_request};

/// A tag that no image has.
const OTHER_TAG: &str = "\"kindling-doctor-no-such-image\"";
/// A time at which no image changed.
const OTHER_TIME: &str = "Thu, 01 Jan 1970 00:00:01 GMT";

/// What tells a version of an image from another.
#[derive(Debug)]
enum Validator {
    Tag(String),
    Time(String),
}

pub(super) async fn all(subject: &Subject<'_>) -> Vec<(Check, Tried)> {
    let found = validator(subject);
    let told = match &found {
        Some(Validator::Tag(tag)) => Ok(format!("ETag {}", quoted(tag))),
        Some(Validator::Time(time)) => Ok(format!("Last-Modified {}, and no strong ETag", quoted(time))),
        None => Err(Miss::from("there is neither a strong ETag nor Last-Modified")),
    };
    vec![
        (Check::Validator, told),
        (Check::IfRange, if_range(subject, found.as_ref()).await),
        (Check::IfNoneMatch, if_none_match(subject, found.as_ref()).await),
    ]
}

fn validator(subject: &Subject<'_>) -> Option<Validator> {
    let tag = subject.whole.header("etag").filter(|tag| tag.starts_with('"') && tag.len() > 2);
    let time = || subject.whole.header("last-modified").map(|time| Validator::Time(time.to_owned()));
    tag.map(|tag| Validator::Tag(tag.to_owned())).or_else(time)
}

async fn if_range(subject: &Subject<'_>, validator: Option<&Validator>) -> Tried {
    let size = subject.required_size()?;
    let (same, other) = match validator {
        Some(Validator::Tag(tag)) => (tag, OTHER_TAG),
        Some(Validator::Time(time)) => (time, OTHER_TIME),
        None => return Err(Miss::from("there is nothing to ask with")),
    };
    let len = 100.min(size);
    let answer = subject.ask(&range_request(0, len).with("If-Range", same.clone())).await?;
    check_range(&answer, 0, len, subject.size)?;
    let answer = subject.ask(&range_request(0, len).with("If-Range", other)).await?;
    match answer.status {
        200 => Ok("206 for the same image, 200 for another".to_owned()),
        status => Err(Miss::Fails(format!(
            "answered with {status} where the image is another, in the place of 200"
        ))),
    }
}

async fn if_none_match(subject: &Subject<'_>, validator: Option<&Validator>) -> Tried {
    let request = Request::new("GET", 1);
    let (request, what) = match validator {
        Some(Validator::Tag(tag)) => (request.with("If-None-Match", tag.clone()), "If-None-Match"),
        Some(Validator::Time(time)) => (request.with("If-Modified-Since", time.clone()), "If-Modified-Since"),
        None => return Err(Miss::from("there is nothing to ask with")),
    };
    match subject.ask(&request).await?.status {
        304 => Ok(format!("304 for {what}")),
        status => Err(Miss::Fails(format!("answered with {status} in the place of 304"))),
    }
}

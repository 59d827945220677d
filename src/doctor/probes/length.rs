//! How long an image is, and whether GET and HEAD say the same.

use std::time::Duration;

use super::super::report::{Check, quoted};
use super::super::wire::{Answer, End, Request};
use super::{Miss, Subject, Tried};

/// QEMU waits this long.
const PROMPT: Duration = Duration::from_secs(5);
/// What a HEAD has to say as a GET does.
const SAME: [&str; 6] =
    ["content-type", "content-encoding", "etag", "last-modified", "accept-ranges", "content-length"];

/// What came of a HEAD.
pub(super) struct Heads {
    pub(super) size: Option<u64>,
    pub(super) tried: Vec<(Check, Tried)>,
}

/// Compares HEAD with GET.
pub(super) async fn heads(subject: &Subject<'_>) -> Heads {
    let of_get = subject.whole.content_length().filter(|_| subject.whole.status == 200);
    let (answer, has_body) = match subject.session.head(&subject.target).await {
        Ok(told) => told,
        Err(fault) => {
            let why = fault.to_string();
            let miss =
                || if fault.is_untried() { Miss::Untried(why.clone()) } else { Miss::Fails(why.clone()) };
            let checks = [Check::Head, Check::HeadLength, Check::HeadSame];
            let tried = checks.into_iter().map(|check| (check, Err(miss())));
            return Heads { size: of_get, tried: tried.collect() };
        }
    };
    let head = match answer.status {
        200 if has_body => Err(Miss::from("there is a body behind the answer")),
        200 => Ok("200".to_owned()),
        status => Err(Miss::Fails(format!("answered with {status}"))),
    };
    let of_head = answer.content_length().filter(|_| answer.status == 200);
    let length = match (of_head, of_get) {
        (Some(head), Some(get)) if head != get => {
            Err(Miss::Fails(format!("{head} bytes, and a GET says {get}")))
        }
        (Some(head), _) => Ok(format!("{head} bytes")),
        (None, _) => Err(Miss::from("there is no Content-Length")),
    };
    let tried =
        vec![(Check::Head, head), (Check::HeadLength, length), (Check::HeadSame, same(subject, &answer))];
    Heads { size: of_get.or(of_head), tried }
}

fn same(subject: &Subject<'_>, head: &Answer) -> Tried {
    for name in SAME {
        let (of_head, of_get) = (head.header(name), subject.whole.header(name));
        if of_head != of_get {
            let shown = |value: Option<&str>| value.map_or_else(|| "nothing".to_owned(), quoted);
            let why = format!("{name} is {}, and a GET says {}", shown(of_head), shown(of_get));
            return Err(Miss::Fails(why));
        }
    }
    Ok("the same headers".to_owned())
}

/// Whether there is an answer with a file, whatever that is.
pub(super) fn answer(subject: &Subject<'_>) -> Vec<(Check, Tried)> {
    let whole = &subject.whole;
    let answers = match whole.status {
        200 => Ok("200".to_owned()),
        status @ (401 | 403) => {
            Err(Miss::Fails(format!("{status}: a token is missing, or another one is needed")))
        }
        status => Err(Miss::Fails(status.to_string())),
    };
    let waited = format!("{:.3} s", whole.waited.as_secs_f64());
    let first_byte = if whole.waited <= PROMPT { Ok(waited) } else { Err(Miss::Fails(waited)) };
    let form = match &whole.odd_header {
        Some(name) => Err(Miss::Fails(format!("there is no space behind {name}:"))),
        None => Ok("as usual".to_owned()),
    };
    vec![(Check::Answers, answers), (Check::FirstByte, first_byte), (Check::HeaderForm, form)]
}

/// What the body of a GET is like.
pub(super) async fn all(subject: &Subject<'_>) -> Vec<(Check, Tried)> {
    let whole = &subject.whole;
    let have = whole.body.len();
    let length = match whole.content_length() {
        None => Err(Miss::from("there is no Content-Length")),
        Some(len) => Ok(format!("{len} bytes")),
    };
    let complete = match whole.end {
        End::Short => Err(Miss::Fails(format!("the connection was closed after {have} bytes"))),
        End::Complete => Ok(format!("all of {have} bytes")),
        End::Limit => Ok(format!("the first {have} bytes, and more")),
    };
    let chunked = if whole.is_chunked() {
        Err(Miss::from("Transfer-Encoding: chunked"))
    } else {
        Ok("it is not".to_owned())
    };
    vec![
        (Check::Length, length),
        (Check::Complete, complete),
        (Check::NotChunked, chunked),
        (Check::Identity, identity(whole)),
        (Check::IdentityWhenAsked, when_asked(subject).await),
    ]
}

fn identity(answer: &Answer) -> Tried {
    match answer.header("content-encoding") {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            Err(Miss::Fails(format!("Content-Encoding: {}", quoted(encoding))))
        }
        _ => Ok("as it is".to_owned()),
    }
}

async fn when_asked(subject: &Subject<'_>) -> Tried {
    let request = Request::new("GET", 1).with("Accept-Encoding", "gzip, deflate, br, zstd");
    identity(&subject.ask(&request).await?)
}

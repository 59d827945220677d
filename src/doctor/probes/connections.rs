//! What a server makes of connections.

use futures_util::future;

use super::super::report::Check;
use super::super::wire::Request;
use super::{Miss, PREFIX, Subject, Tried, check_range, range_request};

/// How many requests come on one connection.
const REQUESTS: usize = 4;
/// How much each of them reads.
const LEN: u64 = 2048;

pub(super) async fn all(subject: &Subject<'_>) -> Vec<(Check, Tried)> {
    vec![
        (Check::KeepAlive, keep_alive(subject).await),
        (Check::Concurrent, concurrent(subject).await),
        (Check::Http10, http10(subject).await),
        (Check::Expect, expect(subject).await),
        (Check::SameBytes, same(subject).await),
    ]
}

/// A HEAD, behind which a body would show, and ranges, if there are such.
async fn keep_alive(subject: &Subject<'_>) -> Tried {
    let mut requests = vec![Request::new("HEAD", 0)];
    let len = LEN.min(subject.size.unwrap_or_default());
    let has_ranges = len > 0 && subject.range(0, len).await.is_ok();
    for _ in 1..REQUESTS {
        requests.push(if has_ranges { range_request(0, len) } else { Request::new("HEAD", 0) });
    }
    let (answers, fault) = subject.session.several(&subject.target, &requests).await?;
    for (request, answer) in requests.iter().zip(&answers) {
        match request.method {
            "HEAD" if answer.status == 200 => {}
            "HEAD" => return Err(Miss::Fails(format!("answered with {}", answer.status))),
            _ => check_range(answer, 0, len, subject.size)?,
        }
    }
    match fault {
        Some(fault) => Err(Miss::Fails(format!("after {} requests: {fault}", answers.len()))),
        None => Ok(format!("{REQUESTS} requests on one connection")),
    }
}

async fn concurrent(subject: &Subject<'_>) -> Tried {
    let size = subject.required_size()?;
    let len = LEN.min(size);
    let second = (size - len).min(65_536);
    // That there are no ranges is another matter, and told already.
    if subject.range(second, len).await.is_err() {
        let request = Request::new("GET", usize::try_from(len).unwrap_or(PREFIX));
        let (one, other) = future::join(subject.ask(&request), subject.ask(&request)).await;
        return match one?.body == other?.body {
            true => Ok("the beginning twice at once".to_owned()),
            false => Err(Miss::from("the bytes of one are others")),
        };
    }
    let (one, other) = future::join(subject.range(0, len), subject.range(second, len)).await;
    for (first, bytes) in [(0, one?), (second, other?)] {
        if subject.known(first, len).is_some_and(|known| known != bytes) {
            return Err(Miss::Fails(format!("the bytes from {first} are others")));
        }
    }
    Ok("two ranges at once".to_owned())
}

async fn http10(subject: &Subject<'_>) -> Tried {
    let request = Request { version: "HTTP/1.0", ..Request::new("GET", 1024) };
    let answer = subject.ask(&request).await?;
    match answer.status {
        _ if answer.is_chunked() => Err(Miss::from("answered in chunks, which it does not have")),
        200 => Ok("200".to_owned()),
        status => Err(Miss::Fails(format!("answered with {status}"))),
    }
}

async fn expect(subject: &Subject<'_>) -> Tried {
    let answer = subject.ask(&Request::new("GET", 1).with("Expect", "100-continue")).await?;
    match answer.status {
        200 => Ok("200".to_owned()),
        status => Err(Miss::Fails(format!("answered with {status}"))),
    }
}

/// Reads the beginning once more.
async fn same(subject: &Subject<'_>) -> Tried {
    let answer = subject.ask(&Request::new("GET", PREFIX)).await?;
    let (once, again) = (&subject.whole, &answer);
    if again.status != once.status {
        return Err(Miss::Fails(format!("{} first, then {}", once.status, again.status)));
    }
    if again.body != once.body {
        let at = once.body.iter().zip(&again.body).position(|(one, other)| one != other);
        let at = at.unwrap_or_else(|| once.body.len().min(again.body.len()));
        return Err(Miss::Fails(format!("they differ from byte {at}")));
    }
    if again.content_length() != once.content_length() {
        return Err(Miss::from("the length is another one"));
    }
    if again.header("etag") != once.header("etag") {
        return Err(Miss::from("the ETag is another one each time"));
    }
    Ok(format!("the first {} bytes", once.body.len()))
}

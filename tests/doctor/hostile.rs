//! Servers that mean ill: whatever they do, the doctor says so and comes to an end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kindling::doctor::{Check, Options, Outcome};

use crate::raw::serve_raw;
use crate::{examined, image};

/// More than all requests together may take: three that time out, and those that do not.
const PATIENCE: Duration = Duration::from_secs(20);

fn options() -> Options {
    let mut options = Options::default();
    options.timeout = Duration::from_secs(1);
    options
}

fn after_request(mut stream: TcpStream) -> Option<TcpStream> {
    let mut request = [0; 4096];
    stream.read(&mut request).ok().filter(|read| *read > 0)?;
    Some(stream)
}

/// Writes pieces until the other end has enough.
fn without_end(stream: &mut TcpStream, piece: &[u8], pause: Duration) {
    while stream.write_all(piece).is_ok() {
        thread::sleep(pause);
    }
}

/// What is wrong, what the server does, and the check that says so in which words.
type Case = (&'static str, fn(TcpStream), Check, &'static str);

fn cases() -> [Case; 9] {
    [
        ("a closed door", |stream| drop(after_request(stream)), Check::Reachable, "without an answer"),
        (
            "no word",
            |stream| {
                let _stream = after_request(stream);
                thread::sleep(PATIENCE);
            },
            Check::Reachable,
            "nothing complete within 1 s",
        ),
        (
            "head without end",
            |stream| {
                let mut stream = after_request(stream).unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
                without_end(&mut stream, b"X-Again: and again\r\n", Duration::ZERO);
            },
            Check::Reachable,
            "more than 32768 bytes",
        ),
        (
            "line without end",
            |stream| without_end(&mut after_request(stream).unwrap(), &[b'a'; 4096], Duration::ZERO),
            Check::Reachable,
            "more than 32768 bytes",
        ),
        (
            "head in drips",
            |stream| without_end(&mut after_request(stream).unwrap(), b"H", Duration::from_millis(20)),
            Check::Reachable,
            "nothing complete within 1 s",
        ),
        (
            "garbage",
            |stream| {
                let _ = after_request(stream).unwrap().write_all(b"\x1b[2J\x00\xff\r\n\r\n");
            },
            Check::Reachable,
            "malformed",
        ),
        (
            "100 for ever",
            |stream| {
                let mut stream = after_request(stream).unwrap();
                without_end(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n", Duration::ZERO);
            },
            Check::Answers,
            "100",
        ),
        (
            "body without end",
            |stream| {
                let mut stream = after_request(stream).unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                without_end(&mut stream, image(), Duration::ZERO);
            },
            Check::Length,
            "no Content-Length",
        ),
        (
            "length of everything",
            |stream| {
                let mut stream = after_request(stream).unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n");
                without_end(&mut stream, image(), Duration::ZERO);
            },
            Check::Range,
            "200",
        ),
    ]
}

#[test]
fn every_examination_ends_and_says_why() {
    for (name, talk, check, reason) in cases() {
        let begun = Instant::now();
        let report = examined(&format!("http://{}/full.iso", serve_raw(talk)), &options());
        assert!(begun.elapsed() < PATIENCE, "{name}");
        let finding = report.finding(check).unwrap_or_else(|| panic!("{name}: {report:#?}"));
        assert_eq!(finding.outcome, Outcome::Fails, "{name}: {report:#?}");
        assert!(finding.detail.contains(reason), "{name}: {finding:?}");
        assert!(!serde_json::to_string(&report).unwrap().contains("\\u001b"), "{name}");
        assert!(report.is_refused(), "{name}");
    }
}

/// A server that answers once and then never again is asked for as long as it is worth, and no longer.
#[test]
fn who_is_slow_too_often_is_left_alone() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let address = serve_raw(move |stream| {
        let mut stream = after_request(stream).unwrap();
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", image().len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(image()));
        }
        thread::sleep(PATIENCE);
    });
    let begun = Instant::now();
    let report = examined(&format!("http://{address}/full.iso"), &options());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(asked.load(Ordering::SeqCst), 4, "one that was answered, and three that were not");
    assert_eq!(report.finding(Check::Head).unwrap().outcome, Outcome::Fails);
    for check in [Check::RangeMany, Check::IfRange, Check::Concurrent, Check::SameBytes] {
        assert_ne!(report.finding(check).unwrap().outcome, Outcome::Holds, "{report:#?}");
    }
    assert_eq!(report.finding(Check::SameBytes).unwrap().outcome, Outcome::Untried, "{report:#?}");
    assert!(report.is_refused());
}

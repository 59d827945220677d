//! Hostile servers: the doctor reports each misbehaviour, and always ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kindling::doctor::{CheckOutcome, DoctorCheck, DoctorOptions};

use crate::raw_server::serve_raw;
use crate::{bootable_image, examine_url};

/// More than the time for all requests together: three that time out, and the others.
const PATIENCE: Duration = Duration::from_secs(20);

fn short_timeout_options() -> DoctorOptions {
    let mut options = DoctorOptions::default();
    options.timeout = Duration::from_secs(1);
    options
}

fn read_request(mut stream: TcpStream) -> Option<TcpStream> {
    let mut request = [0; 4096];
    stream.read(&mut request).ok().filter(|read| *read > 0)?;
    Some(stream)
}

/// Writes pieces until the client disconnects.
fn write_until_disconnect(stream: &mut TcpStream, piece: &[u8], pause: Duration) {
    while stream.write_all(piece).is_ok() {
        thread::sleep(pause);
    }
}

/// The defect, the server's behaviour, and the check that reports it with its text.
type HostileServerCase = (&'static str, fn(TcpStream), DoctorCheck, &'static str);

fn hostile_server_cases() -> [HostileServerCase; 9] {
    [
        ("a closed door", |stream| drop(read_request(stream)), DoctorCheck::Reachable, "without a response"),
        (
            "no word",
            |stream| {
                let _stream = read_request(stream);
                thread::sleep(PATIENCE);
            },
            DoctorCheck::Reachable,
            "no complete response within 1 s",
        ),
        (
            "head without end",
            |stream| {
                let mut stream = read_request(stream).unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
                write_until_disconnect(&mut stream, b"X-Again: and again\r\n", Duration::ZERO);
            },
            DoctorCheck::Reachable,
            "more than 32768 bytes",
        ),
        (
            "line without end",
            |stream| {
                write_until_disconnect(&mut read_request(stream).unwrap(), &[b'a'; 4096], Duration::ZERO)
            },
            DoctorCheck::Reachable,
            "more than 32768 bytes",
        ),
        (
            "head in drips",
            |stream| {
                write_until_disconnect(&mut read_request(stream).unwrap(), b"H", Duration::from_millis(20))
            },
            DoctorCheck::Reachable,
            "no complete response within 1 s",
        ),
        (
            "garbage",
            |stream| {
                let _ = read_request(stream).unwrap().write_all(b"\x1b[2J\x00\xff\r\n\r\n");
            },
            DoctorCheck::Reachable,
            "malformed",
        ),
        (
            "100 for ever",
            |stream| {
                let mut stream = read_request(stream).unwrap();
                write_until_disconnect(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n", Duration::ZERO);
            },
            DoctorCheck::Answers,
            "100",
        ),
        (
            "body without end",
            |stream| {
                let mut stream = read_request(stream).unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                write_until_disconnect(&mut stream, bootable_image(), Duration::ZERO);
            },
            DoctorCheck::Length,
            "no Content-Length",
        ),
        (
            "length of everything",
            |stream| {
                let mut stream = read_request(stream).unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n");
                write_until_disconnect(&mut stream, bootable_image(), Duration::ZERO);
            },
            DoctorCheck::Range,
            "200",
        ),
    ]
}

#[test]
fn hostile_servers_are_reported_in_bounded_time() {
    for (name, talk, check, reason) in hostile_server_cases() {
        let start = Instant::now();
        let report = examine_url(&format!("http://{}/full.iso", serve_raw(talk)), &short_timeout_options());
        assert!(start.elapsed() < PATIENCE, "{name}");
        let finding = report.finding(check).unwrap_or_else(|| panic!("{name}: {report:#?}"));
        assert_eq!(finding.outcome, CheckOutcome::Fails, "{name}: {report:#?}");
        assert!(finding.detail.contains(reason), "{name}: {finding:?}");
        assert!(!serde_json::to_string(&report).unwrap().contains("\\u001b"), "{name}");
        assert!(report.is_refused(), "{name}");
    }
}

/// The server responds only to the first request. The doctor stops after a few more.
#[test]
fn doctor_stops_after_several_timeouts() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let address = serve_raw(move |stream| {
        let mut stream = read_request(stream).unwrap();
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bootable_image().len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bootable_image()));
        }
        thread::sleep(PATIENCE);
    });
    let start = Instant::now();
    let report = examine_url(&format!("http://{address}/full.iso"), &short_timeout_options());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(requests.load(Ordering::SeqCst), 4, "expected one request with a response and three without");
    assert_eq!(report.finding(DoctorCheck::Head).unwrap().outcome, CheckOutcome::Fails);
    for check in
        [DoctorCheck::RangeMany, DoctorCheck::IfRange, DoctorCheck::Concurrent, DoctorCheck::SameBytes]
    {
        assert_ne!(report.finding(check).unwrap().outcome, CheckOutcome::Holds, "{report:#?}");
    }
    assert_eq!(report.finding(DoctorCheck::SameBytes).unwrap().outcome, CheckOutcome::Untried, "{report:#?}");
    assert!(report.is_refused());
}

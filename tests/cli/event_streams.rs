//! Tests the limits and the shutdown of open event streams.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::serve::{PATIENCE, ServeProcess};
use crate::support::Scratch;

const STREAM: &str = "GET /api/assisted-install/v2/events/stream";
/// Maximum number of streams of one client.
const MAX_STREAMS: usize = 32;
const PAUSE: Duration = Duration::from_millis(50);

/// Opens a stream, and reads the status of the response. The head and the first event arrive together.
fn open_stream(server: &ServeProcess) -> (u16, BufReader<TcpStream>) {
    let mut stream = server.connect();
    stream
        .write_all(format!("{STREAM} HTTP/1.1\r\nHost: {}\r\n\r\n", server.addresses[0]).as_bytes())
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    while status == 200 && !line.starts_with("event: resync") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "an event");
    }
    (status, reader)
}

#[test]
fn client_has_a_limited_number_of_event_streams() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[], &[]);
    let mut streams: Vec<_> = (0..MAX_STREAMS).map(|_| open_stream(&server)).collect();
    assert!(streams.iter().all(|(status, _)| *status == 200));
    let refused = server.request(STREAM, "");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("30")));
    let reason = "client 127.0.0.1 has 32 streams open, which is the limit";
    assert_eq!(refused.json()["message"], reason);
    // The limit does not apply to other requests of the client.
    assert_eq!(server.request("GET /health", "").status, 200);
    streams.pop();
    let start = Instant::now();
    while open_stream(&server).0 != 200 {
        assert!(start.elapsed() < PATIENCE, "a closed stream does not count");
        thread::sleep(PAUSE);
    }
    drop(streams);
    server.stop();
}

/// The drain must not wait for streams, which have no end.
#[test]
fn shutdown_ends_event_streams_immediately() {
    let scratch = Scratch::new();
    let server = ServeProcess::start(&scratch, &[("KINDLING_DRAIN_TIME", "1h")], &[]);
    let (status, mut stream) = open_stream(&server);
    assert_eq!(status, 200);
    server.stop();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let rest = String::from_utf8(rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "the response ends normally: {rest:?}");
}

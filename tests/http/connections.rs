//! Connections as clients use them, well and badly.

use std::io::Write;

use crate::connection::Connection;
use crate::server::{ETAG, MODES, shown};

#[test]
fn http_1_0_gets_what_it_understands() {
    let bytes = &shown().bytes["layered"];
    for (headers, status, body) in [
        ("", 200, bytes.as_slice()),
        ("Range: bytes=5-70000\r\n", 206, &bytes[5..=70_000]),
        // Several parts are of a later version.
        ("Range: bytes=5-6,8-9\r\n", 200, bytes.as_slice()),
    ] {
        let mut connection = shown().server.connect();
        connection.write(format!("GET /mapped/layered HTTP/1.0\r\n{headers}\r\n"));
        let answer = connection.answer(None);
        assert_eq!(answer.status(), status, "{headers}");
        assert_eq!(answer.header("transfer-encoding"), None);
        assert!(answer.body == body, "{headers}");
        assert_eq!(connection.rest(), (Vec::new(), true), "it is closed behind the last byte");
    }
    let mut connection = shown().server.connect();
    for _ in 0..2 {
        connection.write("GET /mapped/small HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(connection.answer(None).body.len(), 1000);
    }
}

#[test]
fn requests_may_come_before_answers() {
    let bytes = &shown().bytes["layered"];
    let mut connection = shown().server.connect();
    let mut requests = String::new();
    for first in 0..50 {
        let range = format!("bytes={first}-{}", 100_000 + first);
        requests.push_str(&format!("GET /mapped/layered HTTP/1.1\r\nHost: test\r\nRange: {range}\r\n\r\n"));
        requests.push_str("HEAD /mapped/layered HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    let mut writer = std::net::TcpStream::connect(shown().server.address).unwrap();
    writer.write_all(requests.as_bytes()).unwrap();
    connection.write(&requests);
    for first in 0..50 {
        assert!(connection.answer(None).body == bytes[first..=100_000 + first], "{first}");
        assert_eq!(connection.answer(Some(0)).len(), bytes.len());
    }
}

#[test]
fn a_connection_outlives_what_was_refused() {
    let mut connection = shown().server.connect();
    for (line, headers, status) in [
        ("GET /mapped/small", "Range: bytes=5000-", 416),
        ("GET /mapped/small", "If-Match: \"other\"", 412),
        ("GET /mapped/small", &*format!("If-None-Match: {ETAG}"), 304),
        ("GET /mapped/unknown", "", 404),
        ("DELETE /mapped/small", "", 405),
        ("GET /mapped/small", "Range: bytes=1-2", 206),
        ("HEAD /mapped/unknown", "", 404),
        ("GET /read/empty", "", 200),
        ("GET /read/small", "", 200),
    ] {
        assert_eq!(connection.ask(line, headers).status(), status, "{line} {headers}");
    }
}

#[test]
fn a_request_names_one_host() {
    let mut connection = shown().server.connect();
    for (hosts, status) in [
        ("Host: [::1]:80\r\n", 200),
        ("Host:\r\n", 200),
        ("", 400),
        ("Host: test\r\nHost: test\r\n", 400),
        ("Host: a b\r\n", 400),
        ("Host: test:80:80\r\n", 400),
    ] {
        connection.write(format!("GET /mapped/small HTTP/1.1\r\n{hosts}\r\n"));
        assert_eq!(connection.answer(None).status(), status, "{hosts:?}");
    }
}

#[test]
fn targets_may_be_absolute() {
    let mut connection = shown().server.connect();
    assert_eq!(connection.ask("GET http://other.example.com/mapped/small", "").body.len(), 1000);
    assert_eq!(connection.ask("HEAD http://other.example.com:8080/mapped/small", "").len(), 1000);
    assert_eq!(connection.ask("GET /mapped/small?with=query", "").body.len(), 1000);
}

#[test]
fn who_waits_for_a_word_is_answered() {
    let mut connection = shown().server.connect();
    let headers = "Expect: 100-continue\nContent-Length: 4";
    connection.request("GET /mapped/small", headers);
    // Nobody wants to read the body of a GET: the answer comes without asking for it.
    assert_eq!(connection.answer(None).body, shown().bytes["small"]);
    let mut connection = shown().server.connect();
    assert_eq!(connection.ask("GET /mapped/small", "Expect: 100-continue").body.len(), 1000);
}

#[test]
fn heads_are_bounded() {
    let mut connection = shown().server.connect();
    let large = format!("Range: bytes={}", "0-0,".repeat(8 << 10));
    connection.request("GET /mapped/small", &large);
    let answer = connection.answer(None);
    assert_eq!(answer.status(), 431);
    assert_eq!(answer.header("content-type"), None);
    let mut connection = shown().server.connect();
    connection.write("GET /mapped/small\r\n\r\n");
    assert_eq!(connection.answer(None).status(), 400);
    assert!(connection.is_closed());
}

#[test]
fn who_reads_slowly_gets_everything() {
    for mode in MODES {
        let bytes = &shown().bytes["plain"];
        let mut connection = shown().server.connect();
        connection.request(&format!("GET /{mode}/plain"), "");
        connection.head();
        let mut read = Vec::new();
        while read.len() < bytes.len() {
            let len = (bytes.len() - read.len()).min(997);
            read.extend(connection.take(len));
            std::thread::yield_now();
        }
        assert!(read == *bytes, "{mode}");
        assert_eq!(connection.ask(&format!("GET /{mode}/small"), "").len(), 1000);
    }
}

#[test]
fn who_sends_no_more_still_reads() {
    for mode in MODES {
        let bytes = &shown().bytes["plain"];
        let mut connection = shown().server.connect();
        connection.request(&format!("GET /{mode}/plain"), "");
        connection.finish();
        let answer = connection.answer(None);
        assert!(answer.body == *bytes, "{mode}");
        assert_eq!(connection.rest(), (Vec::new(), true));
    }
}

#[test]
fn who_goes_away_disturbs_nobody() {
    for mode in MODES {
        let mut going = Vec::new();
        for _ in 0..20 {
            let mut connection = shown().server.connect();
            connection.request(&format!("GET /{mode}/plain"), "");
            connection.take(1000);
            going.push(connection);
        }
        // Bytes that nobody read are in each: the kernel resets these connections.
        drop(going);
        assert!(
            shown().server.connect().ask(&format!("GET /{mode}/plain"), "").body == shown().bytes["plain"]
        );
    }
}

/// Sends a request for `/echo` with these headers and this body, and another request after it.
fn echo(version: &str, headers: &str, body: &str) -> Connection {
    let mut connection = shown().server.connect();
    let next = "GET /mapped/small HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    connection.write(format!("POST /echo {version}\r\nHost: test\r\n{headers}\r\n{body}{next}"));
    connection
}

#[test]
fn rejects_unknown_transfer_codings_with_501() {
    const CHUNKED: &str = "5\r\nhello\r\n0\r\n\r\n";
    for headers in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
    ] {
        let mut connection = echo("HTTP/1.1", headers, CHUNKED);
        let answer = connection.answer(None);
        assert_eq!((answer.status(), answer.header("connection")), (501, Some("close")), "{headers}");
        assert_eq!(connection.rest().0, b"", "{headers}: nothing after it is answered");
    }
    // A client that still sends sees the answer.
    let chunk = format!("100000\r\n{}\r\n", "a".repeat(1 << 20));
    let body = format!("{}0\r\n\r\n", chunk.repeat(8));
    let mut connection = echo("HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n", &body);
    assert_eq!(connection.answer(None).status(), 501);
}

#[test]
fn rejects_bodies_of_doubtful_length() {
    const CHUNKED: &str = "5\r\nhello\r\n0\r\n\r\n";
    for (version, headers) in [
        ("HTTP/1.1", "Transfer-Encoding: chunked, gzip\r\n"),
        ("HTTP/1.1", "Transfer-Encoding: gzip\r\n"),
        ("HTTP/1.1", "Transfer-Encoding: xchunked\r\n"),
        ("HTTP/1.1", "Transfer-Encoding: chunked;a=b\r\n"),
        ("HTTP/1.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n"),
        ("HTTP/1.1", "Transfer-Encoding : chunked\r\n"),
        ("HTTP/1.0", "Transfer-Encoding: chunked\r\n"),
        ("HTTP/1.0", "Transfer-Encoding: gzip, chunked\r\n"),
        ("HTTP/1.1", "Content-Length: 5\r\nContent-Length: 6\r\n"),
        ("HTTP/1.1", "Content-Length: 5, 5\r\n"),
        ("HTTP/1.1", "Content-Length: +5\r\n"),
    ] {
        let mut connection = echo(version, headers, CHUNKED);
        assert_eq!(connection.answer(None).status(), 400, "{version} {headers}");
        assert_eq!(connection.rest().0, b"", "{version} {headers}: nothing after it is answered");
    }
    // The transfer coding counts, and whoever relied on the length sends nothing more on this connection (RFC 9112, 6.3).
    for headers in [
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let mut connection = echo("HTTP/1.1", headers, CHUNKED);
        let answer = connection.answer(None);
        assert_eq!((answer.status(), &answer.body[..]), (200, &b"hello"[..]), "{headers}");
        assert_eq!(connection.rest().0, b"", "{headers}: nothing after it is answered");
    }
    let mut connection = echo("HTTP/1.1", "Transfer-Encoding: Chunked\r\n", CHUNKED);
    assert_eq!(connection.answer(None).body, b"hello");
    assert_eq!(connection.answer(None).body, shown().bytes["small"]);
}

//! Tests valid, invalid and interrupted connections.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::connection::RawConnection;
use crate::server::{ETAG, MODES, shared_server};

#[test]
fn http_1_0_clients_get_http_1_0_responses() {
    let bytes = &shared_server().bytes["layered"];
    for (headers, status, body) in [
        ("", 200, bytes.as_slice()),
        ("Range: bytes=5-70000\r\n", 206, &bytes[5..=70_000]),
        // HTTP/1.0 has no multipart ranges.
        ("Range: bytes=5-6,8-9\r\n", 200, bytes.as_slice()),
    ] {
        let mut connection = shared_server().server.connect();
        connection.write(format!("GET /mapped/layered HTTP/1.0\r\n{headers}\r\n"));
        let answer = connection.read_answer(None);
        assert_eq!(answer.status(), status, "{headers}");
        assert_eq!(answer.header("transfer-encoding"), None);
        assert!(answer.body == body, "{headers}");
        assert_eq!(connection.read_to_end(), (Vec::new(), true), "the connection closes after the last byte");
    }
    let mut connection = shared_server().server.connect();
    for _ in 0..2 {
        connection.write("GET /mapped/small HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(connection.read_answer(None).body.len(), 1000);
    }
}

#[test]
fn pipelined_requests_get_responses() {
    let bytes = &shared_server().bytes["layered"];
    let mut connection = shared_server().server.connect();
    let mut requests = String::new();
    for first in 0..50 {
        let range = format!("bytes={first}-{}", 100_000 + first);
        requests.push_str(&format!("GET /mapped/layered HTTP/1.1\r\nHost: test\r\nRange: {range}\r\n\r\n"));
        requests.push_str("HEAD /mapped/layered HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    let mut writer = std::net::TcpStream::connect(shared_server().server.address).unwrap();
    writer.write_all(requests.as_bytes()).unwrap();
    connection.write(&requests);
    for first in 0..50 {
        assert!(connection.read_answer(None).body == bytes[first..=100_000 + first], "{first}");
        assert_eq!(connection.read_answer(Some(0)).declared_len(), bytes.len());
    }
}

#[test]
fn connection_survives_refused_requests() {
    let mut connection = shared_server().server.connect();
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
        assert_eq!(connection.request_and_read(line, headers).status(), status, "{line} {headers}");
    }
}

#[test]
fn request_must_name_exactly_one_host() {
    let mut connection = shared_server().server.connect();
    for (hosts, status) in [
        ("Host: [::1]:80\r\n", 200),
        ("Host:\r\n", 200),
        ("", 400),
        ("Host: test\r\nHost: test\r\n", 400),
        ("Host: a b\r\n", 400),
        ("Host: test:80:80\r\n", 400),
    ] {
        connection.write(format!("GET /mapped/small HTTP/1.1\r\n{hosts}\r\n"));
        assert_eq!(connection.read_answer(None).status(), status, "{hosts:?}");
    }
}

#[test]
fn absolute_request_targets_are_accepted() {
    let mut connection = shared_server().server.connect();
    assert_eq!(connection.request_and_read("GET http://other.example.com/mapped/small", "").body.len(), 1000);
    assert_eq!(
        connection.request_and_read("HEAD http://other.example.com:8080/mapped/small", "").declared_len(),
        1000
    );
    assert_eq!(connection.request_and_read("GET /mapped/small?with=query", "").body.len(), 1000);
}

#[test]
fn expect_100_continue_gets_a_response() {
    let mut connection = shared_server().server.connect();
    let headers = "Expect: 100-continue\nContent-Length: 4";
    connection.write_request("GET /mapped/small", headers);
    // The server ignores the body of a GET request, so it sends the response without `100 Continue`.
    assert_eq!(connection.read_answer(None).body, shared_server().bytes["small"]);
    let mut connection = shared_server().server.connect();
    assert_eq!(connection.request_and_read("GET /mapped/small", "Expect: 100-continue").body.len(), 1000);
}

#[test]
fn request_heads_are_limited() {
    let mut connection = shared_server().server.connect();
    let large = format!("Range: bytes={}", "0-0,".repeat(8 << 10));
    connection.write_request("GET /mapped/small", &large);
    let answer = connection.read_answer(None);
    assert_eq!(answer.status(), 431);
    assert_eq!(answer.header("content-type"), None);
    let mut connection = shared_server().server.connect();
    connection.write("GET /mapped/small\r\n\r\n");
    assert_eq!(connection.read_answer(None).status(), 400);
    assert!(connection.is_closed());
}

#[test]
fn slow_reader_gets_all_bytes() {
    for mode in MODES {
        let bytes = &shared_server().bytes["plain"];
        let mut connection = shared_server().server.connect();
        connection.write_request(&format!("GET /{mode}/plain"), "");
        connection.read_head();
        let mut read = Vec::new();
        while read.len() < bytes.len() {
            let len = (bytes.len() - read.len()).min(997);
            read.extend(connection.read_exactly(len));
            std::thread::yield_now();
        }
        assert!(read == *bytes, "{mode}");
        assert_eq!(connection.request_and_read(&format!("GET /{mode}/small"), "").declared_len(), 1000);
    }
}

#[test]
fn half_closed_client_gets_all_bytes() {
    for mode in MODES {
        let bytes = &shared_server().bytes["plain"];
        let mut connection = shared_server().server.connect();
        connection.write_request(&format!("GET /{mode}/plain"), "");
        connection.close_sending_side();
        let answer = connection.read_answer(None);
        assert!(answer.body == *bytes, "{mode}");
        assert_eq!(connection.read_to_end(), (Vec::new(), true));
    }
}

#[test]
fn disconnecting_client_does_not_disturb_others() {
    for mode in MODES {
        let mut going = Vec::new();
        for _ in 0..20 {
            let mut connection = shared_server().server.connect();
            connection.write_request(&format!("GET /{mode}/plain"), "");
            connection.read_exactly(1000);
            going.push(connection);
        }
        // Each connection has unread bytes, so the kernel resets it.
        drop(going);
        assert!(
            shared_server().server.connect().request_and_read(&format!("GET /{mode}/plain"), "").body
                == shared_server().bytes["plain"]
        );
    }
}

/// Sends a request for `/echo` with these headers and this body, and then another request.
fn request_echo(version: &str, headers: &str, body: &str) -> RawConnection {
    let mut connection = shared_server().server.connect();
    let next = "GET /mapped/small HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    connection.write(format!("POST /echo {version}\r\nHost: test\r\n{headers}\r\n{body}{next}"));
    connection
}

#[test]
fn half_closed_client_gets_the_response_to_its_body() {
    const HEAD: &str = "POST /echo HTTP/1.1\r\nHost: test\r\n";
    let long = "a".repeat(70_000);
    let long_in_chunks = format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    for (header, sent, body) in [
        ("Content-Length: 70000\r\n", &long, &long),
        ("Transfer-Encoding: chunked\r\n", &long_in_chunks, &long),
    ] {
        // The last bytes and the end arrive while the reader of the body waits.
        for first in [0, 1, 35_000, sent.len() - 1] {
            let mut connection = shared_server().server.connect();
            connection.write(format!("{HEAD}{header}\r\n{}", &sent[..first]));
            thread::sleep(Duration::from_millis(20));
            connection.write(&sent[first..]);
            connection.close_sending_side();
            let answer = connection.read_answer(None);
            assert_eq!(answer.status(), 200, "{header} {first}");
            assert!(answer.body == body.as_bytes(), "{header} {first}");
            assert_eq!(connection.read_to_end(), (Vec::new(), true), "{header} {first}");
        }
    }
    // The client never sends the rest of this body.
    let mut connection = shared_server().server.connect();
    connection.write(format!("{HEAD}Content-Length: 10\r\n\r\n12345"));
    connection.close_sending_side();
    assert!(!connection.read_to_end().0.starts_with(b"HTTP/1.1 200"));
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
        let mut connection = request_echo("HTTP/1.1", headers, CHUNKED);
        let answer = connection.read_answer(None);
        assert_eq!((answer.status(), answer.header("connection")), (501, Some("close")), "{headers}");
        assert_eq!(connection.read_to_end().0, b"", "{headers}: the next request got a response");
    }
    // A client that is still sending receives the response.
    let chunk = format!("100000\r\n{}\r\n", "a".repeat(1 << 20));
    let body = format!("{}0\r\n\r\n", chunk.repeat(8));
    let mut connection = request_echo("HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n", &body);
    assert_eq!(connection.read_answer(None).status(), 501);
}

#[test]
fn rejects_bodies_of_ambiguous_length() {
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
        let mut connection = request_echo(version, headers, CHUNKED);
        assert_eq!(connection.read_answer(None).status(), 400, "{version} {headers}");
        assert_eq!(connection.read_to_end().0, b"", "{version} {headers}: the next request got a response");
    }
    // Transfer-Encoding overrides Content-Length, and the connection closes, because the length may have misled the
    // client (RFC 9112, 6.3).
    for headers in [
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let mut connection = request_echo("HTTP/1.1", headers, CHUNKED);
        let answer = connection.read_answer(None);
        assert_eq!((answer.status(), &answer.body[..]), (200, &b"hello"[..]), "{headers}");
        assert_eq!(connection.read_to_end().0, b"", "{headers}: the next request got a response");
    }
    let mut connection = request_echo("HTTP/1.1", "Transfer-Encoding: Chunked\r\n", CHUNKED);
    assert_eq!(connection.read_answer(None).body, b"hello");
    assert_eq!(connection.read_answer(None).body, shared_server().bytes["small"]);
}

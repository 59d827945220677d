//! Range requests: one range, several, too many, unsatisfiable.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::connection::ReceivedAnswer;
use crate::server::{MEDIA_TYPE, MODES, shared_server};

/// Returns the parts of a multipart response: the declared range of each, and its bytes.
fn multipart_parts(answer: &ReceivedAnswer) -> Vec<(String, Vec<u8>)> {
    let media_type = answer.header("content-type").unwrap();
    let boundary = media_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let mut parts = Vec::new();
    let mut rest = answer.body.as_slice();
    let mut expected = format!("--{boundary}\r\n");
    loop {
        if rest == format!("\r\n--{boundary}--\r\n").as_bytes() {
            return parts;
        }
        rest = rest.strip_prefix(expected.as_bytes()).unwrap();
        expected = format!("\r\n--{boundary}\r\n");
        let end = rest.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let range =
            head.strip_prefix(&format!("Content-Type: {MEDIA_TYPE}\r\nContent-Range: bytes ")).unwrap();
        let (bounds, _) = range.split_once('/').unwrap();
        let (first, last) = bounds.split_once('-').unwrap();
        let len = last.parse::<usize>().unwrap() + 1 - first.parse::<usize>().unwrap();
        let (bytes, behind) = rest[end + 4..].split_at(len);
        parts.push((range.to_owned(), bytes.to_vec()));
        rest = behind;
    }
}

#[test]
fn single_range_is_a_part_of_the_image() {
    let bytes = &shared_server().bytes["small"];
    assert_eq!(bytes.len(), 1000);
    let mut connection = shared_server().server.connect();
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=0-999", 0, 999),
        ("bytes=0-", 0, 999),
        ("bytes=10-19", 10, 19),
        ("bytes=990-2000", 990, 999),
        ("bytes=-1", 999, 999),
        ("bytes=-1001", 0, 999),
        ("bytes=5-6,1000-", 5, 6),
        ("bytes=5-6,,", 5, 6),
        ("BYTES=5-6", 5, 6),
    ] {
        let answer = connection.request_and_read("GET /mapped/small", &format!("Range: {range}"));
        assert!(answer.head.starts_with("HTTP/1.1 206 Partial Content\r\n"), "{range}: {}", answer.head);
        assert_eq!(answer.header("content-range"), Some(&*format!("bytes {first}-{last}/1000")), "{range}");
        assert_eq!(answer.header("content-type"), Some(MEDIA_TYPE));
        assert_eq!(answer.declared_len(), last - first + 1);
        assert!(answer.body == bytes[first..=last], "{range}");
    }
}

#[test]
fn invalid_range_returns_the_whole_image() {
    let bytes = &shared_server().bytes["small"];
    let mut connection = shared_server().server.connect();
    for headers in [
        "Range: bytes=2-1",
        "Range: bytes=a-b",
        "Range: bytes 0-1",
        "Range: bytes=0-1,b",
        "Range: items=0-1",
        "Range: none",
        "Range:",
        "Range: bytes=0-1\nRange: bytes=2-3",
        "Range: bytes=0-,0-",
        &format!("Range: bytes={}", "1-1,".repeat(65)),
    ] {
        let answer = connection.request_and_read("GET /mapped/small", headers);
        assert_eq!((answer.status(), answer.header("content-range")), (200, None), "{headers}");
        assert!(answer.body == *bytes, "{headers}");
    }
    // Ranges apply only to GET.
    let answer = connection.request_and_read("HEAD /mapped/small", "Range: bytes=0-1");
    assert_eq!((answer.status(), answer.declared_len()), (200, 1000));
}

#[test]
fn unsatisfiable_range_is_refused_with_416() {
    let mut connection = shared_server().server.connect();
    for (name, len, range) in [
        ("small", 1000, "bytes=1000-"),
        ("small", 1000, "bytes=-0"),
        ("small", 1000, "bytes=1000-1001,5000-"),
        ("small", 1000, "bytes=99999999999999999999-"),
        ("empty", 0, "bytes=0-"),
        ("empty", 0, "bytes=0-0"),
    ] {
        let answer = connection.request_and_read(&format!("GET /mapped/{name}"), &format!("Range: {range}"));
        assert!(answer.head.starts_with("HTTP/1.1 416 Range Not Satisfiable\r\n"), "{}", answer.head);
        let expected = ["accept-ranges: bytes".to_owned(), format!("content-range: bytes */{len}")];
        assert_eq!(answer.refusal_headers(), expected, "{range}");
    }
    // An empty file has no last bytes.
    let answer = connection.request_and_read("GET /mapped/empty", "Range: bytes=-5");
    assert_eq!((answer.status(), answer.declared_len()), (200, 0));
}

#[test]
fn multiple_ranges_are_sent_in_request_order() {
    for mode in MODES {
        for name in ["layered", "full", "minimal", "memory"] {
            let bytes = &shared_server().bytes[name];
            let len = bytes.len();
            let mut connection = shared_server().server.connect();
            let headers = "Range: bytes=-7, 0-0,70000-170000 ,5-9";
            let answer = connection.request_and_read(&format!("GET /{mode}/{name}"), headers);
            assert_eq!((answer.status(), answer.header("content-range")), (206, None));
            let part =
                |first: usize, last: usize| (format!("{first}-{last}/{len}"), bytes[first..=last].to_vec());
            let expected = [part(len - 7, len - 1), part(0, 0), part(70_000, 170_000), part(5, 9)];
            assert!(multipart_parts(&answer) == expected, "{mode}/{name}");
            // The next response starts directly after the last byte.
            assert_eq!(connection.request_and_read(&format!("GET /{mode}/small"), "").declared_len(), 1000);
        }
    }
    let mut connection = shared_server().server.connect();
    let headers = format!("Range: bytes={}", (0..64).map(|n| format!("{n}-{n},")).collect::<String>());
    assert_eq!(multipart_parts(&connection.request_and_read("GET /mapped/small", &headers)).len(), 64);
}

#[test]
fn ranges_around_64_kib_are_sent_without_delay() {
    for mode in MODES {
        for name in ["plain", "layered"] {
            let bytes = &shared_server().bytes[name];
            let mut connection = shared_server().server.connect();
            let start = std::time::Instant::now();
            for len in [1, 65_024, 65_535, 65_536, 65_537, 131_072, 1 << 20] {
                for first in [0, 1, 65_535, 700_000, 1_000_000] {
                    let headers = format!("Range: bytes={first}-{}", first + len - 1);
                    let answer = connection.request_and_read(&format!("GET /{mode}/{name}"), &headers);
                    assert!(answer.body == bytes[first..first + len], "{mode}/{name} {headers}");
                }
            }
            // 35 responses: if one delayed acknowledgement (40 ms) slowed each of them, they would take 1.4 s.
            assert!(start.elapsed().as_millis() < 1000, "{mode}/{name}: {:?}", start.elapsed());
        }
    }
}

#[test]
fn any_range_matches_the_plan() {
    for mode in MODES {
        for name in ["layered", "full", "minimal"] {
            let bytes = &shared_server().bytes[name];
            let connection = std::cell::RefCell::new(shared_server().server.connect());
            let mut runner = TestRunner::new(Config::with_cases(200));
            let range = (0..bytes.len(), prop_oneof![0..100_usize, 0..200_000_usize]);
            let check = |(first, len): (usize, usize)| {
                let last = (first + len).min(bytes.len() - 1);
                let headers = format!("Range: bytes={first}-{last}");
                let answer =
                    connection.borrow_mut().request_and_read(&format!("GET /{mode}/{name}"), &headers);
                prop_assert_eq!(answer.status(), 206);
                prop_assert!(answer.body == bytes[first..=last], "{} differs", headers);
                Ok(())
            };
            runner.run(&range, check).unwrap();
        }
    }
}

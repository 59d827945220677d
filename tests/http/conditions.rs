//! Tests the metadata of responses, and preconditions.

use chrono::{TimeDelta, Utc};
use isogen::{Plan, Source};
use std::sync::Arc;

use crate::server::{
    ContentServer, ETAG, MEDIA_TYPE, MODES, MODIFIED, representation, representation_with_tag, shared_server,
};

const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

#[test]
fn response_has_type_validators_and_length() {
    for mode in MODES {
        for (name, bytes) in &shared_server().bytes {
            let mut connection = shared_server().server.connect();
            let answer = connection.request_and_read(&format!("GET /{mode}/{name}"), "");
            assert!(answer.head.starts_with("HTTP/1.1 200 OK\r\n"), "{}", answer.head);
            assert_eq!(
                answer.headers_without_date(),
                [
                    "accept-ranges: bytes",
                    "cache-control: private, no-cache",
                    "content-disposition: attachment; filename=image.iso",
                    &format!("content-length: {}", bytes.len()),
                    &format!("content-type: {MEDIA_TYPE}"),
                    &format!("etag: {ETAG}"),
                    &format!("last-modified: {MODIFIED}"),
                ]
            );
            assert!(answer.header("date").is_some());
            assert!(answer.body == *bytes, "{mode}/{name} has wrong bytes");
            let head = connection.request_and_read(&format!("HEAD /{mode}/{name}"), "");
            assert_eq!((head.status(), head.headers_without_date()), (200, answer.headers_without_date()));
        }
    }
}

#[test]
fn preconditions_are_evaluated_in_rfc_order() {
    let mut connection = shared_server().server.connect();
    for (headers, status) in [
        (format!("If-Match: {ETAG}"), 200),
        ("If-Match: *".into(), 200),
        (format!("If-Match: W/{ETAG}"), 412),
        ("If-Match: \"other\"".into(), 412),
        (format!("If-Match: \"other\", {ETAG}"), 200),
        (format!("If-None-Match: {ETAG}"), 304),
        (format!("If-None-Match: W/{ETAG}"), 304),
        ("If-None-Match: *".into(), 304),
        ("If-None-Match: \"other\"".into(), 200),
        (format!("If-Modified-Since: {BEFORE}"), 200),
        (format!("If-Modified-Since: {MODIFIED}"), 304),
        (format!("If-Modified-Since: {AFTER}"), 304),
        ("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT".into(), 304),
        ("If-Modified-Since: Sun Nov  6 08:49:37 1994".into(), 304),
        ("If-Modified-Since: soon".into(), 200),
        (format!("If-Unmodified-Since: {BEFORE}"), 412),
        (format!("If-Unmodified-Since: {MODIFIED}"), 200),
        ("If-Unmodified-Since: soon".into(), 200),
        (format!("If-Match: {ETAG}\nIf-Unmodified-Since: {BEFORE}"), 200),
        (format!("If-None-Match: \"other\"\nIf-Modified-Since: {AFTER}"), 200),
        (format!("If-None-Match: {ETAG}\nIf-Modified-Since: {BEFORE}"), 304),
        (format!("If-Match: \"other\"\nIf-None-Match: {ETAG}"), 412),
        // Preconditions are evaluated before ranges.
        (format!("If-None-Match: {ETAG}\nRange: bytes=0-1"), 304),
        ("If-Match: \"other\"\nRange: bytes=0-1".into(), 412),
        (format!("If-None-Match: {ETAG}\nRange: bytes=9999-"), 304),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = connection.request_and_read(&format!("{method} /mapped/small"), &headers);
            assert_eq!(answer.status(), status, "{method} {headers}");
            match status {
                304 => {
                    let expected = [
                        "cache-control: private, no-cache".to_owned(),
                        format!("etag: {ETAG}"),
                        format!("last-modified: {MODIFIED}"),
                    ];
                    assert_eq!(answer.headers_without_date(), expected, "{headers}");
                }
                412 => assert!(answer.refusal_headers().is_empty(), "{headers}"),
                _ => {}
            }
        }
    }
}

#[test]
fn if_range_returns_a_range_only_for_the_same_representation() {
    let bytes = &shared_server().bytes["small"];
    let mut connection = shared_server().server.connect();
    for (validator, is_same) in [
        (ETAG, true),
        (MODIFIED, true),
        ("Sun Nov  6 08:49:37 1994", true),
        ("W/\"image-1\"", false),
        ("\"image-0\"", false),
        (BEFORE, false),
        (AFTER, false),
        ("nonsense", false),
    ] {
        let headers = format!("Range: bytes=900-\nIf-Range: {validator}");
        let answer = connection.request_and_read("GET /mapped/small", &headers);
        let (status, expected) = if is_same { (206, &bytes[900..]) } else { (200, &bytes[..]) };
        assert_eq!((answer.status(), answer.body.as_slice()), (status, expected), "{validator}");
        assert_eq!(answer.header("etag"), Some(ETAG));
        assert_eq!(answer.header("content-range").is_some(), is_same);
    }
    // If-Range does not match, so the server ignores even an unsatisfiable range and sends the whole image.
    let answer =
        connection.request_and_read("GET /mapped/small", "Range: bytes=9999-\nIf-Range: \"image-0\"");
    assert_eq!((answer.status(), answer.body.as_slice()), (200, &bytes[..]));
    // Without a range, If-Range has no effect.
    assert_eq!(connection.request_and_read("GET /mapped/small", "If-Range: \"image-0\"").status(), 200);
}

#[test]
fn download_resumes_the_same_image_or_restarts() {
    let server = ContentServer::start(1);
    let plan = |text: &'static str| Plan::from_source(Arc::new(Source::from_bytes("image", text.as_bytes())));
    server.put("image", representation(plan("the first image")));
    let mut connection = server.connect();
    let first = connection.request_and_read("GET /mapped/image", "Range: bytes=0-3");
    assert_eq!(first.body, b"the ");
    let etag = first.header("etag").unwrap();
    let resume = format!("Range: bytes=4-\nIf-Range: {etag}");
    assert_eq!(connection.request_and_read("GET /mapped/image", &resume).body, b"first image");
    let second = plan("another one of another length");
    server.put("image", representation_with_tag(second, "\"image-2\"", Utc::now()));
    let answer = connection.request_and_read("GET /mapped/image", &resume);
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.body, b"another one of another length");
    assert_eq!(answer.header("etag"), Some("\"image-2\""));
}

#[test]
fn last_modified_is_never_in_the_future() {
    let server = ContentServer::start(1);
    let put_new = || {
        let plan = Plan::from_source(Arc::new(Source::from_bytes("image", &b"new"[..])));
        server.put("new", representation_with_tag(plan, ETAG, Utc::now() + TimeDelta::days(1)));
    };
    put_new();
    let mut connection = server.connect();
    let answer = connection.request_and_read("GET /mapped/new", "");
    let time = |name| chrono::DateTime::parse_from_rfc2822(answer.header(name).unwrap()).unwrap();
    // hyper updates its clock once a second.
    assert!(time("last-modified") <= time("date") + TimeDelta::seconds(1), "{}", answer.head);
    // A date within the current second does not identify the bytes. Repeat if the second ends meanwhile.
    let in_one_second = || {
        put_new();
        let second = Utc::now().timestamp();
        let answer = connection.request_and_read("GET /mapped/new", "");
        let headers = format!("Range: bytes=1-\nIf-Range: {}", answer.header("last-modified").unwrap());
        let answer = connection.request_and_read("GET /mapped/new", &headers);
        (Utc::now().timestamp() == second).then(|| answer.status())
    };
    assert_eq!(std::iter::repeat_with(in_one_second).take(100).flatten().next(), Some(200));
    let headers = format!("Range: bytes=1-\nIf-Range: {ETAG}");
    assert_eq!(connection.request_and_read("GET /mapped/new", &headers).body, b"ew");
}

//! Object stores that are hostile, slow or unreachable.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use futures_util::stream;
use kindling::inventory::files::{BucketLimits, FileError, FilePath, FileStore};

use crate::store::{block_on, process_task, test_process};

/// A token in responses, which must not be in any error.
const SECRET: &str = "s3cret-session-token";
/// Short limits, because an unreachable store must not delay the tests.
const LIMITS: BucketLimits =
    BucketLimits { stall: Duration::from_millis(300), retry: Duration::from_millis(100) };

/// Starts a server, and returns its URL.
fn start_server(mut serve: impl FnMut(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().for_each(|connection| serve(connection.unwrap())));
    url
}

/// Starts a store that responds after the head of each request. Returns its URL.
fn start_store(respond: impl Fn(&str) -> Vec<u8> + Clone + Send + 'static) -> String {
    start_server(move |connection| {
        let respond = respond.clone();
        thread::spawn(move || send_response(connection, respond));
    })
}

/// Starts a store that does not respond. Returns its URL.
fn start_silent_store() -> String {
    // Keeps connections open until the process ends.
    let mut open = Vec::new();
    start_server(move |connection| open.push(connection))
}

/// Reads one request, and sends a response.
fn send_response(mut connection: TcpStream, respond: impl Fn(&str) -> Vec<u8>) {
    let mut request = Vec::new();
    let mut buffer = [0; 65536];
    let head_len = loop {
        let Ok(len @ 1..) = connection.read(&mut buffer) else { return };
        request.extend_from_slice(&buffer[..len]);
        if let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&request[..head_len]).into_owned();
    let body_len: usize = head
        .to_ascii_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |len| len.trim().parse().unwrap());
    while request.len() < head_len + body_len {
        let Ok(len @ 1..) = connection.read(&mut buffer) else { return };
        request.extend_from_slice(&buffer[..len]);
    }
    // The client may disconnect before the end of a long response.
    let _ = connection.write_all(&respond(&head));
}

fn response(status: u16, body: &str) -> Vec<u8> {
    let len = body.len();
    let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n");
    format!("{head}{body}").into_bytes()
}

fn error_body(code: &str, len: usize) -> String {
    let filler = "x".repeat(len);
    format!("<Error><Code>{code}</Code><Message>{SECRET} {filler}</Message><Token>{SECRET}</Token></Error>")
}

/// Uses a bucket in a separate process, because the settings are environment variables.
fn use_bucket(task: &str, endpoint: &str) -> Output {
    test_process("buckets::process_that_uses_a_bucket", task)
        .env("S3_ENDPOINT_URL", endpoint)
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_SESSION_TOKEN", SECRET)
        .env("AWS_REGION", "us-east-1")
        .env_remove("HTTP_PROXY")
        .env_remove("http_proxy")
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap()
}

/// Returns the errors of operations on a store that sends the same response to each request.
#[track_caller]
fn failures(response: Vec<u8>) -> Vec<String> {
    failures_at(&start_store(move |_| response.clone()))
}

/// Returns the lines of all failed operations, which never contain the secret.
#[track_caller]
fn failures_at(url: &str) -> Vec<String> {
    let output = use_bucket("operations", url);
    let [text, log] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{text}{log}");
    assert!(!text.contains(SECRET) && !log.contains(SECRET), "{text}{log}");
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("failed ")).map(str::to_owned).collect();
    assert!(lines.iter().all(|line| line.len() < 500), "{lines:?}");
    lines
}

fn report<T>(operation: &str, result: Result<T, FileError>) {
    let Err(error) = result else { return println!("done {operation}") };
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    println!("failed {operation} outage={} {text}", error.is_outage());
}

#[test]
#[ignore = "the process that the other tests start"]
fn process_that_uses_a_bucket() {
    let task = process_task();
    block_on(async {
        let files = match FileStore::open_with_limits("s3://kindling-files/prefix", LIMITS) {
            Ok(files) => files,
            Err(error) => return report("open", Err::<(), _>(error)),
        };
        if task == "open" {
            return println!("opened");
        }
        if task == "clean" {
            return report("clean", files.remove_incomplete_uploads(Duration::ZERO, Utc::now()).await);
        }
        let path = FilePath::from_names(["clusters", "a", "logs"]).unwrap();
        report("get", files.get(&path).await);
        report("list", files.list(&path).await);
        report("delete", files.delete(&path).await);
        report("check", files.check().await);
        report("clean", files.remove_incomplete_uploads(Duration::ZERO, Utc::now()).await);
        for mebibytes in [1, 20] {
            let pieces = (0..mebibytes).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![7; 1 << 20])));
            report("put", files.put(&path, stream::iter(pieces), u64::MAX).await);
        }
    });
}

#[test]
fn errors_do_not_contain_responses_of_the_store() {
    for len in [0, 3 << 20] {
        let lines = failures(response(403, &error_body("AccessDenied", len)));
        assert_eq!(lines.len(), 7, "{lines:?}");
        for line in lines {
            assert!(line.contains("outage=false") && line.contains("status 403 (AccessDenied)"), "{line}");
        }
    }
    let lines = failures(response(500, &error_body("InternalError", 3 << 20)));
    assert_eq!(lines.len(), 7, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("outage=true")), "{lines:?}");
    // Successful responses with invalid bodies.
    for body in [error_body("InternalError", 10), SECRET.to_owned(), format!("<{SECRET}>")] {
        let lines = failures(response(200, &body));
        let operations: Vec<_> = lines.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
        assert!(operations.contains(&"put"), "{lines:?}");
    }
}

#[test]
fn missing_bucket_is_reported_by_name() {
    let lines = failures(response(404, &error_body("NoSuchBucket", 0)));
    assert_eq!(lines.len(), 7, "{lines:?}");
    for line in lines {
        assert!(line.contains("outage=false"), "{line}");
        assert!(line.contains("bucket kindling-files does not exist; create it"), "{line}");
    }
    // Reading a missing file is not an error.
    let lines = failures(response(404, &error_body("NoSuchKey", 0)));
    assert!(lines.iter().all(|line| !line.starts_with("failed get ")), "{lines:?}");
}

#[test]
fn unreachable_or_silent_store_is_an_outage() {
    let lines = failures_at(&start_silent_store());
    assert_eq!(lines.len(), 7, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("outage=true")), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("no progress for 300ms")), "{lines:?}");
    let closed_port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = use_bucket("operations", &format!("http://{closed_port}"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("outage=true").count(), 7, "{text}");
}

/// Returns the list of uploads in XML: one old upload, and then the text `end`.
fn upload_list(key: &str, end: &str) -> String {
    format!(
        "<ListMultipartUploadsResult><Upload><Key>{key}</Key><UploadId>id-1</UploadId>\
         <Initiated>2024-05-06T07:08:09.000Z</Initiated></Upload>{end}</ListMultipartUploadsResult>"
    )
}

#[test]
fn incomplete_uploads_of_all_lists_are_removed() {
    let first = upload_list(
        "prefix/a&amp;b",
        "<IsTruncated>true</IsTruncated><NextKeyMarker>prefix/a&amp;b</NextKeyMarker>\
         <NextUploadIdMarker>id=1</NextUploadIdMarker>",
    );
    let last = upload_list("prefix/clusters/a/logs", "<IsTruncated>false</IsTruncated>");
    let targets = Arc::new(Mutex::new(Vec::new()));
    let recorded_targets = Arc::clone(&targets);
    let url = start_store(move |head| {
        let target = head.lines().next().unwrap().to_owned();
        let list = if target.contains("key-marker=") { &last } else { &first };
        recorded_targets.lock().unwrap().push(target);
        response(200, list)
    });
    let output = use_bucket("clean", &url);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("done clean"), "{text}");
    let targets = targets.lock().unwrap();
    let [first, second, removal] = &targets[..] else { panic!("{targets:?}") };
    assert!(first.starts_with("GET ") && !first.contains("key-marker="), "{first}");
    assert!(second.contains("&key-marker=prefix%2Fa%26b&upload-id-marker=id%3D1"), "{second}");
    assert!(removal.starts_with("DELETE "), "{removal}");
    assert!(removal.contains("/prefix/clusters/a/logs?uploadId=id-1"), "{removal}");
}

#[test]
fn rejects_invalid_settings_when_the_store_is_opened() {
    for (name, value) in [
        ("S3_ENDPOINT_URL", "http://user:s3cret-session-token@127.0.0.1:9"),
        ("S3_ENDPOINT_URL", "127.0.0.1:9"),
        ("S3_ENDPOINT_URL", "http://a b"),
        ("AWS_REGION", "us east 1"),
        ("AWS_ACCESS_KEY_ID", "a\nb"),
        ("AWS_SECRET_ACCESS_KEY", ""),
        ("AWS_SESSION_TOKEN", "s3cret-session-token\r\nX: y"),
    ] {
        let mut command = test_process("buckets::process_that_uses_a_bucket", "open");
        command.env("S3_ENDPOINT_URL", "http://127.0.0.1:9").env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test").env(name, value);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let expected = if name == "S3_ENDPOINT_URL" {
            "cannot store files at an S3 bucket: S3_ENDPOINT_URL"
        } else {
            name
        };
        assert!(text.contains("failed open") && text.contains(expected), "{name}={value:?}: {text}");
        assert!(!text.contains(SECRET), "{text}");
    }
}

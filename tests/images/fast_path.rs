//! The fast path sends ranges of recently requested images. Its responses are the same as the responses of the slow
//! path.

use std::fmt::Write as _;

use kindling::http::{ListenAddr, Listener, ServerLimits};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{ImageTestServer, header, run};

/// A header that has no effect, except that it sends a request through the slow path.
const LONG: &str = "X-Way: long\r\n";

/// A keep-alive connection for one request after another.
struct KeepAliveConnection {
    stream: TcpStream,
    path: String,
}

/// The head of a response without its date, and the body.
#[derive(Debug, PartialEq, Eq)]
struct ComparableAnswer {
    head: Vec<String>,
    body: Vec<u8>,
}

impl KeepAliveConnection {
    async fn open(server: &ImageTestServer, path: &str) -> Self {
        let stream = TcpStream::connect(server.base.strip_prefix("http://").unwrap()).await.unwrap();
        Self { stream, path: path.to_owned() }
    }

    async fn get(&mut self, headers: &str) -> ComparableAnswer {
        let request = format!("GET {} HTTP/1.1\r\nHost: test\r\n{headers}\r\n", self.path);
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(self.stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(bytes).unwrap();
        let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
        let dates = lines.iter().filter(|line| line.starts_with("date: ")).count();
        assert_eq!(dates, 1, "{head}");
        lines.retain(|line| !line.starts_with("date: "));
        let len = lines.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; len.parse().unwrap()];
        self.stream.read_exact(&mut body).await.unwrap();
        ComparableAnswer { head: lines, body }
    }
}

#[test]
fn fast_and_slow_path_send_the_same_responses() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (infra_env, id) = server.create_infra_env().await;
        let files = ["full.iso", "minimal.iso", "initrd", "kernel"].map(|file| format!("/i/{id}/{file}"));
        let of_revision = infra_env["download_url"].as_str().unwrap().strip_prefix(&server.base).unwrap();
        for path in files.into_iter().chain([of_revision.to_owned()]) {
            let image = server.get_bytes(&path).await;
            let mut connection = KeepAliveConnection::open(&server, &path).await;
            let len = image.len();
            let mut ranges: Vec<String> = [
                "0-0",
                "0-2047",
                "1-1",
                "32768-34815",
                "5-",
                "-1",
                "-100000",
                "0-999999999999",
                "007-0009",
                ",3-4",
                "999999999999-",
                "-0",
                "4-3",
                "a-b",
                "",
                "5",
                "0-1;",
                "--1",
            ]
            .map(|range| format!("bytes={range}"))
            .into();
            ranges.extend(["items=0-1", "bytes", "BYTES=7-8", "bytes= 7-8"].map(str::to_owned));
            ranges.extend((0..60).map(|step| {
                let first = len / 60 * step;
                format!("bytes={first}-{}", first + 4095 + step * 700)
            }));
            ranges.extend([0, 1, 2].map(|before| format!("bytes={}-{}", len - 1 - before, len - 1)));
            for range in ranges {
                let long = connection.get(&format!("Range: {range}\r\n{LONG}")).await;
                let short = connection.get(&format!("Range: {range}\r\n")).await;
                assert_eq!(long.head, short.head, "{path}: {range}");
                assert!(long.body == short.body, "{path}: {range}");
                if let Some((first, last)) = short.head.iter().find_map(|line| {
                    line.strip_prefix("content-range: bytes ")?.split_once('/')?.0.split_once('-')
                }) {
                    let [first, last]: [usize; 2] = [first, last].map(|at| at.parse().unwrap());
                    assert!(short.body == image[first..=last], "{path}: {range}");
                }
            }
        }
    });
}

#[test]
fn changes_take_effect_immediately() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let mut connection = KeepAliveConnection::open(&server, &format!("/i/{id}/full.iso")).await;
        let mut etags = Vec::new();
        for number in 0..5 {
            let mut answers = [
                connection.get("Range: bytes=0-99\r\n").await,
                connection.get("Range: bytes=0-99\r\n").await,
                connection.get("Range: bytes=0-99\r\n").await,
            ];
            // Recorded changes are at least a second apart, so their times run ahead of the clock here.
            // `Last-Modified` is then the current time, which may differ between responses.
            for answer in &mut answers {
                answer.head.retain(|line| !line.starts_with("last-modified: "));
            }
            assert_eq!(answers[0], answers[1]);
            assert_eq!(answers[0], answers[2]);
            let etag = answers[0].head.iter().find(|line| line.starts_with("etag: ")).unwrap().clone();
            assert!(!etags.contains(&etag), "{etag}");
            etags.push(etag);
            let change =
                json!({"kernel_arguments": [{"operation": "append", "value": format!("n={number}")}]});
            server.api(Method::PATCH, &format!("/infra-envs/{id}"), &change).await;
        }
    });
}

#[test]
fn all_responses_are_counted_and_traced() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let mut connection = KeepAliveConnection::open(&server, &format!("/i/{id}/full.iso")).await;
        for _ in 0..10 {
            connection.get("Range: bytes=100-199\r\n").await;
            connection.get(&format!("Range: bytes=100-199\r\n{LONG}")).await;
        }
        let trace = server.get_bytes(&format!("/i/{id}/boot-trace")).await;
        let trace: serde_json::Value = serde_json::from_slice(&trace).unwrap();
        let reader = &trace["readers"][0];
        assert_eq!((&reader["answers"], &reader["bytes_sent"]), (&json!(20), &json!(2000)), "{trace}");
        assert_eq!(
            (&reader["last_range"]["first"], &reader["last_range"]["last"]),
            (&json!(100), &json!(199))
        );
        let text = String::from_utf8(server.get_bytes("/metrics").await).unwrap();
        for line in [
            r#"kindling_image_answers_total{file="full.iso",kind="range"} 20"#,
            r#"kindling_image_bytes_total{file="full.iso"} 2000"#,
            r#"kindling_requests_total{area="images",status="206"} 20"#,
        ] {
            assert!(text.lines().any(|text_line| text_line == line), "{line}\n{text}");
        }
    });
}

/// Requests that arrive before the responses to earlier requests, and in fragments.
#[test]
fn responses_to_pipelined_requests_are_in_order() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let path = format!("/i/{id}/full.iso");
        let image = server.get_bytes(&path).await;
        let ask = |first: usize| {
            format!("GET {path} HTTP/1.1\r\nHost: test\r\nRange: bytes={first}-{}\r\n\r\n", first + 9)
        };
        let mut connection = KeepAliveConnection::open(&server, &path).await;
        let mut text = String::new();
        for number in 0..50 {
            let _ = write!(text, "{}", ask(number * 1000));
        }
        let mut expected = Vec::new();
        for number in 0..50 {
            expected.extend_from_slice(&image[number * 1000..number * 1000 + 10]);
        }
        for piece in [1000, 77, 1] {
            let (mut reader, mut writer) =
                TcpStream::connect(connection.stream.peer_addr().unwrap()).await.unwrap().into_split();
            let text = text.clone();
            let sending = tokio::spawn(async move {
                for part in text.as_bytes().chunks(piece) {
                    writer.write_all(part).await.unwrap();
                    tokio::task::yield_now().await;
                }
                writer
            });
            let mut bodies = Vec::new();
            for _ in 0..50 {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(reader.read_u8().await.unwrap());
                }
                let mut body = [0; 10];
                reader.read_exact(&mut body).await.unwrap();
                bodies.extend_from_slice(&body);
            }
            assert!(bodies == expected, "in pieces of {piece}");
            drop(sending.await.unwrap());
        }
        connection.get("Range: bytes=0-1\r\n").await;
    });
}

#[test]
fn cached_request_must_name_exactly_one_host() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let path = format!("/i/{id}/full.iso");
        for (hosts, status) in [
            ("Host: test\r\n", "206"),
            ("Host: test\r\n", "206"),
            ("", "400"),
            ("Host: test\r\nHost: test\r\n", "400"),
            ("Host: a b\r\n", "400"),
            ("Host: test:80:80\r\n", "400"),
            ("Host: [::1]\r\n", "206"),
        ] {
            let mut connection = KeepAliveConnection::open(&server, &path).await;
            let request = format!("GET {path} HTTP/1.1\r\n{hosts}Range: bytes=0-9\r\n\r\n");
            connection.stream.write_all(request.as_bytes()).await.unwrap();
            let mut start = [0; 12];
            connection.stream.read_exact(&mut start).await.unwrap();
            assert_eq!(start[9..], *status.as_bytes(), "{hosts:?}");
        }
    });
}

/// Starts a second listener for the same images, on a server without the fast path. Returns its address.
async fn serve_without_fast_path(server: &ImageTestServer) -> std::net::SocketAddr {
    let listener = Listener::bind_tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let ListenAddr::Address(address) = *listener.addr() else { panic!("{listener}") };
    let (app, plain) =
        (server.app.clone(), kindling::http::Server::new(ServerLimits::default()).without_fast_path());
    tokio::spawn(async move { plain.serve(listener, app, std::future::pending()).await });
    address
}

/// Reads the head of a response, with a placeholder for its date.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) => break,
        }
    }
    let head = String::from_utf8(bytes).unwrap();
    let line =
        |line: &str| if line.starts_with("date: ") { "date: -\r\n".to_owned() } else { line.to_owned() };
    head.split_inclusive('\n').map(line).collect()
}

/// Reads all bytes of the response to one request, except the date and the random multipart boundary.
async fn read_comparable_answer(stream: &mut TcpStream, request: &str) -> Vec<u8> {
    let head = read_head(stream).await;
    let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let has_body = !request.starts_with("HEAD ") && !head.starts_with("HTTP/1.1 304 ");
    let mut body = vec![0; len.filter(|_| has_body).map_or(0, |len| len.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    let boundary = head.lines().find_map(|line| line.split_once("boundary=")).map(|(_, boundary)| boundary);
    let Some(boundary) = boundary else { return [head.as_bytes(), &body].concat() };
    let body = body.escape_ascii().to_string();
    [head.replace(boundary, "-"), body.replace(boundary, "-")].concat().into_bytes()
}

/// Returns the responses to requests on one connection, which are sent one at a time or all in one write.
async fn responses_on_one_connection(
    address: std::net::SocketAddr,
    requests: &[String],
    at_once: bool,
) -> Vec<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut answers = Vec::new();
    if at_once {
        stream.write_all(requests.concat().as_bytes()).await.unwrap();
    }
    for request in requests {
        if !at_once {
            stream.write_all(request.as_bytes()).await.unwrap();
        }
        answers.push(read_comparable_answer(&mut stream, request).await);
    }
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "{}", rest.escape_ascii());
    answers
}

/// Returns requests that use the fast path, and requests that differ from these in one point.
fn requests_around_the_fast_path(path: &str, etag: &str) -> Vec<String> {
    let lines = [
        "GET|Range: bytes=0-2047".to_owned(),
        "GET|Range: bytes=32768-98303".to_owned(),
        "GET|Range: bytes=-1".to_owned(),
        "GET|Range: bytes=0-0,7-8".to_owned(),
        "GET|Range: bytes=999999999999-".to_owned(),
        "GET|Range: bytes=4-3".to_owned(),
        "GET|Range: bytes=0-1|Range: bytes=2-3".to_owned(),
        "GET|range: bytes=0-9|USER-AGENT: a|Accept: */*|Connection: Keep-Alive".to_owned(),
        "GET|Range:bytes=0-9|Accept-Encoding: gzip|Cache-Control: no-cache|Pragma: no-cache".to_owned(),
        "GET|Range: bytes=0-9|X-Odd: \u{e4} \t,;|Cookie: a=b".to_owned(),
        "GET|Range: bytes=0-9|Origin: http://other.example".to_owned(),
        "GET|Range: bytes=0-9|Authorization: Bearer a".to_owned(),
        "GET|Range: bytes=0-9|Content-Length: 0".to_owned(),
        "GET|Range: bytes=0-9|Expect: 100-continue".to_owned(),
        "HEAD|Range: bytes=0-2047".to_owned(),
        "HEAD|User-Agent: a".to_owned(),
        format!("GET|Range: bytes=0-9|If-Range: {etag}"),
        "GET|Range: bytes=0-9|If-Range: \"other\"".to_owned(),
        format!("GET|Range: bytes=0-9|If-None-Match: {etag}"),
        format!("GET|Range: bytes=0-9|If-Match: {etag}"),
        "GET|Range: bytes=0-9|If-Match: \"other\"".to_owned(),
        "GET|Range: bytes=0-9|If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT".to_owned(),
        "POST|Range: bytes=0-9|Content-Length: 0".to_owned(),
    ];
    let request = |line: &String| {
        let (method, headers) = line.split_once('|').unwrap();
        format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{}\r\n\r\n", headers.replace('|', "\r\n"))
    };
    lines.iter().map(request).collect()
}

#[test]
fn responses_are_the_same_without_the_fast_path() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        let on = server.base.strip_prefix("http://").unwrap().parse().unwrap();
        let off = serve_without_fast_path(&server).await;
        for file in ["full.iso", "minimal.iso", "kernel"] {
            let path = format!("/i/{id}/{file}");
            let etag = header(&server.get(&path).await, "etag");
            let requests = requests_around_the_fast_path(&path, &etag);
            // A range before each request, so that the image is cached and the connection is in every possible state.
            let before_each: Vec<String> =
                requests.iter().flat_map(|request| [requests[0].clone(), request.clone()]).collect();
            for (requests, at_once) in
                [(&requests, false), (&before_each, false), (&requests, true), (&before_each, true)]
            {
                let answers = responses_on_one_connection(on, requests, at_once).await;
                let others = responses_on_one_connection(off, requests, at_once).await;
                for ((request, answer), other) in requests.iter().zip(&answers).zip(&others) {
                    assert!(answer.starts_with(b"HTTP/1.1 "), "{request}");
                    assert!(
                        answer == other,
                        "{request}in one write: {at_once}\n{}\n{}",
                        answer.escape_ascii(),
                        other.escape_ascii()
                    );
                }
            }
        }
    });
}

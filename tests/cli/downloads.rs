//! Many concurrent downloads of one image.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era, Recipe};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::serve::{PATIENCE, ServeProcess};
use crate::support::{CertificateAuthority, ProgramRun, Scratch, private_memory, write_pair};

/// Longer than all buffers between server and client.
const ROOTFS_LEN: u64 = 32 << 20;
/// Extra memory that a server may use for 1,000 downloads.
const MAX_MEMORY: u64 = 32 << 20;
/// Extra memory that a server may use for 1,000 downloads with TLS. Each download has a buffer for one TLS record.
const MAX_MEMORY_WITH_TLS: u64 = 60 << 20;
/// Extra memory that may remain after downloads of images of 2,000 infra-envs, some of which are cached.
const MAX_MEMORY_OF_IMAGES: u64 = 48 << 20;

/// The value of `OS_IMAGES` for a base image at this URL.
struct OsImagesVariable(String);

impl OsImagesVariable {
    /// Returns the value of `OS_IMAGES` for the base image in a folder.
    fn from_scratch(scratch: &Scratch) -> Self {
        let images = serde_json::json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1",
            "url": format!("file://{}", scratch.path("base.iso").display()),
        }]);
        Self(images.to_string())
    }

    fn apply_to(&self, run: ProgramRun) -> ProgramRun {
        // The image contains the server's URL, and the port would differ from start to start.
        run.env("OS_IMAGES", &self.0).env("SERVICE_BASE_URL", "http://service.example.com")
    }
}

/// Creates an infra-env and returns the path of its image.
fn image_of_new_infra_env(server: &ServeProcess) -> String {
    let body = r#"{"name":"demo","pull_secret":"{\"auths\":{\"quay.io\":{\"auth\":\"dXNlcjpwYXNz\"}}}"}"#;
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    let created = server.request_with_body("POST /api/assisted-install/v2/infra-envs", &headers, body);
    let url = created.json()["download_url"].as_str().unwrap().to_owned();
    let path = url.split_once("://").unwrap().1.split_once('/').unwrap().1;
    format!("/{path}")
}

/// A server with one infra-env, and the bytes of its image.
pub(crate) struct ServedImage {
    pub(crate) server: ServeProcess,
    pub(crate) path: String,
    bytes: Arc<Vec<u8>>,
    scratch: Scratch,
}

impl ServedImage {
    pub(crate) fn start(options: &[&str]) -> Self {
        let scratch = Scratch::new();
        let (base, rootfs) = base_image();
        let [start, end] = [rootfs.start, rootfs.end];
        scratch.write("base.iso", &base);
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        let run =
            OsImagesVariable::from_scratch(&scratch).apply_to(scratch.command(serve.iter().chain(options)));
        let server = ServeProcess::spawn(run.command(), 1);
        let path = image_of_new_infra_env(&server);
        let bytes = server.request(&format!("GET {path}"), "").body;
        assert!(bytes[start..end] == base[start..end], "the root file system has not moved");
        Self { server, path, bytes: Arc::new(bytes), scratch }
    }

    /// Starts a download and reads only the head of the response.
    fn begin_download(&self) -> BufReader<TcpStream> {
        let (path, len) = (&self.path, self.bytes.len());
        let mut stream = self.server.connect();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
        // A small receive buffer, because a test opens many connections.
        let mut stream = BufReader::with_capacity(4096, stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains(&format!("content-length: {len}\r\n")), "{head}");
        stream
    }
}

/// Returns a base image in which no two ranges are equal, and the extent of its root file system.
fn base_image() -> (Vec<u8>, Range<usize>) {
    let truth = Recipe::new(Architecture::X86_64, Era::E2024_12).rootfs_len(ROOTFS_LEN).master();
    let mut base = truth.image.to_vec();
    let rootfs = truth.files["images/pxeboot/rootfs.img"];
    let [start, end] = [rootfs.offset, rootfs.offset + rootfs.len].map(|at| usize::try_from(at).unwrap());
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for word in base[start + (1 << 20)..end].chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    (base, start..end)
}

/// Reads everything until the connection ends or breaks.
fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..len]);
    }
    bytes
}

#[test]
fn log_has_one_line_for_each_download_and_none_for_ranges() {
    // `ServedImage::start` downloads the whole image, so the log has a line for this download.
    let image = ServedImage::start(&[]);
    for at in 0..20 {
        let range = format!("Range: bytes={}-{}", at * 65_536, at * 65_536 + 65_535);
        assert_eq!(image.server.request(&format!("GET {}", image.path), &range).status, 206);
    }
    drop(image.begin_download());
    let (log, len) = (image.server.stop(), image.bytes.len());
    let lines = |part: &str| log.lines().filter(|line| line.contains(part)).collect::<Vec<_>>();
    let [finished] = lines("download finished")[..] else { panic!("{log}") };
    for part in ["INFO", "client=127.0.0.1", "file=\"full.iso\"", "status=200", "seconds=", "mib_per_second="]
    {
        assert!(finished.contains(part), "{part}: {finished}");
    }
    assert!(finished.contains(&format!(" bytes={len} of={len} ")), "{finished}");
    let [broken] = lines("download broke off")[..] else { panic!("{log}") };
    assert!(
        broken.contains(&format!(" of={len} ")) && !broken.contains(&format!(" bytes={len} ")),
        "{broken}"
    );
    assert_eq!(lines("client started to read").len(), 1, "{log}");
    assert!(!log.contains("status=206"), "{log}");
}

#[test]
fn a_thousand_slow_readers_need_little_memory() {
    let images = ServedImage::start(&[]);
    let before = private_memory(images.server.child.id());
    let mut streams: Vec<_> = (0..1000).map(|_| images.begin_download()).collect();
    let (mut most, mut at, mut buffer) = (0, 0, vec![0; 20_000]);
    for _ in 0..10 {
        for stream in &mut streams {
            stream.read_exact(&mut buffer).unwrap();
            assert!(buffer == images.bytes[at..at + buffer.len()]);
        }
        at += buffer.len();
        most = most.max(private_memory(images.server.child.id()));
    }
    println!("private memory: {} KiB before, {} KiB at most", before >> 10, most >> 10);
    assert!(most < before + MAX_MEMORY, "{before} before, {most} with 1000 downloads");
    // All readers can still finish, and the server responds to other clients meanwhile.
    assert_eq!(images.server.request("GET /health", "").status, 200);
    for stream in streams.iter_mut().step_by(200) {
        let mut tail = vec![0; images.bytes.len() - at];
        stream.read_exact(&mut tail).unwrap();
        assert!(tail == images.bytes[at..]);
    }
    drop(streams);
    images.server.stop();
}

/// With TLS, base bytes go through a buffer. Each connection holds the unencrypted bytes and one record.
#[test]
fn a_thousand_slow_readers_over_tls_need_little_memory() {
    let ServedImage { server, path, bytes, scratch } = ServedImage::start(&[]);
    server.stop();
    let authority = CertificateAuthority::new();
    write_pair(&scratch, &authority.issue());
    let options = "serve --listen-tls 127.0.0.1:0 --listen 127.0.0.1:0 --https-cert-file cert.pem --https-key-file key.pem";
    let images = OsImagesVariable::from_scratch(&scratch);
    let server = ServeProcess::spawn(images.apply_to(scratch.command(options.split(' '))).command(), 2);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let config = Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").unwrap();
    let before = private_memory(server.child.id());
    let mut streams = Vec::new();
    for _ in 0..1000 {
        let connection = ClientConnection::new(Arc::clone(&config), name.clone()).unwrap();
        let mut stream = StreamOwned::new(connection, server.connect());
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 200 "));
        streams.push(stream);
    }
    // A cached response to a TLS request must not be sent to a plain HTTP client.
    let mut plain = TcpStream::connect(&server.addresses[1]).unwrap();
    plain.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
    assert!(read_to_end(&mut plain).starts_with(b"HTTP/1.0 404 "));
    let (mut most, mut at, mut buffer) = (0, 0, vec![0; 20_000]);
    for _ in 0..10 {
        for stream in &mut streams {
            stream.read_exact(&mut buffer).unwrap();
            assert!(buffer == bytes[at..at + buffer.len()]);
        }
        at += buffer.len();
        most = most.max(private_memory(server.child.id()));
    }
    println!("private memory with TLS: {} KiB before, {} KiB at most", before >> 10, most >> 10);
    assert!(most < before + MAX_MEMORY_WITH_TLS, "{before} before, {most} with 1000 downloads");
    drop(streams);
    server.stop();
}

#[test]
fn images_of_many_infra_envs_leave_little_memory() {
    let images = ServedImage::start(&[]);
    let before = private_memory(images.server.child.id());
    for _ in 0..2000 {
        let path = image_of_new_infra_env(&images.server);
        let answer = images.server.request(&format!("GET {path}"), "Range: bytes=32768-34815");
        assert_eq!(answer.status, 206, "{}", answer.head);
        assert!(answer.body == images.bytes[32_768..34_816]);
    }
    let after = private_memory(images.server.child.id());
    println!("private memory: {} KiB before, {} KiB after 2000 images", before >> 10, after >> 10);
    assert!(after < before + MAX_MEMORY_OF_IMAGES, "{before} before, {after} after 2000 images");
    images.server.stop();
}

/// A request releases its slot when the response starts.
#[test]
fn slow_readers_do_not_delay_other_requests() {
    let images = ServedImage::start(&["--max-concurrent-requests", "1"]);
    let streams: Vec<_> = (0..20).map(|_| images.begin_download()).collect();
    let again = images.server.request(&format!("GET {}", images.path), "");
    assert!(again.body == *images.bytes);
    drop(streams);
    images.server.stop();
}

#[test]
fn shutdown_finishes_or_cuts_downloads() {
    let images = ServedImage::start(&["--drain-time", "5s"]);
    let mut streams: Vec<_> = (0..50).map(|_| images.begin_download()).collect();
    images.server.send_signal("TERM");
    let address = images.server.addresses[0].clone();
    let start = Instant::now();
    while TcpStream::connect(&address).is_ok() {
        assert!(start.elapsed() < PATIENCE, "the listener is closed immediately");
        thread::sleep(Duration::from_millis(5));
    }
    // Half of the clients resume within the grace period, the others after it.
    let late = streams.split_off(25);
    let going: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            let bytes = Arc::clone(&images.bytes);
            thread::spawn(move || {
                let received = read_to_end(&mut stream);
                assert!(received == bytes[..received.len()], "a wrong byte");
                received.len()
            })
        })
        .collect();
    let finished = going.into_iter().map(|going| going.join().unwrap());
    let finished = finished.filter(|len| *len == images.bytes.len()).count();
    assert_eq!(finished, 25);
    let (code, log) = images.server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("shutdown grace period expired, closing connections connections=25"), "{log}");
    for mut stream in late {
        let received = read_to_end(&mut stream);
        assert!(received.len() < images.bytes.len(), "the download was not cut");
        assert!(received == images.bytes[..received.len()], "a wrong byte");
    }
}

/// The server has passed all bytes to the kernel, and waits until the client has received them.
#[test]
fn shutdown_ends_when_the_last_client_has_read_its_response() {
    let images = ServedImage::start(&["--drain-time", "1h"]);
    let mut stream = images.server.connect();
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-299999\r\n\r\n", images.path);
    stream.write_all(request.as_bytes()).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 206");
    images.server.send_signal("TERM");
    while TcpStream::connect(&images.server.addresses[0]).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
    let rest = read_to_end(&mut stream);
    assert!(rest.ends_with(&images.bytes[..300_000]), "{} bytes", rest.len());
    let (code, log) = images.server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn second_signal_ends_downloads_immediately() {
    let images = ServedImage::start(&["--drain-time", "1h"]);
    let mut stream = images.begin_download();
    images.server.send_signal("TERM");
    let address = images.server.addresses[0].clone();
    while TcpStream::connect(&address).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
    images.server.send_signal("INT");
    let (code, log) = images.server.wait_for_exit();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("second signal received, closing all connections"), "{log}");
    let received = read_to_end(&mut stream);
    assert!(received.len() < images.bytes.len() && received == images.bytes[..received.len()]);
}

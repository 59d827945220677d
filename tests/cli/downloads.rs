//! Many downloads of one image at a time.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era, Recipe};
use isogen::Digest;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::serve::{PATIENCE, Server};
use crate::support::{Authority, Run, Scratch, write_pair};

/// Longer than all buffers on the way to a client.
const ROOTFS_LEN: u64 = 32 << 20;
/// What a server may need for a thousand downloads beyond what it needs for none.
const MAX_MEMORY: u64 = 32 << 20;
/// The same under TLS and of an image that is still coming, where each has a buffer or a record.
const MAX_MEMORY_WITH_BUFFERS: u64 = 60 << 20;
/// What it may need more once there were images of two thousand infra-envs, of which it remembers some.
const MAX_MEMORY_OF_IMAGES: u64 = 48 << 20;

/// The live image of a server, as a variable.
struct OsImages(String);

impl OsImages {
    /// That of a folder.
    fn of(scratch: &Scratch) -> Self {
        let images = serde_json::json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1",
            "url": format!("file://{}", scratch.path("base.iso").display()),
        }]);
        Self(images.to_string())
    }

    fn set(&self, run: Run) -> Run {
        // What machines are told is in the image, and ports differ from start to start.
        run.env("OS_IMAGES", &self.0).env("SERVICE_BASE_URL", "http://service.example.com")
    }
}

/// The private memory of a server.
fn memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

/// Makes an infra-env. This is where its image is.
fn image_of_new_infra_env(server: &Server) -> String {
    let body = r#"{"name":"demo","pull_secret":"{\"auths\":{\"quay.io\":{\"auth\":\"dXNlcjpwYXNz\"}}}"}"#;
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    let made = server.send("POST /api/assisted-install/v2/infra-envs", &headers, body);
    let url = made.json()["download_url"].as_str().unwrap().to_owned();
    let path = url.split_once("://").unwrap().1.split_once('/').unwrap().1;
    format!("/{path}")
}

/// A server of one infra-env, and the bytes of its image.
pub(crate) struct Images {
    pub(crate) server: Server,
    pub(crate) path: String,
    bytes: Arc<Vec<u8>>,
    scratch: Scratch,
}

impl Images {
    pub(crate) fn start(options: &[&str]) -> Self {
        let scratch = Scratch::new();
        let (base, rootfs) = live_image();
        let [start, end] = [rootfs.start, rootfs.end];
        scratch.write("base.iso", &base);
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        let run = OsImages::of(&scratch).set(scratch.command(serve.iter().chain(options)));
        let server = Server::spawn(run.command(), 1);
        let path = image_of_new_infra_env(&server);
        let bytes = server.ask(&format!("GET {path}"), "").body;
        assert!(bytes[start..end] == base[start..end], "the root file system is where it was");
        Self { server, path, bytes: Arc::new(bytes), scratch }
    }

    /// A download whose head was read.
    fn begin(&self) -> BufReader<TcpStream> {
        begin(&self.server, &self.path, self.bytes.len())
    }
}

/// A download whose head was read.
fn begin(server: &Server, path: &str, len: usize) -> BufReader<TcpStream> {
    let mut stream = server.connect();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
    // A small buffer: there are many of these.
    let mut stream = BufReader::with_capacity(4096, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains(&format!("content-length: {len}\r\n")), "{head}");
    stream
}

/// A live image of which no byte range is as another one, and where its root file system is.
fn live_image() -> (Vec<u8>, Range<usize>) {
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

/// Serves an image over HTTP, and its last MiB only when nobody holds the lock.
fn origin(image: Vec<u8>, lock: Arc<RwLock<()>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/base.iso", listener.local_addr().unwrap());
    let answer = move |stream: TcpStream, image: &[u8]| -> io::Result<()> {
        let (mut reader, mut line, mut range) = (BufReader::new(&stream), String::new(), 0..image.len());
        let mut status = "200 OK";
        while reader.read_line(&mut line)? > 2 {
            if let Some((_, asked)) = line.to_lowercase().trim().split_once("range: bytes=") {
                let (from, to) = asked.split_once('-').unwrap();
                status = "206 Partial Content";
                range = from.parse().unwrap()..to.parse().map_or(image.len(), |to: usize| to + 1);
            }
            line.clear();
        }
        let (Range { start, end }, len) = (range, image.len());
        write!(&stream, "HTTP/1.1 {status}\r\nContent-Range: bytes {start}-{}/{len}\r\n", end - 1)?;
        write!(&stream, "Content-Length: {}\r\nETag: \"one\"\r\nConnection: close\r\n\r\n", end - start)?;
        let held = end.min(len - (1 << 20)).max(start);
        (&stream).write_all(&image[start..held])?;
        if held < end && start < held {
            drop(lock.read());
        }
        (&stream).write_all(&image[held..end])
    };
    let (answer, image) = (Arc::new(answer), Arc::new(image));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (answer, image) = (Arc::clone(&answer), Arc::clone(&image));
            // Who asked may be gone.
            thread::spawn(move || answer(stream, &image));
        }
    });
    url
}

/// Everything up to the end of a connection, however that comes.
fn rest(stream: &mut impl Read) -> Vec<u8> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..len]);
    }
    bytes
}

#[test]
fn a_thousand_slow_readers_need_little_memory() {
    let images = Images::start(&[]);
    let before = memory(&images.server);
    let mut streams: Vec<_> = (0..1000).map(|_| images.begin()).collect();
    let (mut most, mut at, mut buffer) = (0, 0, vec![0; 20_000]);
    for _ in 0..10 {
        for stream in &mut streams {
            stream.read_exact(&mut buffer).unwrap();
            assert!(buffer == images.bytes[at..at + buffer.len()]);
        }
        at += buffer.len();
        most = most.max(memory(&images.server));
    }
    println!("private memory: {} KiB before, {} KiB at most", before >> 10, most >> 10);
    assert!(most < before + MAX_MEMORY, "{before} before, {most} with 1000 downloads");
    // Each of them can still be finished, and others are served beside them.
    assert_eq!(images.server.ask("GET /health", "").status, 200);
    for stream in streams.iter_mut().step_by(200) {
        let mut tail = vec![0; images.bytes.len() - at];
        stream.read_exact(&mut tail).unwrap();
        assert!(tail == images.bytes[at..]);
    }
    drop(streams);
    images.server.end();
}

/// What is still coming is not mapped: each download has a buffer.
#[test]
fn a_thousand_slow_readers_of_an_image_that_is_would_block_at_need_little_memory() {
    let (base, _) = live_image();
    let (digest, len, lock) = (Digest::of(&base), base.len(), Arc::new(RwLock::new(())));
    let held = lock.write().unwrap();
    let url = origin(base, Arc::clone(&lock));
    let os_images = OsImages(
        serde_json::json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1",
            "url": url, "sha256": digest.to_string(),
        }])
        .to_string(),
    );
    let scratch = Scratch::new();
    let server =
        Server::spawn(os_images.set(scratch.command(["serve", "--listen", "127.0.0.1:0"])).command(), 1);
    let path = image_of_new_infra_env(&server);
    let before = memory(&server);
    let mut streams: Vec<_> = (0..1000).map(|_| begin(&server, &path, len)).collect();
    let (mut most, mut parts) = (0, Vec::new());
    for _ in 0..5 {
        let mut part = vec![0; 20_000];
        streams[0].read_exact(&mut part).unwrap();
        let mut same = vec![0; part.len()];
        for stream in &mut streams[1..] {
            stream.read_exact(&mut same).unwrap();
            assert!(same == part);
        }
        parts.extend(part);
        most = most.max(memory(&server));
    }
    println!(
        "private memory with an image that is coming: {} KiB before, {} KiB at most",
        before >> 10,
        most >> 10
    );
    assert!(most < before + MAX_MEMORY_WITH_BUFFERS, "{before} before, {most} with 1000 downloads");
    drop(held);
    let image = server.ask(&format!("GET {path}"), "").body;
    assert!(image.starts_with(&parts));
    for stream in streams.iter_mut().step_by(200) {
        let mut tail = vec![0; image.len() - parts.len()];
        stream.read_exact(&mut tail).unwrap();
        assert!(tail == image[parts.len()..]);
    }
    drop(streams);
    server.end();
}

/// Under TLS base bytes go through a buffer, of which each connection holds what is not made a record of, and one record.
#[test]
fn a_thousand_slow_readers_over_tls_need_little_memory() {
    let Images { server, path, bytes, scratch } = Images::start(&[]);
    server.end();
    let authority = Authority::new();
    write_pair(&scratch, &authority.issue());
    let options = "serve --listen-tls 127.0.0.1:0 --listen 127.0.0.1:0 --https-cert-file cert.pem --https-key-file key.pem";
    let images = OsImages::of(&scratch);
    let server = Server::spawn(images.set(scratch.command(options.split(' '))).command(), 2);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let config = Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").unwrap();
    let before = memory(&server);
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
    // What was answered over TLS a moment ago is not answered without it.
    let mut plain = TcpStream::connect(&server.addresses[1]).unwrap();
    plain.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
    assert!(rest(&mut plain).starts_with(b"HTTP/1.0 404 "));
    let (mut most, mut at, mut buffer) = (0, 0, vec![0; 20_000]);
    for _ in 0..10 {
        for stream in &mut streams {
            stream.read_exact(&mut buffer).unwrap();
            assert!(buffer == bytes[at..at + buffer.len()]);
        }
        at += buffer.len();
        most = most.max(memory(&server));
    }
    println!("private memory with TLS: {} KiB before, {} KiB at most", before >> 10, most >> 10);
    assert!(most < before + MAX_MEMORY_WITH_BUFFERS, "{before} before, {most} with 1000 downloads");
    drop(streams);
    server.end();
}

#[test]
fn images_of_many_infra_envs_leave_little_memory() {
    let images = Images::start(&[]);
    let before = memory(&images.server);
    for _ in 0..2000 {
        let path = image_of_new_infra_env(&images.server);
        let answer = images.server.ask(&format!("GET {path}"), "Range: bytes=32768-34815");
        assert_eq!(answer.status, 206, "{}", answer.head);
        assert!(answer.body == images.bytes[32_768..34_816]);
    }
    let after = memory(&images.server);
    println!("private memory: {} KiB before, {} KiB after 2000 images", before >> 10, after >> 10);
    assert!(after < before + MAX_MEMORY_OF_IMAGES, "{before} before, {after} after 2000 images");
    images.server.end();
}

/// A request has its turn until its image begins.
#[test]
fn readers_keep_no_request_waiting() {
    let images = Images::start(&["--max-concurrent-requests", "1"]);
    let streams: Vec<_> = (0..20).map(|_| images.begin()).collect();
    let again = images.server.ask(&format!("GET {}", images.path), "");
    assert!(again.body == *images.bytes);
    drop(streams);
    images.server.end();
}

#[test]
fn downloads_are_finished_at_the_end_or_cut() {
    let images = Images::start(&["--drain-time", "5s"]);
    let mut streams: Vec<_> = (0..50).map(|_| images.begin()).collect();
    images.server.signal("TERM");
    let address = images.server.addresses[0].clone();
    let begun = Instant::now();
    while TcpStream::connect(&address).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the listener is closed at once");
        thread::sleep(Duration::from_millis(5));
    }
    // Half of them go on, the others do so when it is too late.
    let late = streams.split_off(25);
    let going: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            let bytes = Arc::clone(&images.bytes);
            thread::spawn(move || {
                let came = rest(&mut stream);
                assert!(came == bytes[..came.len()], "a wrong byte");
                came.len()
            })
        })
        .collect();
    let finished = going.into_iter().map(|going| going.join().unwrap());
    let finished = finished.filter(|len| *len == images.bytes.len()).count();
    assert_eq!(finished, 25);
    let (code, log) = images.server.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("shutdown grace period expired, closing connections connections=25"), "{log}");
    for mut stream in late {
        let came = rest(&mut stream);
        assert!(came.len() < images.bytes.len(), "it is cut");
        assert!(came == images.bytes[..came.len()], "a wrong byte");
    }
}

#[test]
fn a_second_signal_ends_downloads_at_once() {
    let images = Images::start(&["--drain-time", "1h"]);
    let mut stream = images.begin();
    images.server.signal("TERM");
    let address = images.server.addresses[0].clone();
    while TcpStream::connect(&address).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
    images.server.signal("INT");
    let (code, log) = images.server.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("ending at once"), "{log}");
    let came = rest(&mut stream);
    assert!(came.len() < images.bytes.len() && came == images.bytes[..came.len()]);
}

//! Base images that change during a download, are not cached, or are slow.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use isogen::{Extent, Plan, ReadAt, Segment, Source};

use crate::connection::RawConnection;
use crate::server::{ContentServer, MODES, bytes_without_repetition, representation, representation_of_file};
use crate::support::Scratch;

/// Several times longer than all buffers between server and client.
const LEN: usize = 48 << 20;

/// The log of all tests.
pub(crate) static LOG: LazyLock<Arc<Mutex<Vec<u8>>>> = LazyLock::new(|| {
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = CapturedLog(Arc::clone(&log));
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    log
});

#[derive(Clone)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits for a line of the log that contains all these parts. The client may see the end of a connection before the
/// server logs the reason.
#[track_caller]
pub(crate) fn wait_for_log_line(parts: &[&str]) {
    let start = Instant::now();
    let has_line = || {
        let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
        log.lines().any(|line| parts.iter().all(|part| line.contains(part)))
    };
    while !has_line() {
        assert!(start.elapsed() < Duration::from_secs(30), "not in the log: {parts:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A download of a long file that has just started. Without leases, no page is lent, so writers need not wait.
struct StartedDownload {
    server: ContentServer,
    connection: RawConnection,
    path: std::path::PathBuf,
    bytes: Vec<u8>,
    _scratch: Scratch,
}

fn begin_download(mode: &str) -> StartedDownload {
    LazyLock::force(&LOG);
    let scratch = Scratch::new();
    let bytes = bytes_without_repetition(LEN);
    let path = scratch.write("base", &bytes);
    let server = ContentServer::start_without_zero_copy(1);
    server.put("image", representation_of_file(&path));
    let mut connection = server.connect();
    connection.write_request(&format!("GET /{mode}/image"), "");
    assert!(connection.read_head().contains(&format!("content-length: {LEN}\r\n")));
    assert!(connection.read_exactly(1 << 20) == bytes[..1 << 20]);
    StartedDownload { server, connection, path, bytes, _scratch: scratch }
}

impl StartedDownload {
    /// Reads until the connection ends, which must be before the end of the file, and checks the received bytes.
    fn assert_breaks(mut self, what: &str) {
        let (rest, _) = self.connection.read_to_end();
        let end = (1 << 20) + rest.len();
        assert!(end < LEN, "{what}: the whole image was sent");
        assert!(rest == self.bytes[1 << 20..end], "{what}: wrong bytes were sent");
        wait_for_log_line(&["ERROR", "download aborted", self.path.to_str().unwrap()]);
        // Other downloads are not disturbed.
        self.server.put(
            "other",
            representation(Plan::from_source(Arc::new(Source::from_bytes(
                "other",
                bytes_without_repetition(100_000),
            )))),
        );
        assert!(
            self.server.connect().request_and_read("GET /mapped/other", "").body
                == bytes_without_repetition(100_000)
        );
    }
}

#[test]
fn truncated_base_breaks_only_its_downloads() {
    for mode in MODES {
        for len in [0, 4096, 30 << 20, (30 << 20) + 100] {
            let download = begin_download(mode);
            OpenOptions::new().write(true).open(&download.path).unwrap().set_len(len).unwrap();
            download.assert_breaks(&format!("{mode}, {len} bytes"));
        }
    }
}

#[test]
fn overwritten_base_breaks_its_downloads() {
    for mode in MODES {
        let download = begin_download(mode);
        let mut file = OpenOptions::new().write(true).open(&download.path).unwrap();
        io::Seek::seek(&mut file, io::SeekFrom::Start(40 << 20)).unwrap();
        file.write_all(&[0; 4096]).unwrap();
        download.assert_breaks(mode);
    }
}

#[test]
fn replaced_base_is_sent_to_its_end() {
    for mode in MODES {
        let mut download = begin_download(mode);
        let other = download.path.with_extension("new");
        fs::write(&other, b"another base").unwrap();
        fs::rename(&other, &download.path).unwrap();
        assert!(download.connection.read_exactly(LEN - (1 << 20)) == download.bytes[1 << 20..], "{mode}");
    }
}

#[test]
fn truncated_base_is_refused_with_500() {
    let download = begin_download("read");
    OpenOptions::new().write(true).open(&download.path).unwrap().set_len(5).unwrap();
    let mut connection = download.server.connect();
    for (line, headers) in
        [("GET /mapped/image", ""), ("GET /read/image", "Range: bytes=0-1"), ("HEAD /mapped/image", "")]
    {
        let answer = connection.request_and_read(line, headers);
        assert_eq!((answer.status(), answer.refusal_headers()), (500, Vec::new()), "{line}");
    }
    download.assert_breaks("too short");
}

/// Storage that waits for a permit before each read.
#[derive(Debug, Clone)]
struct GatedStorage {
    is_open: Arc<(Mutex<bool>, Condvar)>,
    bytes: Bytes,
}

impl ReadAt for GatedStorage {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (is_open, opened) = &*self.is_open;
        let _open = opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap();
        self.bytes.read_at(buf, offset)
    }
}

#[test]
fn slow_storage_does_not_delay_other_clients() {
    let server = ContentServer::start(1);
    let bytes = Bytes::from(bytes_without_repetition(300_000));
    let gate = GatedStorage { is_open: Arc::default(), bytes: bytes.clone() };
    let source = Source::new("slow".into(), 300_000, gate.clone());
    server.put("slow", representation(Plan::from_source(Arc::new(source))));
    server.put(
        "fast",
        representation(Plan::from_source(Arc::new(Source::from_bytes(
            "fast",
            bytes_without_repetition(100_000),
        )))),
    );
    let mut slow = server.connect();
    slow.write_request("GET /mapped/slow", "");
    // The head arrives before the first byte can be read.
    assert!(slow.read_head().contains("content-length: 300000\r\n"));
    for _ in 0..10 {
        assert_eq!(server.connect().request_and_read("GET /mapped/fast", "").declared_len(), 100_000);
    }
    *gate.is_open.0.lock().unwrap() = true;
    gate.is_open.1.notify_all();
    assert!(slow.read_exactly(300_000) == bytes);
}

#[test]
fn storage_that_ends_early_breaks_the_download() {
    LazyLock::force(&LOG);
    let server = ContentServer::start(1);
    let bytes = Bytes::from(bytes_without_repetition(300_000));
    let source = Source::new("a-source-that-ends-early".into(), 400_000, bytes.clone());
    server.put("image", representation(Plan::from_source(Arc::new(source))));
    let mut connection = server.connect();
    connection.write_request("GET /mapped/image", "");
    assert!(connection.read_head().contains("content-length: 400000\r\n"));
    let (rest, _) = connection.read_to_end();
    assert!(rest.len() <= 300_000 && rest == bytes[..rest.len()]);
    wait_for_log_line(&["ERROR", "download aborted", "a-source-that-ends-early"]);
}

#[test]
fn uncached_bases_are_sent() {
    let scratch = Scratch::new();
    let bytes = bytes_without_repetition(9_000_001);
    let path = scratch.write("base", &bytes);
    let drop_pages = || {
        // With synchronised output, `dd` requests that the kernel drops its cache of a file.
        let run = |arguments: &[&str]| Command::new("dd").args(arguments).output().unwrap().status.success();
        let file = path.display();
        assert!(run(&[&format!("of={file}"), "if=/dev/null", "conv=notrunc,fdatasync"]));
        assert!(run(&[&format!("if={file}"), "of=/dev/null", "iflag=nocache", "count=0"]));
    };
    for mode in MODES {
        let server = ContentServer::start(1);
        let source = Arc::new(Source::open(&path).unwrap());
        let base = |offset, len| Segment::Base(Extent::new(offset, len).unwrap());
        let moved = Plan::new(Arc::clone(&source), [base(5_000_000, 4_000_001), base(0, 5_000_000)]);
        let expected = [&bytes[5_000_000..], &bytes[..5_000_000]].concat();
        drop_pages();
        server.put("moved", representation(moved));
        let mut connection = server.connect();
        let answer =
            connection.request_and_read(&format!("GET /{mode}/moved"), "Range: bytes=3999999-4000002,17-18");
        assert!(answer.body.windows(4).any(|window| window == &expected[3_999_999..=4_000_002]));
        assert!(connection.request_and_read(&format!("GET /{mode}/moved"), "").body == expected, "{mode}");
    }
}

/// `tmpfs` does not support `cachestat`.
#[test]
fn large_base_is_sent_where_cachestat_is_unsupported() {
    let server = ContentServer::start(1);
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    let (len, at) = (17 << 30, (17 << 30) - 300_000);
    file.set_len(len).unwrap();
    let bytes = bytes_without_repetition(200_000);
    file.write_all_at(&bytes, at).unwrap();
    let source = Source::from_file(file, "large").unwrap();
    server.put("large", representation(Plan::from_source(Arc::new(source))));
    for mode in MODES {
        let range = format!("Range: bytes={at}-{}", at + 199_999);
        assert!(
            server.connect().request_and_read(&format!("GET /{mode}/large"), &range).body == bytes,
            "{mode}"
        );
    }
}

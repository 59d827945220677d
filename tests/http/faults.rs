//! Bases that change under a download, that are on disk, or that are slow.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, LazyLock, Mutex};

use axum::body::Bytes;
use isogen::{Extent, Plan, ReadAt, Segment, Source};

use crate::connection::Connection;
use crate::server::{MODES, Server, content, file, noise};
use crate::support::Scratch;

/// Longer than all buffers on the way to a client, several times.
const LEN: usize = 48 << 20;

/// What was logged, of all tests.
pub(crate) static LOG: LazyLock<Arc<Mutex<Vec<u8>>>> = LazyLock::new(|| {
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = Log(Arc::clone(&log));
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    log
});

#[derive(Clone)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(path: &Path) -> bool {
    has_line(&["ERROR", "download aborted", path.to_str().unwrap()])
}

/// Whether a line of the log has all these parts.
pub(crate) fn has_line(parts: &[&str]) -> bool {
    let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    log.lines().any(|line| parts.iter().all(|part| line.contains(part)))
}

/// A download of a long file that has just begun. Whoever changes the file need not wait, as nothing of it is lent.
struct Begun {
    server: Server,
    connection: Connection,
    path: std::path::PathBuf,
    bytes: Vec<u8>,
    _scratch: Scratch,
}

fn begin(mode: &str) -> Begun {
    LazyLock::force(&LOG);
    let scratch = Scratch::new();
    let bytes = noise(LEN);
    let path = scratch.write("base", &bytes);
    let server = Server::copying(1);
    server.put("image", file(&path));
    let mut connection = server.connect();
    connection.request(&format!("GET /{mode}/image"), "");
    assert!(connection.head().contains(&format!("content-length: {LEN}\r\n")));
    assert!(connection.take(1 << 20) == bytes[..1 << 20]);
    Begun { server, connection, path, bytes, _scratch: scratch }
}

impl Begun {
    /// What comes until the end, which has to be too early, and true as far as it comes.
    fn breaks(mut self, what: &str) {
        let (rest, _) = self.connection.rest();
        let end = (1 << 20) + rest.len();
        assert!(end < LEN, "{what}: everything came");
        assert!(rest == self.bytes[1 << 20..end], "{what}: bytes were made up");
        assert!(logged(&self.path), "{what}: not in the log");
        // Others are not disturbed.
        self.server.put("other", content(Plan::whole(Arc::new(Source::from_bytes("other", noise(100_000))))));
        assert!(self.server.connect().ask("GET /mapped/other", "").body == noise(100_000));
    }
}

#[test]
fn a_base_that_gets_shorter_breaks_its_downloads_alone() {
    for mode in MODES {
        for len in [0, 4096, 30 << 20, (30 << 20) + 100] {
            let begun = begin(mode);
            OpenOptions::new().write(true).open(&begun.path).unwrap().set_len(len).unwrap();
            begun.breaks(&format!("{mode}, {len} bytes"));
        }
    }
}

#[test]
fn a_base_that_is_written_over_breaks_its_downloads() {
    for mode in MODES {
        let begun = begin(mode);
        let mut file = OpenOptions::new().write(true).open(&begun.path).unwrap();
        io::Seek::seek(&mut file, io::SeekFrom::Start(40 << 20)).unwrap();
        file.write_all(&[0; 4096]).unwrap();
        begun.breaks(mode);
    }
}

#[test]
fn a_base_with_another_one_in_its_place_is_sent_to_its_end() {
    for mode in MODES {
        let mut begun = begin(mode);
        let other = begun.path.with_extension("new");
        fs::write(&other, b"another base").unwrap();
        fs::rename(&other, &begun.path).unwrap();
        assert!(begun.connection.take(LEN - (1 << 20)) == begun.bytes[1 << 20..], "{mode}");
    }
}

#[test]
fn a_base_that_is_too_short_already_is_a_failure_without_an_image() {
    let begun = begin("read");
    OpenOptions::new().write(true).open(&begun.path).unwrap().set_len(5).unwrap();
    let mut connection = begun.server.connect();
    for (line, headers) in
        [("GET /mapped/image", ""), ("GET /read/image", "Range: bytes=0-1"), ("HEAD /mapped/image", "")]
    {
        let answer = connection.ask(line, headers);
        assert_eq!((answer.status(), answer.headers_of_refusal()), (500, Vec::new()), "{line}");
    }
    begun.breaks("too short");
}

/// Storage whose every read has to be let through.
#[derive(Debug, Clone)]
struct Gate {
    is_open: Arc<(Mutex<bool>, Condvar)>,
    bytes: Bytes,
}

impl ReadAt for Gate {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (is_open, opened) = &*self.is_open;
        let _open = opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap();
        self.bytes.read_at(buf, offset)
    }
}

#[test]
fn slow_storage_holds_up_nobody_else() {
    let server = Server::start(1);
    let bytes = Bytes::from(noise(300_000));
    let gate = Gate { is_open: Arc::default(), bytes: bytes.clone() };
    let source = Source::new("slow".into(), 300_000, gate.clone());
    server.put("slow", content(Plan::whole(Arc::new(source))));
    server.put("fast", content(Plan::whole(Arc::new(Source::from_bytes("fast", noise(100_000))))));
    let mut slow = server.connect();
    slow.request("GET /mapped/slow", "");
    // The head comes before the first byte is there.
    assert!(slow.head().contains("content-length: 300000\r\n"));
    for _ in 0..10 {
        assert_eq!(server.connect().ask("GET /mapped/fast", "").len(), 100_000);
    }
    *gate.is_open.0.lock().unwrap() = true;
    gate.is_open.1.notify_all();
    assert!(slow.take(300_000) == bytes);
}

#[test]
fn storage_that_ends_early_breaks_the_download() {
    LazyLock::force(&LOG);
    let server = Server::start(1);
    let bytes = Bytes::from(noise(300_000));
    let source = Source::new("a-source-that-ends-early".into(), 400_000, bytes.clone());
    server.put("image", content(Plan::whole(Arc::new(source))));
    let mut connection = server.connect();
    connection.request("GET /mapped/image", "");
    assert!(connection.head().contains("content-length: 400000\r\n"));
    let (rest, _) = connection.rest();
    assert!(rest.len() <= 300_000 && rest == bytes[..rest.len()]);
    assert!(logged(Path::new("a-source-that-ends-early")));
}

#[test]
fn bases_that_are_on_disk_are_sent_as_well() {
    let scratch = Scratch::new();
    let bytes = noise(9_000_001);
    let path = scratch.write("base", &bytes);
    let drop_pages = || {
        // With its output synchronised, `dd` tells the kernel to forget what it has of a file.
        let run = |arguments: &[&str]| Command::new("dd").args(arguments).output().unwrap().status.success();
        let file = path.display();
        assert!(run(&[&format!("of={file}"), "if=/dev/null", "conv=notrunc,fdatasync"]));
        assert!(run(&[&format!("if={file}"), "of=/dev/null", "iflag=nocache", "count=0"]));
    };
    for mode in MODES {
        let server = Server::start(1);
        let source = Arc::new(Source::open(&path).unwrap());
        let base = |offset, len| Segment::Base(Extent::new(offset, len).unwrap());
        let moved = Plan::of(Arc::clone(&source), [base(5_000_000, 4_000_001), base(0, 5_000_000)]);
        let expected = [&bytes[5_000_000..], &bytes[..5_000_000]].concat();
        drop_pages();
        server.put("moved", content(moved));
        let mut connection = server.connect();
        let answer = connection.ask(&format!("GET /{mode}/moved"), "Range: bytes=3999999-4000002,17-18");
        assert!(answer.body.windows(4).any(|window| window == &expected[3_999_999..=4_000_002]));
        assert!(connection.ask(&format!("GET /{mode}/moved"), "").body == expected, "{mode}");
    }
}

/// `tmpfs` does not tell what is in memory.
#[test]
fn a_base_on_a_file_system_that_does_not_tell_is_sent_however_large_it_is() {
    let server = Server::start(1);
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    let (len, at) = (17 << 30, (17 << 30) - 300_000);
    file.set_len(len).unwrap();
    let bytes = noise(200_000);
    file.write_all_at(&bytes, at).unwrap();
    let source = Source::from_file(file, "large").unwrap();
    server.put("large", content(Plan::whole(Arc::new(source))));
    for mode in MODES {
        let range = format!("Range: bytes={at}-{}", at + 199_999);
        assert!(server.connect().ask(&format!("GET /{mode}/large"), &range).body == bytes, "{mode}");
    }
}

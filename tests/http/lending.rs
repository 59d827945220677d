//! Pages of live images on their way, and whoever wants to write to those meanwhile.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use crate::connection::Connection;
use crate::faults::{LOG, has_line};
use crate::server::{Server, file, noise};
use crate::support::Scratch;

/// Longer than all buffers on the way to a client, several times.
const LEN: usize = 48 << 20;

/// A server of one image.
struct Lender {
    server: Server,
    path: PathBuf,
    bytes: Vec<u8>,
    _scratch: Scratch,
}

impl Lender {
    fn new() -> Self {
        LazyLock::force(&LOG);
        let scratch = Scratch::new();
        let bytes = noise(LEN);
        let path = scratch.write("base", &bytes);
        let server = Server::start(1);
        server.put("image", file(&path));
        Self { server, path, bytes, _scratch: scratch }
    }

    /// A download that has just begun.
    fn begin(&self, headers: &str) -> Connection {
        let mut connection = self.server.connect();
        connection.request("GET /mapped/image", headers);
        assert!(connection.head().contains(" 200 OK\r\n"));
        assert!(connection.take(1 << 20) == self.bytes[..1 << 20]);
        connection
    }
}

/// Opens a file to write to it, unless one had to wait for that.
fn open_at_once(path: &Path) -> Option<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
    match OpenOptions::new().write(true).custom_flags(flags).open(path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn who_wants_to_write_waits_until_nothing_is_on_its_way() {
    let lender = Lender::new();
    let mut begun = lender.begin("");
    assert!(open_at_once(&lender.path).is_none(), "nothing is lent");
    let path = lender.path.clone();
    let writer = std::thread::spawn(move || {
        OpenOptions::new().write(true).open(path).unwrap().write_all(&vec![0; LEN]).unwrap();
    });
    // The download is cut, and what came before is true.
    let mut at = 1 << 20;
    while let Some(bytes) = begun.some(256 << 10) {
        assert!(bytes == lender.bytes[at..at + bytes.len()], "{at}");
        at += bytes.len();
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(at < LEN);
    writer.join().unwrap();
    let path = lender.path.to_str().unwrap();
    assert!(has_line(&["WARN", "another process wants to write to a base image", path]));
    assert!(has_line(&["ERROR", "download aborted", "wants to write to it", path]));
}

#[test]
fn who_has_everything_is_not_cut() {
    let lender = Lender::new();
    let mut connection = lender.begin("");
    assert!(connection.take(LEN - (1 << 20)) == lender.bytes[1 << 20..]);
    drop(OpenOptions::new().write(true).open(&lender.path).unwrap());
    // From now on there are copies, which keep nobody waiting.
    let mut again = lender.begin("");
    assert!(open_at_once(&lender.path).is_some());
    assert!(again.take(LEN - (1 << 20)) == lender.bytes[1 << 20..]);
    let answer = connection.ask("GET /mapped/image", "Range: bytes=1000000-3000000");
    assert!(answer.body == lender.bytes[1_000_000..=3_000_000]);
}

#[test]
fn what_somebody_writes_to_is_copied() {
    let lender = Lender::new();
    let writer = OpenOptions::new().write(true).open(&lender.path).unwrap();
    let mut connection = lender.begin("");
    assert!(open_at_once(&lender.path).is_some());
    assert!(connection.take(LEN - (1 << 20)) == lender.bytes[1 << 20..]);
    drop(writer);
}

/// The end of a connection waits for clients that take their time, whether they still could say anything or not.
#[test]
fn the_last_pages_are_waited_for() {
    let lender = Lender::new();
    let mut closing = lender.begin("Connection: close");
    let mut finished = lender.begin("");
    finished.finish();
    for connection in [&mut closing, &mut finished] {
        for at in 1..48 {
            std::thread::sleep(Duration::from_millis(5));
            assert!(connection.take(1 << 20) == lender.bytes[at << 20..(at + 1) << 20], "{at}");
        }
        assert_eq!(connection.rest(), (Vec::new(), true));
    }
    // Nobody has any: who wants to write waits for nobody.
    drop(OpenOptions::new().write(true).open(&lender.path).unwrap());
    assert!(open_at_once(&lender.path).is_some());
}

#[test]
fn pages_of_several_files_take_turns_on_a_connection() {
    let lender = Lender::new();
    let scratch = Scratch::new();
    let other: Vec<u8> = lender.bytes.iter().rev().copied().take(5 << 20).collect();
    lender.server.put("other", file(&scratch.write("other", &other)));
    let mut connection = lender.server.connect();
    for _ in 0..3 {
        assert!(connection.ask("GET /mapped/image", "").body == lender.bytes);
        assert!(connection.ask("GET /mapped/other", "").body == other);
    }
}

/// A file that was put in the place of another one is nobody's concern.
#[test]
fn an_image_that_is_no_longer_served_is_no_longer_leased() {
    let lender = Lender::new();
    let mut first = lender.server.connect();
    assert!(first.ask("GET /mapped/image", "Connection: close").body == lender.bytes);
    assert_eq!(first.rest(), (Vec::new(), true));
    // The end comes to the client a moment before the server is done with the connection.
    std::thread::sleep(Duration::from_millis(200));
    let scratch = Scratch::new();
    lender.server.put("image", file(&scratch.write("other", &lender.bytes)));
    assert!(lender.server.connect().ask("GET /mapped/image", "").body == lender.bytes);
    assert!(open_at_once(&lender.path).is_some());
}

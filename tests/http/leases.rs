//! Processes that write to a base image whose pages are being sent.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use crate::connection::RawConnection;
use crate::faults::{LOG, wait_for_log_line};
use crate::server::{ContentServer, bytes_without_repetition, representation_of_file};
use crate::support::Scratch;

/// Several times longer than all buffers between server and client.
const LEN: usize = 48 << 20;

/// A server of one image.
struct LeaseServer {
    server: ContentServer,
    path: PathBuf,
    bytes: Vec<u8>,
    _scratch: Scratch,
}

impl LeaseServer {
    fn new() -> Self {
        LazyLock::force(&LOG);
        let scratch = Scratch::new();
        let bytes = bytes_without_repetition(LEN);
        let path = scratch.write("base", &bytes);
        let server = ContentServer::start(1);
        server.put("image", representation_of_file(&path));
        Self { server, path, bytes, _scratch: scratch }
    }

    /// Begins a download, and reads its first MiB.
    fn begin_download(&self, headers: &str) -> RawConnection {
        let mut connection = self.server.connect();
        connection.write_request("GET /mapped/image", headers);
        assert!(connection.read_head().contains(" 200 OK\r\n"));
        assert!(connection.read_exactly(1 << 20) == self.bytes[..1 << 20]);
        connection
    }
}

/// Opens a file for writing; `None` if the open would wait for a lease.
fn open_for_writing_without_waiting(path: &Path) -> Option<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
    match OpenOptions::new().write(true).custom_flags(flags).open(path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn writer_waits_until_leased_downloads_are_cut() {
    let lender = LeaseServer::new();
    let mut download = lender.begin_download("");
    assert!(open_for_writing_without_waiting(&lender.path).is_none(), "the image is not leased");
    let path = lender.path.clone();
    let writer = std::thread::spawn(move || {
        OpenOptions::new().write(true).open(path).unwrap().write_all(&vec![0; LEN]).unwrap();
    });
    // The download is cut. The bytes before the cut are right.
    let mut at = 1 << 20;
    while let Some(bytes) = download.read_available(256 << 10) {
        assert!(bytes == lender.bytes[at..at + bytes.len()], "{at}");
        at += bytes.len();
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(at < LEN);
    writer.join().unwrap();
    let path = lender.path.to_str().unwrap();
    wait_for_log_line(&["WARN", "base image opened for writing", path]);
    wait_for_log_line(&["ERROR", "download aborted", "wants to write to the base image", path]);
}

#[test]
fn finished_reader_is_not_cut_by_a_writer() {
    let lender = LeaseServer::new();
    let mut connection = lender.begin_download("");
    assert!(connection.read_exactly(LEN - (1 << 20)) == lender.bytes[1 << 20..]);
    drop(OpenOptions::new().write(true).open(&lender.path).unwrap());
    // From now on the server copies bytes, which delays no writer.
    let mut again = lender.begin_download("");
    assert!(open_for_writing_without_waiting(&lender.path).is_some());
    assert!(again.read_exactly(LEN - (1 << 20)) == lender.bytes[1 << 20..]);
    let answer = connection.request_and_read("GET /mapped/image", "Range: bytes=1000000-3000000");
    assert!(answer.body == lender.bytes[1_000_000..=3_000_000]);
}

#[test]
fn base_open_for_writing_is_copied() {
    let lender = LeaseServer::new();
    let writer = OpenOptions::new().write(true).open(&lender.path).unwrap();
    let mut connection = lender.begin_download("");
    assert!(open_for_writing_without_waiting(&lender.path).is_some());
    assert!(connection.read_exactly(LEN - (1 << 20)) == lender.bytes[1 << 20..]);
    drop(writer);
}

/// Closing a connection waits for slow clients, whether or not they have closed their sending side.
#[test]
fn closing_connection_waits_for_the_last_pages() {
    let lender = LeaseServer::new();
    let mut closing = lender.begin_download("Connection: close");
    let mut finished = lender.begin_download("");
    finished.close_sending_side();
    for connection in [&mut closing, &mut finished] {
        for at in 1..48 {
            std::thread::sleep(Duration::from_millis(5));
            assert!(connection.read_exactly(1 << 20) == lender.bytes[at << 20..(at + 1) << 20], "{at}");
        }
        assert_eq!(connection.read_to_end(), (Vec::new(), true));
    }
    // The server has released the lease, so a writer need not wait.
    drop(OpenOptions::new().write(true).open(&lender.path).unwrap());
    assert!(open_for_writing_without_waiting(&lender.path).is_some());
}

#[test]
fn pages_of_several_files_take_turns_on_a_connection() {
    let lender = LeaseServer::new();
    let scratch = Scratch::new();
    let other: Vec<u8> = lender.bytes.iter().rev().copied().take(5 << 20).collect();
    lender.server.put("other", representation_of_file(&scratch.write("other", &other)));
    let mut connection = lender.server.connect();
    for _ in 0..3 {
        assert!(connection.request_and_read("GET /mapped/image", "").body == lender.bytes);
        assert!(connection.request_and_read("GET /mapped/other", "").body == other);
    }
}

/// The lease ends with the image. No download delays a process that opens the replacing file for writing.
#[test]
fn image_no_longer_served_loses_its_lease() {
    let lender = LeaseServer::new();
    let mut first = lender.server.connect();
    assert!(first.request_and_read("GET /mapped/image", "Connection: close").body == lender.bytes);
    assert_eq!(first.read_to_end(), (Vec::new(), true));
    // The client sees the end shortly before the server has released the connection.
    std::thread::sleep(Duration::from_millis(200));
    let scratch = Scratch::new();
    lender.server.put("image", representation_of_file(&scratch.write("other", &lender.bytes)));
    assert!(lender.server.connect().request_and_read("GET /mapped/image", "").body == lender.bytes);
    assert!(open_for_writing_without_waiting(&lender.path).is_some());
}

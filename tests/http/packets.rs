//! The packets of long responses must be full: a partial packet waits for more bytes.

use std::net::TcpStream;
use std::process::Command;

use tokio_rustls::rustls::version::TLS13;

use crate::server::{ContentServer, bytes_without_repetition, representation_of_file};
use crate::support::{Scratch, require_tool};
use crate::tls::{TlsServer, request_range};

/// Several times longer than all buffers between server and client.
const LEN: usize = 48 << 20;

/// Returns the ratio of sent to necessary packets; `None` if the kernel does not report it.
fn sent_per_necessary_packet(stream: &TcpStream) -> Option<f64> {
    let filter = format!("= :{}", stream.local_addr().unwrap().port());
    let output = Command::new(require_tool("ss")?).args(["-tniH", "sport", &filter]).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let number = |key: &str| -> f64 {
        let word = output.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'));
        word.unwrap_or_else(|| panic!("no {key}: {output}")).parse().unwrap()
    };
    Some(number("data_segs_in") / (number("bytes_received") / number("advmss")))
}

/// Asserts that one of three connections has fewer sent packets for each necessary one than a limit.
///
/// On a busy machine, the kernel may drop bytes that a client has not read yet. Then it sends them again in many small
/// packets, whatever the server writes. So the other two connections may have partial packets.
fn assert_full_packets(limit: f64, read_on_new_connection: impl Fn() -> Option<f64>) {
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let Some(packets) = read_on_new_connection() else { return };
        if packets < limit {
            return;
        }
        ratios.push(packets);
    }
    panic!("sent packets for each necessary one: {ratios:?}");
}

#[test]
fn packets_of_pages_and_of_copies_are_full() {
    let scratch = Scratch::new();
    let bytes = bytes_without_repetition(LEN);
    let path = scratch.write("base", &bytes);
    for server in [ContentServer::start(1), ContentServer::start_without_zero_copy(1)] {
        server.put("image", representation_of_file(&path));
        assert_full_packets(1.1, || {
            let mut connection = server.connect();
            for headers in ["", "Range: bytes=0-", "", "Range: bytes=0-"] {
                connection.write_request("GET /mapped/image", headers);
                connection.read_head();
                for piece in bytes.chunks(100_000) {
                    assert!(connection.read_exactly(piece.len()) == piece);
                }
            }
            sent_per_necessary_packet(connection.stream())
        });
    }
}

/// Each TLS record is written separately.
#[test]
fn packets_of_records_are_full() {
    let scratch = Scratch::new();
    let secure = TlsServer::start();
    let bytes = bytes_without_repetition(512 << 10);
    secure.server.put("image", representation_of_file(&scratch.write("base", &bytes)));
    assert_full_packets(2.0, || {
        let mut stream = secure.connect(&TLS13);
        for _ in 0..50 {
            assert!(request_range(&mut stream, "/fit/image", "0-").1 == bytes);
        }
        sent_per_necessary_packet(stream.get_ref())
    });
}

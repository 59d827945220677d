//! How full the packets are in which long answers come: what does not fill one waits for more.

use std::net::TcpStream;
use std::process::Command;

use tokio_rustls::rustls::version::TLS13;

use crate::server::{Server, file, noise};
use crate::support::{Scratch, require_tool};
use crate::tls::{Secure, ask};

/// Longer than all buffers on the way to a client, several times.
const LEN: usize = 48 << 20;

/// How many packets came for each that would have done, where the system tells.
fn packets_for_one(stream: &TcpStream) -> Option<f64> {
    let filter = format!("= :{}", stream.local_addr().unwrap().port());
    let told = Command::new(require_tool("ss")?).args(["-tniH", "sport", &filter]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let number = |key: &str| -> f64 {
        let word = told.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'));
        word.unwrap_or_else(|| panic!("no {key}: {told}")).parse().unwrap()
    };
    Some(number("data_segs_in") / (number("bytes_received") / number("advmss")))
}

#[test]
fn packets_of_pages_and_of_copies_are_full() {
    let scratch = Scratch::new();
    let bytes = noise(LEN);
    let path = scratch.write("base", &bytes);
    for server in [Server::start(1), Server::copying(1)] {
        server.put("image", file(&path));
        let mut connection = server.connect();
        for headers in ["", "Range: bytes=0-", "", "Range: bytes=0-"] {
            connection.request("GET /mapped/image", headers);
            connection.head();
            for piece in bytes.chunks(100_000) {
                assert!(connection.take(piece.len()) == piece);
            }
        }
        let Some(packets) = packets_for_one(connection.stream()) else { return };
        assert!(packets < 1.1, "{packets}");
    }
}

/// Each record is written by itself.
#[test]
fn packets_of_records_are_full() {
    let scratch = Scratch::new();
    let secure = Secure::start();
    let bytes = noise(512 << 10);
    secure.server.put("image", file(&scratch.write("base", &bytes)));
    let mut stream = secure.connect(&TLS13);
    for _ in 0..50 {
        assert!(ask(&mut stream, "/fit/image", "0-").1 == bytes);
    }
    let Some(packets) = packets_for_one(stream.get_ref()) else { return };
    assert!(packets < 2.0, "{packets}");
}

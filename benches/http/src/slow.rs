//! Slow readers of one image each, which show how much memory a server uses for them.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::client::{Connection, RESPONSE_TIMEOUT, ReadResult, Sink, Target, WaitMode, write_get};
use crate::exchange::{Exchange, ExpectedResponse};
use crate::interrupt;
use crate::usage::Memory;

/// A small receive buffer, so that bytes sent ahead stay in the server's memory.
const RECEIVE_BUFFER: usize = 16 << 10;
/// Number of bytes per read: one TLS record.
const READ_LEN: usize = 16 << 10;
/// Pause between two reads of a client.
const PAUSE: Duration = Duration::from_millis(250);

/// Runs slow readers for a while, and returns the maximum private memory of the server in bytes.
///
/// # Errors
///
/// Returns an error if a response is not the expected one or a reader gets no bytes.
pub(crate) fn read(target: &Target, total: u64, pid: u32, plan: SlowReadersPlan) -> Result<u64> {
    let mut most = 0;
    let mut readers = Vec::with_capacity(plan.readers);
    for _ in 0..plan.readers {
        interrupt::check()?;
        readers.push(Reader::open(target, total)?);
    }
    let start = Instant::now();
    let mut scratch = vec![0; READ_LEN];
    while start.elapsed() < plan.time || readers.iter().any(|reader| !reader.has_read) {
        interrupt::check()?;
        ensure!(
            start.elapsed() < plan.time + RESPONSE_TIMEOUT,
            "slow readers get no bytes for {RESPONSE_TIMEOUT:?}"
        );
        let round = Instant::now();
        for reader in &mut readers {
            reader.read_some_of_response(&mut scratch)?;
        }
        most = most.max(Memory::read(pid)?.private);
        std::thread::sleep(PAUSE.saturating_sub(round.elapsed()));
    }
    Ok(most)
}

/// Number of readers, and how long they read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlowReadersPlan {
    pub(crate) readers: usize,
    pub(crate) time: Duration,
}

struct Reader {
    connection: Connection,
    exchange: Exchange,
    has_read: bool,
}

impl Reader {
    fn open(target: &Target, total: u64) -> Result<Self> {
        let mut connection = Connection::open_with(target, Some(RECEIVE_BUFFER))?;
        let mut request = Vec::new();
        write_get(&mut request, target, None);
        connection.send(&request)?;
        connection.set_waiting(WaitMode::Polled)?;
        Ok(Self { connection, exchange: Exchange::new(ExpectedResponse::Whole(total)), has_read: false })
    }

    fn read_some_of_response(&mut self, scratch: &mut [u8]) -> Result<()> {
        if !self.exchange.is_done() {
            let result = self.connection.read_some(&mut self.exchange, scratch, &mut Sink::Discard)?;
            self.has_read |= result != ReadResult::Nothing && self.exchange.left().is_some();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare::{SendMethod, tests::serving};

    #[test]
    fn every_slow_reader_gets_bytes() {
        let target = serving(64 << 20, SendMethod::Writes);
        let plan = SlowReadersPlan { readers: 5, time: Duration::from_millis(30) };
        let most = read(&target, 64 << 20, std::process::id(), plan).unwrap();
        assert!(most > 64 << 10, "{most}");
        assert!(read(&target, 63 << 20, std::process::id(), plan).is_err());
    }
}

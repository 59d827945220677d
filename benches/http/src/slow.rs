//! Readers who take little, now and then, of an image each: what does a server keep for them?

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::client::{Connection, SILENCE, Sink, Taken, Target, Waiting, write_get};
use crate::exchange::{Exchange, Wanted};
use crate::interrupt;
use crate::usage::Memory;

/// As of a small machine: what a server sends ahead stays on its own side.
const RECEIVE_BUFFER: usize = 16 << 10;
/// As much as a reader takes at once: a record of TLS.
const BITE: usize = 16 << 10;
/// From one bite of a reader to its next.
const PAUSE: Duration = Duration::from_millis(250);

/// Lets so many readers take bites for a while, and gives how many bytes of private memory the server had at most.
///
/// # Errors
///
/// When an answer is not the wanted one, or a reader gets nothing.
pub(crate) fn read(target: &Target, total: u64, pid: u32, plan: Plan) -> Result<u64> {
    let mut most = 0;
    let mut readers = Vec::with_capacity(plan.readers);
    for _ in 0..plan.readers {
        interrupt::check()?;
        readers.push(Reader::open(target, total)?);
    }
    let begun = Instant::now();
    let mut scratch = vec![0; BITE];
    while begun.elapsed() < plan.time || readers.iter().any(|reader| !reader.has_read) {
        interrupt::check()?;
        ensure!(begun.elapsed() < plan.time + SILENCE, "slow readers get nothing for {SILENCE:?}");
        let round = Instant::now();
        for reader in &mut readers {
            reader.bite(&mut scratch)?;
        }
        most = most.max(Memory::of(pid)?.private);
        std::thread::sleep(PAUSE.saturating_sub(round.elapsed()));
    }
    Ok(most)
}

/// How many readers there are, and how long they read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
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
        connection.set_waiting(Waiting::Polled)?;
        Ok(Self { connection, exchange: Exchange::new(Wanted::Whole(total)), has_read: false })
    }

    fn bite(&mut self, scratch: &mut [u8]) -> Result<()> {
        if !self.exchange.is_done() {
            let taken = self.connection.take(&mut self.exchange, scratch, &mut Sink::Discard)?;
            self.has_read |= taken != Taken::Nothing && self.exchange.left().is_some();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare::{Way, tests::serving};

    #[test]
    fn every_reader_gets_a_bite() {
        let target = serving(64 << 20, Way::Writes);
        let plan = Plan { readers: 5, time: Duration::from_millis(30) };
        let most = read(&target, 64 << 20, std::process::id(), plan).unwrap();
        assert!(most > 64 << 10, "{most}");
        assert!(read(&target, 63 << 20, std::process::id(), plan).is_err());
    }
}

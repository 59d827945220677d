//! Measures how the cost of Kindling grows with the number of concurrent connections that request ranges of one image.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::AxisResult;
use super::probe::{file, first_byte, higher, make, mib};
use super::server::{RunFolder, Server, VERSION};
use crate::base;
use crate::figures::{Measure, float};
use crate::fleet::{Client, Script, Tally, Until, run};
use crate::interrupt;
use crate::measure::{GIB, lower};
use crate::random::Random;
use crate::usage::{CpuTime, Memory};

const RANGE: u64 = 64 << 10;
/// Interval of memory readings of the server.
const PAUSE: Duration = Duration::from_millis(50);

/// Measures one round. Every size has its own server, because a server does not free the memory of many connections
/// immediately.
pub(crate) fn round(house: &RunFolder, sizes: &[u64], round: u64) -> Result<AxisResult> {
    let setting = house.setting(&format!("connections-{round}"));
    let mut results = Vec::with_capacity(sizes.len());
    for &count in sizes {
        interrupt::check()?;
        let server = house.start(&setting)?;
        let measures = size(house, &server, count).with_context(|| format!("{count} connections"))?;
        results.push((count, measures));
    }
    std::fs::remove_dir_all(&setting.data)?;
    Ok(results)
}

fn size(house: &RunFolder, server: &Server, count: u64) -> Result<Vec<Measure>> {
    let mut connection = server.connect()?;
    let id = make(&mut connection, server, ("connections", VERSION))?;
    let path = file(&id, "full.iso");
    let total = first_byte(&mut connection, server, &path)?.total;
    let target = server.target().at(&path);
    base::download(&target, total, None)?;
    let target = Arc::new(target);
    let before = server.memory()?.private;
    let mut clients = Vec::new();
    for number in 0..count {
        interrupt::check()?;
        let script = Script::Random { len: RANGE, random: Random::new(number) };
        clients.push(Client::open(&target, total, script)?);
    }
    let earlier = CpuTime::read(server.pid())?;
    let (tally, most) = watched(server, clients, house.time)?;
    let cpu = CpuTime::read(server.pid())?.since(&earlier).as_secs_f64();
    let (requests, gib) = (float(tally.requests), float(tally.bytes) / GIB);
    let seconds = tally.elapsed.as_secs_f64();
    let growth = float(most.saturating_sub(before)) / 1024.0;
    Ok(vec![
        higher("rate", "requests/s", requests / seconds),
        higher("bytes", "GiB/s", gib / seconds),
        lower("CPU time of a request", "\u{b5}s", cpu * 1e6 / requests),
        lower("CPU time of bytes", "s/GiB", cpu / gib),
        mib("private memory at most", most),
        lower("private memory of a connection", "KiB", growth / float(count)),
    ])
}

/// Runs the clients, and returns the maximum memory of the server meanwhile.
fn watched(server: &Server, clients: Vec<Client>, time: Duration) -> Result<(Tally, u64)> {
    let over = AtomicBool::new(false);
    let pid = server.pid();
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = Memory::read(pid)?.private;
            while !over.load(Ordering::Relaxed) {
                most = most.max(Memory::read(pid)?.private);
                std::thread::sleep(PAUSE);
            }
            Ok(most)
        });
        let tally = run(clients, Until::Elapsed(time));
        over.store(true, Ordering::Relaxed);
        let most = watcher.join().unwrap_or_else(|_| Err(anyhow!("the memory watcher panicked")))?;
        Ok((tally?, most))
    })
}

//! Measures how the cost of Kindling grows with the number of hosts with static networks in one infra-env.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::probe::{file, first_byte, make, mib, took};
use super::server::{RunFolder, Server, VERSION};
use super::{AxisResult, network};
use crate::figures::{Measure, float};
use crate::infra_env::{self, NewInfraEnv};
use crate::interrupt;
use crate::measure::{lower, milliseconds};
use crate::usage::CpuTime;

/// Measures one round. Every size has its own server, so that the host cache is empty at first.
pub(crate) fn round(house: &RunFolder, sizes: &[u64], round: u64) -> Result<AxisResult> {
    let mut results = Vec::with_capacity(sizes.len());
    for &count in sizes {
        interrupt::check()?;
        let measures = size(house, count, round).with_context(|| format!("{count} hosts"))?;
        results.push((count, measures));
    }
    Ok(results)
}

fn size(house: &RunFolder, count: u64, round: u64) -> Result<Vec<Measure>> {
    let setting = house.setting(&format!("hosts-{round}-{count}"));
    let server = house.start(&setting)?;
    let networks = network::hosts(count, round)?;
    let wish = |name| NewInfraEnv { name, version: VERSION, networks: &networks }.body();
    let mut connection = server.connect()?;
    let bare = make(&mut connection, &server, ("bare", VERSION))?;
    let bare_full = first_byte(&mut connection, &server, &file(&bare, "full.iso"))?;
    let bare_minimal = first_byte(&mut connection, &server, &file(&bare, "minimal.iso"))?;

    let body = wish("first");
    let (first, posted) = post(&server, &body)?;
    let full = first_byte(&mut connection, &server, &file(&first, "full.iso"))?;
    let minimal = first_byte(&mut connection, &server, &file(&first, "minimal.iso"))?;
    ensure!(minimal.total >= bare_minimal.total, "the minimal image is shorter with networks than without");
    let (second, posted_again) = post(&server, &wish("second"))?;
    let cached = first_byte(&mut connection, &server, &file(&second, "full.iso"))?;
    ensure!(cached.total == full.total, "{} bytes, and {} of the same hosts", cached.total, full.total);
    let memory = server.memory()?.private;
    drop(server);

    let server = house.start(&setting)?;
    let cold = first_byte(&mut server.connect()?, &server, &file(&first, "full.iso"))?;
    ensure!(cold.total == full.total, "the image differs after a restart");
    drop(server);
    std::fs::remove_dir_all(&setting.data)?;
    let kib = |name, bytes: u64| lower(name, "KiB", float(bytes) / 1024.0);
    Ok(vec![
        took("to the API", posted.took),
        lower("to the API, CPU time", "ms", milliseconds(posted.cpu)),
        took("full image, first byte", full.took),
        took("minimal image, first byte", minimal.took),
        took("same hosts again, to the API", posted_again.took),
        took("same hosts again, full image, first byte", cached.took),
        took("full image, first byte after a restart", cold.took),
        kib("request", u64::try_from(body.len())?),
        kib("full image is longer by", full.total.saturating_sub(bare_full.total)),
        kib("minimal image is longer by", minimal.total.saturating_sub(bare_minimal.total)),
        mib("private memory", memory),
    ])
}

struct RequestCost {
    took: Duration,
    cpu: Duration,
}

fn post(server: &Server, body: &str) -> Result<(String, RequestCost)> {
    let mut connection = server.connect()?;
    let before = CpuTime::read(server.pid())?;
    let start = Instant::now();
    let id = infra_env::post(&mut connection, server.target(), body)?;
    let took = start.elapsed();
    Ok((id, RequestCost { took, cpu: CpuTime::read(server.pid())?.since(&before) }))
}

//! Measures how the cost of Kindling grows with the number of infra-envs in the inventory, on SQLite.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::AxisResult;
use super::probe::{file, first_byte, higher, make, median, mib, took};
use super::server::{RunFolder, Server, Setting, VERSION};
use crate::client::write_get;
use crate::exchange::ExpectedResponse;
use crate::figures::{Measure, float};
use crate::infra_env::API;
use crate::interrupt;
use crate::measure::lower;
use crate::random::Random;
use crate::usage::CpuTime;

/// Number of clients that create infra-envs concurrently.
const CREATING_CLIENTS: usize = 8;
/// Number of images to request. Each is requested once.
const IMAGES: usize = 20;
const LISTS: usize = 3;

/// Measures one round. One inventory grows from size to size, and the server restarts at each size.
pub(crate) fn round(house: &RunFolder, sizes: &[u64], round: u64) -> Result<AxisResult> {
    let setting = house.setting(&format!("infra-envs-{round}"));
    let mut server = house.start(&setting)?;
    let mut ids = Vec::new();
    let mut results = Vec::with_capacity(sizes.len());
    for &count in sizes {
        let about = || format!("{count} infra-envs");
        let mut measures = grow(&server, &mut ids, count).with_context(about)?;
        measures.push(mib("private memory after making them", server.memory()?.private));
        drop(server);
        server = house.start(&setting)?;
        measures.push(took("start to ready", server.ready()));
        measures.extend(read(house, &server, &ids).with_context(about)?);
        measures.push(mib("private memory after all reads", server.memory()?.private));
        measures.push(mib("database", database_len(&setting)?));
        results.push((count, measures));
    }
    drop(server);
    fs::remove_dir_all(&setting.data)?;
    Ok(results)
}

/// Creates the missing infra-envs up to `count`.
fn grow(server: &Server, ids: &mut Vec<String>, count: u64) -> Result<Vec<Measure>> {
    let missing = usize::try_from(count)?.saturating_sub(ids.len());
    let before = CpuTime::read(server.pid())?;
    let start = Instant::now();
    let created = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..CREATING_CLIENTS.min(missing))
            .map(|maker| scope.spawn(move || create_some(server, (maker..missing).step_by(CREATING_CLIENTS))))
            .collect();
        let joined: Vec<_> = makers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        joined
            .into_iter()
            .map(|created| created.unwrap_or_else(|_| Err(anyhow!("a client panicked"))))
            .collect::<Vec<_>>()
    });
    let took = start.elapsed();
    let cpu = CpuTime::read(server.pid())?.since(&before);
    for created in created {
        ids.extend(created?);
    }
    let each = float(u64::try_from(missing)?);
    Ok(vec![
        higher("made by 8 concurrent clients", "1/s", each / took.as_secs_f64()),
        lower("made, CPU time", "\u{b5}s", cpu.as_secs_f64() * 1e6 / each),
    ])
}

fn create_some(server: &Server, numbers: impl Iterator<Item = usize>) -> Result<Vec<String>> {
    let mut connection = server.connect()?;
    let mut ids = Vec::new();
    for number in numbers {
        interrupt::check()?;
        ids.push(make(&mut connection, server, (&format!("scale-{number}"), VERSION))?);
    }
    Ok(ids)
}

fn read(house: &RunFolder, server: &Server, ids: &[String]) -> Result<Vec<Measure>> {
    let mut random = Random::new(1);
    let mut connection = server.connect()?;
    let mut unseen = Vec::new();
    for id in ids.iter().rev().take(IMAGES) {
        unseen.push(first_byte(&mut connection, server, &file(id, "full.iso"))?.took);
    }
    let mut measures = vec![lower("unseen image, first byte", "ms", median(&unseen)?)];
    measures.extend(get_some(house, server, (ids, &mut random))?);
    let mut lists = Vec::with_capacity(LISTS);
    let mut len = 0;
    for _ in 0..LISTS {
        let (took, body) = list(server)?;
        let listed: Vec<Value> = serde_json::from_slice(&body).context("the list")?;
        ensure!(listed.len() == ids.len(), "the list has {} of {} infra-envs", listed.len(), ids.len());
        lists.push(took);
        len = u64::try_from(body.len())?;
    }
    measures.push(lower("list of all", "ms", median(&lists)?));
    measures.push(mib("list", len));
    Ok(measures)
}

fn list(server: &Server) -> Result<(Duration, Vec<u8>)> {
    let mut connection = server.connect()?;
    let mut request = Vec::new();
    write_get(&mut request, &server.target().at(API), None);
    let start = Instant::now();
    let body = connection.fetch(&request, ExpectedResponse::Status(200))?;
    Ok((start.elapsed(), body))
}

/// Sends one request after another over one connection, until the measuring time is over.
fn get_some(
    house: &RunFolder,
    server: &Server,
    (ids, random): (&[String], &mut Random),
) -> Result<Vec<Measure>> {
    let mut connection = server.connect()?;
    let before = CpuTime::read(server.pid())?;
    let start = Instant::now();
    let mut count = 0_u64;
    let mut request = Vec::new();
    while start.elapsed() < house.time {
        let at = usize::try_from(random.below(u64::try_from(ids.len())?))?;
        let id = ids.get(at).context("there are no infra-envs")?;
        request.clear();
        write_get(&mut request, &server.target().at(&format!("{API}/{id}")), None);
        let body = connection.fetch(&request, ExpectedResponse::Status(200))?;
        ensure!(body.windows(id.len()).any(|part| part == id.as_bytes()), "not the infra-env {id}");
        count += 1;
    }
    let took = start.elapsed();
    let cpu = CpuTime::read(server.pid())?.since(&before);
    Ok(vec![
        higher("GET of one, 1 client", "1/s", float(count) / took.as_secs_f64()),
        lower("GET of one, CPU time", "\u{b5}s", cpu.as_secs_f64() * 1e6 / float(count)),
    ])
}

/// Returns the size of the database, including its write-ahead log.
fn database_len(setting: &Setting) -> Result<u64> {
    let is_of_database =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".db"));
    let mut len = 0;
    for entry in fs::read_dir(&setting.data)? {
        let entry = entry?;
        if is_of_database(&entry.path()) {
            len += entry.metadata()?.len();
        }
    }
    ensure!(len > 0, "no database in {}", setting.data.display());
    Ok(len)
}

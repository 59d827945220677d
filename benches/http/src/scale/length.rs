//! Measures how the cost of Kindling grows with the length of the base image. The images are sparse. Bytes beyond the
//! maximum length of a root file system follow the volume.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use fixtures::{Architecture, Era, Recipe};

use super::AxisResult;
use super::probe::{file, first_byte, higher, make, median, mib, took};
use super::server::{BenchBaseImage, RunFolder, Setting, VERSION};
use crate::figures::{Measure, float};
use crate::fleet::{Client, Script, Until, run};
use crate::interrupt;
use crate::measure::lower;
use crate::random::Random;
use crate::usage::CpuTime;

const RANGE: u64 = 64 << 10;
const CONNECTIONS: u64 = 8;
/// Number of images to request. Each is requested once.
const IMAGES: u64 = 20;

pub(crate) fn round(house: &RunFolder, sizes: &[u64], round: u64) -> Result<AxisResult> {
    let mut results = Vec::with_capacity(sizes.len());
    for &mib in sizes {
        interrupt::check()?;
        let path = house.path("long.iso");
        write(&path, mib << 20)?;
        let image = BenchBaseImage { openshift_version: VERSION.to_owned(), path: path.clone() };
        let setting = Setting { data: house.path(&format!("length-{round}-{mib}")), images: vec![image] };
        let measures = size(house, &setting, mib << 20).with_context(|| format!("{mib} MiB"))?;
        fs::remove_dir_all(&setting.data)?;
        fs::remove_file(&path)?;
        results.push((mib, measures));
    }
    Ok(results)
}

/// Writes a base image of `len` bytes. Its root file system is shorter than 4 GiB, because cpio has 32-bit sizes. The
/// rest follows the volume, like the second partition table of a hybrid image.
fn write(path: &Path, len: u64) -> Result<()> {
    const REST: u64 = 8 << 20;
    let rootfs_len = len.saturating_sub(REST).clamp(*Recipe::ROOTFS_LENS.start(), *Recipe::ROOTFS_LENS.end());
    let recipe = Recipe::new(Architecture::X86_64, Era::E2023_07).with_program().rootfs_len(rootfs_len);
    recipe.write_to(path).with_context(|| format!("writing {}", path.display()))?;
    let file = File::options().write(true).open(path)?;
    let have = file.metadata()?.len();
    ensure!(have <= len, "the image already has {have} bytes, more than {len}");
    Ok(file.set_len(len)?)
}

fn size(house: &RunFolder, setting: &Setting, len: u64) -> Result<Vec<Measure>> {
    let first = house.start(setting)?.ready();
    let server = house.start(setting)?;
    let mut connection = server.connect()?;
    let mut times = Vec::new();
    let mut image = (String::new(), 0);
    for number in 0..IMAGES {
        let id = make(&mut connection, &server, (&format!("long-{number}"), VERSION))?;
        let path = file(&id, "full.iso");
        let byte = first_byte(&mut connection, &server, &path)?;
        times.push(byte.took);
        image = (path, byte.total);
    }
    let (path, total) = image;
    ensure!(total >= len, "the image has {total} bytes, its base image {len}");
    let target = Arc::new(server.target().at(&path));
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let script = Script::Random { len: RANGE, random: Random::new(number) };
        clients.push(Client::open(&target, total, script)?);
    }
    let before = CpuTime::read(server.pid())?;
    let tally = run(clients, Until::Elapsed(house.time))?;
    let cpu = CpuTime::read(server.pid())?.since(&before);
    let memory = server.memory()?;
    let requests = float(tally.requests);
    Ok(vec![
        took("first start to ready", first),
        took("start to ready, read before", server.ready()),
        lower("unseen image, first byte", "ms", median(&times)?),
        higher("ranges of 64 KiB, 8 connections", "requests/s", requests / tally.elapsed.as_secs_f64()),
        lower("CPU time", "\u{b5}s/request", cpu.as_secs_f64() * 1e6 / requests),
        mib("private memory", memory.private),
        mib("mapped memory", memory.mapped),
    ])
}

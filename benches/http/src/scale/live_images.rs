//! Measures how the cost of Kindling grows with the number of base images.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use fixtures::{Architecture, Era, Recipe};

use super::AxisResult;
use super::probe::{file, first_byte, make, median, mib, took};
use super::server::{BenchBaseImage, RunFolder, Setting};
use crate::base;
use crate::figures::Measure;
use crate::interrupt;
use crate::measure::lower;
use crate::work::Size;

/// Measures one round. At each size, a server starts without hash records of its base images, and then again with these
/// records.
pub(crate) fn round(house: &RunFolder, sizes: &[u64], round: u64) -> Result<AxisResult> {
    let folder = house.path("live-images");
    let most = sizes.last().copied().unwrap_or_default();
    let images = write(house, &folder, most)?;
    let mut results = Vec::with_capacity(sizes.len());
    for &count in sizes {
        interrupt::check()?;
        let images: Vec<BenchBaseImage> = images.iter().take(usize::try_from(count)?).cloned().collect();
        let setting = Setting { data: house.path(&format!("live-images-{round}-{count}")), images };
        let measures = size(house, &setting).with_context(|| format!("{count} base images"))?;
        fs::remove_dir_all(&setting.data)?;
        results.push((count, measures));
    }
    fs::remove_dir_all(&folder)?;
    Ok(results)
}

fn size(house: &RunFolder, setting: &Setting) -> Result<Vec<Measure>> {
    let first = house.start(setting)?.ready();
    let server = house.start(setting)?;
    let mut measures = vec![
        took("first start to ready", first),
        took("start to ready, read before", server.ready()),
        mib("private memory after the start", server.memory()?.private),
    ];
    let mut connection = server.connect()?;
    let mut times = Vec::with_capacity(setting.images.len());
    for image in &setting.images {
        let id = make(&mut connection, &server, ("scale", &image.openshift_version))?;
        times.push(first_byte(&mut connection, &server, &file(&id, "full.iso"))?.took);
    }
    measures.push(lower("first byte of an image of each, median", "ms", median(&times)?));
    measures.push(mib("private memory after an image of each", server.memory()?.private));
    Ok(measures)
}

/// Writes base images with different versions, and so with different identifiers.
fn write(house: &RunFolder, folder: &PathBuf, count: u64) -> Result<Vec<BenchBaseImage>> {
    fs::create_dir(folder)?;
    let rootfs_len = if house.size == Size::Full { 16 << 20 } else { 1 << 20 };
    let mut images = Vec::new();
    for number in 1..=count {
        let recipe = Recipe::new(Architecture::X86_64, Era::E2023_07)
            .with_program()
            .version(&format!("414.92.20231004{number:04}-0"))
            .rootfs_len(rootfs_len);
        let path = folder.join(format!("{number}.iso"));
        base::write_recipe(&path, &recipe)?;
        images.push(BenchBaseImage { openshift_version: format!("4.14.{number}"), path });
    }
    Ok(images)
}

//! Growth of cost: measures only Kindling, with a growing amount of one thing while all else stays the same.
//!
//! Each axis is measured in rounds, and each round starts and stops its own servers. `docs/scale.md` explains the
//! measurements.

mod axis;
mod capacity;
mod connections;
mod hosts;
mod infra_envs;
mod length;
mod live_images;
pub(crate) mod network;
mod probe;
mod report;
mod server;

use anyhow::{Context, Result, ensure};

use self::axis::Axis;
use self::report::{Curve, Report};
use self::server::RunFolder;
pub(crate) use self::server::VERSION;
use crate::bench;
use crate::figures::Measure;
use crate::machine::{self, Machine};
use crate::options::ScaleOptions;

/// Measurements of a round for each size, in the order of sizes.
type AxisResult = Vec<(u64, Vec<Measure>)>;

/// Measures all selected axes.
///
/// # Errors
///
/// Returns an error if Kindling fails or sends a wrong response.
pub(crate) fn run(options: &ScaleOptions) -> Result<Report> {
    let machine = Machine::detect();
    machine::raise_limit_of_files()?;
    let axes = axis::chosen(options.only.as_deref());
    ensure!(!axes.is_empty(), "no axis matches {:?}", options.only);
    let folder = bench::temporary_folder(options.folder.as_deref())?;
    let kindling = bench::kindling(options.kindling.as_deref())?;
    let version = machine::version(&kindling, "--version")?;
    let house = RunFolder::new(folder.path(), kindling, options)?;
    let mut curves = Vec::with_capacity(axes.len());
    for axis in axes {
        curves.push(curve(&house, axis, options)?);
    }
    Ok(Report {
        machine,
        version,
        command: options.command_line(),
        rounds: options.rounds(),
        seconds: options.time().as_secs_f64(),
        curves,
    })
}

fn curve(house: &RunFolder, axis: Axis, options: &ScaleOptions) -> Result<Curve> {
    let mut curve = Curve::new(axis);
    let sizes = axis.sizes(options.size());
    for round in 1..=options.rounds() {
        eprintln!("{}: round {round} of {}", axis.key(), options.rounds());
        let results = match axis {
            Axis::Hosts => hosts::round(house, sizes, round),
            Axis::InfraEnvs => infra_envs::round(house, sizes, round),
            Axis::LiveImages => live_images::round(house, sizes, round),
            Axis::ImageLength => length::round(house, sizes, round),
            Axis::Connections => connections::round(house, sizes, round),
        };
        for (size, measures) in results.with_context(|| axis.key())? {
            curve.add(size, &measures);
        }
    }
    Ok(curve)
}

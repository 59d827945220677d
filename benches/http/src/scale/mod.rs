//! How cost grows: Kindling alone, with more and more of one thing while all else stays.
//!
//! Each axis is measured in rounds; a round starts servers of its own and ends them. What figures mean, and what to make of
//! them, is in `docs/scale.md`.

mod axis;
mod capacity;
mod connections;
mod hosts;
mod infra_envs;
mod length;
mod live_images;
mod network;
mod plot;
mod probe;
mod report;
mod server;

use anyhow::{Context, Result, ensure};

use self::axis::Axis;
use self::report::{Curve, Report};
use self::server::House;
use crate::bench;
use crate::figures::Measure;
use crate::machine::{self, Machine};
use crate::options::ScaleOptions;

/// What a round has found: numbers for each size, in the order of sizes.
type Found = Vec<(u64, Vec<Measure>)>;

/// Measures everything that was chosen.
///
/// # Errors
///
/// When Kindling does not do what it has to.
pub(crate) fn run(options: &ScaleOptions) -> Result<Report> {
    let machine = Machine::look();
    machine::raise_limit_of_files()?;
    let axes = axis::chosen(options.only.as_deref());
    ensure!(!axes.is_empty(), "there is no such axis: {:?}", options.only);
    let folder = bench::temporary_folder(options.folder.as_deref())?;
    let kindling = bench::kindling(options.kindling.as_deref())?;
    let version = machine::version(&kindling, "--version")?;
    let house = House::new(folder.path(), kindling, options)?;
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

fn curve(house: &House, axis: Axis, options: &ScaleOptions) -> Result<Curve> {
    let mut curve = Curve::new(axis);
    let sizes = axis.sizes(options.size());
    for round in 1..=options.rounds() {
        eprintln!("{}: round {round} of {}", axis.key(), options.rounds());
        let found = match axis {
            Axis::Hosts => hosts::round(house, sizes, round),
            Axis::InfraEnvs => infra_envs::round(house, sizes, round),
            Axis::LiveImages => live_images::round(house, sizes, round),
            Axis::ImageLength => length::round(house, sizes, round),
            Axis::Connections => connections::round(house, sizes, round),
        };
        for (size, measures) in found.with_context(|| axis.key())? {
            curve.add(size, &measures);
        }
    }
    Ok(curve)
}

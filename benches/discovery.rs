//! What it costs to put a discovery config into the archive that an image takes: the config with everything that an
//! infra-env can ask for and an override of 20 KiB, packed as members of a cpio archive.
//!
//! The promise is 10 ms, from the inputs on and with gzip. `cargo bench -p kindling --bench discovery -- --quick` takes a
//! few seconds once built.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench over inputs of its own"
)]

#[path = "../ignition/tests/setups/mod.rs"]
mod setups;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ignition::discovery::{Discovery, Override};
use isogen::{Archive, Encoding, Packed};

fn pack(config: &str, encoding: Encoding) -> Packed {
    let mut archive = Archive::new();
    archive.insert("config.ign", config.to_owned());
    archive.pack(encoding).unwrap()
}

fn compose(discovery: &Discovery) -> String {
    discovery.compose().unwrap().config.to_string()
}

fn archives(criterion: &mut Criterion) {
    let mut discovery = setups::full();
    let text = setups::override_text();
    assert!(text.len() >= setups::OVERRIDE_LEN);
    discovery.infra_env.config_override = Some(Override::new(text));
    let config = compose(&discovery);
    assert!(config.len() > setups::OVERRIDE_LEN && config.contains("/etc/extra/0.conf"));
    criterion.bench_function("pack a discovery config with an override of 20 KiB, gzip", |b| {
        b.iter(|| pack(black_box(&config), Encoding::Gzip));
    });
    criterion.bench_function("pack it, xz", |b| b.iter(|| pack(black_box(&config), Encoding::Xz)));
    criterion.bench_function("compose and pack it, gzip", |b| {
        b.iter(|| pack(&compose(black_box(&discovery)), Encoding::Gzip));
    });
}

criterion_group!(benches, archives);
criterion_main!(benches);

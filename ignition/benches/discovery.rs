//! Measures the cost of a discovery config: it has all options of an infra-env, and an override of 20 KiB is merged and
//! validated.
//!
//! The limit is 2 ms. `cargo bench -p ignition --bench discovery -- --quick` takes a few seconds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a bench over its own inputs")]

#[path = "../tests/setups/mod.rs"]
mod setups;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ignition::discovery::Override;

/// Returns an override whose last file conflicts with a file of the config. No other invalid override takes more time
/// to refuse.
fn bad_override() -> String {
    let text = setups::override_text();
    text.replacen(
        "\"storage\":{",
        "\"storage\":{\"links\":[{\"path\":\"/etc/NetworkManager\",\"target\":\"/x\"}],",
        1,
    )
}

fn discovery(criterion: &mut Criterion) {
    let plain = setups::full();
    let mut changed = setups::full();
    let text = setups::override_text();
    assert!(text.len() >= setups::OVERRIDE_LEN);
    changed.infra_env.config_override = Some(Override::new(text));
    let mut refused = setups::full();
    refused.infra_env.config_override = Some(Override::new(bad_override()));
    criterion.bench_function("discovery config", |b| b.iter(|| black_box(&plain).compose().unwrap()));
    criterion.bench_function("discovery config with an override of 20 KiB, as text", |b| {
        b.iter(|| black_box(&changed).compose().unwrap().config.to_string());
    });
    criterion.bench_function("an override of 20 KiB refused and traced", |b| {
        b.iter(|| black_box(&refused).compose().unwrap_err());
    });
}

criterion_group!(benches, discovery);
criterion_main!(benches);

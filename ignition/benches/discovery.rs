//! What a discovery config costs: everything that an infra-env can ask for, with an override of 20 KiB merged and checked.
//!
//! The promise is 2 ms. `cargo bench -p ignition --bench discovery -- --quick` takes a few seconds.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench over inputs of its own"
)]

#[path = "../tests/setups/mod.rs"]
mod setups;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ignition::discovery::Override;
use serde_json::json;

const OVERRIDE_LEN: usize = 20 << 10;

/// What somebody wants to have otherwise.
fn override_text() -> String {
    let file = |number: usize| {
        json!({"path": format!("/etc/extra/{number}.conf"), "mode": 420, "overwrite": true, "user": {"name": "root"},
            "contents": {"source": format!("data:,{}", "setting%20=%20value%0A".repeat(40))}})
    };
    let count = OVERRIDE_LEN / file(0).to_string().len() + 1;
    let config = json!({
        "ignition": {"version": "3.2.0"},
        "passwd": {"users": [{"name": "core", "passwordHash": "$6$salt$hash", "groups": ["sudo"]}]},
        "storage": {"files": (0..count).map(file).collect::<Vec<_>>()},
        "systemd": {"units": [{"name": "multipathd.service", "enabled": false}]},
    });
    config.to_string()
}

/// An override whose last file clashes with one of the config: the costliest way to be refused.
fn bad_override() -> String {
    let text = override_text();
    text.replacen(
        "\"storage\":{",
        "\"storage\":{\"links\":[{\"path\":\"/etc/NetworkManager\",\"target\":\"/x\"}],",
        1,
    )
}

fn discovery(criterion: &mut Criterion) {
    let plain = setups::full();
    let mut changed = setups::full();
    let text = override_text();
    assert!(text.len() >= OVERRIDE_LEN);
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

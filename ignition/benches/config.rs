//! Measures the cost of a config: parsing it, merging an override, validating the result, and all three together.
//!
//! The config resembles the config of a discovery image: a few scripts and units, keys, certificates and a pull secret.
//! The override is 20 KiB. `cargo bench -p ignition` takes half a minute, and `cargo bench -p ignition -- --quick`
//! takes a few seconds.

#![allow(clippy::unwrap_used, missing_docs, reason = "a bench over its own configs")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ignition::builder::{ConfigBuilder, FileMode, UnitState};
use ignition::config::Config;
use ignition::lint::lint;
use ignition::merge::merge;
use ignition::validate::validate;
use serde_json::json;

const OVERRIDE_LEN: usize = 20 << 10;

/// Returns a script with this number of lines.
fn script(lines: usize) -> String {
    let line = |number| format!("nmcli connection modify eth{number} ipv4.method manual # step {number}\n");
    std::iter::once("#!/bin/bash\n".to_owned()).chain((0..lines).map(line)).collect()
}

/// Builds a config like the config of a discovery image.
fn build() -> Vec<u8> {
    let mut config = ConfigBuilder::new();
    for number in 0..6 {
        let path = format!("/usr/local/bin/step-{number}.sh");
        config.add_file(path, script(20).as_bytes(), FileMode::PRIVATE_EXECUTABLE).unwrap();
    }
    for number in 0..10 {
        let path = format!("/etc/assisted/network/host{number}/eth0.nmconnection");
        config.add_file(path, b"[connection]\nid=eth0\n\n[ipv4]\nmethod=auto\n", FileMode::PRIVATE).unwrap();
    }
    for number in 0..8 {
        let unit = format!(
            "[Service]\nExecStart=/usr/local/bin/step-{number}.sh\n[Install]\nWantedBy=multi-user.target\n"
        );
        config.add_unit(format!("step-{number}.service"), unit, UnitState::Enabled).unwrap();
    }
    config.to_installer_json().unwrap().unwrap()
}

fn override_text() -> Vec<u8> {
    let file = |number: usize| {
        json!({"path": format!("/etc/extra/{number}.conf"), "mode": 420, "overwrite": true, "user": {"name": "root"},
            "contents": {"source": format!("data:,{}", "setting%20=%20value%0A".repeat(40))}})
    };
    let count = OVERRIDE_LEN / file(0).to_string().len() + 1;
    let config = json!({
        "ignition": {"version": "3.2.0"},
        "passwd": {"users": [{"name": "core", "passwordHash": "$6$salt$hash", "groups": ["sudo"]}]},
        "storage": {"files": (0..count).map(file).collect::<Vec<_>>()},
        "systemd": {"units": [{"name": "step-1.service", "enabled": false}]},
    });
    config.to_string().into_bytes()
}

fn read(text: &[u8]) -> Config {
    Config::parse(text).unwrap().config
}

fn configs(criterion: &mut Criterion) {
    let (base, change) = (build(), override_text());
    assert!(change.len() >= OVERRIDE_LEN);
    let (parent, child) = (read(&base), read(&change));
    let merged = merge(&parent, &child);
    assert!(validate(&merged).is_empty());
    criterion.bench_function("build the base", |b| b.iter(build));
    criterion.bench_function("read an override of 20 KiB", |b| b.iter(|| read(black_box(&change))));
    criterion.bench_function("merge it", |b| b.iter(|| merge(black_box(&parent), black_box(&child))));
    criterion.bench_function("validate the result", |b| b.iter(|| validate(black_box(&merged))));
    criterion.bench_function("lint the result", |b| b.iter(|| lint(black_box(&merged))));
    criterion.bench_function("build, read, merge, validate and write", |b| {
        b.iter(|| {
            let merged = merge(&read(&build()), &read(black_box(&change)));
            assert!(!validate(&merged).is_fatal());
            merged.to_string()
        });
    });
}

criterion_group!(benches, configs);
criterion_main!(benches);

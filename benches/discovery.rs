//! Cost of packing a discovery config into the archive of an image: a config with every option of an infra-env and an
//! override of 20 KiB, packed as members of a cpio archive; and the config and the initrd of an infra-env with 1,000
//! hosts whose keyfiles are cached.
//!
//! The limits are 10 ms, including gzip, and 20 ms. `cargo bench -p kindling --bench discovery -- --quick` takes a few
//! seconds once built.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a bench over its own inputs")]

#[path = "../ignition/tests/setups/mod.rs"]
mod setups;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ignition::discovery::{Discovery, Override};
use ignition::network::{HostNetwork, HostNetworkFiles, KeyfileCache, NetworkGeneration};
use isogen::{Archive, Encoding, PackedArchive};

use setups::host::host;

fn pack(config: &str, encoding: Encoding) -> PackedArchive {
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

fn many_hosts(criterion: &mut Criterion) {
    let mut discovery = setups::full();
    let hosts: Vec<HostNetwork> = (0..1000).map(host).collect();
    let cache = KeyfileCache::default();
    let generate = || HostNetworkFiles::generate(&hosts, NetworkGeneration::Keyfiles, &cache).unwrap();
    let networks = generate();
    discovery.static_network = Some(networks.ignition_files());
    let config = compose(&discovery);
    assert!(config.contains("/etc/assisted/network/host999/"), "{} bytes", config.len());
    criterion.bench_function("files of 1,000 cached hosts", |b| b.iter(|| generate().ignition_files()));
    criterion.bench_function("compose the config of 1,000 hosts", |b| {
        b.iter(|| compose(black_box(&discovery)));
    });
    criterion.bench_function("pack the config of 1,000 hosts, gzip", |b| {
        b.iter(|| pack(black_box(&config), Encoding::Gzip));
    });
}

criterion_group!(benches, archives, many_hosts);
criterion_main!(benches);

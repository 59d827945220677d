//! Measures the cost of static networks: the keyfiles of one host and of a hundred new hosts, the files of a set of
//! cached hosts with one new host, and the checks.
//!
//! `cargo run --release -p ignition --example ten_thousand_hosts` measures whole sets and their memory.

#![allow(clippy::unwrap_used, missing_docs, reason = "a bench over its own documents")]

#[path = "../tests/setups/host.rs"]
mod host;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ignition::network::check::{ClusterNetworks, check_hosts};
use ignition::network::{HostNetwork, HostNetworkFiles, KeyfileCache, NetworkGeneration, keyfiles};

use host::host;

fn networks(criterion: &mut Criterion) {
    let first = host(0);
    criterion.bench_function("keyfiles of a host", |b| {
        b.iter(|| keyfiles(black_box(first.document().as_bytes())).unwrap());
    });
    let hosts: Vec<HostNetwork> = (0..1000).map(host).collect();
    let cache = KeyfileCache::default();
    let generate = |hosts: &[HostNetwork]| {
        HostNetworkFiles::generate(hosts, NetworkGeneration::Keyfiles, &cache).unwrap()
    };
    let few = hosts.get(..100).unwrap();
    criterion.bench_function("keyfiles of 100 new hosts", |b| {
        b.iter(|| {
            HostNetworkFiles::generate(black_box(few), NetworkGeneration::Keyfiles, &KeyfileCache::default())
                .unwrap()
        });
    });
    generate(&hosts);
    let mut number = hosts.len();
    criterion.bench_function("keyfiles of 1,000 known hosts and a new one", |b| {
        b.iter(|| {
            number += 1;
            let mut hosts = hosts.clone();
            hosts.push(host(number));
            generate(&hosts)
        });
    });
    criterion.bench_function("checks of 1,000 known hosts", |b| {
        b.iter(|| check_hosts(black_box(&hosts), &ClusterNetworks::default(), &cache))
    });
}

criterion_group!(benches, networks);
criterion_main!(benches);

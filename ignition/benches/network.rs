//! What networks cost: the keyfiles of a host and of a hundred that nobody knows, the files of a set of hosts that is known
//! but for one, and the checks.
//!
//! `cargo run --release -p ignition --example ten_thousand_hosts` has the figures for whole sets, and for memory.

#![allow(clippy::unwrap_used, missing_docs, reason = "a bench over documents of its own")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ignition::network::check::check;
use ignition::network::{Generation, HostNetwork, KeyfileCache, MacInterface, Networks, keyfiles};

fn document(number: usize) -> String {
    let nic = |nic: usize| {
        format!(
            "- {{name: eth{nic}, type: ethernet, state: up, ipv4: {{enabled: true, address: \
             [{{ip: 10.{nic}.{}.{}, prefix-length: 16}}]}}}}\n",
            number / 200,
            number % 200 + 10
        )
    };
    format!("interfaces:\n{}{}", nic(0), nic(1))
}

fn host(number: usize) -> HostNetwork {
    let interface = |nic: usize| MacInterface {
        logical_nic_name: format!("eth{nic}"),
        mac_address: format!("52:54:{nic:02x}:00:{:02x}:{:02x}", number >> 8, number & 0xff),
    };
    HostNetwork::new(document(number), vec![interface(0), interface(1)])
}

fn networks(criterion: &mut Criterion) {
    let text = document(0);
    criterion.bench_function("keyfiles of a host", |b| {
        b.iter(|| keyfiles(black_box(text.as_bytes())).unwrap());
    });
    let hosts: Vec<HostNetwork> = (0..1000).map(host).collect();
    let cache = KeyfileCache::default();
    let generate = |hosts: &[HostNetwork]| Networks::generate(hosts, Generation::Keyfiles, &cache).unwrap();
    let few = hosts.get(..100).unwrap();
    criterion.bench_function("keyfiles of 100 new hosts", |b| {
        b.iter(|| {
            Networks::generate(black_box(few), Generation::Keyfiles, &KeyfileCache::default()).unwrap()
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
    criterion.bench_function("checks of 1,000 known hosts", |b| b.iter(|| check(black_box(&hosts), &cache)));
}

criterion_group!(benches, networks);
criterion_main!(benches);

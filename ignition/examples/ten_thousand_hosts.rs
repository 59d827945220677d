//! Measures the cost of networks for many hosts: `cargo run --release -p ignition --example ten_thousand_hosts`.
//!
//! Prints elapsed seconds, CPU seconds and the peak memory of the process. It generates the keyfiles of 1,000 hosts
//! with two interfaces each, of 10,000 hosts, and of one more host, and then checks all hosts.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program that prints measurements")]

#[path = "../tests/setups/host.rs"]
mod host;

use std::fs;
use std::time::Instant;

use ignition::network::check::{ClusterNetworks, check_hosts};
use ignition::network::{HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, NetworkGeneration};

use host::host;

/// Returns the CPU time of this process in seconds.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = fields.iter().skip(11).take(2).map(|field| field.parse::<f64>().unwrap()).sum();
    ticks / 100.0
}

fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or_default().trim().to_owned()
}

fn measure<T>(what: &str, job: impl FnOnce() -> T) -> T {
    let (start, before) = (Instant::now(), cpu_seconds());
    let result = job();
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - before);
    println!("{what:<44} {seconds:>8.3} s {cpu:>8.2} CPU s, peak memory {}", peak_memory());
    result
}

fn main() {
    let mut hosts: Vec<HostNetwork> = (0..10_000).map(host).collect();
    let cache = KeyfileCache::default();
    let generate = |hosts: &[HostNetwork]| {
        HostNetworkFiles::generate(hosts, NetworkGeneration::Keyfiles, &cache).unwrap()
    };
    let thousand = hosts.get(..1000).unwrap_or_default();
    measure("keyfiles of 1,000 hosts", || generate(thousand));
    let all = measure("keyfiles of 10,000 hosts, 9,000 of them new", || generate(&hosts));
    let entries = measure("their files for an archive", || all.initrd_entries(&InitrdOptions::default()));
    println!("{} files", entries.len());
    drop((entries, all));
    hosts.push(host(10_000));
    let all = measure("keyfiles of one host more", || generate(&hosts));
    measure("their files for an archive", || all.initrd_entries(&InitrdOptions::default()));
    let report = measure("checks of 10,001 hosts with known keyfiles", || {
        check_hosts(&hosts, &ClusterNetworks::default(), &cache)
    });
    assert!(report.findings().is_empty(), "{report}");
    let report = measure("checks of 10,001 hosts", || {
        check_hosts(&hosts, &ClusterNetworks::default(), &KeyfileCache::default())
    });
    assert!(report.findings().is_empty(), "{report}");
}

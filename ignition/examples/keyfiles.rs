//! Converts the nmstate document of one host to `NetworkManager` keyfiles: `cargo run -p ignition --example keyfiles --
//! DOCUMENT MAP`.
//!
//! The map contains a line `52:54:00:AA:BB:01=eth0` for each interface that identifies the machine. The example prints
//! the files to stdout with their paths in an image, and problems of the document to stderr.

use std::error::Error;
use std::process::ExitCode;
use std::{env, fs};

use ignition::network::check::{ClusterNetworks, check_hosts};
use ignition::network::{
    EntryKind, HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, MacAddr, NetworkGeneration,
};

/// Reads a map from MAC addresses to the interface names in the document.
fn read_map(text: &str) -> Result<Vec<(&str, MacAddr)>, Box<dyn Error>> {
    let mut map = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (mac, name) = line.split_once('=').ok_or_else(|| format!("{line:?} is not MAC=NAME"))?;
        map.push((name, mac.parse()?));
    }
    Ok(map)
}

/// Returns the text of the files and the findings of the checks.
pub(crate) fn keyfiles(document: &str, map: &str) -> Result<(String, String), Box<dyn Error>> {
    let hosts = [HostNetwork::new(document, read_map(map)?).with_name("host")];
    // The checks report every fault with its line, while the generator stops at the first fault.
    let cache = KeyfileCache::default();
    let report = check_hosts(&hosts, &ClusterNetworks::default(), &cache);
    if report.is_fatal() {
        return Err(report.to_string().into());
    }
    let networks = HostNetworkFiles::generate(&hosts, NetworkGeneration::Keyfiles, &cache)?;
    let mut text = String::new();
    for entry in networks.initrd_entries(&InitrdOptions::default()) {
        // Print only the files of the host. An image also contains a script that selects a host, and a unit for the
        // script.
        if let (EntryKind::File { contents, .. }, true) = (&entry.kind, entry.path.contains("/host0/")) {
            text += &format!("# {}\n{}\n", entry.path, String::from_utf8_lossy(contents).trim_end());
        }
    }
    Ok((text, report.to_string()))
}

fn run() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = env::args().skip(1).collect();
    let [document, map] = paths.as_slice() else { return Err("usage: keyfiles DOCUMENT MAP".into()) };
    let (files, warnings) = keyfiles(&fs::read_to_string(document)?, &fs::read_to_string(map)?)?;
    eprint!("{warnings}");
    print!("{files}");
    Ok(())
}

fn main() -> ExitCode {
    let Err(error) = run() else { return ExitCode::SUCCESS };
    eprintln!("{}", error.to_string().trim_end());
    ExitCode::FAILURE
}

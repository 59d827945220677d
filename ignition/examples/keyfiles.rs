//! Turns the nmstate document of one host into `NetworkManager` keyfiles:
//! `cargo run -p ignition --example keyfiles -- DOCUMENT MAP`.
//!
//! The map has a line `52:54:00:AA:BB:01=eth0` for each interface by which the machine is known. The files are printed
//! to stdout with their paths in an image, problems of the document to stderr.

use std::error::Error;
use std::process::ExitCode;
use std::{env, fs};

use ignition::network::check::{ClusterNetworks, check_hosts};
use ignition::network::{
    EntryKind, HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, MacAddr, NetworkGeneration,
};

/// Reads a map: the names that the document has for interfaces, and their MAC addresses.
fn read_map(text: &str) -> Result<Vec<(&str, MacAddr)>, Box<dyn Error>> {
    let mut map = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (mac, name) = line.split_once('=').ok_or_else(|| format!("{line:?} is not MAC=NAME"))?;
        map.push((name, mac.parse()?));
    }
    Ok(map)
}

/// The text of the files, and what the checks find.
pub(crate) fn keyfiles(document: &str, map: &str) -> Result<(String, String), Box<dyn Error>> {
    let hosts = [HostNetwork::new(document, read_map(map)?).with_name("host")];
    // The checks name every fault with its line; generating alone would stop at the first.
    let cache = KeyfileCache::default();
    let report = check_hosts(&hosts, &ClusterNetworks::default(), &cache);
    if report.is_fatal() {
        return Err(report.to_string().into());
    }
    let networks = HostNetworkFiles::generate(&hosts, NetworkGeneration::Keyfiles, &cache)?;
    let mut text = String::new();
    for entry in networks.initrd_entries(&InitrdOptions::default()) {
        // Beside the host's files, an image gets the script that picks one of its hosts, and a unit for that.
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

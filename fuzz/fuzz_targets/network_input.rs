//! Texts that may be networks of hosts: whatever is in them, the checks come to an end, say the same twice and agree with
//! the generator.
//!
//! ```text
//! file [NUL logical name NUL MAC address]...
//! ```
//!
//! With names, the file is taken for a document and they for its map.

#![no_main]

use ignition::network::check::check;
use ignition::network::{
    Generation, HostNetwork, InitrdOptions, KeyfileCache, MacInterface, Networks, keyfiles, read_hosts,
};
use libfuzzer_sys::fuzz_target;

fn hosts(input: &[u8]) -> Option<Vec<HostNetwork>> {
    let mut parts = input.split(|byte| *byte == 0);
    let file = parts.next()?;
    let mut parts = parts.map(|part| String::from_utf8_lossy(part).into_owned());
    let pair = || Some(MacInterface { logical_nic_name: parts.next()?, mac_address: parts.next()? });
    let interfaces: Vec<MacInterface> = std::iter::from_fn(pair).collect();
    if interfaces.is_empty() {
        return read_hosts("fuzz", file).ok();
    }
    Some(vec![HostNetwork::new(std::str::from_utf8(file).ok()?, interfaces)])
}

fuzz_target!(|input: &[u8]| {
    let Some(mut hosts) = hosts(input) else { return };
    let cache = KeyfileCache::default();
    let report = check(&hosts, &cache);
    assert_eq!(check(&hosts, &KeyfileCache::new(0)), report);
    for finding in report.findings() {
        assert!(finding.host < hosts.len());
        assert!(finding.line.is_none_or(|line| line <= hosts[finding.host].document().lines().count()));
        assert!(!finding.message.contains(char::is_control), "{:?}", finding.message);
    }
    if !report.is_fatal() {
        // What has no errors has keyfiles; the same again, with files of safe names.
        for host in &hosts {
            let files = keyfiles(host.document().as_bytes()).unwrap();
            assert_eq!(keyfiles(host.document().as_bytes()).unwrap(), files);
            assert!(files.iter().all(|file| !file.name.contains('/')));
        }
    }
    for generation in [Generation::Keyfiles, Generation::Nmstate] {
        let Ok(networks) = Networks::generate(&hosts, generation, &cache) else { continue };
        let entries = networks.initrd(&InitrdOptions::default());
        hosts.reverse();
        let again = Networks::generate(&hosts, generation, &KeyfileCache::new(0)).unwrap();
        assert_eq!(again.initrd(&InitrdOptions::default()), entries);
    }
});

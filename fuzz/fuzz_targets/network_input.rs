//! Texts that may be host network configs. For any text, the checks end, return the same findings twice, and agree
//! with the generator. The keyfiles match the keyfiles that nmstate generates with its own YAML parser.
//!
//! ```text
//! file [NUL logical name NUL MAC address]...
//! ```
//!
//! With names and addresses, the file is the nmstate document of one host, and the pairs are the interface map of that
//! host.

#![no_main]

use ignition::network::check::{ClusterNetworks, NetworkFinding, NetworkReport, Rule, check_hosts};
use ignition::network::{
    HostNetwork, HostNetworkFiles, InitrdOptions, Keyfile, KeyfileCache, MacInterface, NetworkGeneration,
    keyfiles, read_hosts,
};
use isogen_fuzz::keyfile::comparable_lines;
use libfuzzer_sys::fuzz_target;
use nmstate::NetworkState;

/// Compares keyfiles generated from JSON with keyfiles from nmstate's own YAML parser, if that parser accepts the
/// document. nmstate's parser refuses some documents that Kindling accepts: null for a whole section, and no-break
/// spaces in indentation.
fn compare(document: &str, files: &[Keyfile]) {
    let Ok(state) = NetworkState::new_from_yaml(document) else { return };
    let Ok(mut generated) = state.gen_conf() else {
        panic!("nmstate refuses its own reading of the document")
    };
    let mut nmstate_files: Vec<(String, Vec<String>)> = generated
        .remove("NetworkManager")
        .unwrap_or_default()
        .into_iter()
        .map(|(name, contents)| (name, comparable_lines(&contents)))
        .collect();
    nmstate_files.sort();
    let mut kindling_files: Vec<(String, Vec<String>)> =
        files.iter().map(|file| (file.name.clone(), comparable_lines(&file.contents))).collect();
    kindling_files.sort();
    assert_eq!(kindling_files, nmstate_files, "JSON and nmstate's YAML parser disagree");
}

fn hosts(input: &[u8]) -> Option<Vec<HostNetwork>> {
    let mut parts = input.split(|byte| *byte == 0);
    let file = parts.next()?;
    let mut parts = parts.map(|part| String::from_utf8_lossy(part).into_owned());
    let pair = || Some(MacInterface { logical_nic_name: parts.next()?, mac_address: parts.next()? });
    let interfaces: Vec<MacInterface> = std::iter::from_fn(pair).collect();
    if interfaces.is_empty() {
        return read_hosts("fuzz", file).ok();
    }
    Some(vec![HostNetwork::from_unchecked(std::str::from_utf8(file).ok()?, interfaces)])
}

/// Returns the findings without nmstate's message texts, which list names in the order of a hash table.
fn comparable(report: &NetworkReport) -> Vec<NetworkFinding> {
    let mut findings = report.findings().to_vec();
    findings.iter_mut().filter(|it| it.rule == Rule::NoKeyfiles).for_each(|it| it.message.clear());
    findings
}

fuzz_target!(|input: &[u8]| {
    let Some(mut hosts) = hosts(input) else { return };
    let cache = KeyfileCache::default();
    let report = check_hosts(&hosts, &ClusterNetworks::default(), &cache);
    let again = check_hosts(&hosts, &ClusterNetworks::default(), &KeyfileCache::new(0));
    assert_eq!(comparable(&again), comparable(&report));
    for finding in report.findings() {
        assert!(finding.host < hosts.len());
        assert!(finding.line.is_none_or(|line| line <= hosts[finding.host].document().lines().count()));
        assert!(!finding.message.contains(char::is_control), "{:?}", finding.message);
    }
    for host in &hosts {
        if let Ok(files) = keyfiles(host.document().as_bytes()) {
            compare(host.document(), &files);
        }
    }
    if !report.is_fatal() {
        // A host without errors has keyfiles. They are the same each time, and their file names are safe.
        for host in &hosts {
            let files = keyfiles(host.document().as_bytes()).unwrap();
            assert_eq!(keyfiles(host.document().as_bytes()).unwrap(), files);
            assert!(files.iter().all(|file| !file.name.contains('/')));
        }
    }
    for generation in [NetworkGeneration::Keyfiles, NetworkGeneration::Nmstate] {
        let Ok(networks) = HostNetworkFiles::generate(&hosts, generation, &cache) else { continue };
        let entries = networks.initrd_entries(&InitrdOptions::default());
        hosts.reverse();
        let again = HostNetworkFiles::generate(&hosts, generation, &KeyfileCache::new(0)).unwrap();
        assert_eq!(again.initrd_entries(&InitrdOptions::default()), entries);
    }
});

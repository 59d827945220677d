//! The second report of a booted served image, which `stages.sh` and `apply.sh` write.

use std::collections::{BTreeMap, BTreeSet};

/// A file that Ignition wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenFile {
    /// The file mode in octal.
    pub(crate) mode: String,
    pub(crate) owner: String,
    pub(crate) digest: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SystemReport {
    /// State of network cards, bonds and VLANs.
    pub(crate) network: Vec<String>,
    /// The kind of device with the volume, for images that contain the root file system.
    pub(crate) medium: Option<String>,
    /// The SHA-256 digest of the root file system.
    pub(crate) rootfs: Option<String>,
    /// The stages of Ignition with their exit codes.
    pub(crate) ignition: Vec<String>,
    pub(crate) files: BTreeMap<String, WrittenFile>,
    pub(crate) accounts: BTreeSet<String>,
    pub(crate) enabled: BTreeSet<String>,
}

impl SystemReport {
    /// Parses the report in a serial log; `None` if it is missing or incomplete.
    pub(crate) fn parse_log(log: &str) -> Option<Self> {
        let (_, rest) = log.split_once("STAGES BEGIN\n")?;
        let (block, _) = rest.split_once("STAGES END\n")?;
        let mut report = Self::default();
        for (of, rest) in block.lines().filter_map(|line| line.split_once(' ')) {
            let rest_owned = rest.to_owned();
            match of {
                "network" => report.network.push(rest_owned),
                "medium" => report.medium = Some(rest_owned),
                "rootfs" => report.rootfs = Some(rest_owned),
                "ignition" => report.ignition.push(rest_owned),
                "account" => _ = report.accounts.insert(rest_owned),
                "enabled" => _ = report.enabled.insert(rest_owned),
                "file" => {
                    let [mode, owner, digest, path] =
                        rest.splitn(4, ' ').collect::<Vec<_>>().try_into().ok()?;
                    let [mode, owner, digest] = [mode, owner, digest].map(str::to_owned);
                    report.files.insert(path.to_owned(), WrittenFile { mode, owner, digest });
                }
                _ => {}
            }
        }
        Some(report)
    }
}

#[test]
fn report_is_found_in_console_output() {
    let log = "x\nSTAGES BEGIN\nlog static network: y\nnetwork eth0 has 10.0.2.77/24\nignition files 0\n\
               file 600 root d1 /etc/a b\naccount core\nSTAGES END\noff";
    let report = SystemReport::parse_log(log).unwrap();
    assert_eq!(report.network, ["eth0 has 10.0.2.77/24"]);
    assert_eq!(report.ignition, ["files 0"]);
    let file = WrittenFile { mode: "600".into(), owner: "root".into(), digest: "d1".into() };
    assert_eq!(report.files, BTreeMap::from([("/etc/a b".into(), file)]));
    assert!(report.accounts.contains("core") && report.rootfs.is_none());
    assert_eq!(SystemReport::parse_log("STAGES BEGIN\nnetwork x\n"), None);
}

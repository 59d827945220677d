//! Parses a table of hardware requirements from JSON.
//!
//! An entry may omit roles and fields. The values of the `default` entry then apply. The `default` entry may omit the
//! arbiter and the edge worker, which then have the requirements of a worker.

use std::collections::BTreeMap;

use ignition::version::Version;
use serde::Deserialize;

use super::error::InvalidRequirements;
use super::roles::{HostRequirements, RoleRequirements};

/// Version text of the entry that applies if no other entry matches.
const DEFAULT_VERSION: &str = "default";

/// The entries of a table, each with the requirements of all roles.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entries {
    /// Entries that apply to exactly one version, keyed by version text.
    pub(super) exact: BTreeMap<String, RoleRequirements>,
    /// Entries that apply to a version and all later versions, keyed by parsed version.
    pub(super) min_version: BTreeMap<Version, RoleRequirements>,
    pub(super) default: RoleRequirements,
}

/// An entry of the JSON list. Unknown keys are ignored, because other versions of the service may add keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    version: Option<String>,
    match_type: Option<String>,
    master: Option<RoleEntry>,
    arbiter: Option<RoleEntry>,
    worker: Option<RoleEntry>,
    sno: Option<RoleEntry>,
    #[serde(rename = "edge-worker")]
    edge_worker: Option<RoleEntry>,
}

/// The requirements of one role in an entry.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct RoleEntry {
    cpu_cores: Option<i64>,
    ram_mib: Option<i64>,
    disk_size_gb: Option<i64>,
    installation_disk_speed_threshold_ms: Option<i64>,
    network_latency_threshold_ms: Option<f64>,
    packet_loss_percentage: Option<f64>,
}

/// The entries of the JSON list, sorted by `match_type` and not yet completed.
#[derive(Default)]
struct SortedEntries {
    exact: BTreeMap<String, Entry>,
    min_version: BTreeMap<Version, (String, Entry)>,
}

impl Entries {
    /// Parses and validates the JSON list.
    pub(super) fn parse(json: &str) -> Result<Self, InvalidRequirements> {
        let entries: Vec<Entry> = serde_json::from_str(json).map_err(InvalidRequirements::Json)?;
        let mut sorted = SortedEntries::default();
        for (index, entry) in entries.into_iter().enumerate() {
            sorted.insert(index, entry)?;
        }
        let default = sorted.exact.remove(DEFAULT_VERSION).ok_or(InvalidRequirements::NoDefault)?;
        let default = default.resolve(DEFAULT_VERSION, None)?;
        let mut exact = BTreeMap::new();
        for (version, entry) in sorted.exact {
            let roles = entry.resolve(&version, Some(&default))?;
            exact.insert(version, roles);
        }
        let mut min_version = BTreeMap::new();
        for (parsed, (version, entry)) in sorted.min_version {
            min_version.insert(parsed, entry.resolve(&version, Some(&default))?);
        }
        Ok(Self { exact, min_version, default })
    }

    /// Returns the entry for a version.
    pub(super) fn find(&self, version: &str) -> &RoleRequirements {
        let from_minimum = || {
            let base = base_version(version)?;
            self.min_version.range(..=base).next_back().map(|(_, roles)| roles)
        };
        self.exact.get(version).or_else(from_minimum).unwrap_or(&self.default)
    }
}

impl SortedEntries {
    fn insert(&mut self, index: usize, mut entry: Entry) -> Result<(), InvalidRequirements> {
        let version = entry.version.take().filter(|version| !version.is_empty());
        let Some(version) = version else { return Err(InvalidRequirements::NoVersion { index }) };
        let is_duplicate = match entry.match_type.as_deref() {
            None | Some("" | "exact") => self.exact.insert(version.clone(), entry).is_some(),
            Some("min_version") => {
                let Some(parsed) = base_version(&version) else {
                    return Err(InvalidRequirements::MinVersion { version });
                };
                self.min_version.insert(parsed, (version.clone(), entry)).is_some()
            }
            Some(match_type) => {
                return Err(InvalidRequirements::MatchType { version, match_type: match_type.to_owned() });
            }
        };
        if is_duplicate { Err(InvalidRequirements::Duplicate { version }) } else { Ok(()) }
    }
}

impl Entry {
    /// Completes an entry with the values of the default entry, and validates the result.
    fn resolve(
        &self,
        version: &str,
        default: Option<&RoleRequirements>,
    ) -> Result<RoleRequirements, InvalidRequirements> {
        let role = |name, entry: Option<RoleEntry>, default: Option<HostRequirements>| {
            resolve_role(entry, default)
                .ok_or_else(|| InvalidRequirements::NoRole { version: version.to_owned(), role: name })
                .and_then(|requirements| check(requirements, version, name))
        };
        let worker_unless_default = |entry: Option<RoleEntry>| match default {
            None => entry.or(self.worker),
            Some(_) => entry,
        };
        Ok(RoleRequirements {
            master: role("master", self.master, default.map(|it| it.master))?,
            arbiter: role("arbiter", worker_unless_default(self.arbiter), default.map(|it| it.arbiter))?,
            worker: role("worker", self.worker, default.map(|it| it.worker))?,
            sno: role("sno", self.sno, default.map(|it| it.sno))?,
            edge_worker: role(
                "edge-worker",
                worker_unless_default(self.edge_worker),
                default.map(|it| it.edge_worker),
            )?,
        })
    }
}

/// Completes the requirements of a role with the values of the default entry. Returns `None` if neither entry has the
/// role. A requirement that is missing in both entries becomes 0, which [`check`] refuses for all requirements except
/// the disk speed.
fn resolve_role(entry: Option<RoleEntry>, default: Option<HostRequirements>) -> Option<HostRequirements> {
    let Some(entry) = entry else { return default };
    let number = |value: Option<i64>, default: Option<i64>| value.or(default).unwrap_or(0);
    Some(HostRequirements {
        cpu_cores: number(entry.cpu_cores, default.map(|it| it.cpu_cores)),
        ram_mib: number(entry.ram_mib, default.map(|it| it.ram_mib)),
        disk_size_gb: number(entry.disk_size_gb, default.map(|it| it.disk_size_gb)),
        disk_speed_ms: number(entry.installation_disk_speed_threshold_ms, default.map(|it| it.disk_speed_ms)),
        network_latency_ms: entry
            .network_latency_threshold_ms
            .or_else(|| default.and_then(|it| it.network_latency_ms)),
        packet_loss_percent: entry
            .packet_loss_percentage
            .or_else(|| default.and_then(|it| it.packet_loss_percent)),
    })
}

fn check(
    requirements: HostRequirements,
    version: &str,
    role: &'static str,
) -> Result<HostRequirements, InvalidRequirements> {
    let fields = [
        ("cpu_cores", 1, requirements.cpu_cores),
        ("ram_mib", 1, requirements.ram_mib),
        ("disk_size_gb", 1, requirements.disk_size_gb),
        ("installation_disk_speed_threshold_ms", 0, requirements.disk_speed_ms),
    ];
    match fields.into_iter().find(|(_, minimum, value)| value < minimum) {
        None => Ok(requirements),
        Some((field, minimum, value)) => {
            let version = version.to_owned();
            Err(InvalidRequirements::TooLow { version, role, field, minimum, value })
        }
    }
}

/// Parses a version and drops its pre-release, so that `4.22.0-rc.1` counts as 4.22.
fn base_version(version: &str) -> Option<Version> {
    Version::parse(version.split('-').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str = r#"{"cpu_cores": 2, "ram_mib": 8192, "disk_size_gb": 100}"#;

    fn default_and(entry: &str) -> String {
        format!(r#"[{{"version": "default", "master": {ROLE}, "worker": {ROLE}, "sno": {ROLE}}}, {entry}]"#)
    }

    fn error(json: &str) -> String {
        Entries::parse(json).unwrap_err().to_string()
    }

    #[test]
    fn rejects_entries_without_a_valid_version() {
        assert_eq!(error("{}"), "hardware requirements are not a valid JSON list");
        assert_eq!(
            error(r#"[{"worker": {"cpu_cores": 2.5}}]"#),
            "hardware requirements are not a valid JSON list"
        );
        for entry in ["{}", r#"{"version": ""}"#, r#"{"version": null}"#, r#"{"min_version": "4.22"}"#] {
            assert_eq!(error(&default_and(entry)), "entry 1 of the hardware requirements has no \"version\"");
        }
        assert_eq!(
            error(&default_and(r#"{"version": "4.22", "match_type": "newer"}"#)),
            r#"match_type "newer" of version "4.22" is invalid (expected "exact" or "min_version")"#
        );
        for version in ["latest", "default", "4"] {
            assert_eq!(
                error(&default_and(&format!(r#"{{"version": "{version}", "match_type": "min_version"}}"#))),
                format!(r#""{version}" cannot be a lowest version (expected a version such as 4.22)"#)
            );
        }
    }

    #[test]
    fn rejects_duplicate_versions() {
        let twice = |version: &str, match_type: &str| {
            let entry = format!(r#"{{"version": "{version}", "match_type": "{match_type}"}}"#);
            default_and(&format!("{entry}, {entry}"))
        };
        let duplicate = |version| format!("version {version:?} has two entries with the same match_type");
        assert_eq!(error(&twice("4.22", "")), duplicate("4.22"));
        assert_eq!(error(&twice("4.22", "min_version")), duplicate("4.22"));
        assert_eq!(error(&default_and(r#"{"version": "default"}"#)), duplicate("default"));
        let mixed = r#"{"version": "4.22"}, {"version": "4.22", "match_type": "exact"}"#;
        assert_eq!(error(&default_and(mixed)), duplicate("4.22"));
        let same = r#"{"version": "4.22", "match_type": "min_version"},
                      {"version": "4.22.0", "match_type": "min_version"}"#;
        assert_eq!(error(&default_and(same)), duplicate("4.22.0"));
        let different = r#"{"version": "4.22"}, {"version": "4.22", "match_type": "min_version"}"#;
        assert!(Entries::parse(&default_and(different)).is_ok());
    }

    #[test]
    fn rejects_missing_roles_and_low_requirements() {
        assert_eq!(
            error(r#"[{"version": "4.22", "match_type": "min_version"}]"#),
            r#"hardware requirements need an entry for version "default""#
        );
        for (json, role) in [
            (format!(r#"[{{"version": "default", "worker": {ROLE}, "sno": {ROLE}}}]"#), "master"),
            (format!(r#"[{{"version": "default", "master": {ROLE}, "worker": {ROLE}}}]"#), "sno"),
            (
                format!(
                    r#"[{{"version": "default", "master": {ROLE}, "sno": {ROLE}, "arbiter": {ROLE}, "edge-worker": {ROLE}}}]"#
                ),
                "worker",
            ),
        ] {
            assert_eq!(error(&json), format!(r#"version "default" has no requirements for role {role}"#));
        }
        for (field, minimum, value) in [
            ("cpu_cores", 1, 0),
            ("ram_mib", 1, -5),
            ("disk_size_gb", 1, 0),
            ("installation_disk_speed_threshold_ms", 0, -1),
        ] {
            let entry = format!(r#"{{"version": "4.18", "arbiter": {{"{field}": {value}}}}}"#);
            assert_eq!(
                error(&default_and(&entry)),
                format!(
                    "{field} of role arbiter for version \"4.18\" must be at least {minimum}, got {value}"
                )
            );
        }
        let incomplete = ROLE.replace("\"ram_mib\": 8192,", "");
        assert_eq!(
            error(&format!(r#"[{{"version": "default", "master": {incomplete}}}]"#)),
            "ram_mib of role master for version \"default\" must be at least 1, got 0"
        );
    }

    #[test]
    fn omitted_roles_and_fields_come_from_the_default_entry() {
        let entry = r#"{"version": "4.18.1", "worker": {"cpu_cores": 6, "packet_loss_percentage": 3},
                        "arbiter": null, "sno": {"ram_mib": null}}"#;
        let table = Entries::parse(&default_and(entry)).unwrap();
        let default = table.default.clone();
        let roles = table.exact.get("4.18.1").unwrap();
        assert_eq!(
            roles.worker,
            HostRequirements { cpu_cores: 6, packet_loss_percent: Some(3.0), ..default.worker }
        );
        let others = RoleRequirements { worker: default.worker, ..roles.clone() };
        assert_eq!(others, default, "an arbiter has the requirements of a worker in the default entry only");
    }

    #[test]
    fn arbiter_and_edge_worker_fall_back_to_worker() {
        let worker = r#"{"cpu_cores": 3, "ram_mib": 9000, "disk_size_gb": 70}"#;
        let json =
            format!(r#"[{{"version": "default", "master": {ROLE}, "worker": {worker}, "sno": {ROLE}}}]"#);
        let table = Entries::parse(&json).unwrap();
        let roles = table.find("4.18.1");
        assert_eq!((roles.worker.cpu_cores, roles.worker.disk_size_gb), (3, 70));
        assert_eq!((roles.arbiter, roles.edge_worker), (roles.worker, roles.worker));
        assert_eq!(roles.worker.disk_speed_ms, 0);
    }
}

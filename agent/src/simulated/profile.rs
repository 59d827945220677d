//! The description of simulated hosts: groups of equal machines, and their network.

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::segment::Ipv4Segment;

/// A description of simulated hosts, usually read from a YAML or JSON file. All fields except `groups` have defaults.
///
/// # Examples
///
/// ```
/// use agent::simulated::Profile;
///
/// let text = r#"{"groups": [{"name": "master", "count": 3}, {"name": "worker", "cores": 4}]}"#;
/// let profile: Profile = serde_json::from_str(text)?;
/// assert_eq!(profile.usual_hosts(), 4);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// ```
/// use agent::simulated::{HostGroup, Profile};
///
/// let profile = Profile::new([HostGroup::new("master", 3), HostGroup { cores: 4, ..HostGroup::new("worker", 1) }]);
/// assert_eq!(profile.usual_hosts(), 4);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The first network segment. Hosts that do not fit are in the following segments.
    #[serde(default)]
    pub network: Ipv4Segment,
    /// Time servers in the hosts' own configuration.
    #[serde(default = "usual_ntp_servers")]
    pub ntp_servers: Vec<String>,
    /// Speed of image downloads, in megabytes per second.
    #[serde(default = "usual_download_rate")]
    pub download_mb_per_second: u32,
    /// Round-trip times of pings between hosts.
    #[serde(default)]
    pub latency: NetworkLatency,
    /// Groups of equal hosts, in order: the first hosts belong to the first group. A group without a count takes all
    /// remaining hosts. If all groups have a count, additional hosts start again with the first group.
    pub groups: Vec<HostGroup>,
}

fn usual_ntp_servers() -> Vec<String> {
    vec!["ntp.simulated.example".to_owned()]
}

fn usual_download_rate() -> u32 {
    50
}

/// Round-trip times of pings between hosts in one segment. Each connectivity check measures a different time, between
/// `base_ms - spread_ms` and `base_ms + spread_ms`. Pings to another segment take half a millisecond more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkLatency {
    /// Average round-trip time, in milliseconds. More than 0 and at most 3000, because agents wait 3 seconds for a
    /// ping.
    pub base_ms: f64,
    /// Maximum deviation from the average, in milliseconds. At most the average. If the deviation is 0, all checks
    /// measure the same time, so agents send the unchanged report only once an hour.
    pub spread_ms: f64,
}

impl Default for NetworkLatency {
    fn default() -> Self {
        Self { base_ms: 0.3, spread_ms: 0.1 }
    }
}

impl NetworkLatency {
    /// Maximum average, in milliseconds: the ping of an agent times out after 3 seconds.
    const MAX_BASE_MS: f64 = 3000.0;

    fn check(self) -> Result<(), ProfileError> {
        let Self { base_ms, spread_ms } = self;
        // Comparisons with NaN are false, so NaN is invalid.
        let is_valid = base_ms > 0.0 && base_ms <= Self::MAX_BASE_MS && (0.0..=base_ms).contains(&spread_ms);
        if is_valid { Ok(()) } else { Err(ProfileError::Latency { base_ms, spread_ms }) }
    }
}

/// A group of equal hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostGroup {
    /// Name of the group. The names of its hosts are `NAME-1`, `NAME-2` and so on.
    pub name: String,
    /// Number of hosts. If absent, all remaining hosts.
    pub count: Option<u32>,
    /// CPU architecture: `x86_64`, `aarch64`, `s390x` or `ppc64le`.
    pub architecture: String,
    /// Number of processors.
    pub cores: u32,
    /// Model of the processors.
    pub cpu_model: String,
    /// Features of the processors.
    pub cpu_flags: Vec<String>,
    /// Size of the memory, in GiB.
    pub memory_gib: u32,
    /// Manufacturer of the machine.
    pub manufacturer: String,
    /// Product name of the machine.
    pub product: String,
    /// Whether the machine is virtual.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// Firmware mode.
    pub boot_mode: BootMode,
    /// Version of the TPM: `none`, `1.2` or `2.0`.
    pub tpm: String,
    /// Disks of each host, in the order of the inventory report.
    pub disks: Vec<DescribedDisk>,
    /// Network interfaces. The first connected one has the host's address.
    pub interfaces: Vec<DescribedInterface>,
    /// Faults of all hosts in the group.
    pub faults: Vec<Fault>,
}

impl HostGroup {
    /// Creates a group of `count` virtual machines that suit every role.
    pub fn new(name: impl Into<String>, count: u32) -> Self {
        Self { name: name.into(), count: Some(count), ..Self::default() }
    }
}

impl Default for HostGroup {
    /// A virtual machine that suits every role.
    fn default() -> Self {
        Self {
            name: String::new(),
            count: None,
            architecture: "x86_64".to_owned(),
            cores: 8,
            cpu_model: "Simulated CPU".to_owned(),
            cpu_flags: Vec::new(),
            memory_gib: 32,
            manufacturer: "Kindling".to_owned(),
            product: "Simulated Machine".to_owned(),
            is_virtual: true,
            boot_mode: BootMode::default(),
            tpm: "none".to_owned(),
            disks: vec![DescribedDisk::default()],
            interfaces: vec![DescribedInterface::default()],
            faults: Vec::new(),
        }
    }
}

/// Firmware mode of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootMode {
    /// BIOS.
    Bios,
    /// UEFI.
    #[default]
    Uefi,
}

/// Type of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriveType {
    /// A rotating disk.
    #[serde(rename = "HDD")]
    Hdd,
    /// A solid-state disk.
    #[default]
    #[serde(rename = "SSD")]
    Ssd,
}

/// A disk of a described machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DescribedDisk {
    /// Name of the block device, such as `sda`.
    pub name: String,
    /// Type of the drive.
    #[serde(rename = "type")]
    pub drive_type: DriveType,
    /// Size, in GB.
    pub size_gb: u32,
    /// Time of a synchronous write, in milliseconds.
    pub sync_ms: u32,
    /// Whether the disk has a boot sector.
    pub bootable: bool,
}

impl Default for DescribedDisk {
    fn default() -> Self {
        let name = "sda".to_owned();
        Self { name, drive_type: DriveType::default(), size_gb: 480, sync_ms: 2, bootable: false }
    }
}

/// A network interface of a described machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DescribedInterface {
    /// Name of the interface.
    pub name: String,
    /// Speed of the link, in Mbit/s.
    pub speed_mbps: u32,
    /// Maximum size of a packet, in bytes.
    pub mtu: u32,
    /// Whether the interface has a link.
    pub connected: bool,
}

impl Default for DescribedInterface {
    fn default() -> Self {
        Self { name: "eth0".to_owned(), speed_mbps: 10_000, mtu: 1500, connected: true }
    }
}

impl Profile {
    /// Creates a profile with these groups and the default network.
    pub fn new(groups: impl IntoIterator<Item = HostGroup>) -> Self {
        Self {
            network: Ipv4Segment::default(),
            ntp_servers: usual_ntp_servers(),
            download_mb_per_second: usual_download_rate(),
            latency: NetworkLatency::default(),
            groups: groups.into_iter().collect(),
        }
    }

    /// Returns the number of hosts of all groups. A group without a count counts as one host.
    #[must_use]
    pub fn usual_hosts(&self) -> u32 {
        self.groups.iter().map(|group| group.count.unwrap_or(1)).fold(0, u32::saturating_add)
    }

    pub(super) fn check(&self) -> Result<(), ProfileError> {
        let counted = self.groups.iter().map_while(|group| group.count);
        let rest = self.groups.get(counted.clone().count()..).unwrap_or_default();
        if let [endless, _, ..] = rest {
            return Err(ProfileError::GroupAfterRest { group: endless.name.clone() });
        }
        if self.usual_hosts() == 0 {
            return Err(ProfileError::NoHosts);
        }
        if self.download_mb_per_second == 0 {
            return Err(ProfileError::NoDownloads);
        }
        self.latency.check()?;
        self.groups.iter().try_for_each(HostGroup::check)
    }
}

impl HostGroup {
    /// Maximum number of interfaces of a host. Four bits of a MAC address contain the number of the interface.
    pub(super) const MAX_INTERFACES: usize = 16;

    fn check(&self) -> Result<(), ProfileError> {
        if self.name.is_empty() {
            return Err(ProfileError::NoName);
        }
        if self.interfaces.len() > Self::MAX_INTERFACES {
            let most = Self::MAX_INTERFACES;
            return Err(ProfileError::TooManyInterfaces { group: self.name.clone(), most });
        }
        Ok(())
    }
}

/// The reason why a profile cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The groups contain no hosts.
    #[error("the profile has no hosts: every group has count 0")]
    NoHosts,
    /// A group has no name.
    #[error("a group of the profile has no name")]
    NoName,
    /// A group without a count takes all remaining hosts, so it must be the last group.
    #[error("group {group:?} has no count, so it must be the last one")]
    GroupAfterRest {
        /// Name of the group without a count.
        group: String,
    },
    /// A group has too many interfaces.
    #[error("group {group:?} has more than {most} interfaces")]
    TooManyInterfaces {
        /// Name of the group.
        group: String,
        /// Maximum number of interfaces.
        most: usize,
    },
    /// The speed of downloads is 0.
    #[error("download_mb_per_second is 0")]
    NoDownloads,
    /// The latency is out of range.
    #[error(
        "invalid latency: base_ms {base_ms} must be above 0 and at most {}, spread_ms {spread_ms} at least 0 and at \
         most base_ms",
        NetworkLatency::MAX_BASE_MS
    )]
    Latency {
        /// Average round-trip time, in milliseconds.
        base_ms: f64,
        /// Maximum deviation from the average, in milliseconds.
        spread_ms: f64,
    },
    /// The profile has more hosts than IPv4 addresses from its first segment on.
    #[error("not enough IPv4 addresses for {hosts} hosts: the first network is {network}")]
    NoAddresses {
        /// Number of hosts in the site.
        hosts: u32,
        /// The first segment.
        network: Ipv4Segment,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), ProfileError> {
        serde_json::from_str::<Profile>(text).unwrap().check()
    }

    #[test]
    fn rejects_profiles_without_hosts() {
        assert_eq!(checked(r#"{"groups": []}"#), Err(ProfileError::NoHosts));
        assert_eq!(checked(r#"{"groups": [{"name": "a", "count": 0}]}"#), Err(ProfileError::NoHosts));
        assert_eq!(checked(r#"{"groups": [{"count": 1}]}"#), Err(ProfileError::NoName));
        let error = checked(r#"{"groups": [{"name": "a"}, {"name": "b"}]}"#).unwrap_err();
        assert_eq!(error.to_string(), r#"group "a" has no count, so it must be the last one"#);
        checked(r#"{"groups": [{"name": "a", "count": 2}, {"name": "b"}]}"#).unwrap();
    }

    #[test]
    fn rejects_latencies_out_of_range() {
        let with_latency =
            |latency: &str| checked(&format!(r#"{{"latency": {latency}, "groups": [{{"name": "a"}}]}}"#));
        for valid in
            ["{}", r#"{"base_ms": 3000}"#, r#"{"base_ms": 5, "spread_ms": 5}"#, r#"{"spread_ms": 0}"#]
        {
            with_latency(valid).unwrap();
        }
        for invalid in [
            r#"{"base_ms": 0, "spread_ms": 0}"#,
            r#"{"base_ms": -1, "spread_ms": -1}"#,
            r#"{"base_ms": 3000.1}"#,
            r#"{"spread_ms": 0.4}"#,
            r#"{"spread_ms": -0.1}"#,
        ] {
            assert!(matches!(with_latency(invalid), Err(ProfileError::Latency { .. })), "{invalid}");
        }
        let profile = Profile {
            latency: NetworkLatency { base_ms: 1.0, spread_ms: f64::NAN },
            ..Profile::new([HostGroup::new("a", 1)])
        };
        assert_eq!(
            profile.check().unwrap_err().to_string(),
            "invalid latency: base_ms 1 must be above 0 and at most 3000, spread_ms NaN at least 0 and at most base_ms"
        );
    }

    #[test]
    fn rejects_unknown_keys() {
        let error = serde_json::from_str::<Profile>(r#"{"groups": [{"name": "a", "ram": 3}]}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `ram`"), "{error}");
    }
}

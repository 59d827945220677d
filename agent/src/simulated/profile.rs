//! The description of simulated hosts.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::fault::Fault;

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
    /// The first network segment. Further hosts are in the segments after it.
    #[serde(default)]
    pub network: Ipv4Segment,
    /// Time servers that hosts know without the service.
    #[serde(default = "usual_ntp_servers")]
    pub ntp_servers: Vec<String>,
    /// Speed of image downloads, in megabytes per second.
    #[serde(default = "usual_download_rate")]
    pub download_mb_per_second: u32,
    /// Latency of the packets between hosts.
    #[serde(default)]
    pub latency: NetworkLatency,
    /// Groups of equal hosts. The first hosts belong to the first group. A group without a count takes all remaining
    /// hosts; if all groups have a count, further hosts begin with the first group again.
    pub groups: Vec<HostGroup>,
}

fn usual_ntp_servers() -> Vec<String> {
    vec!["ntp.simulated.example".to_owned()]
}

fn usual_download_rate() -> u32 {
    50
}

/// Latency of the packets between hosts of one segment: the times that pings take. Each check of the connectivity
/// measures another time, between `base_ms - spread_ms` and `base_ms + spread_ms`. Packets to another segment take half
/// a millisecond more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkLatency {
    /// Average round-trip time, in milliseconds: more than 0 and at most 3000, the time that agents wait for a ping.
    pub base_ms: f64,
    /// Maximum deviation from the average, in milliseconds: at most the average. With 0, all checks measure the same
    /// time, so agents send an unchanged report only once an hour.
    pub spread_ms: f64,
}

impl Default for NetworkLatency {
    fn default() -> Self {
        Self { base_ms: 0.3, spread_ms: 0.1 }
    }
}

impl NetworkLatency {
    /// Maximum average, in milliseconds: an agent's ping waits 3 seconds for an answer.
    const MAX_BASE_MS: f64 = 3000.0;

    fn check(self) -> Result<(), ProfileError> {
        let Self { base_ms, spread_ms } = self;
        // Comparisons with NaN are false.
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
    /// Number of hosts. Absent: all remaining hosts.
    pub count: Option<u32>,
    /// CPU architecture: `x86_64`, `aarch64`, `s390x` or `ppc64le`.
    pub architecture: String,
    /// Number of processors.
    pub cores: u32,
    /// Model of the processors.
    pub cpu_model: String,
    /// Features of the processors.
    pub cpu_flags: Vec<String>,
    /// Memory, in GiB.
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
    /// The disks.
    pub disks: Vec<DescribedDisk>,
    /// The interfaces. The first connected one has the host's address.
    pub interfaces: Vec<DescribedInterface>,
    /// Faults of all hosts of the group.
    pub faults: Vec<Fault>,
}

impl HostGroup {
    /// Creates a group of this many virtual machines, which suit every role.
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
    /// Name of the block device.
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
    /// Largest packet, in bytes.
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
    /// Creates a profile of these groups, with the default network.
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
    /// The most interfaces of a host, because four bits of a MAC address number them.
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

/// Why a profile cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The groups have no hosts.
    #[error("the profile has no hosts: every group has count 0")]
    NoHosts,
    /// A group has no name.
    #[error("a group of the profile has no name")]
    NoName,
    /// A group without a count takes all remaining hosts, so no group can be after it.
    #[error("group {group:?} has no count, so it must be the last one")]
    GroupAfterRest {
        /// The group.
        group: String,
    },
    /// A group has too many interfaces.
    #[error("group {group:?} has more than {most} interfaces")]
    TooManyInterfaces {
        /// The group.
        group: String,
        /// The most interfaces.
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
        /// The average round-trip time.
        base_ms: f64,
        /// The maximum deviation from it.
        spread_ms: f64,
    },
    /// The IPv4 addresses from the first segment on are not enough.
    #[error("not enough IPv4 addresses for {hosts} hosts: the first network is {network}")]
    NoAddresses {
        /// Number of hosts.
        hosts: u32,
        /// The first segment.
        network: Ipv4Segment,
    },
}

/// An IPv4 network for hosts: prefix lengths 16 to 27.
///
/// The first addresses are those of the network, the gateway (`.1`), and nine free ones for virtual IP addresses.
///
/// # Examples
///
/// ```
/// use agent::simulated::Ipv4Segment;
///
/// let segment: Ipv4Segment = "192.168.111.0/24".parse()?;
/// assert_eq!(segment.to_string(), "192.168.111.0/24");
/// assert!("192.168.111.1/24".parse::<Ipv4Segment>().is_err());
/// # Ok::<(), agent::simulated::SegmentError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Segment {
    first: u32,
    prefix: u8,
}

impl Default for Ipv4Segment {
    fn default() -> Self {
        Self { first: Ipv4Addr::new(192, 168, 111, 0).to_bits(), prefix: 24 }
    }
}

/// A text that is not a network for hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an IPv4 network with a prefix length from 16 to 27, such as 192.168.111.0/24, got {0:?}")]
pub struct SegmentError(String);

impl Ipv4Segment {
    /// Addresses of a segment before the first host.
    const RESERVED: u32 = 11;

    /// Returns the length of the network's prefix.
    #[must_use]
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// Returns the number of addresses.
    pub(super) fn len(self) -> u32 {
        1 << (32 - u32::from(self.prefix))
    }

    /// Returns the number of hosts in a segment: all addresses but the reserved and the broadcast address.
    pub(super) fn hosts(self) -> u32 {
        self.len() - Self::RESERVED - 1
    }

    /// Returns a segment after this one.
    pub(super) fn segment(self, number: u32) -> Option<Self> {
        let first = number.checked_mul(self.len()).and_then(|offset| self.first.checked_add(offset))?;
        first.checked_add(self.len() - 1)?;
        Some(Self { first, ..self })
    }

    /// Returns an address of this segment. The offset must be less than the length.
    pub(super) fn address(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.saturating_add(offset))
    }

    pub(super) fn host_address(self, number: u32) -> Ipv4Addr {
        self.address(Self::RESERVED + number)
    }

    pub(super) fn gateway(self) -> Ipv4Addr {
        self.address(1)
    }

    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits().checked_sub(self.first).is_some_and(|offset| offset < self.len())
    }

    /// Returns `true` for an address of this or a later segment that is free for virtual IP addresses.
    pub(super) fn is_vip(self, address: Ipv4Addr) -> bool {
        let offset = address.to_bits().checked_sub(self.first).map(|offset| offset % self.len());
        offset.is_some_and(|offset| (2..Self::RESERVED).contains(&offset))
    }

    /// Returns the number of the segment, counted from this one on, whose gateway has this address.
    pub(super) fn gateway_number(self, address: Ipv4Addr) -> Option<u32> {
        let offset = address.to_bits().checked_sub(self.first)?;
        (offset % self.len() == 1).then_some(offset / self.len())
    }

    /// Returns the number of the host with this address. The count begins with this segment and continues in the later
    /// ones.
    pub(super) fn host_number(self, address: Ipv4Addr) -> Option<u32> {
        let offset = address.to_bits().checked_sub(self.first)?;
        let (segment, offset) = (offset / self.len(), offset % self.len());
        let host = offset.checked_sub(Self::RESERVED).filter(|host| *host < self.hosts())?;
        segment.checked_mul(self.hosts())?.checked_add(host)
    }
}

impl fmt::Display for Ipv4Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.first), self.prefix)
    }
}

impl FromStr for Ipv4Segment {
    type Err = SegmentError;

    fn from_str(text: &str) -> Result<Self, SegmentError> {
        let invalid = || SegmentError(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let first = address.parse::<Ipv4Addr>().map_err(|_| invalid())?.to_bits();
        let prefix = prefix.parse().ok().filter(|prefix| (16..=27).contains(prefix)).ok_or_else(invalid)?;
        let segment = Self { first, prefix };
        if first % segment.len() == 0 { Ok(segment) } else { Err(invalid()) }
    }
}

impl Serialize for Ipv4Segment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ipv4Segment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_hosts_are_in_the_next_segments() {
        let network: Ipv4Segment = "10.0.0.0/27".parse().unwrap();
        assert_eq!((network.len(), network.hosts()), (32, 20));
        for number in [0, 1, 19, 20, 21, 399, 400] {
            let segment = network.segment(number / 20).unwrap();
            let address = segment.host_address(number % 20);
            assert!(segment.contains(address));
            assert_eq!(network.host_number(address), Some(number), "{address}");
        }
        assert_eq!(network.segment(1).unwrap().host_address(0), Ipv4Addr::new(10, 0, 0, 43));
        for reserved in ["10.0.0.1", "10.0.0.10", "10.0.0.31", "10.0.0.32", "9.255.255.255"] {
            assert_eq!(network.host_number(reserved.parse().unwrap()), None, "{reserved}");
        }
        assert_eq!(network.segment(u32::MAX), None);
    }

    #[test]
    fn virtual_addresses_are_before_the_hosts_of_a_segment() {
        let network: Ipv4Segment = "10.0.0.0/27".parse().unwrap();
        let is_vip = |address: &str| network.is_vip(address.parse().unwrap());
        for address in ["10.0.0.2", "10.0.0.10", "10.0.0.34"] {
            assert!(is_vip(address), "{address}");
        }
        for address in ["9.255.255.254", "10.0.0.0", "10.0.0.1", "10.0.0.11", "10.0.0.31"] {
            assert!(!is_vip(address), "{address}");
        }
    }

    #[test]
    fn rejects_invalid_segments() {
        for text in
            ["", "10.0.0.0", "10.0.0.0/8", "10.0.0.0/28", "10.0.0.16/27", "fd00::/24", "10.0.0.0/+24x"]
        {
            assert!(text.parse::<Ipv4Segment>().is_err(), "{text}");
        }
    }

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

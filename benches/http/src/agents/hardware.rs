//! Inventory reports of simulated hosts, as ready replies to the step `inventory`.
//!
//! The bench generates one report for each length and then fills in the numbers and addresses of each host. This way,
//! the client spends no time on JSON and no memory on the reports of 10,000 hosts.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportSize {
    /// 2 KiB: a virtual machine.
    Small,
    /// 43 KiB: a server with many disks.
    Large,
}

impl ReportSize {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Small => 2 << 10,
            Self::Large => 43 << 10,
        }
    }
}

/// Highest number of a host: it has six digits.
pub(crate) const MAX_NUMBER: u32 = 999_999;
/// Placeholder for the number of the host.
const NUMBER: &str = "@@@@@@";
/// Placeholder for the end of a MAC address: the number of the host in pairs of digits.
const MAC: &str = "%%:%%:%%";
/// Placeholder for the end of an IPv4 address: the number of the host in pairs of digits.
const ADDRESS: &str = "1%%.1%%.1%%";
/// Placeholder for the usable memory, which differs from version to version of a report.
const MEMORY: u64 = 333_333_333_333;
/// The usable memory in version 0 of a report.
const MIN_MEMORY: u64 = 300_000_000_000;
/// Number of versions of a report. The memory sizes of all versions have the same number of digits.
const MAX_VERSION: u64 = 100_000_000_000;

/// The kind of value that replaces a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Number,
    Mac,
    Address,
    Memory,
}

/// The `output` of replies to `inventory`, as a JSON string.
#[derive(Debug, Clone)]
pub(crate) struct ReportTemplate {
    text: String,
    marks: Vec<(usize, Mark)>,
}

impl ReportTemplate {
    /// # Errors
    ///
    /// Returns an error if no report has that length.
    pub(crate) fn new(size: ReportSize) -> Result<Self> {
        let text = Value::from(report(size)?).to_string();
        let mut marks = Vec::new();
        let memory = MEMORY.to_string();
        let kinds =
            [(NUMBER, Mark::Number), (MAC, Mark::Mac), (ADDRESS, Mark::Address), (&memory, Mark::Memory)];
        for (word, mark) in kinds {
            marks.extend(text.match_indices(word).map(|(at, _)| (at, mark)));
        }
        marks.sort_by_key(|(at, _)| *at);
        Ok(Self { text, marks })
    }

    /// Appends the report of a host to `body`. Reports of one host with different versions differ.
    ///
    /// # Errors
    ///
    /// Returns an error if the number or the version has too many digits.
    pub(crate) fn write(&self, body: &mut String, number: u32, version: u64) -> Result<()> {
        ensure!(number <= MAX_NUMBER, "host {number} has more than six digits");
        ensure!(version < MAX_VERSION, "version {version} of a report is too high");
        let [high, middle, low] = [number / 10_000, number / 100 % 100, number % 100];
        let number = format!("{number:06}");
        let mac = format!("{high:02}:{middle:02}:{low:02}");
        let address = format!("1{high:02}.1{middle:02}.1{low:02}");
        let memory = (MIN_MEMORY + version).to_string();
        let mut copied = 0;
        for (at, mark) in &self.marks {
            let word = match mark {
                Mark::Number => &number,
                Mark::Mac => &mac,
                Mark::Address => &address,
                Mark::Memory => &memory,
            };
            body.push_str(self.text.get(copied..*at).context("marks overlap")?);
            body.push_str(word);
            copied = at + word.len();
        }
        body.push_str(self.text.get(copied..).context("a mark at the end")?);
        Ok(())
    }
}

/// Returns a report of exactly `size` bytes, with placeholders for the values of a host.
fn report(size: ReportSize) -> Result<String> {
    let text = |disks, padding| machine(size, disks, padding).to_string();
    let mut disks = 1;
    while text(disks + 1, 0).len() <= size.bytes() {
        disks += 1;
    }
    let missing = size.bytes().checked_sub(text(disks, 0).len()).context("a report is too short")?;
    Ok(text(disks, missing))
}

/// Returns the inventory of a machine that meets the requirements of every role.
fn machine(size: ReportSize, disks: usize, padding: usize) -> Value {
    let (cards, flags, vendor) = match size {
        ReportSize::Small => (1, 0, "QEMU"),
        ReportSize::Large => (12, 150, "Dell Inc."),
    };
    let flags: Vec<String> = (0..flags).map(|flag| format!("cpu_flag_{flag}")).collect();
    json!({
        "hostname": format!("node-{NUMBER}"),
        "cpu": {
            "count": 64, "architecture": "x86_64", "frequency": 2400.0, "flags": flags,
            "model_name": "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz",
        },
        "memory": {
            "physical_bytes": 412_316_860_416_i64, "usable_bytes": MEMORY, "physical_bytes_method": "dmidecode",
        },
        "disks": (0..disks).map(disk).collect::<Vec<_>>(),
        "interfaces": (0..cards).map(card).collect::<Vec<_>>(),
        "routes": [
            {"interface": "eth0", "gateway": "10.0.0.1", "destination": "0.0.0.0", "family": 2, "metric": 100},
        ],
        "gpus": [],
        "system_vendor": {"manufacturer": vendor, "product_name": "bench", "serial_number": NUMBER},
        "boot": {
            "current_boot_mode": "uefi", "device_type": "ephemeral", "secure_boot_state": "Disabled",
            "command_line": format!("ignition.firstboot {}", "x".repeat(padding)),
        },
        "bmc_address": format!("10.{ADDRESS}"), "bmc_v6address": "::/0", "tpm_version": "2.0",
    })
}

fn disk(disk: usize) -> Value {
    let wwn = format!("0x5000c5{NUMBER}{disk:04}");
    json!({
        "id": format!("/dev/disk/by-id/wwn-{wwn}"), "by_id": format!("/dev/disk/by-id/wwn-{wwn}"),
        "by_path": format!("/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:0:{disk}:0"), "path": format!("/dev/sd{disk}"),
        "name": format!("sd{disk}"), "drive_type": "SSD", "size_bytes": 480_103_981_056_i64, "has_uuid": true,
        "hctl": format!("0:0:{disk}:0"), "model": "MZ7LH480HAHQ0D3", "vendor": "ATA",
        "serial": format!("S{NUMBER}{disk:04}"), "wwn": wwn,
        "installation_eligibility": {"eligible": true, "not_eligible_reasons": []},
    })
}

fn card(card: usize) -> Value {
    json!({
        "name": format!("eth{card}"), "type": "physical", "mac_address": format!("52:54:{card:02x}:{MAC}"), "mtu": 1500,
        "has_carrier": true, "speed_mbps": 25_000, "product": "0x1015", "vendor": "0x15b3",
        "flags": ["up", "broadcast", "multicast", "running"],
        "ipv4_addresses": [format!("{}.{ADDRESS}/8", 11 + card)], "ipv6_addresses": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(size: ReportSize, number: u32, version: u64) -> (String, Value) {
        let mut body = String::new();
        ReportTemplate::new(size).unwrap().write(&mut body, number, version).unwrap();
        let text: String = serde_json::from_str(&body).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        (text, value)
    }

    #[test]
    fn reports_have_the_requested_length_and_no_placeholders() {
        for size in [ReportSize::Small, ReportSize::Large] {
            for (number, version) in [(0, 0), (1_234, 5), (MAX_NUMBER, MAX_VERSION - 1)] {
                let (text, _) = written(size, number, version);
                assert_eq!(text.len(), size.bytes());
                assert!(!text.contains('%') && !text.contains("@@"), "{text}");
            }
        }
    }

    #[test]
    fn report_contains_the_number_of_its_host() {
        let (_, machine) = written(ReportSize::Small, 1_234, 5);
        assert_eq!(machine["hostname"], "node-001234");
        assert_eq!(machine["interfaces"][0]["mac_address"], "52:54:00:00:12:34");
        assert_eq!(machine["interfaces"][0]["ipv4_addresses"][0], "11.100.112.134/8");
        assert_eq!(machine["memory"]["usable_bytes"], MIN_MEMORY + 5);
        assert!(written(ReportSize::Large, 1, 1).1["disks"].as_array().unwrap().len() > 20);
    }

    #[test]
    fn rejects_numbers_with_too_many_digits() {
        let template = ReportTemplate::new(ReportSize::Small).unwrap();
        assert!(template.write(&mut String::new(), MAX_NUMBER + 1, 0).is_err());
        assert!(template.write(&mut String::new(), 0, MAX_VERSION).is_err());
    }
}

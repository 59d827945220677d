//! Simulated machines that send the same reports as the machines of the recordings.

use inventory::id::{HostId, InfraEnvId};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::site::Site;

pub(crate) const COUNT: usize = 3;

/// Boots the machines with the image of an infra-env.
pub(crate) async fn boot(site: &Site, infra_env: InfraEnvId, ids: &[HostId]) -> Vec<Machine> {
    let mut machines = Vec::new();
    for id in ids {
        machines.push(Machine::boot(&site.inventory, infra_env, *id).await);
    }
    machines
}

/// Sends the hardware and the clock state of a machine.
pub(crate) async fn report(machine: &Machine, number: usize) {
    machine.reply("inventory", &inventory(number)).await;
    let sources = json!({"ntp_sources": [{"source_name": "ntp.sim", "source_state": "synced"}]});
    machine.reply("ntp-synchronizer", &sources).await;
}

fn inventory(number: usize) -> Value {
    let disk = format!("/dev/disk/by-id/wwn-0x500000000000000{number}");
    json!({
        "hostname": format!("node-{number}"),
        "cpu": {"count": 8, "architecture": "x86_64", "frequency": 2400, "flags": [], "model_name": "sim"},
        "memory": {"physical_bytes": 34_359_738_368_u64, "usable_bytes": 34_359_738_368_u64},
        "disks": [{"id": disk, "by_id": disk, "path": "/dev/sda", "name": "sda", "drive_type": "HDD",
            "size_bytes": 128_849_018_880_u64, "serial": format!("s{number}")}],
        "interfaces": [{"name": "eth0", "type": "physical", "mac_address": format!("52:54:00:00:00:0{number}"),
            "mtu": 1500, "has_carrier": true, "ipv4_addresses": [format!("192.168.1.1{number}/24")]}],
        "routes": [{"interface": "eth0", "gateway": "192.168.1.1", "destination": "0.0.0.0", "family": 2}],
        "system_vendor": {"manufacturer": "Sim", "product_name": "Sim", "serial_number": number.to_string(),
            "virtual": true},
        "boot": {"current_boot_mode": "bios", "device_type": "ephemeral"},
    })
}

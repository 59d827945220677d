//! Runs the early-boot script in temporary root directories with simulated interfaces, under every installed POSIX
//! shell, and in a network namespace with kernel interfaces.
//!
//! If a shell is missing, a notice is printed and the shell is skipped. With `KINDLING_REQUIRE_TOOLS=1` the tests fail
//! instead.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod network;
#[path = "../../tests/support/skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ignition::network::{
    EntryKind, HostNetwork, HostNetworkFiles, InitrdOptions, KeyfileCache, NetworkGeneration,
};
use network::{BOND, PAIR, VLAN, host, mac};
use skip::{report_missing, report_skipped};
use tempfile::TempDir;

/// Path of the early-boot script in an image.
const SCRIPT_PATH: &str = "/usr/local/bin/pre-network-manager-config.sh";
const SCRIPT: &str = include_str!("../src/network/boot/pre-network-manager-config.sh");

/// Shells, with the arguments that make them POSIX shells.
const SHELLS: &[&[&str]] = &[&["dash"], &["busybox", "sh"], &["bash", "--posix"]];

fn missing(what: &str) {
    report_missing(&format!("{what} is not installed"));
}

fn shells() -> Vec<&'static [&'static str]> {
    let works = |shell: &&&'static [&'static str]| {
        let works = Command::new(shell[0]).args(&shell[1..]).args(["-c", "exit 7"]).status();
        let works = works.is_ok_and(|status| status.code() == Some(7));
        if !works {
            missing(shell[0]);
        }
        works
    };
    SHELLS.iter().filter(works).copied().collect()
}

/// A simulated machine with the files of hosts, and with interfaces by name and MAC address.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new(hosts: &[HostNetwork], generation: NetworkGeneration, interfaces: &[(&str, String)]) -> Self {
        let folder = tempfile::Builder::new().prefix("with space ").tempdir().unwrap();
        let machine = Self { folder };
        let networks = HostNetworkFiles::generate(hosts, generation, &KeyfileCache::default()).unwrap();
        for entry in networks.initrd_entries(&InitrdOptions::default()) {
            if let EntryKind::File { mode, contents } = entry.kind {
                machine.write(&entry.path, &contents);
                let permissions = fs::Permissions::from_mode(mode.into());
                fs::set_permissions(machine.path(&entry.path), permissions).unwrap();
            }
        }
        machine.write(SCRIPT_PATH, SCRIPT.as_bytes());
        machine.write("/sys/class/net/lo/address", b"00:00:00:00:00:00\n");
        machine.write("/sys/class/net/bonding_masters", b"");
        for (name, mac) in interfaces {
            machine.write(&format!("/sys/class/net/{name}/address"), format!("{mac}\n").as_bytes());
        }
        machine.write("/etc/initrd-release", b"");
        machine.write("/etc/coreos-firstboot-network/default_connection.nmconnection", b"old");
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn write(&self, path: &str, contents: &[u8]) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), contents).unwrap();
    }

    fn program(&self, path: &str, script: &str) {
        self.write(path, format!("#!/bin/sh\n{script}\n").as_bytes());
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, shell: &[&str]) -> Command {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(self.path(SCRIPT_PATH));
        command.env("NETWORK_ROOT", self.folder.path()).env("SETTLE_INTERVAL", "0");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("/bin").display()));
        command
    }

    fn boot(&self, shell: &[&str]) -> String {
        log(self.command(shell).output().unwrap())
    }

    fn files(&self, folder: &str) -> BTreeMap<String, String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().map(Result::unwrap);
        let file = |entry: fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
        };
        entries.map(file).collect()
    }

    fn keyfiles(&self) -> BTreeMap<String, String> {
        assert!(!self.path("/run/static-network").exists(), "temporary files were left");
        let files = self.files("/etc/coreos-firstboot-network");
        files.into_iter().map(|(name, text)| (name.replace(".nmconnection", ""), text)).collect()
    }

    /// Asserts that the script has changed nothing.
    fn assert_untouched(&self) {
        let old = ("default_connection".to_owned(), "old".to_owned());
        assert_eq!(self.keyfiles(), BTreeMap::from([old]));
    }
}

fn log(output: Output) -> String {
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// Boots a machine with the keyfiles of hosts under every shell. The machine and its log must be the same for all
/// shells.
fn boot(hosts: &[HostNetwork], interfaces: &[(&str, String)]) -> (Machine, String) {
    let mut first: Option<(Machine, String)> = None;
    for shell in shells() {
        let machine = Machine::new(hosts, NetworkGeneration::Keyfiles, interfaces);
        let log = machine.boot(shell).replace(machine.folder.path().to_str().unwrap(), "");
        if let Some((other, other_log)) = &first {
            assert_eq!((machine.keyfiles(), &log), (other.keyfiles(), other_log), "{shell:?}");
        }
        first.get_or_insert((machine, log));
    }
    first.unwrap()
}

fn values<'a>(keyfile: &'a str, key: &str) -> Vec<&'a str> {
    keyfile.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn matching_host_is_selected_and_its_interfaces_are_renamed() {
    let hosts = [host(PAIR, 16), host(BOND, 32), host(VLAN, 48)];
    // The addresses are in lower case in the map and in upper case here.
    let interfaces = [("ens3f0", mac(32).to_uppercase()), ("ens3f1", mac(33).to_uppercase())];
    let (machine, log) = boot(&hosts, &interfaces);
    let files = machine.keyfiles();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["bond0", "bond0.404", "ens3f0", "ens3f1"]);
    for name in ["ens3f0", "ens3f1"] {
        assert_eq!(values(&files[name], "interface-name"), [name]);
        assert_eq!(values(&files[name], "id"), [name]);
        assert_eq!(values(&files[name], "master"), ["bond0"]);
    }
    assert_eq!(values(&files["bond0"], "primary"), ["ens3f1"]);
    assert_eq!(values(&files["bond0.404"], "parent"), ["bond0"]);
    assert_eq!(log.lines().count(), 6, "{log}");
    assert!(log.contains(" is for this machine: eth0/ens3f0 eth1/ens3f1\n"), "{log}");
    assert!(log.ends_with(": 4 keyfiles are in /etc/coreos-firstboot-network\n"), "{log}");
    let mode = fs::metadata(machine.path("/etc/coreos-firstboot-network/bond0.nmconnection")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
}

#[test]
fn swapped_interface_names_follow_their_mac_addresses() {
    let (machine, _) = boot(&[host(PAIR, 16)], &[("eth1", mac(16)), ("eth0", mac(17))]);
    let files = machine.keyfiles();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["eth0", "eth1"]);
    for (name, address) in [("eth1", "192.0.2.10/24"), ("eth0", "192.0.2.130/25")] {
        assert_eq!(values(&files[name], "interface-name"), [name]);
        assert_eq!(values(&files[name], "address0"), [address]);
    }
    // The rule uses the new name of the interface. A search domain with the same name is unchanged.
    let all = files.values().cloned().collect::<String>();
    assert!(all.contains(" iif eth0 ") && !all.contains(" iif eth1 "), "{all}");
    assert!(all.contains("dns-search=eth0"), "{all}");
}

#[test]
fn machine_without_a_matching_host_is_unchanged() {
    let (machine, log) = boot(&[host(PAIR, 16), host(BOND, 32)], &[("eth0", mac(1)), ("eth1", mac(2))]);
    machine.assert_untouched();
    assert_eq!(log, "static network: no host has an interface of this machine: nothing is changed\n");
}

#[test]
fn script_without_hosts_changes_nothing() {
    let (machine, log) = boot(&[], &[]);
    machine.assert_untouched();
    assert_eq!(log, "static network: there is no /etc/assisted/network: nothing to do\n");
}

#[test]
fn keyfile_of_an_absent_interface_is_kept_unless_its_name_is_taken() {
    let (machine, log) = boot(&[host(BOND, 16)], &[("ens3", mac(16))]);
    assert_eq!(machine.keyfiles().into_keys().collect::<Vec<_>>(), ["bond0", "bond0.404", "ens3", "eth1"]);
    assert!(log.contains(" eth0/ens3; not here: eth1\n"), "{log}");
    // The machine's eth1 is the host's eth0, and the host's eth1 is absent. The machine's eth1 must not get the address
    // of the host's eth1.
    let (machine, log) = boot(&[host(PAIR, 16)], &[("eth1", mac(16))]);
    let files = machine.keyfiles();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["eth1"]);
    assert_eq!(values(&files["eth1"], "address0"), ["192.0.2.10/24"]);
    assert!(log.contains("warning: host0: eth1.nmconnection is left out"), "{log}");
}

#[test]
fn long_vlan_names_are_shortened_and_distinct() {
    let (machine, _) = boot(&[host(VLAN, 16)], &[("enp94s0f0np0", mac(16)), ("ens9", mac(17))]);
    let files = machine.keyfiles();
    let names = ["enp94s0f0n.2507", "enp94s0f0np0", "ens9", "ens9.2507"];
    assert_eq!(files.keys().collect::<Vec<_>>(), names);
    assert_eq!(values(&files["enp94s0f0n.2507"], "parent"), ["enp94s0f0np0"]);
    assert_eq!(values(&files["enp94s0f0n.2507"], "interface-name"), ["enp94s0f0n.2507"]);
    assert_eq!(values(&files["ens9"], "autoconnect"), ["true"]);
    // The shortened forms of both names would be the same.
    let (machine, _) = boot(&[host(VLAN, 16)], &[("enp94s0f0np0", mac(16)), ("enp94s0f0np1", mac(17))]);
    let files = machine.keyfiles();
    assert_eq!(files.len(), 4);
    assert_eq!(values(&files["enp94s0f0n.2507"], "parent"), ["enp94s0f0np0"]);
    assert_eq!(values(&files["p94s0f0np1.2507"], "parent"), ["enp94s0f0np1"]);
}

#[test]
fn physical_interfaces_come_before_dependent_ones() {
    for shell in shells() {
        let interfaces = [("aggregate", mac(16)), ("ens3", mac(16)), ("ens4", mac(17))];
        let machine = Machine::new(&[host(PAIR, 16)], NetworkGeneration::Keyfiles, &interfaces);
        for name in ["ens3", "ens4"] {
            symlink("/dev/null", machine.path(&format!("/sys/class/net/{name}/device"))).unwrap();
        }
        machine.boot(shell);
        assert_eq!(machine.keyfiles().into_keys().collect::<Vec<_>>(), ["ens3", "ens4"]);
    }
}

#[test]
fn first_of_two_hosts_with_one_mac_address_wins() {
    let (machine, log) = boot(&[host(PAIR, 16), host(VLAN, 16)], &[("ens3", mac(16)), ("ens4", mac(17))]);
    assert!(
        log.contains("error: host1: eth0.nmconnection is left out: there is a ens3.nmconnection"),
        "{log}"
    );
    assert_eq!(machine.keyfiles().len(), 4);
}

#[test]
fn booted_system_keeps_its_own_connections_folder() {
    for shell in shells() {
        let machine = Machine::new(&[host(PAIR, 16)], NetworkGeneration::Keyfiles, &[("ens3", mac(16))]);
        fs::remove_file(machine.path("/etc/initrd-release")).unwrap();
        machine.boot(shell);
        let files = machine.files("/etc/NetworkManager/system-connections");
        assert_eq!(files.into_keys().collect::<Vec<_>>(), ["ens3.nmconnection", "eth1.nmconnection"]);
        machine.assert_untouched();
    }
}

#[test]
fn invalid_host_directories_are_skipped() {
    for shell in shells() {
        let machine = Machine::new(&[host(PAIR, 16)], NetworkGeneration::Keyfiles, &[("ens3", mac(16))]);
        machine.write("/etc/assisted/network/host00/a.nmconnection", b"");
        machine.write("/etc/assisted/network/host01/mac_interface.ini", b"\n=\nx y\n*=eth0\n[=[\n");
        machine.write("/etc/assisted/network/host02/mac_interface.ini", mac(16).as_bytes());
        let log = machine.boot(shell);
        assert!(log.contains("warning: host00 has no mac_interface.ini\n"), "{log}");
        assert_eq!(machine.keyfiles().into_keys().collect::<Vec<_>>(), ["ens3", "eth1"]);
    }
}

#[test]
fn policies_are_applied_by_nmstate() {
    for shell in shells() {
        let interfaces = [("ens3", mac(32)), ("ens4", mac(33))];
        let machine =
            Machine::new(&[host(PAIR, 16), host(BOND, 32)], NetworkGeneration::Nmstate, &interfaces);
        machine.program(
            "/bin/nmstatectl",
            "echo \"nmstatectl $1\"; mkdir -p \"$NETWORK_ROOT/etc/NetworkManager/system-connections\"\n\
             echo made >\"$NETWORK_ROOT/etc/NetworkManager/system-connections/ens3.nmconnection\"",
        );
        machine.program("/usr/sbin/coreos-copy-firstboot-network", "echo copied");
        let log = machine.boot(shell);
        assert!(log.ends_with("nmstatectl service\ncopied\n"), "{log}");
        let policies = machine.files("/etc/nmstate");
        let [(name, policy)] = policies.iter().collect::<Vec<_>>()[..] else { panic!("{policies:?}") };
        assert!(name.starts_with("ymlFile") && policy.contains("52:54:00:AA:00:20"), "{name}: {policy}");
        assert_eq!(machine.keyfiles()["ens3"], "made\n");
    }
}

#[test]
fn kernel_interfaces_are_found() {
    let probe = ["-n", "-m", "ip", "link", "add", "ens3", "type", "veth", "peer", "name", "ens4"];
    let works = Command::new("unshare").args(probe).output();
    if !works.is_ok_and(|output| output.status.success()) {
        report_skipped("cannot create a network namespace with interfaces");
        return;
    }
    for shell in shells() {
        let machine = Machine::new(&[host(PAIR, 16), host(BOND, 32)], NetworkGeneration::Keyfiles, &[]);
        fs::remove_dir_all(machine.path("/sys/class/net")).unwrap();
        // The mounts exist only until the process ends. sysfs shows the interfaces of its namespace.
        let script = format!(
            "set -e; ip link add ens3 address {} type veth peer name ens4 address {}\n\
             mount -t sysfs none /sys; rmdir \"$NETWORK_ROOT/sys/class\"\n\
             ln -s /sys/class \"$NETWORK_ROOT/sys/class\"\nexec \"$@\"",
            mac(33),
            mac(32).to_uppercase(),
        );
        let boot = machine.command(shell);
        let mut command = Command::new("unshare");
        command.args(["-n", "-m", "sh", "-c", &script, "sh"]).arg(boot.get_program()).args(boot.get_args());
        command.envs(boot.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let log = log(command.output().unwrap());
        assert!(log.contains(" is for this machine: eth0/ens4 eth1/ens3\n"), "{log}");
        assert_eq!(
            machine.keyfiles().into_keys().collect::<Vec<_>>(),
            ["bond0", "bond0.404", "ens3", "ens4"]
        );
    }
}

#[test]
fn script_passes_shellcheck() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/network/boot/pre-network-manager-config.sh");
    match Command::new("shellcheck").arg(&path).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(_) => missing("shellcheck"),
    }
}

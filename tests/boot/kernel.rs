//! The modules of the kernel that a started system loads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::system::System;

/// What a live system needs: its network, the medium that it came on wherever that is, and its root file system.
const WANTED: [&str; 16] = [
    "virtio_pci",
    "virtio_net",
    "bonding",
    "8021q",
    "virtio_scsi",
    "sr_mod",
    "xhci-pci",
    "usb-storage",
    "sd_mod",
    "isofs",
    "loop",
    "squashfs",
    // A PC's CD, and what its firmware loaded into memory.
    "ahci",
    "nfit",
    "nd_pmem",
    // A CD of POWER.
    "ibmvscsi",
];

/// A module's name and bytes.
pub(crate) type Module = (String, Vec<u8>);

/// The modules, each behind those that it depends on. What a kernel has built in is none of them, and neither is what is for
/// other machines.
pub(crate) fn modules(system: &System) -> Option<Vec<Module>> {
    let mut found = BTreeMap::new();
    find(&system.modules()?, &mut found);
    let mut modules = Vec::new();
    for name in WANTED {
        add(name, &found, &mut modules);
    }
    Some(modules)
}

/// All modules below a folder, by name. Names are those of files, with `_` for `-` as in lists of dependencies.
fn find(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ko") {
            found.insert(name_of(path.file_stem().unwrap().to_str().unwrap()), path);
        }
    }
}

fn name_of(file: &str) -> String {
    file.replace('-', "_")
}

fn add(name: &str, found: &BTreeMap<String, PathBuf>, modules: &mut Vec<Module>) {
    let name = name_of(name);
    if modules.iter().any(|(known, _)| *known == name) {
        return;
    }
    let Some(path) = found.get(&name) else { return };
    let bytes = fs::read(path).unwrap();
    for needed in dependencies(&bytes) {
        add(&needed, found, modules);
    }
    modules.push((name, bytes));
}

/// What a module says that it depends on.
fn dependencies(module: &[u8]) -> Vec<String> {
    const FIELD: &[u8] = b"\0depends=";
    let start = module.windows(FIELD.len()).position(|window| window == FIELD).map(|at| at + FIELD.len());
    let field = &module[start.unwrap_or(module.len())..];
    let names =
        String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn dependencies_are_those_of_the_field() {
    assert_eq!(dependencies(b"\x7fELF\0license=GPL\0depends=mrp,garp\0name=8021q\0"), ["mrp", "garp"]);
    assert!(dependencies(b"\0depends=\0depends=late\0").is_empty());
    assert!(dependencies(b"no module").is_empty());
}

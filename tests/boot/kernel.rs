//! The kernel modules that a booted system loads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::system::DebianSystem;

/// Modules that a live system needs: network, boot medium and root file system.
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
    // A PC's CD, and an image that firmware loaded into memory.
    "ahci",
    "nfit",
    "nd_pmem",
    // A CD of POWER.
    "ibmvscsi",
];

/// A module's name and bytes.
pub(crate) type KernelModule = (String, Vec<u8>);

/// The modules, each after its dependencies. Modules that are built into the kernel or are for other machines are left
/// out.
pub(crate) fn kernel_modules(system: &DebianSystem) -> Option<Vec<KernelModule>> {
    let mut found = BTreeMap::new();
    find_modules(&system.modules_folder()?, &mut found);
    let mut modules = Vec::new();
    for name in WANTED {
        add_with_dependencies(name, &found, &mut modules);
    }
    Some(modules)
}

/// All modules below a folder, by name. Names are file names with `_` instead of `-`, as in dependency lists.
fn find_modules(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find_modules(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ko") {
            found.insert(module_name(path.file_stem().unwrap().to_str().unwrap()), path);
        }
    }
}

fn module_name(file: &str) -> String {
    file.replace('-', "_")
}

fn add_with_dependencies(name: &str, found: &BTreeMap<String, PathBuf>, modules: &mut Vec<KernelModule>) {
    let name = module_name(name);
    if modules.iter().any(|(known, _)| *known == name) {
        return;
    }
    let Some(path) = found.get(&name) else { return };
    let bytes = fs::read(path).unwrap();
    for needed in module_dependencies(&bytes) {
        add_with_dependencies(&needed, found, modules);
    }
    modules.push((name, bytes));
}

/// The dependencies that a module declares.
fn module_dependencies(module: &[u8]) -> Vec<String> {
    const FIELD: &[u8] = b"\0depends=";
    let start = module.windows(FIELD.len()).position(|window| window == FIELD).map(|at| at + FIELD.len());
    let field = &module[start.unwrap_or(module.len())..];
    let names =
        String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn module_dependencies_come_from_the_depends_field() {
    assert_eq!(module_dependencies(b"\x7fELF\0license=GPL\0depends=mrp,garp\0name=8021q\0"), ["mrp", "garp"]);
    assert!(module_dependencies(b"\0depends=\0depends=late\0").is_empty());
    assert!(module_dependencies(b"no module").is_empty());
}

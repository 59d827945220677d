//! The kernel modules that a booted system loads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::system::DebianSystem;

/// Modules that a live system needs for its network, boot medium and root file system.
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
    // For a PC's CD, and for an image that firmware loaded into memory.
    "ahci",
    "nfit",
    "nd_pmem",
    // For a CD of POWER.
    "ibmvscsi",
];

/// The name and bytes of a module.
pub(crate) type KernelModule = (String, Vec<u8>);

/// Returns the kernel modules, each after its dependencies, without modules built into the kernel or for other
/// machines.
pub(crate) fn kernel_modules(system: &DebianSystem) -> Option<Vec<KernelModule>> {
    let mut paths = BTreeMap::new();
    find_modules(&system.modules_folder()?, &mut paths);
    let mut modules = Vec::new();
    for name in WANTED {
        add_with_dependencies(name, &paths, &mut modules);
    }
    Some(modules)
}

/// Collects all modules below a folder, by name. The name is the file name with `_` instead of `-`, as in dependency
/// lists.
fn find_modules(folder: &Path, paths: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find_modules(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "ko") {
            paths.insert(module_name(path.file_stem().unwrap().to_str().unwrap()), path);
        }
    }
}

fn module_name(file: &str) -> String {
    file.replace('-', "_")
}

fn add_with_dependencies(name: &str, paths: &BTreeMap<String, PathBuf>, modules: &mut Vec<KernelModule>) {
    let name = module_name(name);
    if modules.iter().any(|(added, _)| *added == name) {
        return;
    }
    let Some(path) = paths.get(&name) else { return };
    let bytes = fs::read(path).unwrap();
    for needed in module_dependencies(&bytes) {
        add_with_dependencies(&needed, paths, modules);
    }
    modules.push((name, bytes));
}

/// Returns the dependencies that a module declares.
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

//! The modules of the kernel that a started system loads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{require_file, require_path};

/// What a live system needs: its network, the medium that it came on wherever that is, and its root file system.
const WANTED: [&str; 13] = [
    "virtio_pci",
    "virtio_net",
    "bonding",
    "8021q",
    "ahci",
    "sr_mod",
    "xhci-pci",
    "usb-storage",
    "sd_mod",
    "nfit",
    "nd_pmem",
    "isofs",
    "loop",
];
/// What mounts root file systems, behind all others.
const ROOT: &str = "squashfs";

/// A module's file name and bytes.
pub(crate) type Module = (String, Vec<u8>);

/// The modules, each behind those that it depends on. They are beside the kernel, where its package has them.
pub(crate) fn modules() -> Option<Vec<Module>> {
    let kernel = require_path("KINDLING_BOOT_KERNEL")?;
    let release = kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
    let folder = kernel.parent()?.parent()?.join("lib/modules").join(release).join("kernel");
    require_file(folder.join("fs/squashfs/squashfs.ko"))?;
    let mut found = BTreeMap::new();
    find(&folder, &mut found);
    let mut modules = Vec::new();
    for name in WANTED.into_iter().chain([ROOT]) {
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
    let path = found.get(&name).unwrap_or_else(|| panic!("this kernel has no module {name}"));
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

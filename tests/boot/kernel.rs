//! The modules of the kernel that a started system loads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fixtures::Architecture;

use crate::support::require_file;
use crate::system::System;

/// What a live system needs: its network, the medium that it came on wherever that is, and its root file system.
const WANTED: [&str; 5] = ["virtio_net", "sr_mod", "sd_mod", "isofs", "loop"];
/// What stands before that on machines of one kind.
const OF_PC: [&str; 8] =
    ["virtio_pci", "bonding", "8021q", "ahci", "xhci-pci", "usb-storage", "nfit", "nd_pmem"];
const OF_ARM: [&str; 3] = ["virtio_pci", "xhci-pci", "usb-storage"];
const OF_POWER: [&str; 2] = ["virtio_pci", "ibmvscsi"];
const OF_MAINFRAME: [&str; 1] = ["virtio_scsi"];
/// What mounts root file systems, behind all others.
const ROOT: &str = "squashfs";

/// A module's file name and bytes.
pub(crate) type Module = (String, Vec<u8>);

/// The modules, each behind those that it depends on. They are beside the kernel, where its package has them.
pub(crate) fn modules(system: &System) -> Option<Vec<Module>> {
    let release = system.kernel.file_name()?.to_str()?.split_once('-')?.1;
    let folder = system.kernel.parent()?.parent()?.join("lib/modules").join(release);
    require_file(folder.join("kernel/fs/squashfs/squashfs.ko"))?;
    let mut found = BTreeMap::new();
    find(&folder.join("kernel"), &mut found);
    let built_in = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
    let own = match system.architecture {
        Architecture::X86_64 => &OF_PC[..],
        Architecture::Aarch64 => &OF_ARM,
        Architecture::Ppc64le => &OF_POWER,
        Architecture::S390x => &OF_MAINFRAME,
    };
    let mut modules = Vec::new();
    for name in own.iter().chain(&WANTED).chain([&ROOT]) {
        if !built_in.lines().any(|path| path.ends_with(&format!("/{name}.ko"))) {
            add(name, &found, &mut modules);
        }
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

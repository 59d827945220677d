//! Debian for one processor: programs, libraries and a kernel for machines to run.
//!
//! For PCs, these are the installed programs, and the kernel that `KINDLING_BOOT_KERNEL` names, because reading the
//! kernel in `/boot` may need root. For other processors, `.ci/boot-foreign` unpacks packages below the folder that
//! `KINDLING_BOOT_FOREIGN` names, one folder per processor.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::{env, fs};

use fixtures::Architecture;

use crate::support::{ProgramRun, Scratch, require_file, require_path, require_tool};

/// Folders of programs, with `/usr` merged and without.
const PROGRAMS: [&str; 4] = ["usr/bin", "usr/sbin", "bin", "sbin"];

#[derive(Debug)]
pub(crate) struct DebianSystem {
    architecture: Architecture,
    root: PathBuf,
    pub(crate) kernel: PathBuf,
}

impl DebianSystem {
    pub(crate) fn for_architecture(architecture: Architecture) -> Option<Self> {
        if architecture == Architecture::X86_64 {
            let kernel = require_path("KINDLING_BOOT_KERNEL")?;
            return Some(Self { architecture, root: "/".into(), kernel });
        }
        let root = require_path("KINDLING_BOOT_FOREIGN")?.join(debian_name(architecture));
        require_file(root.join("complete"))?;
        let kernel = find_unpacked_kernel(&root).unwrap_or_else(|| panic!("no kernel in {}", root.display()));
        Some(Self { architecture, root, kernel })
    }

    pub(crate) fn package_file(&self, path: &str) -> Option<PathBuf> {
        require_file(self.root.join(path))
    }

    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let mut places = PROGRAMS.iter().map(|folder| self.root.join(folder).join(name));
        let path = places.find(|path| path.is_file());
        path.or_else(|| require_file(self.root.join(PROGRAMS[0]).join(name)))
    }

    /// Returns the loader and all shared libraries of a program, by the paths where the loader finds them.
    pub(crate) fn libraries(&self, program: &Path) -> Option<BTreeMap<String, PathBuf>> {
        let readelf = require_tool("readelf")?;
        let scratch = Scratch::new();
        let (mut libraries, mut missing) = (BTreeMap::new(), vec![program.to_owned()]);
        while let Some(file) = missing.pop() {
            let options = ["--wide", "--dynamic", "--program-headers"].map(Path::new);
            let dynamic_section =
                ProgramRun::new(&readelf, scratch.folder()).args(options).args([&file]).run().expect_text();
            for path in needed_libraries(&dynamic_section, self.triplet()) {
                if let Entry::Vacant(place) = libraries.entry(path) {
                    let file = self.resolve_link(place.key())?;
                    missing.push(place.insert(file).clone());
                }
            }
        }
        Some(libraries)
    }

    /// Libraries are below `lib` or `usr/lib`. A link to the loader may point to another folder.
    fn resolve_link(&self, path: &str) -> Option<PathBuf> {
        let name = path.rsplit('/').next()?;
        let places = [path.to_owned(), format!("usr/{path}"), format!("lib/{}/{name}", self.triplet())];
        let file = places.iter().map(|place| self.root.join(place)).find(|path| path.is_file());
        file.or_else(|| self.package_file(path))
    }

    fn triplet(&self) -> &'static str {
        match self.architecture {
            Architecture::X86_64 => "x86_64-linux-gnu",
            Architecture::Aarch64 => "aarch64-linux-gnu",
            Architecture::Ppc64le => "powerpc64le-linux-gnu",
            Architecture::S390x => "s390x-linux-gnu",
        }
    }

    /// Returns the folder with the kernel's modules.
    pub(crate) fn modules_folder(&self) -> Option<PathBuf> {
        let release = self.kernel.file_name()?.to_str()?.split_once('-')?.1;
        let folder = self.kernel.parent()?.parent()?.join("lib/modules").join(release).join("kernel");
        require_file(folder.join("fs/squashfs/squashfs.ko"))?;
        Some(folder)
    }
}

fn find_unpacked_kernel(root: &Path) -> Option<PathBuf> {
    fs::read_dir(root.join("boot")).ok()?.next().map(|entry| entry.unwrap().path())
}

/// Returns the names of the installed kernels.
pub(crate) fn installed_kernels() -> Vec<String> {
    let path = |variable| env::var_os(variable).map(PathBuf::from);
    let foreign = path("KINDLING_BOOT_FOREIGN").unwrap_or_default();
    let unpacked = |architecture| find_unpacked_kernel(&foreign.join(debian_name(architecture)));
    let kernels = path("KINDLING_BOOT_KERNEL").into_iter();
    let kernels = kernels.chain(Architecture::ALL.into_iter().filter_map(unpacked));
    kernels.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
}

/// Returns Debian's name of a processor.
pub(crate) fn debian_name(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "amd64",
        Architecture::Aarch64 => "arm64",
        Architecture::Ppc64le => "ppc64el",
        Architecture::S390x => "s390x",
    }
}

/// Returns the paths of the loader and of the libraries in the output of `readelf`.
fn needed_libraries(output: &str, triplet: &str) -> Vec<String> {
    let inside = |line: &str, open: char, close: char| {
        line.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map(|(inner, _)| inner.to_owned())
    };
    let path = |line: &str| {
        if line.contains("(NEEDED)") {
            // A loader is also a library, at one fixed path.
            inside(line, '[', ']')
                .filter(|name| !name.starts_with("ld"))
                .map(|name| format!("lib/{triplet}/{name}"))
        } else {
            inside(line, '[', ']')?.strip_prefix("Requesting program interpreter: /").map(str::to_owned)
        }
    };
    output.lines().filter_map(path).collect()
}

#[test]
fn needed_libraries_include_the_loader() {
    let output = "  INTERP         0x000238 0x0000000000000238\n      \
        [Requesting program interpreter: /lib/ld-linux-aarch64.so.1]\n \
        0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]\n \
        0x0000000000000001 (NEEDED)             Shared library: [ld-linux-aarch64.so.1]\n \
        0x000000000000000e (SONAME)             Library soname: [libx.so.1]\n";
    assert_eq!(needed_libraries(output, "a-b-c"), ["lib/ld-linux-aarch64.so.1", "lib/a-b-c/libc.so.6"]);
}

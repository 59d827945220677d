//! Debian for one processor: programs, libraries and a kernel, for machines to run.
//!
//! For that of a PC, it is what is installed here, and the kernel that `KINDLING_BOOT_KERNEL` names: reading the one in `/boot`
//! is not for everybody. For others, packages are unpacked, one folder each, below the folder that `KINDLING_BOOT_FOREIGN` names;
//! `.ci/boot-foreign` does it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::{env, fs};

use fixtures::Architecture;

use crate::support::{Run, Scratch, require_file, require_path, require_tool};

/// Where programs are, with `/usr` merged and without.
const PROGRAMS: [&str; 4] = ["usr/bin", "usr/sbin", "bin", "sbin"];

#[derive(Debug)]
pub(crate) struct System {
    pub(crate) architecture: Architecture,
    root: PathBuf,
    pub(crate) kernel: PathBuf,
}

impl System {
    pub(crate) fn of(architecture: Architecture) -> Option<Self> {
        if architecture == Architecture::X86_64 {
            let kernel = require_path("KINDLING_BOOT_KERNEL")?;
            return Some(Self { architecture, root: "/".into(), kernel });
        }
        let root = require_path("KINDLING_BOOT_FOREIGN")?.join(debian_name(architecture));
        require_file(root.join("complete"))?;
        let kernel = unpacked_kernel(&root).unwrap_or_else(|| panic!("no kernel in {}", root.display()));
        Some(Self { architecture, root, kernel })
    }

    /// A file that a package has.
    pub(crate) fn file(&self, path: &str) -> Option<PathBuf> {
        require_file(self.root.join(path))
    }

    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let mut places = PROGRAMS.iter().map(|folder| self.root.join(folder).join(name));
        let found = places.find(|path| path.is_file());
        found.or_else(|| require_file(self.root.join(PROGRAMS[0]).join(name)))
    }

    /// What a program is linked with, and what that is linked with, by the paths where the loader finds it; the loader too.
    pub(crate) fn libraries(&self, program: &Path) -> Option<BTreeMap<String, PathBuf>> {
        let readelf = require_tool("readelf")?;
        let scratch = Scratch::new();
        let (mut found, mut missing) = (BTreeMap::new(), vec![program.to_owned()]);
        while let Some(file) = missing.pop() {
            let options = ["--wide", "--dynamic", "--program-headers"].map(Path::new);
            let told = Run::new(&readelf, scratch.folder()).args(options).args([&file]).output().printed();
            let linked = Linked::read(&told);
            let libraries = linked.libraries.iter().map(|name| self.library(name, &linked.folders));
            let loader = linked.loader.iter().map(|path| Some((path.clone(), self.loader(path)?)));
            for library in libraries.chain(loader) {
                let (path, file) = library?;
                if let Entry::Vacant(place) = found.entry(path) {
                    missing.push(place.insert(file).clone());
                }
            }
        }
        Some(found)
    }

    /// A library is in a folder that the program names, or else where all are, which is below `lib` or `usr/lib`.
    fn library(&self, name: &str, folders: &[String]) -> Option<(String, PathBuf)> {
        let usual = ["lib", "usr/lib"].map(|folder| format!("{folder}/{}", self.triplet()));
        let mut paths = folders.iter().chain(&usual).map(|folder| format!("{folder}/{name}"));
        let found = paths.find(|path| self.root.join(path).is_file());
        let path = found.unwrap_or_else(|| format!("{}/{name}", usual[0]));
        Some((path.clone(), self.file(&path)?))
    }

    /// The loader has a fixed place, with a link that may lead out of a folder of unpacked packages.
    fn loader(&self, path: &str) -> Option<PathBuf> {
        let direct = self.root.join(path);
        if direct.is_file() {
            return Some(direct);
        }
        self.library(path.rsplit('/').next()?, &[]).map(|(_, file)| file)
    }

    fn triplet(&self) -> &'static str {
        match self.architecture {
            Architecture::X86_64 => "x86_64-linux-gnu",
            Architecture::Aarch64 => "aarch64-linux-gnu",
            Architecture::Ppc64le => "powerpc64le-linux-gnu",
            Architecture::S390x => "s390x-linux-gnu",
        }
    }
}

fn unpacked_kernel(root: &Path) -> Option<PathBuf> {
    fs::read_dir(root.join("boot")).ok()?.next().map(|entry| entry.unwrap().path())
}

/// The names of the kernels that are there.
pub(crate) fn kernels() -> Vec<String> {
    let path = |variable| env::var_os(variable).map(PathBuf::from);
    let foreign = path("KINDLING_BOOT_FOREIGN").unwrap_or_default();
    let unpacked = |architecture| unpacked_kernel(&foreign.join(debian_name(architecture)));
    let kernels = path("KINDLING_BOOT_KERNEL").into_iter();
    let kernels = kernels.chain(Architecture::ALL.into_iter().filter_map(unpacked));
    kernels.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
}

/// What Debian calls a processor.
pub(crate) fn debian_name(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "amd64",
        Architecture::Aarch64 => "arm64",
        Architecture::Ppc64le => "ppc64el",
        Architecture::S390x => "s390x",
    }
}

/// What `readelf` tells of a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Linked {
    /// Its loader, by its path from the root.
    loader: Option<String>,
    /// The names of libraries.
    libraries: Vec<String>,
    /// Where to look for them first.
    folders: Vec<String>,
}

impl Linked {
    fn read(told: &str) -> Self {
        let mut linked = Self::default();
        for line in told.lines() {
            let inner = || line.split_once('[')?.1.split_once(']').map(|(inner, _)| inner.to_owned());
            let Some(inner) = inner() else { continue };
            if line.contains("(NEEDED)") && !inner.starts_with("ld") {
                // A loader is also a library, at its own place alone.
                linked.libraries.push(inner);
            } else if line.contains("(RUNPATH)") {
                linked.folders.extend(inner.split(':').map(|path| path.trim_start_matches('/').to_owned()));
            } else if let Some(path) = inner.strip_prefix("Requesting program interpreter: /") {
                linked.loader = Some(path.to_owned());
            }
        }
        linked
    }
}

#[test]
fn linked_are_the_loader_and_the_libraries() {
    let told = "  INTERP         0x000238 0x0000000000000238\n      \
        [Requesting program interpreter: /lib/ld-linux-aarch64.so.1]\n \
        0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]\n \
        0x0000000000000001 (NEEDED)             Shared library: [ld-linux-aarch64.so.1]\n \
        0x000000000000001d (RUNPATH)            Library runpath: [/usr/lib/x:/y]\n \
        0x000000000000000e (SONAME)             Library soname: [libx.so.1]\n";
    let linked = Linked {
        loader: Some("lib/ld-linux-aarch64.so.1".to_owned()),
        libraries: vec!["libc.so.6".to_owned()],
        folders: vec!["usr/lib/x".to_owned(), "y".to_owned()],
    };
    assert_eq!(Linked::read(told), linked);
}

//! Kindling beside the real `coreos-installer`: the same command line on identical copies, then every visible effect
//! compared — exit status, standard output, and all files, byte for byte.
//!
//! Two things are compared by what they mean. Embedded archives are packed with a smaller xz dictionary than the
//! installer's, so the installer decodes both and their members must be equal; everything outside the Ignition area
//! must still be identical. Messages must agree on one of the phrases that scripts look for.
//!
//! What Kindling does otherwise on purpose is in [`differences`], each with its reason.
//!
//! The images are all those of the `fixtures` crate and, where `KINDLING_INSTALLER_FIXTURES` names a folder with the
//! installer's own fixtures (unpacked, `*.iso`), those too. Without the installer on `PATH` everything here is skipped.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod customize;
mod dev;
mod differences;
mod extract;
mod ignition;
mod kargs;
#[path = "../../isogen/tests/products/made.rs"]
mod made;
mod network;
mod options;
mod pair;
mod products;
mod pxe;
mod reset;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fixtures::Extent;
use support::{INSTALLER, Run, Scratch, good, published, require_tool};

/// The installer, where there is one.
fn installer() -> Option<&'static Path> {
    static INSTALLER_PATH: LazyLock<Option<PathBuf>> = LazyLock::new(|| require_tool(INSTALLER));
    INSTALLER_PATH.as_deref()
}

/// An image on which both programs are let loose.
#[derive(Debug)]
struct Subject {
    name: String,
    bytes: Vec<u8>,
    /// The Ignition area, according to the installer.
    area: Option<Extent>,
}

impl Subject {
    fn new(name: String, bytes: Vec<u8>) -> Self {
        let scratch = Scratch::new();
        scratch.write("image.iso", &bytes);
        let program = installer().unwrap();
        let shown =
            Run::new(program, scratch.folder()).args(["dev", "show", "iso", "--ignition", "image.iso"]);
        let area = serde_json::from_slice::<serde_json::Value>(&shown.output().stdout).ok();
        let area = area.map(|area| Extent {
            offset: area["offset"].as_u64().unwrap(),
            len: area["length"].as_u64().unwrap(),
        });
        Self { name, bytes, area }
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// All images; none where there is no installer to compare with.
fn subjects() -> &'static [Subject] {
    static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
        if installer().is_none() {
            return Vec::new();
        }
        let fixtures = good().iter().map(|image| (image.name(), image.bytes.clone()));
        fixtures.chain(published()).map(|(name, bytes)| Subject::new(name, bytes)).collect()
    });
    &SUBJECTS
}

/// Images for commands that differ little from one image to the next.
fn few() -> impl Iterator<Item = &'static Subject> {
    const NAMES: [&str; 5] =
        ["2024-12.x86_64", "2021-01.aarch64", "2022-09.ppc64le", "2023-07.s390x", "2021-12.x86_64"];
    subjects().iter().filter(|subject| NAMES.contains(&subject.name.as_str()))
}

/// An image that can be asked for anything.
fn one() -> Option<&'static Subject> {
    subjects().iter().find(|subject| subject.name == "2024-12.x86_64")
}

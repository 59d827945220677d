//! Kindling compared with the real `coreos-installer`. Both programs run the same command line on identical copies.
//! Then the tests compare every visible effect: exit status, standard output, and all files, byte for byte.
//!
//! Two things are compared by meaning. Kindling packs embedded archives with a smaller xz dictionary, so the installer
//! decodes both archives, whose members must be equal. All bytes outside the Ignition area must be identical. Error
//! messages must contain the same phrase of a list of phrases that scripts look for.
//!
//! Intended differences are in [`differences`], each with its reason.
//!
//! The images are all images of the `fixtures` crate. If `KINDLING_INSTALLER_FIXTURES` names a folder with the
//! installer's own fixtures (unpacked, `*.iso`), the tests use these too. Without the installer in `PATH`, all tests
//! are skipped.

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
mod network;
mod options;
mod products;
mod program_pair;
mod pxe;
#[path = "../../isogen/tests/products/relayout_kinds.rs"]
mod relayout_kinds;
mod reset;
#[path = "../support/mod.rs"]
mod support;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fixtures::{Architecture, Era, Extent};
use support::{FixtureImage, INSTALLER, ProgramRun, Scratch, all_fixtures, published_images, require_tool};

/// Returns the installer; `None` if it is not installed.
fn installer_path() -> Option<&'static Path> {
    static INSTALLER_PATH: LazyLock<Option<PathBuf>> = LazyLock::new(|| require_tool(INSTALLER));
    INSTALLER_PATH.as_deref()
}

/// Prepares a run of the installer in a folder. Its xz encoder clears 64 MiB for every archive, which takes half the
/// time with huge pages.
fn installer_run(folder: &Path) -> ProgramRun {
    ProgramRun::new(installer_path().unwrap(), folder).env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
}

#[derive(Debug)]
struct OracleImage {
    name: String,
    bytes: Vec<u8>,
    /// The Ignition area, as the installer reports it.
    area: Option<Extent>,
}

impl OracleImage {
    fn new(name: String, bytes: Vec<u8>) -> Self {
        let scratch = Scratch::new();
        scratch.write("image.iso", &bytes);
        let dev_show =
            installer_run(scratch.folder()).args(["dev", "show", "iso", "--ignition", "image.iso"]);
        let area = serde_json::from_slice::<serde_json::Value>(&dev_show.run().stdout).ok();
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

/// Images of all kinds; empty without the installer. By default, each era is tested with one or two architectures, and
/// with all published images. With `KINDLING_ALL_IMAGES`, all fixtures are tested, which takes twice as long.
fn all_images() -> &'static [OracleImage] {
    static SUBJECTS: LazyLock<Vec<OracleImage>> = LazyLock::new(|| {
        if installer_path().is_none() {
            return Vec::new();
        }
        let fixtures = all_fixtures().iter().filter(|image| has_all_images() || is_in_every_run(image));
        let fixtures = fixtures.map(|image| (image.name(), image.bytes.clone()));
        fixtures.chain(published_images()).map(|(name, bytes)| OracleImage::new(name, bytes)).collect()
    });
    &SUBJECTS
}

/// Returns `true` if each command runs on all images that support it.
fn has_all_images() -> bool {
    env::var_os("KINDLING_ALL_IMAGES").is_some()
}

/// Selects one architecture of each era in turn, and the images for independent commands.
fn is_in_every_run(image: &FixtureImage) -> bool {
    let era = Era::ALL.iter().position(|era| *era == image.recipe.era());
    let turn = era.map(|era| Architecture::ALL[era % Architecture::ALL.len()]);
    turn == Some(image.recipe.architecture()) || INDEPENDENT.contains(&image.name().as_str())
}

/// The names of the images for commands whose result depends little on the image.
const INDEPENDENT: [&str; 5] =
    ["2024-12.x86_64", "2021-01.aarch64", "2022-09.ppc64le", "2023-07.s390x", "2021-12.x86_64"];

/// Images for commands whose result depends little on the image.
fn images_for_independent_commands() -> impl Iterator<Item = &'static OracleImage> {
    all_images().iter().filter(|subject| INDEPENDENT.contains(&subject.name.as_str()))
}

/// Selects the commands for one of these images. By default, each command runs on two of the five images.
fn commands_for<'a, T>(name: &str, commands: &'a [T]) -> Vec<&'a T> {
    let turn = INDEPENDENT.iter().position(|image| *image == name).unwrap();
    let is_chosen = |number: usize| has_all_images() || (number + turn) % INDEPENDENT.len() < 2;
    commands.iter().enumerate().filter(|(number, _)| is_chosen(*number)).map(|(_, command)| command).collect()
}

/// Selects one of every `step` commands for an image of [`all_images`], and others for the next image.
fn commands_in_turn<'a, T>(name: &str, step: usize, commands: &'a [T]) -> Vec<&'a T> {
    let number = all_images().iter().position(|image| image.name == name).unwrap();
    let step = if has_all_images() { 1 } else { step };
    commands.iter().skip(number % step).step_by(step).collect()
}

/// Returns an image that supports every command.
fn full_featured_image() -> Option<&'static OracleImage> {
    all_images().iter().find(|subject| subject.name == "2024-12.x86_64")
}

//! The images: those of the `fixtures` crate, mastered once for each test program, and published ones where given.

use std::fs;
use std::sync::LazyLock;

use fixtures::{Architecture, Era, Extent, Mastered, Recipe};

use super::{Scratch, require_path};

/// An image of the `fixtures` crate with the truth about it.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) recipe: Recipe,
    pub(crate) truth: Mastered,
    pub(crate) bytes: Vec<u8>,
}

impl Image {
    fn new(recipe: Recipe) -> Self {
        let truth = recipe.master();
        let bytes = truth.image.to_vec();
        Self { recipe, truth, bytes }
    }

    pub(crate) fn name(&self) -> String {
        self.recipe.name()
    }

    pub(crate) fn has_ignition(&self) -> bool {
        self.truth.ignition.is_some()
    }

    pub(crate) fn has_kargs(&self) -> bool {
        !self.truth.kargs.is_empty()
    }

    pub(crate) fn has_minimal(&self) -> bool {
        self.has_kargs() && self.recipe.era().has_minimal_image()
    }

    /// The bytes of a file of the image.
    pub(crate) fn file(&self, path: &str) -> &[u8] {
        self.slice(self.truth.files[path])
    }

    pub(crate) fn slice(&self, extent: Extent) -> &[u8] {
        slice(&self.bytes, extent)
    }

    /// A scratch folder that holds it as `image.iso`, beside a config and a keyfile.
    pub(crate) fn scratch(&self) -> Scratch {
        let scratch = Scratch::new();
        scratch.write("image.iso", &self.bytes);
        scratch.write("config.ign", super::CONFIG);
        scratch.write("wired.nmconnection", super::KEYFILE);
        scratch
    }
}

pub(crate) fn slice(bytes: &[u8], extent: Extent) -> &[u8] {
    let start = usize::try_from(extent.offset).unwrap();
    &bytes[start..start + usize::try_from(extent.len).unwrap()]
}

/// Every small fixture.
pub(crate) fn good() -> &'static [Image] {
    static GOOD: LazyLock<Vec<Image>> = LazyLock::new(|| Recipe::all().map(Image::new).collect());
    &GOOD
}

/// One fixture.
pub(crate) fn image(architecture: Architecture, era: Era) -> &'static Image {
    let same = |image: &&Image| image.recipe.architecture() == architecture && image.recipe.era() == era;
    good().iter().find(same).unwrap()
}

/// Fixtures that differ most from each other: with and without descriptions, partition tables and several areas.
pub(crate) fn few() -> [&'static Image; 4] {
    [
        image(Architecture::X86_64, Era::E2024_12),
        image(Architecture::Aarch64, Era::E2021_01),
        image(Architecture::Ppc64le, Era::E2022_09),
        image(Architecture::S390x, Era::E2023_07),
    ]
}

/// The published images of the folder that `KINDLING_INSTALLER_FIXTURES` names, by file name without `.iso`.
pub(crate) fn published() -> Vec<(String, Vec<u8>)> {
    let Some(folder) = require_path("KINDLING_INSTALLER_FIXTURES") else { return Vec::new() };
    let mut images = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "iso") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            images.push((name, fs::read(&path).unwrap()));
        }
    }
    assert!(!images.is_empty(), "{} holds no *.iso", folder.display());
    images.sort();
    images
}

//! Test images: the images of the `fixtures` crate, built once per test program, and published images if available.

use std::fs;
use std::sync::LazyLock;

use fixtures::{Architecture, Era, Extent, Mastered, Recipe};

use super::{Scratch, require_path};

/// An image of the `fixtures` crate with its expected properties.
#[derive(Debug)]
pub(crate) struct FixtureImage {
    pub(crate) recipe: Recipe,
    pub(crate) truth: Mastered,
    pub(crate) bytes: Vec<u8>,
}

impl FixtureImage {
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

    pub(crate) fn file_bytes(&self, path: &str) -> &[u8] {
        self.extent_bytes(self.truth.files[path])
    }

    pub(crate) fn extent_bytes(&self, extent: Extent) -> &[u8] {
        extent_of(&self.bytes, extent)
    }

    /// Creates a scratch folder with the image as `image.iso`, a config and a keyfile.
    pub(crate) fn scratch_with_image(&self) -> Scratch {
        let scratch = Scratch::new();
        scratch.write("image.iso", &self.bytes);
        scratch.write("config.ign", super::CONFIG);
        scratch.write("wired.nmconnection", super::KEYFILE);
        scratch
    }
}

pub(crate) fn extent_of(bytes: &[u8], extent: Extent) -> &[u8] {
    let start = usize::try_from(extent.offset).unwrap();
    &bytes[start..start + usize::try_from(extent.len).unwrap()]
}

pub(crate) fn all_fixtures() -> &'static [FixtureImage] {
    static GOOD: LazyLock<Vec<FixtureImage>> =
        LazyLock::new(|| Recipe::all().map(FixtureImage::new).collect());
    &GOOD
}

pub(crate) fn fixture(architecture: Architecture, era: Era) -> &'static FixtureImage {
    let same =
        |image: &&FixtureImage| image.recipe.architecture() == architecture && image.recipe.era() == era;
    all_fixtures().iter().find(same).unwrap()
}

/// Fixtures that differ most from each other: with and without descriptions, partition tables and several areas.
pub(crate) fn different_fixtures() -> [&'static FixtureImage; 4] {
    [
        fixture(Architecture::X86_64, Era::E2024_12),
        fixture(Architecture::Aarch64, Era::E2021_01),
        fixture(Architecture::Ppc64le, Era::E2022_09),
        fixture(Architecture::S390x, Era::E2023_07),
    ]
}

/// Returns the published images in the folder that `KINDLING_INSTALLER_FIXTURES` names, by file name without `.iso`.
pub(crate) fn published_images() -> Vec<(String, Vec<u8>)> {
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

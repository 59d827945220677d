//! The valid images of `fixtures`, with their expected properties. They are built once per test program.

#![allow(dead_code, reason = "no test program needs all of it")]

use std::sync::LazyLock;

use bytes::Bytes;
use fixtures::{Architecture, Era, Mastered, Recipe};
use isogen::{BaseImage, Source};

/// A valid image, its recipe and the expected properties.
#[derive(Debug)]
pub(crate) struct FixtureImage {
    pub(crate) recipe: Recipe,
    pub(crate) mastered: Mastered,
    pub(crate) bytes: Bytes,
}

impl FixtureImage {
    fn new(recipe: &Recipe) -> Self {
        let recipe = recipe.clone().rootfs_len(80 << 10);
        let mastered = recipe.master();
        let bytes = mastered.image.to_vec().into();
        Self { recipe, mastered, bytes }
    }

    pub(crate) fn name(&self) -> String {
        format!("{}.iso", self.recipe.name())
    }

    pub(crate) fn open(&self) -> BaseImage {
        BaseImage::from_source(Source::from_bytes(self.name(), self.bytes.clone())).unwrap()
    }

    pub(crate) fn has_kargs(&self) -> bool {
        !self.mastered.kargs.is_empty()
    }

    /// Returns the end character of the kernel arguments and the filler of their area.
    pub(crate) fn end_and_pad(&self) -> (u8, u8) {
        if self.recipe.architecture() == Architecture::S390x { (0, 0) } else { (b'\n', b'#') }
    }

    /// Returns the bytes of a file of the image.
    pub(crate) fn file(&self, path: &str) -> &[u8] {
        extent_bytes(&self.bytes, self.mastered.files[path])
    }
}

pub(crate) fn extent_bytes(bytes: &[u8], extent: fixtures::Extent) -> &[u8] {
    let start = usize::try_from(extent.offset).unwrap();
    &bytes[start..start + usize::try_from(extent.len).unwrap()]
}

/// Returns the images with an embed area for a config: all except the oldest images for s390x.
pub(crate) fn images_with_ignition_area() -> &'static [FixtureImage] {
    static IMAGES_WITH_IGNITION_AREA: LazyLock<Vec<FixtureImage>> = LazyLock::new(|| {
        let takes_a_config = |recipe: &Recipe| recipe.era().has_ignition_area(recipe.architecture());
        Recipe::all().filter(takes_a_config).map(|recipe| FixtureImage::new(&recipe)).collect()
    });
    &IMAGES_WITH_IGNITION_AREA
}

pub(crate) fn all_images() -> &'static [FixtureImage] {
    static ALL_IMAGES: LazyLock<Vec<FixtureImage>> =
        LazyLock::new(|| Recipe::all().map(|recipe| FixtureImage::new(&recipe)).collect());
    &ALL_IMAGES
}

/// Returns a small selection of images with large differences, for tests that are too slow for all images: the layouts
/// of genisoimage and xorriso, with headers and with descriptions, with and without partition tables.
pub(crate) fn diverse_images() -> &'static [FixtureImage] {
    static DIVERSE_IMAGES: LazyLock<Vec<FixtureImage>> = LazyLock::new(|| {
        let selection = [
            (Architecture::X86_64, Era::E2023_07),
            (Architecture::Aarch64, Era::E2021_01),
            (Architecture::Ppc64le, Era::E2024_12),
            (Architecture::S390x, Era::E2024_12),
        ];
        selection
            .into_iter()
            .map(|(architecture, era)| FixtureImage::new(&Recipe::new(architecture, era)))
            .collect()
    });
    &DIVERSE_IMAGES
}

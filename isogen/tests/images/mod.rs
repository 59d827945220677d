//! The good images of `fixtures`, mastered once for each test program, with the truth about them.

#![allow(dead_code, reason = "no test program needs all of it")]

use std::sync::LazyLock;

use bytes::Bytes;
use fixtures::{Architecture, Era, Mastered, Recipe};
use isogen::{BaseImage, Source};

/// One image.
#[derive(Debug)]
pub(crate) struct Good {
    pub(crate) recipe: Recipe,
    pub(crate) truth: Mastered,
    pub(crate) bytes: Bytes,
}

impl Good {
    fn new(recipe: &Recipe) -> Self {
        let recipe = recipe.clone().rootfs_len(80 << 10);
        let truth = recipe.master();
        let bytes = truth.image.to_vec().into();
        Self { recipe, truth, bytes }
    }

    pub(crate) fn name(&self) -> String {
        format!("{}.iso", self.recipe.name())
    }

    pub(crate) fn open(&self) -> BaseImage {
        BaseImage::from_source(Source::from_bytes(self.name(), self.bytes.clone())).unwrap()
    }

    pub(crate) fn has_kargs(&self) -> bool {
        !self.truth.kargs.is_empty()
    }

    /// The character that ends the kernel arguments, and the one that fills their area.
    pub(crate) fn end_and_pad(&self) -> (u8, u8) {
        if self.recipe.architecture() == Architecture::S390x { (0, 0) } else { (b'\n', b'#') }
    }

    /// The bytes of a file of the image.
    pub(crate) fn file(&self, path: &str) -> &[u8] {
        slice(&self.bytes, self.truth.files[path])
    }
}

/// A stretch of some bytes.
pub(crate) fn slice(bytes: &[u8], extent: fixtures::Extent) -> &[u8] {
    let start = usize::try_from(extent.offset).unwrap();
    &bytes[start..start + usize::try_from(extent.len).unwrap()]
}

/// Every image that can take a config: all but the oldest ones of s390x.
pub(crate) fn good() -> &'static [Good] {
    static GOOD: LazyLock<Vec<Good>> = LazyLock::new(|| {
        let takes_a_config = |recipe: &Recipe| recipe.era().has_ignition_area(recipe.architecture());
        Recipe::all().filter(takes_a_config).map(|recipe| Good::new(&recipe)).collect()
    });
    &GOOD
}

/// Every image.
pub(crate) fn all() -> &'static [Good] {
    static ALL: LazyLock<Vec<Good>> =
        LazyLock::new(|| Recipe::all().map(|recipe| Good::new(&recipe)).collect());
    &ALL
}

/// Images that differ most from each other, for tests that cannot afford all: genisoimage's and xorriso's layout, with
/// headers and with descriptions, with and without partition tables.
pub(crate) fn few() -> &'static [Good] {
    static FEW: LazyLock<Vec<Good>> = LazyLock::new(|| {
        let chosen = [
            (Architecture::X86_64, Era::E2023_07),
            (Architecture::Aarch64, Era::E2021_01),
            (Architecture::Ppc64le, Era::E2024_12),
            (Architecture::S390x, Era::E2024_12),
        ];
        chosen.into_iter().map(|(architecture, era)| Good::new(&Recipe::new(architecture, era))).collect()
    });
    &FEW
}

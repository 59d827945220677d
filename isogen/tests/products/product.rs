//! The products: re-laid out images, one for each supported pair of a fixture image and a kind of change.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::thread;

use isogen::volume::{self, DirectoryTree};
use isogen::{BaseImage, Plan};

use crate::images::{FixtureImage, all_images};
use crate::readers::run_program;
use crate::relayout_kinds::{RelayoutKind, open_plan};

/// A re-laid out image, with its base image and the kind of change.
pub(crate) struct RelayoutProduct {
    pub(crate) fixture: &'static FixtureImage,
    pub(crate) kind: RelayoutKind,
    pub(crate) base: BaseImage,
    pub(crate) plan: Plan,
}

impl RelayoutProduct {
    pub(crate) fn name(&self) -> String {
        format!("{}, {:?}", self.fixture.name(), self.kind)
    }

    pub(crate) fn open(&self) -> BaseImage {
        open_plan(&self.plan, &self.name())
    }
}

/// Returns the files of a tree by path, as this crate reads them.
pub(crate) fn read_files(image: &BaseImage, tree: &DirectoryTree) -> BTreeMap<String, Vec<u8>> {
    let files = tree.entries().filter(|(_, entry)| entry.kind == volume::EntryKind::File);
    files.map(|(id, entry)| (tree.path(id), image.source().read_extent(entry.extent).unwrap())).collect()
}

/// Asserts that two sets of files are equal. The message does not contain their bytes.
#[track_caller]
pub(crate) fn assert_same_files(
    one: &BTreeMap<String, Vec<u8>>,
    other: &BTreeMap<String, Vec<u8>>,
    what: &str,
) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{what}");
    let differs = one.iter().find(|(path, bytes)| other[*path] != **bytes);
    assert_eq!(differs.map(|(path, _)| path), None, "{what}");
}

pub(crate) fn products() -> &'static [RelayoutProduct] {
    static PRODUCTS: LazyLock<Vec<RelayoutProduct>> = LazyLock::new(|| {
        let product = |fixture: &'static FixtureImage, kind: RelayoutKind| {
            let base = fixture.open();
            let plan = kind.applies_to(&base).then(|| kind.plan_for(&base))?;
            Some(RelayoutProduct { fixture, kind, base, plan })
        };
        let all = all_images()
            .iter()
            .flat_map(|fixture| RelayoutKind::ALL.into_iter().filter_map(move |kind| product(fixture, kind)));
        let products: Vec<RelayoutProduct> = all.collect();
        // There are six kinds of changes and 36 images, and not every image supports every kind.
        assert!(products.len() > 150, "{} products", products.len());
        products
    });
    &PRODUCTS
}

/// Checks every product, on two threads, and reports all failures.
pub(crate) fn check_each_product(check: impl Fn(&RelayoutProduct) + Sync) {
    let (even, odd): (Vec<_>, Vec<_>) =
        products().iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let failed = |half: Vec<(usize, &'static RelayoutProduct)>| {
        let fails = |product: &&RelayoutProduct| catch_unwind(AssertUnwindSafe(|| check(product))).is_err();
        half.into_iter()
            .map(|(_, product)| product)
            .filter(fails)
            .map(RelayoutProduct::name)
            .collect::<Vec<_>>()
    };
    let failed = thread::scope(|scope| {
        let other = scope.spawn(|| failed(odd));
        [failed(even), other.join().unwrap()].concat()
    });
    assert!(failed.is_empty(), "failed for {}: {failed:#?}", failed.len());
}

/// A temporary folder with an image file in it.
pub(crate) struct ImageFile {
    pub(crate) folder: tempfile::TempDir,
}

impl ImageFile {
    pub(crate) const NAME: &'static str = "image.iso";

    pub(crate) fn new(plan: &Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        plan.write_file(folder.path().join(Self::NAME)).unwrap();
        Self { folder }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(Self::NAME), bytes).unwrap();
        Self { folder }
    }

    pub(crate) fn run(&self, command: &[&str]) -> Vec<u8> {
        run_program(self.folder.path(), None, command)
    }

    /// Reads the files in a folder by path, and deletes the folder.
    pub(crate) fn take_files(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        // The directories of base images are read-only.
        self.run(&["chmod", "-R", "u+w", name]);
        let top = self.folder.path().join(name);
        let mut files = BTreeMap::new();
        let mut pending = vec![top.clone()];
        while let Some(path) = pending.pop() {
            if path.is_dir() {
                pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else {
                let name = path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
        fs::remove_dir_all(top).unwrap();
        files
    }
}

//! Every product of every fixture.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::thread;

use isogen::volume::{self, Tree};
use isogen::{BaseImage, Plan};

use crate::images::{Good, all};
use crate::made::{Kind, open};
use crate::readers::run;

/// One product, made.
pub(crate) struct Product {
    pub(crate) good: &'static Good,
    pub(crate) kind: Kind,
    pub(crate) base: BaseImage,
    pub(crate) plan: Plan,
}

impl Product {
    pub(crate) fn name(&self) -> String {
        format!("{}, {:?}", self.good.name(), self.kind)
    }

    pub(crate) fn open(&self) -> BaseImage {
        open(&self.plan, &self.name())
    }
}

/// The files of a tree by path, as this crate reads them.
pub(crate) fn files(image: &BaseImage, tree: &Tree) -> BTreeMap<String, Vec<u8>> {
    let files = tree.entries().filter(|(_, entry)| entry.kind == volume::Kind::File);
    files.map(|(id, entry)| (tree.path(id), image.source().read_extent(entry.extent).unwrap())).collect()
}

/// Demands that two sets of files are equal, without printing them.
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

/// Every kind of every image.
pub(crate) fn products() -> &'static [Product] {
    static PRODUCTS: LazyLock<Vec<Product>> = LazyLock::new(|| {
        let made = |good: &'static Good, kind: Kind| {
            let base = good.open();
            let plan = kind.applies(&base).then(|| kind.make(&base))?;
            Some(Product { good, kind, base, plan })
        };
        let all =
            all().iter().flat_map(|good| Kind::ALL.into_iter().filter_map(move |kind| made(good, kind)));
        let products: Vec<Product> = all.collect();
        // Six kinds of 36 images, some of which are too old for some kinds.
        assert!(products.len() > 150, "{} products", products.len());
        products
    });
    &PRODUCTS
}

/// Checks every product, on two threads, and reports all that fail.
pub(crate) fn each(check: impl Fn(&Product) + Sync) {
    let (even, odd): (Vec<_>, Vec<_>) =
        products().iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let failed = |half: Vec<(usize, &'static Product)>| {
        let fails = |product: &&Product| catch_unwind(AssertUnwindSafe(|| check(product))).is_err();
        half.into_iter().map(|(_, product)| product).filter(fails).map(Product::name).collect::<Vec<_>>()
    };
    let failed = thread::scope(|scope| {
        let other = scope.spawn(|| failed(odd));
        [failed(even), other.join().unwrap()].concat()
    });
    assert!(failed.is_empty(), "failed for {}: {failed:#?}", failed.len());
}

/// A folder with a file in it.
pub(crate) struct Written {
    pub(crate) folder: tempfile::TempDir,
}

impl Written {
    pub(crate) const NAME: &'static str = "image.iso";

    pub(crate) fn new(plan: &Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        plan.write_file(folder.path().join(Self::NAME)).unwrap();
        Self { folder }
    }

    pub(crate) fn with(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(Self::NAME), bytes).unwrap();
        Self { folder }
    }

    pub(crate) fn run(&self, command: &[&str]) -> Vec<u8> {
        run(self.folder.path(), None, command)
    }

    /// The files below a folder by path, after which the folder is gone.
    pub(crate) fn take_files(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        // The directories of live images are read-only.
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

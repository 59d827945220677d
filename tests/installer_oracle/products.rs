//! Images that Kindling laid out anew, in the hands of the installer: it takes them as images like any other, and edits
//! them just as Kindling does.

use std::sync::LazyLock;

use isogen::{Archive, BaseImage, Edits, Encoding, Source};
use serde_json::Value;

use crate::made::{self, Kind as Made};
use crate::pair::{Kind, Pair, members};
use crate::support::{CONFIG, KEYFILE, Run, Scratch, each, slice};
use crate::{Subject, few, installer};

/// A product as a subject, and the kind that it is of.
struct Product {
    kind: Made,
    subject: Subject,
}

impl Product {
    fn name(&self) -> String {
        self.subject.name()
    }

    fn open(&self) -> BaseImage {
        BaseImage::from_source(Source::from_bytes(self.name(), self.subject.bytes.clone())).unwrap()
    }
}

fn products() -> &'static [Product] {
    static PRODUCTS: LazyLock<Vec<Product>> = LazyLock::new(|| {
        let made = |base: &'static Subject, kind: Made| {
            let image = BaseImage::from_source(Source::from_bytes(base.name(), base.bytes.clone())).unwrap();
            let plan = kind.applies(&image).then(|| kind.make(&image))?;
            let bytes = plan.read_all(64 << 20).unwrap();
            Some(Product { kind, subject: Subject::new(format!("{}, {kind:?}", base.name), bytes) })
        };
        few().flat_map(|base| Made::ALL.into_iter().filter_map(move |kind| made(base, kind))).collect()
    });
    &PRODUCTS
}

#[test]
fn the_installer_finds_in_products_what_kindling_put_there() {
    each(products(), Product::name, |product| {
        let image = product.open();
        let area = image.require_ignition_area().unwrap().extent;
        let theirs = product.subject.area.unwrap();
        assert_eq!((theirs.offset, theirs.len), (area.offset(), area.len()));
        let held = members(slice(&product.subject.bytes, theirs)).unwrap();
        let ours = image.archive().unwrap();
        let ours = ours.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
        assert!(held == ours.collect(), "{:?}", held.keys());

        let pair = Pair::new(&product.subject);
        pair.same("iso ignition show image.iso");
        pair.same("iso network extract image.iso");
        pair.same("iso kargs show image.iso");
        pair.same("iso kargs show --default image.iso");
        pair.same("iso extract pxe image.iso");
        pair.assert_pristine();
        let checks: Vec<Value> =
            serde_json::from_slice(&pair.ours.kindling("iso verify --json image.iso").stdout).unwrap();
        let wrong: Vec<_> = checks.iter().filter(|check| check["outcome"] == "wrong").collect();
        // Some products hold noise where the Ignition config is.
        assert!(wrong.iter().all(|check| check["name"] == "ignition config"), "{wrong:?}");
        pair.ours.kindling("iso inspect image.iso").success();
    });
}

#[test]
fn products_are_edited_further_alike() {
    each(products(), Product::name, |product| {
        let pair = Pair::new(&product.subject);
        pair.write("wired.nmconnection", KEYFILE);
        // Each of them also by the program that did not make the image.
        let embedded = pair.edit(&["iso", "ignition", "embed", "-f"], CONFIG.as_bytes(), Kind::Image);
        assert!(embedded.is_some());
        pair.exchange("image.iso");
        pair.alike("iso network embed -f -k wired.nmconnection image.iso", Kind::Image);
        pair.alike("iso kargs modify -a quiet -d ignition.firstboot image.iso", Kind::Image);
        pair.exchange("image.iso");
        pair.alike("iso ignition remove image.iso", Kind::Image);
        pair.alike("iso kargs reset image.iso", Kind::Image);
        assert!(pair.same("iso reset image.iso").status.success());
        assert!(pair.ours.read("image.iso") == pair.theirs.read("image.iso"));
    });
}

/// The description of the minimal form is of the old layout, so products do not have one: better to hear that at once
/// than of a wrong digest in the end. (An image that was edited in place keeps its own.)
#[test]
fn products_do_not_describe_a_minimal_form() {
    each(products(), Product::name, |product| {
        if product.kind == Made::FurtherInitrd && product.name().contains("s390x") {
            return;
        }
        let pair = Pair::new(&product.subject);
        pair.same("iso reset image.iso");
        pair.same("iso extract minimal-iso image.iso minimal.iso");
        assert!(!pair.theirs.has("minimal.iso"));
    });
}

/// Far beyond what the installer would put there itself, which it reads all the same.
#[test]
fn the_installer_reads_large_archives() {
    let Some(base) = crate::one() else { return };
    let base = BaseImage::from_source(Source::from_bytes(base.name(), base.bytes.clone())).unwrap();
    let mut archive = Archive::new();
    archive.insert("config.ign", made::noise(32 << 20));
    for number in 0..2000 {
        archive.insert_network(&format!("eno{number}.nmconnection"), format!("{KEYFILE}{number}"));
    }
    let packed = archive.pack(Encoding::Gzip).unwrap();
    for edits in [Edits::new(), Edits::new().minimal(Some(made::URL))] {
        let plan = base.plan(&edits.archive(packed.clone())).unwrap();
        let scratch = Scratch::new();
        plan.write_file(scratch.path("image.iso")).unwrap();
        let run = |arguments: &[&str]| {
            Run::new(installer().unwrap(), scratch.folder()).args(arguments).output().success()
        };
        assert!(run(&["iso", "ignition", "show", "image.iso"]) == made::noise(32 << 20));
        run(&["iso", "network", "extract", "-C", "keyfiles", "image.iso"]);
        let extracted = scratch.files().into_iter().filter(|(name, _)| name.starts_with("keyfiles/"));
        let extracted: Vec<_> = extracted.map(|(name, entry)| (name, entry.bytes)).collect();
        assert_eq!(extracted.len(), 2000);
        assert!(
            extracted.contains(&("keyfiles/eno1999.nmconnection".into(), format!("{KEYFILE}1999").into()))
        );
        run(&["iso", "reset", "image.iso"]);
        assert_eq!(
            run(&["iso", "kargs", "show", "image.iso"]),
            run(&["iso", "kargs", "show", "--default", "image.iso"])
        );
    }
}

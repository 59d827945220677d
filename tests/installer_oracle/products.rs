//! Re-laid-out images of Kindling: the installer accepts them like any other image, and edits them like Kindling.

use std::sync::LazyLock;

use isogen::{Archive, BaseImage, Edits, Encoding, Source};
use serde_json::Value;

use crate::program_pair::{ComparisonKind, ProgramPair, archive_members};
use crate::relayout_kinds::{self, RelayoutKind};
use crate::support::{CONFIG, KEYFILE, Scratch, check_each, extent_of};
use crate::{OracleImage, commands_for, images_for_independent_commands, installer_run};

/// An image and the change that required its re-layout.
struct ProductImage {
    kind: RelayoutKind,
    subject: OracleImage,
}

impl ProductImage {
    fn name(&self) -> String {
        self.subject.name()
    }

    fn open_base_image(&self) -> BaseImage {
        BaseImage::from_source(Source::from_bytes(self.name(), self.subject.bytes.clone())).unwrap()
    }
}

fn product_images() -> &'static [ProductImage] {
    static PRODUCTS: LazyLock<Vec<ProductImage>> = LazyLock::new(|| {
        let make = |base: &'static OracleImage, kind: RelayoutKind| {
            let image = BaseImage::from_source(Source::from_bytes(base.name(), base.bytes.clone())).unwrap();
            let plan = kind.applies_to(&image).then(|| kind.plan_for(&image))?;
            let bytes = plan.read_all(64 << 20).unwrap();
            Some(ProductImage { kind, subject: OracleImage::new(format!("{}, {kind:?}", base.name), bytes) })
        };
        images_for_independent_commands()
            .flat_map(|base| {
                let kinds = commands_for(&base.name, &RelayoutKind::ALL);
                kinds.into_iter().filter_map(move |kind| make(base, *kind))
            })
            .collect()
    });
    &PRODUCTS
}

#[test]
fn installer_reads_the_archives_of_kindling() {
    check_each(product_images(), ProductImage::name, |product| {
        let image = product.open_base_image();
        let area = image.require_ignition_area().unwrap().extent;
        let theirs = product.subject.area.unwrap();
        assert_eq!((theirs.offset, theirs.len), (area.offset(), area.len()));
        let members = archive_members(extent_of(&product.subject.bytes, theirs)).unwrap();
        let ours = image.archive().unwrap();
        let ours = ours.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
        assert!(members == ours.collect(), "{:?}", members.keys());

        let pair = ProgramPair::new(&product.subject);
        pair.compare_exactly("iso ignition show image.iso");
        pair.compare_exactly("iso network extract image.iso");
        pair.compare_exactly("iso kargs show image.iso");
        pair.compare_exactly("iso kargs show --default image.iso");
        pair.compare_exactly("iso extract pxe image.iso");
        pair.assert_pristine();
        let checks: Vec<Value> =
            serde_json::from_slice(&pair.ours().run_kindling("iso verify --json image.iso").stdout).unwrap();
        let wrong: Vec<_> = checks.iter().filter(|check| check["outcome"] == "wrong").collect();
        // Some products have noise instead of the Ignition config.
        assert!(wrong.iter().all(|check| check["name"] == "ignition config"), "{wrong:?}");
        pair.ours().run_kindling("iso inspect image.iso").expect_success();
    });
}

#[test]
fn both_edit_products_alike() {
    check_each(product_images(), ProductImage::name, |product| {
        let pair = ProgramPair::new(&product.subject);
        pair.write_to_both("wired.nmconnection", KEYFILE);
        // Each program also edits the image of the other.
        let embedded =
            pair.compare_edit(&["iso", "ignition", "embed", "-f"], CONFIG.as_bytes(), ComparisonKind::Image);
        assert!(embedded.is_some());
        pair.exchange_file("image.iso");
        pair.compare_as("iso network embed -f -k wired.nmconnection image.iso", ComparisonKind::Image);
        pair.compare_as("iso kargs modify -a quiet -d ignition.firstboot image.iso", ComparisonKind::Image);
        pair.exchange_file("image.iso");
        pair.compare_as("iso ignition remove image.iso", ComparisonKind::Image);
        pair.compare_as("iso kargs reset image.iso", ComparisonKind::Image);
        assert!(pair.compare_exactly("iso reset image.iso").status.success());
        assert!(pair.ours().read("image.iso") == pair.theirs().read("image.iso"));
    });
}

/// The description of the minimal form refers to the old layout, so re-laid-out images have none: an early error is
/// better than a wrong digest at the end. (An image edited in place keeps its description.)
#[test]
fn products_have_no_minimal_description() {
    check_each(product_images(), ProductImage::name, |product| {
        if product.kind == RelayoutKind::ExtraInitrd && product.name().contains("s390x") {
            return;
        }
        let pair = ProgramPair::new(&product.subject);
        pair.compare_exactly("iso reset image.iso");
        pair.compare_exactly("iso extract minimal-iso image.iso minimal.iso");
        assert!(!pair.theirs().has_file("minimal.iso"));
    });
}

/// The archive is far larger than the archives of the installer, which can still read it.
#[test]
fn installer_reads_large_archives() {
    let Some(base) = crate::full_featured_image() else { return };
    let base = BaseImage::from_source(Source::from_bytes(base.name(), base.bytes.clone())).unwrap();
    let mut archive = Archive::new();
    archive.insert("config.ign", relayout_kinds::incompressible_bytes(32 << 20));
    for number in 0..2000 {
        archive.insert_network_file(&format!("eno{number}.nmconnection"), format!("{KEYFILE}{number}"));
    }
    let packed = archive.pack(Encoding::Gzip).unwrap();
    for edits in [Edits::new(), Edits::new().minimal(Some(relayout_kinds::ROOTFS_URL))] {
        let plan = base.plan(&edits.archive(packed.clone())).unwrap();
        let scratch = Scratch::new();
        plan.write_file(scratch.path("image.iso")).unwrap();
        let run = |arguments: &[&str]| installer_run(scratch.folder()).args(arguments).run().expect_success();
        assert!(
            run(&["iso", "ignition", "show", "image.iso"]) == relayout_kinds::incompressible_bytes(32 << 20)
        );
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

//! The kinds of changes that re-layout an image.

#![allow(dead_code, reason = "no test program needs all of it")]

use isogen::{
    Architecture, Archive, BaseImage, Edits, Encoding, FileContents, FileOperations, KargsEdit,
    KargsOperations, PackedArchive, Plan, Segment, Source,
};

pub(crate) const ROOTFS_URL: &str = "http://192.0.2.1/rootfs?arch=x86_64&version=4.20";
pub(crate) const ROOTFS_PATH: &str = "images/pxeboot/rootfs.img";
pub(crate) const MINISO_PATH: &str = "coreos/miniso.dat";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayoutKind {
    /// An Ignition archive larger than its area.
    GrownArchive,
    /// Kernel arguments longer than their areas.
    LongArguments,
    /// An extra initrd image.
    ExtraInitrd,
    /// The minimal ISO of an image without a description of it.
    Minimal,
    /// The minimal ISO with all other changes that the platform supports.
    MinimalWithAll,
    /// Dropped files; files replaced by shorter, longer and empty ones; and added files.
    Files,
}

impl RelayoutKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::GrownArchive,
        Self::LongArguments,
        Self::ExtraInitrd,
        Self::Minimal,
        Self::MinimalWithAll,
        Self::Files,
    ];

    /// Returns `true` if an image supports this kind of change.
    pub(crate) fn applies_to(self, image: &BaseImage) -> bool {
        match self {
            Self::GrownArchive => image.ignition_area().is_some(),
            Self::LongArguments => image.kargs().is_some() && !is_s390x(image),
            Self::ExtraInitrd | Self::MinimalWithAll | Self::Minimal => image.kargs().is_some(),
            Self::Files => true,
        }
    }

    /// Plans the image with this change.
    pub(crate) fn plan_for(self, image: &BaseImage) -> Plan {
        match self {
            Self::GrownArchive => image.plan(&Edits::new().archive(large_archive())).unwrap(),
            Self::LongArguments => image.plan(&Edits::new().kargs(append_kargs(1500))).unwrap(),
            Self::ExtraInitrd => {
                image.plan(&Edits::new().initrd_image("network.img", &small_archive())).unwrap()
            }
            Self::Minimal => {
                plan_without_description(image, |image| image.plan(&Edits::new().minimal(Some(ROOTFS_URL))))
            }
            Self::MinimalWithAll => {
                let arguments = if is_s390x(image) { 100 } else { 1500 };
                let edits = Edits::new()
                    .minimal(Some(ROOTFS_URL))
                    .archive(large_archive())
                    .kargs(append_kargs(arguments));
                image.plan(&edits.initrd_image("network.img", &small_archive())).unwrap()
            }
            Self::Files => image.relayout(&file_operations(image)).unwrap(),
        }
    }
}

fn is_s390x(image: &BaseImage) -> bool {
    image.architecture() == Some(Architecture::S390x)
}

/// Plans the image without its description of the minimal ISO, so that the minimal ISO is a re-layout.
fn plan_without_description(image: &BaseImage, make: impl Fn(&BaseImage) -> isogen::Result<Plan>) -> Plan {
    if image.volume().file(MINISO_PATH).is_none() {
        return make(image).unwrap();
    }
    let mut operations = FileOperations::new();
    operations.drop_file(MINISO_PATH);
    let without = image.relayout(&operations).unwrap();
    resolve_plan(&make(&open_plan(&without, "undescribed.iso")).unwrap(), &without)
}

/// Converts a plan whose base is the image of the plan `inner` to a plan over the base of `inner`.
pub(crate) fn resolve_plan(plan: &Plan, inner: &Plan) -> Plan {
    let segments = plan.layout().iter().flat_map(|placed| match &placed.segment {
        Segment::Base(extent) => inner.segments(extent.offset()..extent.end()).collect(),
        other => vec![other.clone()],
    });
    Plan::new(inner.source().clone(), segments)
}

fn file_operations(image: &BaseImage) -> FileOperations {
    let mut operations = FileOperations::new();
    let kernel = ["images/pxeboot/vmlinuz", "images/pxeboot/kernel.img"];
    let kernel = kernel.into_iter().rfind(|path| image.volume().file(path).is_some()).unwrap();
    operations.drop_file(ROOTFS_PATH);
    operations.put_file(kernel, file_contents(incompressible_bytes(100_000)));
    operations.put_file("images/pxeboot/initrd.img", file_contents(incompressible_bytes(5)));
    for path in ["isolinux/boot.msg", "generic.prm", "ppc/bootinfo.txt"] {
        if image.volume().file(path).is_some() {
            operations.put_file(path, FileContents::default());
        }
    }
    if image.volume().file(MINISO_PATH).is_some() {
        operations.drop_file(MINISO_PATH);
    }
    operations.put_file("in the root, with.dots.txt", file_contents(incompressible_bytes(2048)));
    operations.put_file("images/empty.img", FileContents::default());
    let pieces = vec![
        Segment::Bytes(incompressible_bytes(3000).into()),
        Segment::Zero(5000),
        Segment::Bytes(incompressible_bytes(1).into()),
    ];
    operations.put_file("images/pieces.img", FileContents::new(pieces));
    operations
}

fn append_kargs(len: usize) -> KargsEdit {
    let append = vec![format!("long={}", "x".repeat(len))];
    KargsEdit::Current(KargsOperations { append, ..KargsOperations::default() })
}

/// Returns an archive that is longer than the usual area in every compression.
pub(crate) fn large_archive() -> PackedArchive {
    packed_archive("config.ign", incompressible_bytes(300_000))
}

/// Returns an archive for a separate file.
pub(crate) fn small_archive() -> PackedArchive {
    packed_archive("etc/coreos-firstboot-network/wired.nmconnection", incompressible_bytes(5000))
}

fn packed_archive(name: &str, contents: Vec<u8>) -> PackedArchive {
    let mut archive = Archive::new();
    archive.insert(name, contents);
    archive.pack(Encoding::Gzip).unwrap()
}

pub(crate) fn incompressible_bytes(len: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

pub(crate) fn file_contents(bytes: Vec<u8>) -> FileContents {
    FileContents::new(vec![Segment::Bytes(bytes.into())])
}

pub(crate) fn open_plan(plan: &Plan, name: &str) -> BaseImage {
    BaseImage::from_source(Source::new(name.to_owned(), plan.len(), plan.clone())).unwrap()
}

//! The kinds of changes that lay an image out anew.

#![allow(dead_code, reason = "no test program needs all of it")]

use isogen::{
    Architecture, Archive, BaseImage, Contents, Edits, Encoding, FileOperations, KargsEdit, KargsOperations,
    Packed, Plan, Segment, Source,
};

pub(crate) const URL: &str = "http://192.0.2.1/rootfs?arch=x86_64&version=4.20";
pub(crate) const ROOTFS: &str = "images/pxeboot/rootfs.img";
pub(crate) const DESCRIPTION: &str = "coreos/miniso.dat";

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An Ignition archive beyond its area.
    GrownArchive,
    /// Kernel arguments beyond their areas.
    LongArguments,
    /// A further initrd image.
    FurtherInitrd,
    /// The minimal form of an image that does not describe it.
    Minimal,
    /// The minimal form with all of the other changes that the platform takes.
    MinimalWithAll,
    /// Files dropped, replaced by shorter, longer and empty ones, and added.
    Files,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::GrownArchive,
        Self::LongArguments,
        Self::FurtherInitrd,
        Self::Minimal,
        Self::MinimalWithAll,
        Self::Files,
    ];

    /// Tells whether an image takes this kind of change.
    pub(crate) fn applies(self, image: &BaseImage) -> bool {
        match self {
            Self::GrownArchive => image.ignition_area().is_some(),
            Self::LongArguments => image.kargs().is_some() && !is_mainframe(image),
            Self::FurtherInitrd | Self::MinimalWithAll | Self::Minimal => image.kargs().is_some(),
            Self::Files => true,
        }
    }

    /// The image after this change.
    pub(crate) fn make(self, image: &BaseImage) -> Plan {
        match self {
            Self::GrownArchive => image.plan(&Edits::new().archive(large_archive())).unwrap(),
            Self::LongArguments => image.plan(&Edits::new().kargs(append(1500))).unwrap(),
            Self::FurtherInitrd => {
                image.plan(&Edits::new().initrd_image("network.img", &small_archive())).unwrap()
            }
            Self::Minimal => undescribed(image, |image| image.plan(&Edits::new().minimal(Some(URL)))),
            Self::MinimalWithAll => {
                let arguments = if is_mainframe(image) { 100 } else { 1500 };
                let edits = Edits::new().minimal(Some(URL)).archive(large_archive()).kargs(append(arguments));
                image.plan(&edits.initrd_image("network.img", &small_archive())).unwrap()
            }
            Self::Files => image.relayout(&file_operations(image)).unwrap(),
        }
    }
}

fn is_mainframe(image: &BaseImage) -> bool {
    image.architecture() == Some(Architecture::S390x)
}

/// Makes a plan of the image without the description of its minimal form, so that it is laid out anew.
fn undescribed(image: &BaseImage, make: impl Fn(&BaseImage) -> isogen::Result<Plan>) -> Plan {
    if image.volume().file(DESCRIPTION).is_none() {
        return make(image).unwrap();
    }
    let mut operations = FileOperations::new();
    operations.drop_file(DESCRIPTION);
    let without = image.relayout(&operations).unwrap();
    make(&open(&without, "undescribed.iso")).unwrap().resolved(&without)
}

fn file_operations(image: &BaseImage) -> FileOperations {
    let mut operations = FileOperations::new();
    let kernel = ["images/pxeboot/vmlinuz", "images/pxeboot/kernel.img"];
    let kernel = kernel.into_iter().rfind(|path| image.volume().file(path).is_some()).unwrap();
    operations.drop_file(ROOTFS);
    operations.put_file(kernel, contents(noise(100_000)));
    operations.put_file("images/pxeboot/initrd.img", contents(noise(5)));
    for path in ["isolinux/boot.msg", "generic.prm", "ppc/bootinfo.txt"] {
        if image.volume().file(path).is_some() {
            operations.put_file(path, Contents::default());
        }
    }
    if image.volume().file(DESCRIPTION).is_some() {
        operations.drop_file(DESCRIPTION);
    }
    operations.put_file("in the root, with.dots.txt", contents(noise(2048)));
    operations.put_file("images/empty.img", Contents::default());
    let pieces =
        vec![Segment::Bytes(noise(3000).into()), Segment::Zero(5000), Segment::Bytes(noise(1).into())];
    operations.put_file("images/pieces.img", Contents::new(pieces));
    operations
}

fn append(len: usize) -> KargsEdit {
    let append = vec![format!("long={}", "x".repeat(len))];
    KargsEdit::Current(KargsOperations { append, ..KargsOperations::default() })
}

/// An archive that no compression brings below the usual area.
pub(crate) fn large_archive() -> Packed {
    packed("config.ign", noise(300_000))
}

/// An archive for a file of its own.
pub(crate) fn small_archive() -> Packed {
    packed("etc/coreos-firstboot-network/wired.nmconnection", noise(5000))
}

fn packed(name: &str, contents: Vec<u8>) -> Packed {
    let mut archive = Archive::new();
    archive.insert(name, contents);
    archive.pack(Encoding::Gzip).unwrap()
}

/// Bytes that no compression shortens.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

pub(crate) fn contents(bytes: Vec<u8>) -> Contents {
    Contents::new(vec![Segment::Bytes(bytes.into())])
}

pub(crate) fn open(plan: &Plan, name: &str) -> BaseImage {
    BaseImage::from_source(Source::new(name.to_owned(), plan.len(), plan.clone())).unwrap()
}

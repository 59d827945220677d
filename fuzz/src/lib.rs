//! Code that the fuzz targets share: valid base images, and inputs that are patches of them.
//!
//! If inputs were as large as images, the fuzzer would spend its time searching for the bytes that matter. An input
//! therefore selects one of a few images and lists patches of its structures. Alternatively, an input is an image
//! without its first 32 KiB.

use std::io;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use fixtures::{Architecture, Era, Extent, Filesystem, Mastered, Recipe};
use isogen::{BaseImage, Plan, ReadAt, RootFilesystem, Source};

#[path = "../../isogen/tests/image_operations/mod.rs"]
mod image_operations;
pub mod keyfile;
pub mod mutants;
#[path = "../../benches/http/src/random.rs"]
mod random;

/// Runs the operations of an open image that `first`, the first byte of the input, selects.
pub fn run_operations(image: &BaseImage, first: u8) {
    image_operations::read_structures(image);
    if first & PLAN_RELAYOUTS != 0 {
        image_operations::plan_relayouts(image);
    }
    if first & READ_CONTENTS != 0 {
        image_operations::read_contents(image);
    }
}

/// A valid image, with the regions that contain its structures.
#[derive(Debug)]
pub struct BaseFixture {
    pub mastered: Mastered,
    pub bytes: Bytes,
    pub regions: Vec<Extent>,
}

/// The images that inputs can patch: the four base images of `fixtures::hostile`, and images of other architectures
/// and eras.
pub static BASES: LazyLock<Vec<BaseFixture>> = LazyLock::new(|| {
    let variants = [
        (Architecture::X86_64, Era::E2023_07),
        (Architecture::Aarch64, Era::E2023_07),
        (Architecture::Aarch64, Era::E2021_01),
        (Architecture::Ppc64le, Era::E2023_07),
        (Architecture::S390x, Era::E2024_12),
        (Architecture::X86_64, Era::E2021_12),
        (Architecture::X86_64, Era::E2020_09),
    ];
    variants.into_iter().map(|(architecture, era)| BaseFixture::new(architecture, era)).collect()
});

impl BaseFixture {
    fn new(architecture: Architecture, era: Era) -> Self {
        let mut recipe = Recipe::new(architecture, era).rootfs_len(80 << 10);
        if architecture != Architecture::S390x {
            recipe = recipe.kernel_len(4096);
        }
        let mastered = recipe.master();
        let bytes = Bytes::from(mastered.image.to_vec());
        let regions = metadata_regions(&mastered, &bytes);
        Self { mastered, bytes, regions }
    }
}

/// Returns all regions of an image that contain metadata.
fn metadata_regions(mastered: &Mastered, bytes: &Bytes) -> Vec<Extent> {
    let at = |offset, len| Extent { offset, len };
    let image = BaseImage::from_source(Source::from_bytes("base", bytes.clone())).unwrap();
    let end = bytes.len() as u64;
    let mut regions = vec![at(0, 2048), at(2048, 2048), at(32_640, 128), at(end - 512, 512)];
    regions.extend((16..20).map(|sector| at(sector * 2048, 2048)));
    for tree in std::iter::once(image.volume().tree()).chain(image.volume().joliet_tree()) {
        let directories =
            tree.entries().filter(|(_, entry)| entry.kind == isogen::volume::EntryKind::Directory);
        regions.extend(directories.map(|(_, entry)| at(entry.extent.offset(), entry.extent.len())));
    }
    regions.extend(image.boot_catalog().map(|catalog| at(catalog.sector.offset(), 256)));
    let paths = [
        "coreos/igninfo.json",
        "coreos/kargs.json",
        "coreos/features.json",
        "coreos/miniso.dat",
        "EFI/fedora/grub.cfg",
        "EFI/redhat/grub.cfg",
        "isolinux/isolinux.cfg",
        "boot/grub/grub.cfg",
        "images/initrd.addrsize",
        "images/pxeboot/initrd.img",
        "isolinux/isolinux.bin",
    ];
    regions.extend(
        paths
            .iter()
            .filter_map(|path| mastered.files.get(*path))
            .map(|file| at(file.offset, file.len.min(4096))),
    );
    // On s390x, the field in the boot image that contains the length of the initrd.
    regions.extend(mastered.files.get("images/cdboot.img").map(|file| at(file.offset + 66_560, 64)));
    regions.extend(mastered.kargs.iter().copied());
    regions.extend(mastered.ignition.map(|area| at(area.offset, 1024)));
    regions
}

/// An image with patches, which shares the bytes of its base image.
#[derive(Debug, Clone)]
pub struct PatchedSource {
    base: Bytes,
    len: u64,
    changes: Vec<(u64, Vec<u8>)>,
}

impl PatchedSource {
    pub fn new(base: Bytes) -> Self {
        let len = base.len() as u64;
        Self { base, len, changes: Vec::new() }
    }

    pub fn put(&mut self, offset: u64, bytes: Vec<u8>) {
        self.changes.push((offset, bytes));
    }

    pub fn into_source(self) -> Source {
        Source::new("changed.iso".to_owned(), self.len, self)
    }
}

impl ReadAt for PatchedSource {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(self.len.saturating_sub(offset)).unwrap();
        let len = buf.len().min(rest);
        let buf = &mut buf[..len];
        let filled = self.base.read_at(buf, offset)?;
        buf[filled..].fill(0);
        let end = offset + len as u64;
        for (start, bytes) in &self.changes {
            let from = offset.max(*start);
            let to = end.min(start + bytes.len() as u64);
            if from < to {
                let [from_buf, to_buf] = [from, to].map(|at| usize::try_from(at - offset).unwrap());
                let [from, to] = [from, to].map(|at| usize::try_from(at - start).unwrap());
                buf[from_buf..to_buf].copy_from_slice(&bytes[from..to]);
            }
        }
        Ok(len)
    }
}

/// Flag in the first byte of an input: the rest of the input is an image, not a list of patches.
pub const RAW_IMAGE: u8 = 0x80;
/// Flag in the first byte of an input: also run the operations that read the whole image.
pub const READ_CONTENTS: u8 = 0x40;
/// Flag in the first byte of an input: also plan a re-layout of the image.
pub const PLAN_RELAYOUTS: u8 = 0x20;
/// Value instead of a region number for a patch at any offset of the image. Four bytes with the offset follow.
pub const AT_ANY_OFFSET: u8 = 0xFF;
/// Value instead of a region number for a change of the image length. Four bytes with the new length follow.
pub const NEW_LENGTH: u8 = 0xFE;

/// Decodes an input to an image. Input formats:
///
/// ```text
/// flags and number of the base, then patches: region, offset in it (2 bytes), length (1 byte), bytes
/// RAW_IMAGE and flags, then the image from byte 32768 on
/// ```
pub fn decode_image(input: &[u8]) -> Option<Source> {
    let (first, mut rest) = input.split_first()?;
    if first & RAW_IMAGE != 0 {
        let image = [&vec![0; 32_768], rest].concat();
        return Some(Source::from_bytes("raw.iso", image));
    }
    let base = BASES.get(usize::from(first & 0x1F) % BASES.len())?;
    let mut changed = PatchedSource::new(base.bytes.clone());
    while let Some((region, remaining)) = rest.split_first() {
        rest = apply_patch(base, *region, remaining, &mut changed).unwrap_or_default();
    }
    Some(changed.into_source())
}

fn apply_patch<'a>(
    base: &BaseFixture,
    region: u8,
    input: &'a [u8],
    changed: &mut PatchedSource,
) -> Option<&'a [u8]> {
    if region >= NEW_LENGTH {
        let (offset, rest) = input.split_first_chunk()?;
        let offset = u64::from(u32::from_le_bytes(*offset));
        if region == NEW_LENGTH {
            changed.len = offset.min(2 * base.bytes.len() as u64);
            return Some(rest);
        }
        return put_bytes(offset, rest, changed);
    }
    let region = base.regions.get(usize::from(region) % base.regions.len())?;
    let (offset, rest) = input.split_first_chunk()?;
    let offset = u64::from(u16::from_le_bytes(*offset)) % region.len.max(1);
    put_bytes(region.offset + offset, rest, changed)
}

fn put_bytes<'a>(offset: u64, input: &'a [u8], changed: &mut PatchedSource) -> Option<&'a [u8]> {
    let (len, rest) = input.split_first()?;
    let (bytes, rest) = rest.split_at(usize::from(*len).min(rest.len()));
    changed.put(offset, bytes.to_vec());
    Some(rest)
}

/// Opens the input as a file system. The archive around it is generated, so that the input needs no bytes for it.
pub fn open_rootfs(input: &[u8]) -> isogen::Result<RootFilesystem> {
    let image = fixtures::rootfs_image(Filesystem::Squashfs, input);
    RootFilesystem::open("rootfs.img", Plan::from_source(Arc::new(Source::from_bytes("rootfs.img", image))))
}

//! What the fuzz targets share: good images to start from, and inputs that are changes of them.
//!
//! An input as large as an image would leave the fuzzer nothing to do but find the bytes that matter. So an input names
//! one of a few images, then lists changes of its structures; or it is, from the first volume descriptor on, an image.

use std::io;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use fixtures::{Architecture, Era, Extent, Filesystem, Mastered, Recipe};
use isogen::{BaseImage, Plan, ReadAt, RootFilesystem, Source};

#[path = "../../isogen/tests/reach/mod.rs"]
mod reach;

/// Everything that an open image offers, as far as the first byte of an input asks for it.
pub fn reach(image: &BaseImage, first: u8) {
    reach::structures(image);
    if first & LAYOUTS != 0 {
        reach::layouts(image);
    }
    if first & CONTENTS != 0 {
        reach::contents(image);
    }
}

/// A good image and where its structures are.
#[derive(Debug)]
pub struct Base {
    pub truth: Mastered,
    pub bytes: Bytes,
    pub regions: Vec<Extent>,
}

/// The images that inputs can start from: the four of `fixtures::hostile`, and others with more mechanisms.
pub static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let chosen = [
        (Architecture::X86_64, Era::E2023_07),
        (Architecture::Aarch64, Era::E2023_07),
        (Architecture::Aarch64, Era::E2021_01),
        (Architecture::Ppc64le, Era::E2023_07),
        (Architecture::S390x, Era::E2024_12),
        (Architecture::X86_64, Era::E2021_12),
        (Architecture::X86_64, Era::E2020_09),
    ];
    chosen.into_iter().map(|(architecture, era)| Base::new(architecture, era)).collect()
});

impl Base {
    fn new(architecture: Architecture, era: Era) -> Self {
        let mut recipe = Recipe::new(architecture, era).rootfs_len(80 << 10);
        if architecture != Architecture::S390x {
            recipe = recipe.kernel_len(4096);
        }
        let truth = recipe.master();
        let bytes = Bytes::from(truth.image.to_vec());
        let regions = regions(&truth, &bytes);
        Self { truth, bytes, regions }
    }
}

/// Everything of an image that describes something.
fn regions(truth: &Mastered, bytes: &Bytes) -> Vec<Extent> {
    let at = |offset, len| Extent { offset, len };
    let image = BaseImage::from_source(Source::from_bytes("base", bytes.clone())).unwrap();
    let end = bytes.len() as u64;
    let mut regions = vec![at(0, 2048), at(2048, 2048), at(32_640, 128), at(end - 512, 512)];
    regions.extend((16..20).map(|sector| at(sector * 2048, 2048)));
    for tree in std::iter::once(image.volume().tree()).chain(image.volume().joliet_tree()) {
        let directories = tree.entries().filter(|(_, entry)| entry.directory.is_some());
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
            .filter_map(|path| truth.files.get(*path))
            .map(|file| at(file.offset, file.len.min(4096))),
    );
    // Of s390x: where its boot image states the length of the initrd in it.
    regions.extend(truth.files.get("images/cdboot.img").map(|file| at(file.offset + 66_560, 64)));
    regions.extend(truth.kargs.iter().copied());
    regions.extend(truth.ignition.map(|area| at(area.offset, 1024)));
    regions
}

/// An image with changes over it, without a copy of the image.
#[derive(Debug, Clone)]
pub struct Changed {
    base: Bytes,
    len: u64,
    changes: Vec<(u64, Vec<u8>)>,
}

impl Changed {
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

impl ReadAt for Changed {
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

/// In the first byte of an input: do not name a base, be an image.
pub const RAW: u8 = 0x80;
/// In the first byte of an input: reach for what reads the whole image as well.
pub const CONTENTS: u8 = 0x40;
/// In the first byte of an input: lay the image out anew as well.
pub const LAYOUTS: u8 = 0x20;
/// In place of a region: a change at any place, with four bytes for it.
pub const ANYWHERE: u8 = 0xFF;
/// In place of a region: another length of the image, in four bytes.
pub const LENGTH: u8 = 0xFE;

/// The image that an input means.
///
/// ```text
/// flags and number of the base, then changes: region, place in it (2 bytes), length (1 byte), bytes
/// RAW and flags, then the image from byte 32768 on
/// ```
pub fn image(input: &[u8]) -> Option<Source> {
    let (first, mut rest) = input.split_first()?;
    if first & RAW != 0 {
        let image = [&vec![0; 32_768], rest].concat();
        return Some(Source::from_bytes("raw.iso", image));
    }
    let base = BASES.get(usize::from(first & 0x1F) % BASES.len())?;
    let mut changed = Changed::new(base.bytes.clone());
    while let Some((region, behind)) = rest.split_first() {
        rest = change(base, *region, behind, &mut changed).unwrap_or_default();
    }
    Some(changed.into_source())
}

fn change<'a>(base: &Base, region: u8, input: &'a [u8], changed: &mut Changed) -> Option<&'a [u8]> {
    if region >= LENGTH {
        let (place, rest) = input.split_first_chunk()?;
        let place = u64::from(u32::from_le_bytes(*place));
        if region == LENGTH {
            changed.len = place.min(2 * base.bytes.len() as u64);
            return Some(rest);
        }
        return bytes(place, rest, changed);
    }
    let region = base.regions.get(usize::from(region) % base.regions.len())?;
    let (place, rest) = input.split_first_chunk()?;
    let place = u64::from(u16::from_le_bytes(*place)) % region.len.max(1);
    bytes(region.offset + place, rest, changed)
}

fn bytes<'a>(offset: u64, input: &'a [u8], changed: &mut Changed) -> Option<&'a [u8]> {
    let (len, rest) = input.split_first()?;
    let (bytes, rest) = rest.split_at(usize::from(*len).min(rest.len()));
    changed.put(offset, bytes.to_vec());
    Some(rest)
}

/// The file system that an input is: it goes into an archive, so that none of its bytes are spent on that.
pub fn rootfs(input: &[u8]) -> isogen::Result<RootFilesystem> {
    let image = fixtures::rootfs_image(Filesystem::Squashfs, input);
    RootFilesystem::open("rootfs.img", Plan::whole(Arc::new(Source::from_bytes("rootfs.img", image))))
}

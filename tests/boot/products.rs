//! The images to boot: the base, and one image for every kind of change.

use std::collections::BTreeMap;

use crate::{INITRDS, KERNEL};
use bytes::Bytes;
use isogen::{
    Archive, BaseImage, Edits, Encoding, FileContents, FileOperations, KargsEdit, KargsOperations,
    LayoutStrategy, Plan, Source,
};

/// A typical config.
const CONFIG: &[u8] = br#"{"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"core"}]}}"#;
/// GRUB interprets `&` outside of quotes, and isolinux passes the quotes on.
const ROOTFS_URL: &str = "http://192.0.2.1/rootfs?arch=x86_64&version=4.20";
const KEYFILE_NAME: &str = "etc/coreos-firstboot-network/eth0.nmconnection";
const EFIBOOT: &str = "images/efiboot.img";
const ISOLINUX: &str = "isolinux/isolinux.bin";

/// An image with the facts that it must print when it boots.
#[derive(Debug)]
pub(crate) struct BootProduct {
    pub(crate) plan: Plan,
    /// The kernel arguments in the areas.
    pub(crate) kargs: String,
    /// The extra initrds that the boot loaders load.
    pub(crate) initrds: Vec<&'static str>,
    /// Files of the initramfs in addition to the files of the base.
    pub(crate) files: BTreeMap<String, Bytes>,
}

impl BootProduct {
    fn new(plan: Plan, kargs: &str) -> Self {
        Self { plan, kargs: kargs.to_owned(), initrds: Vec::new(), files: BTreeMap::new() }
    }

    fn from_edits(base: &BaseImage, strategy: LayoutStrategy, edits: &Edits, kargs: &str) -> Self {
        assert_eq!(base.layout_strategy(edits).unwrap(), strategy);
        Self::new(base.plan(edits).unwrap(), kargs)
    }

    fn with_archive_files(mut self, archive: &Archive) -> Self {
        self.files.extend(archive.iter().map(|(name, bytes)| (name.to_owned(), bytes.clone())));
        self
    }

    fn with_initrd(mut self, initrd: &'static str) -> Self {
        self.initrds.push(initrd);
        self
    }
}

pub(crate) fn unchanged(base: &BaseImage) -> BootProduct {
    BootProduct::new(base.plan(&Edits::new()).unwrap(), default_kargs(base))
}

/// Changes config and arguments within their areas, which is the edit that every user makes.
pub(crate) fn edited_in_place(base: &BaseImage) -> BootProduct {
    let archive = config_archive(CONFIG);
    let edits =
        Edits::new().archive(archive.pack(Encoding::Xz).unwrap()).kargs(append_kargs("console=ttyS0 a=b"));
    let kargs = format!("{} console=ttyS0 a=b", default_kargs(base));
    BootProduct::from_edits(base, LayoutStrategy::InPlace, &edits, &kargs).with_archive_files(&archive)
}

/// Embeds an archive that is too large for the Ignition area with any compression.
pub(crate) fn with_large_archive(base: &BaseImage) -> BootProduct {
    let archive = config_archive(&incompressible_bytes(700_000));
    let edits = Edits::new().archive(archive.pack(Encoding::Gzip).unwrap());
    let strategy = LayoutStrategy::Relayout("the archive is larger than its area");
    BootProduct::from_edits(base, strategy, &edits, default_kargs(base)).with_archive_files(&archive)
}

/// Embeds more arguments than the area of the published image can hold.
pub(crate) fn with_long_kargs(base: &BaseImage) -> BootProduct {
    let long = (0..80).map(|number| format!("argument.{number}=value")).collect::<Vec<_>>().join(" ");
    let archive = config_archive(CONFIG);
    let edits = Edits::new().archive(archive.pack(Encoding::Stored).unwrap()).kargs(append_kargs(&long));
    let kargs = format!("{} {long}", default_kargs(base));
    assert!(kargs.len() as u64 > base.require_kargs().unwrap().area_len());
    let strategy = LayoutStrategy::Relayout("the kernel arguments are longer than their areas");
    BootProduct::from_edits(base, strategy, &edits, &kargs).with_archive_files(&archive)
}

/// Embeds the longest arguments that isolinux passes on, after the text that it adds. isolinux loses the last byte that
/// the kernel would accept.
pub(crate) fn with_longest_kargs(base: &BaseImage) -> BootProduct {
    let before = format!("BOOT_IMAGE={KERNEL} initrd={} ", INITRDS.join(","));
    let filler = vec!["filler.x=y"; 200].join(" ");
    let kargs = |len: usize| format!("{} {}", default_kargs(base), filler)[..len].to_owned() + " last.one";
    let longest = 2046 - before.len() - " last.one".len();
    let edits = |len| Edits::new().kargs(KargsEdit::Set(kargs(len)));
    assert!(base.plan(&edits(longest + 1)).is_err());
    let strategy = LayoutStrategy::Relayout("the kernel arguments are longer than their areas");
    BootProduct::from_edits(base, strategy, &edits(longest), &kargs(longest))
}

/// Adds an initrd, which the boot loader loads after the Ignition area. Its files replace files of the same name.
pub(crate) fn with_additional_initrd(base: &BaseImage) -> BootProduct {
    let (mut area, mut further) = (config_archive(CONFIG), Archive::new());
    area.insert("etc/who-decides", &b"the Ignition area"[..]);
    further.insert("etc/who-decides", &b"the further image"[..]);
    further.insert("usr/bin/large", incompressible_bytes(300_000));
    let edits = Edits::new()
        .archive(area.pack(Encoding::Gzip).unwrap())
        .initrd_image("nmstate.img", &further.pack(Encoding::Stored).unwrap());
    let strategy = LayoutStrategy::Relayout("an initrd image is added");
    BootProduct::from_edits(base, strategy, &edits, default_kargs(base))
        .with_initrd("/images/nmstate.img")
        .with_archive_files(&area)
        .with_archive_files(&further)
}

/// Removes the root file system according to the image's own description.
pub(crate) fn minimal_as_described(base: &BaseImage) -> BootProduct {
    let archive = config_archive(CONFIG);
    let edits = Edits::new().minimal(Some(ROOTFS_URL)).archive(archive.pack(Encoding::Gzip).unwrap());
    BootProduct::from_edits(base, LayoutStrategy::DescribedMinimal, &edits, &minimal_kargs(base))
        .with_archive_files(&archive)
}

/// Removes the root file system in a re-layout, which further changes require.
pub(crate) fn minimal_relaid_out(base: &BaseImage) -> BootProduct {
    let (archive, mut network) = (config_archive(CONFIG), Archive::new());
    network.insert(KEYFILE_NAME, &b"[connection]\nid=eth0\n"[..]);
    let edits = Edits::new()
        .minimal(Some(ROOTFS_URL))
        .archive(archive.pack(Encoding::Gzip).unwrap())
        .initrd_image("network.img", &network.pack(Encoding::Gzip).unwrap());
    let strategy = LayoutStrategy::Relayout("an initrd image is added");
    BootProduct::from_edits(base, strategy, &edits, &minimal_kargs(base))
        .with_initrd("/images/network.img")
        .with_archive_files(&archive)
        .with_archive_files(&network)
}

/// Lengthens the EFI partition. The longer partition moves `isolinux.bin`, so the boot catalogue, the boot info table,
/// the MBR and the GPT must change.
pub(crate) fn with_moved_boot_images(base: &BaseImage) -> BootProduct {
    let mut efiboot = base.file(EFIBOOT).unwrap().read_all(1 << 30).unwrap();
    efiboot.resize(efiboot.len() + 4096, 0);
    let mut operations = FileOperations::new();
    operations.put_file(EFIBOOT, FileContents::from(Bytes::from(efiboot)));
    let plan = base.relayout(&operations).unwrap();
    let new = BaseImage::from_source(Source::new("moved".into(), plan.len(), plan.clone())).unwrap();
    for path in [EFIBOOT, ISOLINUX] {
        assert_ne!(new.require_file(path).unwrap().extent, base.require_file(path).unwrap().extent);
    }
    BootProduct::new(plan, default_kargs(base))
}

/// Replaces `isolinux.bin` by the packaged file, whose boot info table is empty.
pub(crate) fn with_replaced_boot_image(base: &BaseImage) -> BootProduct {
    let mut isolinux = base.file(ISOLINUX).unwrap().read_all(1 << 20).unwrap();
    isolinux[8..64].fill(0);
    isolinux.resize(isolinux.len() + 2048, 0);
    let mut operations = FileOperations::new();
    operations.put_file(ISOLINUX, FileContents::from(Bytes::from(isolinux)));
    BootProduct::new(base.relayout(&operations).unwrap(), default_kargs(base))
}

fn default_kargs(base: &BaseImage) -> &str {
    base.require_kargs().unwrap().default().unwrap()
}

fn minimal_kargs(base: &BaseImage) -> String {
    let label = format!(" coreos.liveiso={}", base.volume().primary().volume_id);
    let without = default_kargs(base).replace(&label, "");
    assert_ne!(without, default_kargs(base));
    format!("{without} coreos.live.rootfs_url=\"{ROOTFS_URL}\"")
}

fn append_kargs(arguments: &str) -> KargsEdit {
    let append = vec![arguments.to_owned()];
    KargsEdit::Current(KargsOperations { append, ..KargsOperations::default() })
}

fn config_archive(contents: &[u8]) -> Archive {
    let mut archive = Archive::new();
    archive.insert("config.ign", contents.to_vec());
    archive
}

/// Returns incompressible bytes.
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

//! The images that are booted: the base, and one of every kind of change.

use std::collections::BTreeMap;

use crate::{INITRDS, KERNEL};
use bytes::Bytes;
use isogen::{
    Archive, BaseImage, Contents, Edits, Encoding, FileOperations, KargsEdit, KargsOperations,
    LayoutStrategy, Plan, Source,
};

/// A config as users embed it.
const CONFIG: &[u8] = br#"{"ignition":{"version":"3.3.0"},"passwd":{"users":[{"name":"core"}]}}"#;
/// GRUB takes `&` for its own unless it stands in quotes, and isolinux passes the quotes on.
const ROOTFS_URL: &str = "http://192.0.2.1/rootfs?arch=x86_64&version=4.20";
const KEYFILE_NAME: &str = "etc/coreos-firstboot-network/eth0.nmconnection";
const EFIBOOT: &str = "images/efiboot.img";
const ISOLINUX: &str = "isolinux/isolinux.bin";

/// An image with what a boot of it has to show.
#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) plan: Plan,
    /// The kernel arguments as the areas hold them.
    pub(crate) kargs: String,
    /// The further initrds that the boot loaders load.
    pub(crate) initrds: Vec<&'static str>,
    /// What the initramfs holds besides the files of the base.
    pub(crate) files: BTreeMap<String, Bytes>,
}

impl Product {
    fn new(plan: Plan, kargs: &str) -> Self {
        Self { plan, kargs: kargs.to_owned(), initrds: Vec::new(), files: BTreeMap::new() }
    }

    fn edited(base: &BaseImage, strategy: LayoutStrategy, edits: &Edits, kargs: &str) -> Self {
        assert_eq!(base.layout_strategy(edits).unwrap(), strategy);
        Self::new(base.plan(edits).unwrap(), kargs)
    }

    fn holds(mut self, archive: &Archive) -> Self {
        self.files.extend(archive.iter().map(|(name, bytes)| (name.to_owned(), bytes.clone())));
        self
    }

    fn loads(mut self, initrd: &'static str) -> Self {
        self.initrds.push(initrd);
        self
    }
}

pub(crate) fn unchanged(base: &BaseImage) -> Product {
    Product::new(base.plan(&Edits::new()).unwrap(), default(base))
}

/// Config and arguments within the areas: the embedding that every user does.
pub(crate) fn edited_in_place(base: &BaseImage) -> Product {
    let archive = config(CONFIG);
    let edits = Edits::new().archive(archive.pack(Encoding::Xz).unwrap()).kargs(append("console=ttyS0 a=b"));
    let kargs = format!("{} console=ttyS0 a=b", default(base));
    Product::edited(base, LayoutStrategy::InPlace, &edits, &kargs).holds(&archive)
}

/// An archive that no compression brings into the Ignition area.
pub(crate) fn with_large_archive(base: &BaseImage) -> Product {
    let archive = config(&noise(700_000));
    let edits = Edits::new().archive(archive.pack(Encoding::Gzip).unwrap());
    let strategy = LayoutStrategy::Relayout("the archive is larger than its area");
    Product::edited(base, strategy, &edits, default(base)).holds(&archive)
}

/// More arguments than the area of the published image takes.
pub(crate) fn with_long_kargs(base: &BaseImage) -> Product {
    let long = (0..80).map(|number| format!("argument.{number}=value")).collect::<Vec<_>>().join(" ");
    let archive = config(CONFIG);
    let edits = Edits::new().archive(archive.pack(Encoding::Stored).unwrap()).kargs(append(&long));
    let kargs = format!("{} {long}", default(base));
    assert!(kargs.len() as u64 > base.require_kargs().unwrap().area_len());
    let strategy = LayoutStrategy::Relayout("the kernel arguments are longer than their areas");
    Product::edited(base, strategy, &edits, &kargs).holds(&archive)
}

/// As many arguments as arrive whole behind what isolinux puts before them; it loses the last byte that the kernel would
/// take.
pub(crate) fn with_longest_kargs(base: &BaseImage) -> Product {
    let before = format!("BOOT_IMAGE={KERNEL} initrd={} ", INITRDS.join(","));
    let filler = vec!["filler.x=y"; 200].join(" ");
    let kargs = |len: usize| format!("{} {}", default(base), filler)[..len].to_owned() + " last.one";
    let longest = 2046 - before.len() - " last.one".len();
    let edits = |len| Edits::new().kargs(KargsEdit::Set(kargs(len)));
    assert!(base.plan(&edits(longest + 1)).is_err());
    let strategy = LayoutStrategy::Relayout("the kernel arguments are longer than their areas");
    Product::edited(base, strategy, &edits(longest), &kargs(longest))
}

/// A further initrd, loaded behind the Ignition area: what both hold, it decides.
pub(crate) fn with_further_initrd(base: &BaseImage) -> Product {
    let (mut area, mut further) = (config(CONFIG), Archive::new());
    area.insert("etc/who-decides", &b"the Ignition area"[..]);
    further.insert("etc/who-decides", &b"the further image"[..]);
    further.insert("usr/bin/large", noise(300_000));
    let edits = Edits::new()
        .archive(area.pack(Encoding::Gzip).unwrap())
        .initrd_image("nmstate.img", &further.pack(Encoding::Stored).unwrap());
    let strategy = LayoutStrategy::Relayout("an initrd image is added");
    Product::edited(base, strategy, &edits, default(base))
        .loads("/images/nmstate.img")
        .holds(&area)
        .holds(&further)
}

/// Without root file system, after the image's own description.
pub(crate) fn minimal_as_described(base: &BaseImage) -> Product {
    let archive = config(CONFIG);
    let edits = Edits::new().minimal(Some(ROOTFS_URL)).archive(archive.pack(Encoding::Gzip).unwrap());
    Product::edited(base, LayoutStrategy::DescribedMinimal, &edits, &minimal_kargs(base)).holds(&archive)
}

/// Without root file system, laid out anew since more changes.
pub(crate) fn minimal_laid_out_anew(base: &BaseImage) -> Product {
    let (archive, mut network) = (config(CONFIG), Archive::new());
    network.insert(KEYFILE_NAME, &b"[connection]\nid=eth0\n"[..]);
    let edits = Edits::new()
        .minimal(Some(ROOTFS_URL))
        .archive(archive.pack(Encoding::Gzip).unwrap())
        .initrd_image("network.img", &network.pack(Encoding::Gzip).unwrap());
    let strategy = LayoutStrategy::Relayout("an initrd image is added");
    Product::edited(base, strategy, &edits, &minimal_kargs(base))
        .loads("/images/network.img")
        .holds(&archive)
        .holds(&network)
}

/// A longer EFI partition, behind which `isolinux.bin` moves: catalogue, boot info table, MBR and GPT have to follow.
pub(crate) fn with_moved_boot_images(base: &BaseImage) -> Product {
    let mut efiboot = base.file(EFIBOOT).unwrap().read_all(1 << 30).unwrap();
    efiboot.resize(efiboot.len() + 4096, 0);
    let mut operations = FileOperations::new();
    operations.put_file(EFIBOOT, Contents::from(Bytes::from(efiboot)));
    let plan = base.relayout(&operations).unwrap();
    let new = BaseImage::from_source(Source::new("moved".into(), plan.len(), plan.clone())).unwrap();
    for path in [EFIBOOT, ISOLINUX] {
        assert_ne!(new.require_file(path).unwrap().extent, base.require_file(path).unwrap().extent);
    }
    Product::new(plan, default(base))
}

/// A new `isolinux.bin`, as it comes out of its package: nothing in its boot info table yet.
pub(crate) fn with_replaced_boot_image(base: &BaseImage) -> Product {
    let mut isolinux = base.file(ISOLINUX).unwrap().read_all(1 << 20).unwrap();
    isolinux[8..64].fill(0);
    isolinux.resize(isolinux.len() + 2048, 0);
    let mut operations = FileOperations::new();
    operations.put_file(ISOLINUX, Contents::from(Bytes::from(isolinux)));
    Product::new(base.relayout(&operations).unwrap(), default(base))
}

fn default(base: &BaseImage) -> &str {
    base.require_kargs().unwrap().default().unwrap()
}

fn minimal_kargs(base: &BaseImage) -> String {
    let label = format!(" coreos.liveiso={}", base.volume().primary().volume_id);
    let without = default(base).replace(&label, "");
    assert_ne!(without, default(base));
    format!("{without} coreos.live.rootfs_url=\"{ROOTFS_URL}\"")
}

fn append(arguments: &str) -> KargsEdit {
    let append = vec![arguments.to_owned()];
    KargsEdit::Current(KargsOperations { append, ..KargsOperations::default() })
}

fn config(contents: &[u8]) -> Archive {
    let mut archive = Archive::new();
    archive.insert("config.ign", contents.to_vec());
    archive
}

/// Bytes that no encoding makes shorter.
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

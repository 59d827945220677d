//! Everything that an image lets a program do, done to one that nobody vouches for. Results do not matter, except that
//! some must agree with each other; what matters is that nothing panics and nothing takes long.
//!
//! The fuzz targets use this module as well.

use bytes::Bytes;
use isogen::initrd::Limits;
use isogen::volume::Kind;
use isogen::{
    Archive, BaseImage, Contents, Difference, Edits, FileOperations, KargsEdit, KargsOperations,
    LayoutStrategy, Packed, Plan, Segment, Source,
};

/// Enough for every initrd of a fixture.
const LIMITS: Limits = Limits { decoded: 8 << 20, kept: 1 << 20, members: 10_000 };

/// What takes microseconds, because it looks at structures only.
pub(crate) fn structures(image: &BaseImage) {
    tree(image);
    edits(image);
    artifacts(image);
}

/// What reads the whole image.
pub(crate) fn contents(image: &BaseImage) {
    image.inspect().unwrap();
    image.verify().unwrap();
    assert!(Difference::between(image, image).unwrap().is_empty());
    minimal(image);
}

fn tree(image: &BaseImage) {
    let _ = (image.architecture(), image.boot_catalog(), image.partitions(), image.headers());
    let volume = image.volume();
    for tree in std::iter::once(volume.tree()).chain(volume.joliet_tree()) {
        for (id, entry) in tree.entries() {
            assert!(entry.extent.is_empty() || entry.extent.end() <= image.source().len());
            let (path, iso_path) = (tree.path(id), tree.iso_path(id));
            let _ = (tree.find(&path), tree.find(&iso_path), image.file(&path).map(|plan| plan.len()));
        }
    }
    let _ = volume.files_by_extent();
}

fn edits(image: &BaseImage) {
    let _ = (image.archive(), image.require_pristine());
    let packed = Packed::from_encoded(Bytes::from_static(b"070701"));
    if let Ok(plan) = image.plan_in_place(&Edits::new().archive(packed.clone())) {
        // Nothing but the area changes.
        let area = image.ignition_area().unwrap().extent;
        assert_eq!(plan.len(), image.source().len());
        for change in plan.changes_in_place().unwrap() {
            let change = isogen::Extent::new(change.offset, change.segment.len()).unwrap();
            assert!(area.contains(change), "{change} is not in {area}");
        }
    }
    let Some(kargs) = image.kargs() else { return };
    let _ = (kargs.default(), kargs.current());
    let operations = KargsOperations {
        delete: vec!["quiet".into(), String::new()],
        append: vec!["console=ttyS0".into()],
        replace: vec!["console=ttyS0=ttyS1".into()],
    };
    let changes = [KargsEdit::Current(operations.clone()), KargsEdit::Default(operations), KargsEdit::Reset];
    for change in changes {
        if let Ok(plan) = image.plan_in_place(&Edits::new().archive(packed.clone()).kargs(change)) {
            assert_eq!(plan.len(), image.source().len());
            assert!(plan.changes_in_place().is_ok());
        }
    }
    set(image);
}

/// What is put into the areas is found there when the image is read again, where nothing else of the image depends on
/// the same bytes.
fn set(image: &BaseImage) {
    let text = "quiet console=ttyS0";
    let Ok(plan) = image.plan_in_place(&Edits::new().kargs(KargsEdit::Set(text.into()))) else { return };
    for area in image.kargs().map_or(&[][..], |kargs| kargs.areas()) {
        let bytes: Vec<u8> =
            plan.segments(area.extent.offset()..area.extent.end()).flat_map(own_bytes).collect();
        assert_eq!(bytes.len() as u64, area.extent.len());
        assert!(bytes.starts_with(text.as_bytes()));
    }
    let _ =
        BaseImage::from_source(Source::new("edited".into(), plan.len(), plan)).map(|image| image.archive());
}

fn own_bytes(segment: Segment) -> Vec<u8> {
    match segment {
        Segment::Bytes(bytes) => bytes.to_vec(),
        other => panic!("{other:?} where a change should be"),
    }
}

/// Changes that do not fit where things are, so that the image is laid out anew.
pub(crate) fn layouts(image: &BaseImage) {
    let packed = |len: u64| Packed::from_encoded(vec![b'0'; usize::try_from(len).unwrap()].into());
    let area_len = image.ignition_area().map_or(0, |area| area.extent.len());
    let more = packed(4096);
    let mut edits = vec![
        Edits::new().initrd_image("more.img", &more),
        Edits::new().minimal(Some("http://example.com/rootfs")),
        Edits::new().minimal(None).initrd_image("more.img", &more).archive(more.clone()),
        Edits::new().kargs(KargsEdit::Set("k".repeat(1500))),
    ];
    // A hostile image may call all of itself its area.
    if area_len < 1 << 20 {
        edits.push(Edits::new().archive(packed(area_len + 4)));
    }
    let plans = edits.iter().map(|edits| image.plan(edits));
    let tree = image.volume().tree();
    let files = tree.entries().filter(|(_, entry)| entry.kind == Kind::File).take(40);
    let operations = files.enumerate().map(|(number, (id, _))| {
        let mut operations = FileOperations::new();
        match number % 2 {
            0 => operations.drop_file(tree.path(id)),
            _ => operations.put_file(tree.path(id), Contents::from(Bytes::from_static(b"replaced"))),
        }
        operations.put_file("images/a new file.with a long name", Contents::from(Bytes::from_static(b"new")));
        image.relayout(&operations)
    });
    for plan in plans.chain(operations.step_by(8)).flatten() {
        read_ends(&plan);
        let _ = BaseImage::from_source(Source::new("new".into(), plan.len(), plan));
    }
}

fn artifacts(image: &BaseImage) {
    let files = image.pxe_files().unwrap_or_default().into_iter().map(|file| file.plan);
    let more = [image.kernel(), image.rootfs(), image.initrd_addrsize(7), image.load_list()];
    for plan in files.chain(more.into_iter().flatten()) {
        read_ends(&plan);
    }
    if let Ok(initrd) = image.initrd([Packed::from_encoded(Bytes::from_static(b"x"))]) {
        assert_eq!(initrd.len() % 4, 0);
        let _ = Archive::read(initrd.reader(), LIMITS);
    }
}

/// The first bytes and the last ones: all of them are there, since the image was checked when it was opened.
fn read_ends(plan: &Plan) {
    let mut buf = [0; 64];
    for offset in [0, plan.len().saturating_sub(64)] {
        let expected = plan.len().min(64);
        assert_eq!(plan.read_at(&mut buf, offset).unwrap() as u64, expected);
    }
    assert_eq!(plan.read_at(&mut buf, plan.len()).unwrap(), 0);
}

fn minimal(image: &BaseImage) {
    let Some(len) = image.inspect().ok().and_then(|inspection| inspection.minimal.len) else { return };
    assert!(len <= image.source().len());
    let is_verified = image.verify_minimal().is_ok();
    for url in [None, Some("http://example.com/rootfs")] {
        let edits = Edits::new().minimal(url);
        if let (Ok(way), Ok(minimal)) = (image.layout_strategy(&edits), image.plan(&edits)) {
            if way == LayoutStrategy::DescribedMinimal {
                assert!(is_verified && minimal.len() == len);
            }
            read_ends(&minimal);
        }
    }
}

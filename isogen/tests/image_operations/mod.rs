//! Runs every operation on an untrusted image. The operations may return errors, but must not panic or take long. A few
//! results must agree with each other.
//!
//! The fuzz targets use this module as well.

use bytes::Bytes;
use isogen::initrd::ArchiveLimits;
use isogen::volume::EntryKind;
use isogen::{
    Archive, BaseImage, Edits, Error, FileContents, FileOperations, ImageDifference, KargsEdit,
    KargsOperations, LayoutStrategy, PackedArchive, Plan, Segment, Source,
};

/// Limits that are large enough for every initrd of a fixture image.
const LIMITS: ArchiveLimits = ArchiveLimits { decoded_bytes: 8 << 20, kept_bytes: 1 << 20, members: 10_000 };

/// Runs the operations that read only structures, which take microseconds.
pub(crate) fn read_structures(image: &BaseImage) {
    walk_trees(image);
    plan_edits(image);
    plan_pxe_files(image);
}

/// Runs the operations that read the whole image.
pub(crate) fn read_contents(image: &BaseImage) {
    image.inspect().unwrap();
    image.verify().unwrap();
    assert!(ImageDifference::between(image, image).unwrap().is_empty());
    plan_minimal(image);
}

/// Returns the value of a successful operation. An invalid image must never cause an internal error.
fn no_internal_error<T>(result: isogen::Result<T>) -> Option<T> {
    if let Err(error @ Error::Internal { .. }) = &result {
        panic!("{error}");
    }
    result.ok()
}

fn walk_trees(image: &BaseImage) {
    let _ = (image.architecture(), image.boot_catalog(), image.partitions());
    let volume = image.volume();
    for tree in std::iter::once(volume.tree()).chain(volume.joliet_tree()) {
        for (id, entry) in tree.entries() {
            assert!(entry.extent.is_empty() || entry.extent.end() <= image.source().len());
            let (path, iso_path) = (tree.path(id), tree.iso_path(id));
            let _ = (tree.find(&path), tree.find(&iso_path), image.file(&path).map(|plan| plan.len()));
        }
    }
}

fn plan_edits(image: &BaseImage) {
    let _ = (no_internal_error(image.archive()), no_internal_error(image.require_pristine()));
    let packed = PackedArchive::from_encoded(Bytes::from_static(b"070701"));
    if let Some(plan) = no_internal_error(image.plan_in_place(&Edits::new().archive(packed.clone()))) {
        // The edit changes only the area.
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
        if let Some(plan) =
            no_internal_error(image.plan_in_place(&Edits::new().archive(packed.clone()).kargs(change)))
        {
            assert_eq!(plan.len(), image.source().len());
            assert!(plan.changes_in_place().is_ok());
        }
    }
    set_kargs(image);
}

/// Embeds kernel arguments and checks the bytes of the areas. The image may then fail to open, because another
/// structure of a hostile image may be in the same bytes.
fn set_kargs(image: &BaseImage) {
    let text = "quiet console=ttyS0";
    let Ok(plan) = image.plan_in_place(&Edits::new().kargs(KargsEdit::Set(text.into()))) else { return };
    for area in image.kargs().map_or(&[][..], |kargs| kargs.areas()) {
        let bytes: Vec<u8> =
            plan.segments(area.extent.offset()..area.extent.end()).flat_map(new_bytes).collect();
        assert_eq!(bytes.len() as u64, area.extent.len());
        assert!(bytes.starts_with(text.as_bytes()));
    }
    let _ =
        BaseImage::from_source(Source::new("edited".into(), plan.len(), plan)).map(|image| image.archive());
}

fn new_bytes(segment: Segment) -> Vec<u8> {
    match segment {
        Segment::Bytes(bytes) => bytes.to_vec(),
        other => panic!("{other:?} where a change should be"),
    }
}

/// Plans changes that do not fit in place, so that the image is re-laid out.
pub(crate) fn plan_relayouts(image: &BaseImage) {
    let packed = |len: u64| PackedArchive::from_encoded(vec![b'0'; usize::try_from(len).unwrap()].into());
    let area_len = image.ignition_area().map_or(0, |area| area.extent.len());
    let more = packed(4096);
    let mut edits = vec![
        Edits::new().initrd_image("more.img", &more),
        Edits::new().minimal(Some("http://example.com/rootfs")),
        Edits::new().minimal(None).initrd_image("more.img", &more).archive(more.clone()),
        Edits::new().kargs(KargsEdit::Set("k".repeat(1500))),
    ];
    // Skip large areas, because a hostile image may declare all of its bytes as one area.
    if area_len < 1 << 20 {
        edits.push(Edits::new().archive(packed(area_len + 4)));
    }
    let plans = edits.iter().map(|edits| image.plan(edits));
    let tree = image.volume().tree();
    let files = tree.entries().filter(|(_, entry)| entry.kind == EntryKind::File).take(40);
    let operations = files.enumerate().map(|(number, (id, _))| {
        let mut operations = FileOperations::new();
        match number % 2 {
            0 => operations.drop_file(tree.path(id)),
            _ => operations.put_file(tree.path(id), FileContents::from(Bytes::from_static(b"replaced"))),
        }
        operations
            .put_file("images/a new file.with a long name", FileContents::from(Bytes::from_static(b"new")));
        image.relayout(&operations)
    });
    for plan in plans.chain(operations.step_by(8)).filter_map(no_internal_error) {
        read_ends(&plan);
        let _ = BaseImage::from_source(Source::new("new".into(), plan.len(), plan));
    }
}

fn plan_pxe_files(image: &BaseImage) {
    let files = image.pxe_files().unwrap_or_default().into_iter().map(|file| file.plan);
    let more = [image.kernel(), image.rootfs(), image.initrd_addrsize(7), image.load_list()];
    for plan in files.chain(more.into_iter().flatten()) {
        read_ends(&plan);
    }
    if let Ok(initrd) = image.initrd([PackedArchive::from_encoded(Bytes::from_static(b"x"))]) {
        assert_eq!(initrd.len() % 4, 0);
        let _ = Archive::read(initrd.reader(), LIMITS);
    }
}

/// Reads the first and the last bytes. This must succeed, because the image was checked when it was opened.
fn read_ends(plan: &Plan) {
    let mut buf = [0; 64];
    for offset in [0, plan.len().saturating_sub(64)] {
        let expected = plan.len().min(64);
        assert_eq!(plan.read_at(&mut buf, offset).unwrap() as u64, expected);
    }
    assert_eq!(plan.read_at(&mut buf, plan.len()).unwrap(), 0);
}

fn plan_minimal(image: &BaseImage) {
    let Some(len) = image.inspect().ok().and_then(|inspection| inspection.minimal.len) else { return };
    assert!(len <= image.source().len());
    let is_verified = image.verify_minimal().is_ok();
    for url in [None, Some("http://example.com/rootfs")] {
        let edits = Edits::new().minimal(url);
        if let (Some(strategy), Some(minimal)) =
            (no_internal_error(image.layout_strategy(&edits)), no_internal_error(image.plan(&edits)))
        {
            if strategy == LayoutStrategy::DescribedMinimal {
                assert!(is_verified && minimal.len() == len);
            }
            read_ends(&minimal);
        }
    }
}

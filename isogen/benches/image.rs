//! Measures the operations on an image: opening it, planning an edit, finding a range, reading a range, editing it in
//! place, and reading a program from its root file system. The image is a sparse 1 GiB file, which is the size of a
//! real image, and the config is 100 KiB.
//!
//! `cargo bench -p isogen` takes half a minute, and `cargo bench -p isogen -- --quick` a few seconds.

#![allow(clippy::unwrap_used, missing_docs, reason = "a bench over its own image")]

use std::fs::OpenOptions;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fixtures::erofs::Erofs;
use fixtures::{Architecture, Era, Filesystem, Recipe, rootfs_image};
use isogen::{
    Archive, BaseImage, Edits, Encoding, KargsEdit, KargsOperations, PackedArchive, Plan, RootFilesystem,
    Source,
};

const ROOTFS_LEN: u64 = 1 << 30;
const CONFIG_LEN: usize = 100 << 10;
/// Length of a config that needs a re-layout.
const LARGE_CONFIG_LEN: usize = 1 << 20;

/// An image in a temporary folder.
struct BenchImage {
    folder: tempfile::TempDir,
    edits: Edits,
    large: Edits,
    packed: PackedArchive,
    archive: Archive,
}

impl BenchImage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recipe = Recipe::new(Architecture::X86_64, Era::E2024_12).rootfs_len(ROOTFS_LEN);
        recipe.write_to(&folder.path().join("image.iso")).unwrap();
        let mut archive = Archive::new();
        archive.insert("config.ign", config_of_len(CONFIG_LEN));
        let packed = archive.pack(Encoding::Gzip).unwrap();
        let append = vec!["console=ttyS0".to_owned()];
        let kargs = KargsEdit::Default(KargsOperations { append, ..KargsOperations::default() });
        let edits = Edits::new().archive(packed.clone()).kargs(kargs.clone());
        let mut large = Archive::new();
        large.insert("config.ign", config_of_len(LARGE_CONFIG_LEN));
        let large = Edits::new().archive(large.pack(Encoding::Stored).unwrap()).kargs(kargs);
        Self { folder, edits, large, packed, archive }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("image.iso")
    }

    fn plan(&self) -> Plan {
        open_image(&self.path()).plan(&self.edits).unwrap()
    }
}

fn open_image(path: &Path) -> BaseImage {
    BaseImage::open(path).unwrap()
}

/// Returns a config that is mostly base64, like real configs, and compresses to three quarters of its length.
fn config_of_len(len: usize) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 1_u64;
    let letters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        LETTERS.get(usize::try_from(state >> 58).unwrap()).copied().unwrap()
    });
    letters.take(len).collect()
}

fn bench_open(criterion: &mut Criterion, bench: &BenchImage) {
    let path = bench.path();
    criterion.bench_function("open", |bencher| bencher.iter(|| open_image(black_box(&path))));
}

fn bench_plan(criterion: &mut Criterion, bench: &BenchImage) {
    let image = open_image(&bench.path());
    let mut group = criterion.benchmark_group("plan");
    group.bench_function("edits", |bencher| bencher.iter(|| image.plan(black_box(&bench.edits)).unwrap()));
    // Set the digest of the base image, because a server also hashes a base image once, not for each plan.
    image.source().set_digest(isogen::Digest::from_data(b"known"));
    let plan = image.plan(&bench.edits).unwrap();
    group.bench_function("identity", |bencher| bencher.iter(|| black_box(&plan).identity().unwrap()));
    group.bench_function("initrd", |bencher| {
        bencher.iter(|| image.initrd([black_box(bench.packed.clone())]).unwrap());
    });
    let described = Edits::new().minimal(None);
    // Verify the description before the measurement, because it is verified once for each base image.
    image.verify_minimal().unwrap();
    group.bench_function("minimal", |bencher| bencher.iter(|| image.plan(black_box(&described)).unwrap()));
    group.bench_function("relayout", |bencher| bencher.iter(|| image.plan(black_box(&bench.large)).unwrap()));
    let url = "http://192.0.2.1/rootfs.img";
    let minimal = bench.large.clone().minimal(Some(url)).initrd_image("more.img", &bench.packed);
    group.bench_function("relayout-minimal", |bencher| {
        bencher.iter(|| image.plan(black_box(&minimal)).unwrap());
    });
    for (name, encoding) in [("pack-gzip", Encoding::Gzip), ("pack-xz", Encoding::Xz)] {
        group.bench_function(name, |bencher| bencher.iter(|| bench.archive.pack(encoding).unwrap()));
    }
    group.finish();
}

/// Returns a generator of offsets all over an artifact. The offsets are the same in every run.
fn pseudorandom_offsets(len: u64) -> impl FnMut() -> u64 {
    let mut state = 7_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) % len
    }
}

fn bench_lookup(criterion: &mut Criterion, bench: &BenchImage) {
    let plan = bench.plan();
    let mut group = criterion.benchmark_group("lookup");
    let range = |offset: u64| offset..offset + (64 << 10);
    group.bench_function("segments", |bencher| {
        let next = pseudorandom_offsets(plan.len());
        bencher.iter_batched(
            next,
            |at| plan.segments(range(at)).map(|segment| segment.len()).sum::<u64>(),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn bench_read_at(criterion: &mut Criterion, bench: &BenchImage) {
    let image = open_image(&bench.path());
    let plan = bench.plan();
    let mut group = criterion.benchmark_group("read_at");
    for (name, len) in [("4KiB", 4 << 10), ("64KiB", 64 << 10), ("1MiB", 1 << 20)] {
        let mut buf = vec![0; len];
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(name, |bencher| {
            let next = pseudorandom_offsets(plan.len() - len as u64);
            bencher.iter_batched(next, |at| plan.read_at(&mut buf, at).unwrap(), BatchSize::SmallInput);
        });
    }
    let mut buf = vec![0; 64 << 10];
    let area = image.require_ignition_area().unwrap().extent;
    group.throughput(Throughput::Bytes(buf.len() as u64));
    group.bench_function("64KiB-of-config", |bencher| {
        bencher.iter(|| plan.read_at(&mut buf, black_box(area.offset())).unwrap());
    });
    group.finish();
}

/// Measures two hashes of a 1 GiB image: with a saved hash state of the shared prefix, and in a full pass, which an
/// image edited in place needs.
fn bench_sha256(criterion: &mut Criterion, bench: &BenchImage) {
    let image = open_image(&bench.path());
    let mut group = criterion.benchmark_group("sha256");
    group.sample_size(10);
    let shared = image.plan(&bench.large).unwrap();
    shared.sha256().unwrap();
    group.bench_function("shared-prefix", |bencher| bencher.iter(|| black_box(&shared).sha256().unwrap()));
    group.bench_function("full-pass", |bencher| {
        // Open the base image again for each pass, because a newly opened base image has no saved hash states.
        bencher.iter_batched(|| bench.plan(), |plan| plan.sha256().unwrap(), BatchSize::PerIteration);
    });
    group.finish();
}

fn bench_embed_in_place(criterion: &mut Criterion, bench: &BenchImage) {
    let path = bench.path();
    criterion.bench_function("embed-in-place", |bencher| {
        // The same steps as in the command: open the image, plan the edit, write the changes and sync to disk.
        bencher.iter(|| {
            let image = open_image(&path);
            let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            image
                .plan(&bench.edits)
                .unwrap()
                .write_in_place(&file, image.require_ignition_area().unwrap().extent)
                .unwrap();
        });
    });
}

/// Returns a program of 8 MiB that compresses to about half its length.
fn program_bytes() -> Vec<u8> {
    let mut state = 3_u64;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        [state.to_le_bytes()[7], 0x0F, state.to_le_bytes()[6] & 3, 0x48]
    });
    words.take(2 << 20).flatten().collect()
}

/// Finds, reads and packs a program. Packing takes most of the time.
fn bench_nmstatectl(criterion: &mut Criterion, bench: &BenchImage) {
    let program = program_bytes();
    let path = "usr/bin/nmstatectl";
    let erofs = Erofs::RELEASE.image([(path, program.as_slice())]);
    let mut images = vec![("erofs-lzma", rootfs_image(Filesystem::Erofs, &erofs))];
    match squashfs_image(bench.folder.path(), path, &program) {
        Some(squashfs) => images.push(("squashfs-zstd", rootfs_image(Filesystem::Squashfs, &squashfs))),
        None => eprintln!("SKIPPED: mksquashfs is not installed"),
    }
    let mut group = criterion.benchmark_group("nmstatectl");
    group.sample_size(10).throughput(Throughput::Bytes(program.len() as u64));
    for (name, image) in images {
        let source = Arc::new(Source::from_bytes("rootfs.img", image));
        let open_filesystem =
            || RootFilesystem::open("rootfs.img", Plan::from_source(Arc::clone(&source))).unwrap();
        group.bench_function(name, |bencher| bencher.iter(|| open_filesystem().nmstatectl().unwrap()));
        group.bench_function(format!("{name}-packed"), |bencher| {
            bencher.iter(|| open_filesystem().pack_nmstatectl().unwrap());
        });
    }
    group.finish();
}

fn squashfs_image(folder: &Path, path: &str, program: &[u8]) -> Option<Vec<u8>> {
    let file = folder.join("tree").join(path);
    std::fs::create_dir_all(file.parent()?).unwrap();
    std::fs::write(file, program).unwrap();
    let mut command = Command::new("mksquashfs");
    command.args(["tree", "fs", "-comp", "zstd", "-quiet", "-no-progress"]).current_dir(folder);
    command.status().ok().filter(std::process::ExitStatus::success)?;
    std::fs::read(folder.join("fs")).ok()
}

fn run_all(criterion: &mut Criterion) {
    let bench = BenchImage::new();
    for bench_operation in [
        bench_open,
        bench_plan,
        bench_lookup,
        bench_read_at,
        bench_sha256,
        bench_embed_in_place,
        bench_nmstatectl,
    ] {
        bench_operation(criterion, &bench);
    }
}

fn short_measurements() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = image;
    config = short_measurements();
    targets = run_all
}
criterion_main!(image);

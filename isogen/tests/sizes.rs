//! Archives as large as the archives of large clusters: the keyfiles of 20,000 hosts, and an Ignition config of 32 MiB.
//! The images that contain them are correct. Planning such an image does not copy the archives and needs little memory.
//!
//! This is a separate test program with a single test, because it counts the allocations of the whole program.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code over images that `fixtures` made"
)]
#![allow(unsafe_code, reason = "counting allocations means being the allocator")]

mod images;
mod readers;
#[path = "products/relayout_kinds.rs"]
mod relayout_kinds;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use fixtures::{Architecture, Era, Recipe};
use isogen::initrd::ArchiveLimits;
use isogen::verify::CheckOutcome;
use isogen::{Archive, BaseImage, Edits, Encoding, PackedArchive, Plan, Segment, Source};

use readers::{are_installed, run_program};
use relayout_kinds::{ROOTFS_URL, incompressible_bytes, open_plan};

/// Number of allocated bytes, and the peak since the last reset.
static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

struct CountingAllocator;

// SAFETY: every call is passed on unchanged to the system's allocator, and counting does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = ALLOCATED_BYTES.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Maximum memory for planning, in addition to the archives. The structures of an image take tens of kilobytes.
const PLANNING_MEMORY_LIMIT: usize = 4 << 20;

/// Runs `work` and returns its result and the peak memory.
fn measure_memory<T>(what: &str, work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED_BYTES.load(Ordering::Relaxed);
    PEAK_BYTES.store(before, Ordering::Relaxed);
    let start = Instant::now();
    let result = work();
    let peak = PEAK_BYTES.load(Ordering::Relaxed).saturating_sub(before);
    println!("{what}: {:?}, {} KiB", start.elapsed(), peak >> 10);
    (result, peak)
}

const HOST_COUNT: u32 = 20_000;

/// Returns the keyfile of one of a host's two network cards, as nmstate generates it.
fn keyfile(host: u32, card: u32) -> String {
    let [_, high, middle, low] = host.to_be_bytes();
    let mut text = String::new();
    let mac = format!("52:54:{card:02X}:{high:02X}:{middle:02X}:{low:02X}");
    let uuid = format!("{host:08x}-{card:04x}-5f3b-9c4d-{:012x}", u64::from(host) * 7919 + u64::from(card));
    write!(
        text,
        "[connection]\nautoconnect=true\nautoconnect-priority=1\nautoconnect-slaves=-1\nid=eno{card}\n"
    )
    .unwrap();
    write!(text, "interface-name=eno{card}\ntype=802-3-ethernet\nuuid={uuid}\n\n").unwrap();
    write!(text, "[802-3-ethernet]\ncloned-mac-address={mac}\nmac-address={mac}\nmtu=9000\n\n").unwrap();
    write!(
        text,
        "[ipv4]\naddress0=10.{}.{middle}.{low}/16\ndhcp-timeout=2147483647\n",
        16 * card + u32::from(high)
    )
    .unwrap();
    write!(
        text,
        "dns=10.0.0.{low};10.0.1.{middle};\ndns-priority=40\ndns-search=cluster.example.com;\nmethod=manual\n"
    )
    .unwrap();
    write!(text, "route0=0.0.0.0/0,10.{}.0.1,{}\nroute0_options=table=254\n\n", 16 * card, 100 + card)
        .unwrap();
    write!(
        text,
        "[ipv6]\naddr-gen-mode=0\naddress0=fd00:{card}::{host:x}/64\nmethod=manual\nmay-fail=false\n"
    )
    .unwrap();
    write!(
        text,
        "dns=fd00::53;\ndns-priority=40\nroute0=::/0,fd00:{card}::1,{}\nroute0_options=table=254\n\n",
        100 + card
    )
    .unwrap();
    write!(text, "[user]\nnmstate.interface.description=worker-{host:05}.cluster.example.com, card {card}\n")
        .unwrap();
    text
}

fn keyfiles() -> Archive {
    let mut archive = Archive::new();
    for host in 0..HOST_COUNT {
        for card in 0..2 {
            archive
                .insert_network_file(&format!("host-{host:05}/eno{card}.nmconnection"), keyfile(host, card));
        }
    }
    archive
}

/// Asserts that all large segments of a plan are in the memory of the base image or of the archives.
fn assert_bytes_are_shared(plan: &Plan, archives: &[&PackedArchive], what: &str) {
    let inside = |bytes: &[u8]| {
        let ranges = archives.iter().map(|packed| packed.as_bytes().as_ptr_range());
        ranges
            .into_iter()
            .any(|range| range.contains(&bytes.as_ptr()) && bytes.as_ptr_range().end <= range.end)
    };
    let mut copied = 0;
    let mut shared = 0;
    for placed in plan.layout() {
        if let Segment::Bytes(bytes) = &placed.segment {
            *(if inside(bytes) { &mut shared } else { &mut copied }) += bytes.len();
        }
    }
    assert_eq!(shared, archives.iter().map(|packed| packed.as_bytes().len()).sum::<usize>(), "{what}");
    assert!(copied < 128 << 10, "{what}: {copied} copied bytes");
}

fn assert_verified(image: &BaseImage, what: &str) {
    for check in image.verify().unwrap() {
        assert!(!matches!(check.outcome, CheckOutcome::Wrong(_)), "{what}: {check:?}");
    }
}

/// Returns the initrd images that a boot loader loads after the initrd of the live system, as one archive.
fn loaded_archive(image: &BaseImage) -> Archive {
    let mut loaded = image.archive().unwrap();
    if let Ok(more) = image.file("images/network.img") {
        let more = Archive::read(more.reader(), ArchiveLimits::IGNITION_AREA).unwrap();
        more.iter().for_each(|(name, bytes)| loaded.insert(name, bytes.clone()));
    }
    loaded
}

/// Extracts the two files that contain the archives with xorriso and checks them.
fn assert_extracted(plan: &Plan, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    plan.write_file(folder.path().join("image.iso")).unwrap();
    let image = open_plan(plan, what);
    for path in ["images/ignition.img", "images/network.img", "images/cdboot.img"] {
        let Ok(expected) = image.file(path) else { continue };
        let strict = ["xorriso", "-return_with", "WARNING", "32", "-osirrox", "on", "-indev", "image.iso"];
        run_program(folder.path(), None, &[&strict[..], &["-extract", path, "extracted"]].concat());
        let extracted = Source::open(folder.path().join("extracted")).unwrap();
        assert_eq!(extracted.digest().unwrap(), expected.sha256().unwrap(), "{what}: {path}");
        std::fs::remove_file(folder.path().join("extracted")).unwrap();
    }
}

/// Asserts that a plan counts exactly the memory that it keeps, even if its uncompressed config is large.
fn assert_kept_memory_is_counted() {
    const UNCOUNTED_LEN: usize = 8 << 10;
    let recipe = Recipe::new(Architecture::X86_64, Era::E2024_12);
    let base = BaseImage::from_source(Source::from_bytes(recipe.name(), recipe.build())).unwrap();
    for (what, config) in
        [("compressible", vec![b'a'; 9 << 20]), ("incompressible", incompressible_bytes(9 << 20))]
    {
        let packed = || PackedArchive::from_file("config.ign", 0o100_600, &config, Encoding::Gzip).unwrap();
        let full = || base.plan(&Edits::new().archive(packed())).unwrap();
        let minimal = || base.plan(&Edits::new().archive(packed()).minimal(Some(ROOTFS_URL))).unwrap();
        let initrd = || base.initrd([packed()]).unwrap();
        let planners: [(&str, &dyn Fn() -> Plan); 3] =
            [("full", &full), ("minimal", &minimal), ("initrd", &initrd)];
        for (form, make_plan) in planners {
            // Plan once before the measurement, because the base image caches data that the first plan reads.
            make_plan();
            let before = ALLOCATED_BYTES.load(Ordering::Relaxed);
            let plan = make_plan();
            let allocated = ALLOCATED_BYTES.load(Ordering::Relaxed).saturating_sub(before);
            let counted = plan.memory_bytes() - base.shared_bytes(&plan);
            println!("{what}, {form}: {allocated} bytes kept, {counted} counted");
            assert!(
                allocated < counted + UNCOUNTED_LEN,
                "{what}, {form}: {allocated} bytes kept, {counted} counted"
            );
            assert!(counted <= allocated, "{what}, {form}: {allocated} bytes kept, {counted} counted");
        }
    }
}

#[test]
fn images_for_twenty_thousand_hosts_stay_within_limits() {
    let network = keyfiles();
    assert!((600..800).contains(&keyfile(12_345, 1).len()), "{}", keyfile(12_345, 1));
    let mut config = Archive::new();
    config.insert("config.ign", incompressible_bytes(32 << 20));
    let mut both = network.clone();
    config.iter().for_each(|(name, bytes)| both.insert(name, bytes.clone()));
    let (network, _) = measure_memory("packing 40,000 keyfiles", || network.pack(Encoding::Gzip).unwrap());
    let config = config.pack(Encoding::Stored).unwrap();
    println!(
        "keyfiles: {} KiB packed, config: {} KiB",
        network.as_bytes().len() >> 10,
        config.as_bytes().len() >> 10
    );

    for architecture in Architecture::ALL {
        let recipe = Recipe::new(architecture, Era::E2024_12);
        let base = BaseImage::from_source(Source::from_bytes(recipe.name(), recipe.build())).unwrap();
        let full = Edits::new().archive(config.clone()).initrd_image("network.img", &network);
        for (form, edits) in [("full", full.clone()), ("minimal", full.minimal(Some(ROOTFS_URL)))] {
            let what = format!("{}, {form}", recipe.name());
            let (plan, peak) = measure_memory(&what, || base.plan(&edits).unwrap());
            assert!(peak < PLANNING_MEMORY_LIMIT, "{what}: {peak} bytes");
            assert_bytes_are_shared(&plan, &[&config, &network], &what);
            let image = open_plan(&plan, &what);
            assert_verified(&image, &what);
            assert!(loaded_archive(&image) == both, "{what}");
            if are_installed(&["xorriso"]) {
                assert_extracted(&plan, &what);
            }
        }
        let what = format!("{}, PXE", recipe.name());
        let (initrd, peak) =
            measure_memory(&what, || base.initrd([network.clone(), config.clone()]).unwrap());
        assert!(peak < 64 << 10, "{what}: {peak} bytes");
        assert_bytes_are_shared(&initrd, &[&config, &network], &what);
        let limits = ArchiveLimits { decoded_bytes: 256 << 20, kept_bytes: 256 << 20, members: 200_000 };
        let booted = Archive::read(initrd.reader(), limits).unwrap();
        let missing = both.iter().find(|(name, bytes)| booted.get(name) != Some(*bytes));
        assert_eq!(missing.map(|(name, _)| name), None, "{what}");
    }
    assert_kept_memory_is_counted();
}

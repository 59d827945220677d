//! Archives of the sizes that large clusters have: the keyfiles of 20,000 hosts, an Ignition config of 32 MiB. Images
//! with them are right, and planning one neither copies the archives nor takes much memory beside them.
//!
//! A program of its own, with a single test: it counts what the whole program allocates.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code over images that `fixtures` made"
)]
#![allow(unsafe_code, reason = "counting allocations means being the allocator")]

mod images;
#[path = "products/made.rs"]
mod made;
mod readers;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use fixtures::{Architecture, Era, Recipe};
use isogen::initrd::Limits;
use isogen::verify::Outcome;
use isogen::{Archive, BaseImage, Edits, Encoding, Packed, Plan, Segment, Source};

use made::{URL, noise, open};
use readers::{have, run};

/// Bytes that are allocated now, and the most there ever were since the last look.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this very function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this very function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most that planning may take beside the archives: the structures of an image are tens of kilobytes.
const PLANNING: usize = 4 << 20;

/// Does some work and gives what it made, and the most memory that it took meanwhile.
fn measured<T>(what: &str, work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let start = Instant::now();
    let made = work();
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    println!("{what}: {:?}, {} KiB", start.elapsed(), peak >> 10);
    (made, peak)
}

const HOSTS: u32 = 20_000;

/// One keyfile of one of a host's two network cards, as nmstate writes them.
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
    for host in 0..HOSTS {
        for card in 0..2 {
            archive.insert_network(&format!("host-{host:05}/eno{card}.nmconnection"), keyfile(host, card));
        }
    }
    archive
}

/// Demands that all that is large in a plan is the base's or the archives' own memory.
fn assert_shared(plan: &Plan, archives: &[&Packed], what: &str) {
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
    assert!(copied < 128 << 10, "{what}: {copied} bytes of its own");
}

fn assert_sound(image: &BaseImage, what: &str) {
    for check in image.verify().unwrap() {
        assert!(!matches!(check.outcome, Outcome::Wrong(_)), "{what}: {check:?}");
    }
}

/// The initrd images that a boot loader loads behind the live one, as one archive.
fn loaded(image: &BaseImage) -> Archive {
    let mut loaded = image.archive().unwrap();
    if let Ok(more) = image.file("images/network.img") {
        let more = Archive::read(more.reader(), Limits::AREA).unwrap();
        more.iter().for_each(|(name, bytes)| loaded.insert(name, bytes.clone()));
    }
    loaded
}

/// What xorriso finds in the two files that hold the archives.
fn assert_extracted(plan: &Plan, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    plan.write_file(folder.path().join("image.iso")).unwrap();
    let image = open(plan, what);
    for path in ["images/ignition.img", "images/network.img", "images/cdboot.img"] {
        let Ok(expected) = image.file(path) else { continue };
        let strict = ["xorriso", "-return_with", "WARNING", "32", "-osirrox", "on", "-indev", "image.iso"];
        run(folder.path(), None, &[&strict[..], &["-extract", path, "extracted"]].concat());
        let extracted = Source::open(folder.path().join("extracted")).unwrap();
        assert_eq!(extracted.digest().unwrap(), expected.sha256().unwrap(), "{what}: {path}");
        std::fs::remove_file(folder.path().join("extracted")).unwrap();
    }
}

#[test]
fn images_for_twenty_thousand_hosts_and_large_configs() {
    let network = keyfiles();
    assert!((600..800).contains(&keyfile(12_345, 1).len()), "{}", keyfile(12_345, 1));
    let mut config = Archive::new();
    config.insert("config.ign", noise(32 << 20));
    let mut both = network.clone();
    config.iter().for_each(|(name, bytes)| both.insert(name, bytes.clone()));
    let (network, _) = measured("packing 40,000 keyfiles", || network.pack(Encoding::Gzip).unwrap());
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
        for (form, edits) in [("full", full.clone()), ("minimal", full.minimal(Some(URL)))] {
            let what = format!("{}, {form}", recipe.name());
            let (plan, peak) = measured(&what, || base.plan(&edits).unwrap());
            assert!(peak < PLANNING, "{what}: {peak} bytes");
            assert_shared(&plan, &[&config, &network], &what);
            let image = open(&plan, &what);
            assert_sound(&image, &what);
            assert!(loaded(&image) == both, "{what}");
            if have(&["xorriso"]) {
                assert_extracted(&plan, &what);
            }
        }
        let what = format!("{}, PXE", recipe.name());
        let (initrd, peak) = measured(&what, || base.initrd([network.clone(), config.clone()]).unwrap());
        assert!(peak < 64 << 10, "{what}: {peak} bytes");
        assert_shared(&initrd, &[&config, &network], &what);
        let limits = Limits { decoded: 256 << 20, kept: 256 << 20, members: 200_000 };
        let booted = Archive::read(initrd.reader(), limits).unwrap();
        let missing = both.iter().find(|(name, bytes)| booted.get(name) != Some(*bytes));
        assert_eq!(missing.map(|(name, _)| name), None, "{what}");
    }
}

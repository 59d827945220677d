//! The memory for hostile YAML: the line numbers of a document take memory in proportion to its length.
//!
//! This is a separate test program, because it counts the allocations of the whole program.

#![allow(clippy::unwrap_used, reason = "test code: what is not as expected must stop the test")]
#![allow(unsafe_code, reason = "counting allocations means being the allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignition::network::check::{ClusterNetworks, Rule, check_hosts};
use ignition::network::yaml::LineIndex;
use ignition::network::{HostNetwork, KeyfileCache, MacInterface};

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

/// A lock that makes the tests of this program run one after another.
static ALONE: Mutex<()> = Mutex::new(());

/// Returns the result of `work` and the peak of the memory that it allocates.
fn measure_memory<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED_BYTES.load(Ordering::Relaxed);
    PEAK_BYTES.store(before, Ordering::Relaxed);
    let result = work();
    (result, PEAK_BYTES.load(Ordering::Relaxed).saturating_sub(before))
}

/// Returns a list of equal items inside nested mappings with long keys.
fn list_in_long_keys(item: &str, count: usize) -> String {
    let open = format!("{{\"{}\": ", "\u{1f600}".repeat(64)).repeat(11);
    format!("{open}[{}]{}\n", item.repeat(count), "}".repeat(11))
}

/// A value needs at least two bytes of text. Its line number takes 16 bytes, and 48 bytes while the index grows.
const MAX_BYTES_PER_TEXT_BYTE: usize = 32;

#[test]
fn line_numbers_take_memory_in_proportion_to_the_text() {
    let _alone = ALONE.lock();
    let documents = [
        list_in_long_keys("0,", 100_000),
        list_in_long_keys("0x1,", 100_000),
        list_in_long_keys("{a},", 50_000),
        list_in_long_keys("\u{a0}0,", 50_000),
        format!("[{}]", "[[[0]]],".repeat(30_000)),
        (0..30_000).map(|number| format!("\"{number}\": 0x1\n")).collect(),
    ];
    for document in documents {
        let (_, peak) = measure_memory(|| LineIndex::read(&document));
        let start: String = document.chars().filter(|it| it.is_ascii_graphic()).take(30).collect();
        println!("{start}: {} bytes of text, {peak} bytes of memory", document.len());
        assert!(peak < document.len() * MAX_BYTES_PER_TEXT_BYTE, "{start}: {peak} bytes");
    }
}

/// Findings about the MAC address map have paths, but no lines in the document.
#[test]
fn document_that_is_too_large_is_not_indexed() {
    let _alone = ALONE.lock();
    let document = format!("[{}]", "0,".repeat(300_000));
    let interface = MacInterface { logical_nic_name: "eth0".to_owned(), mac_address: "none".to_owned() };
    let hosts = [HostNetwork::from_unchecked(&*document, vec![interface])];
    let (report, peak) =
        measure_memory(|| check_hosts(&hosts, &ClusterNetworks::default(), &KeyfileCache::default()));
    let rules: Vec<Rule> = report.findings().iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::MalformedMac, Rule::Unreadable]);
    assert!(peak < document.len() / 4, "{peak} bytes");
}

//! The cost of hostile YAML: the CPU time for rejecting it is linear in its length.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

use std::error::Error as _;
use std::fs;
use std::time::Duration;

use ignition::network::check::{ClusterNetworks, NetworkReport, check_hosts};
use ignition::network::yaml::LineIndex;
use ignition::network::{HostNetwork, KeyfileCache, keyfiles, read_hosts};

/// Time limit of a case: much more than any case takes in a debug build, and much less than quadratic parsing took for
/// the smallest case.
const MAX_TIME: Duration = Duration::from_secs(1);

fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

fn check(host: HostNetwork) -> NetworkReport {
    check_hosts(&[host], &ClusterNetworks::default(), &KeyfileCache::default())
}

fn reason(document: &str) -> String {
    let start = cpu_time();
    let error = keyfiles(document.as_bytes()).unwrap_err();
    let time = cpu_time() - start;
    assert!(time < MAX_TIME, "{time:?} for {:?}", &document[..20]);
    error.source().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn deep_flow_collections_are_refused_at_the_first_level_too_deep() {
    for count in [4000, 16_000, 64_000] {
        let closed = format!("{}{}", "{a: ".repeat(count), "}".repeat(count));
        // Level 129 starts after 128 repetitions of `{a: `.
        let expected = "collections are nested more than 128 levels deep at line 1 column 513";
        assert_eq!(reason(&closed), expected);
        assert_eq!(reason(&"{a: ".repeat(count)), expected);
        let open = reason(&"[".repeat(count));
        assert!(open.ends_with("levels deep at line 1 column 129"), "{open}");
    }
}

/// For each part of these texts, a naive parser would scan the earlier parts again.
#[test]
fn time_is_linear_for_hostile_lines() {
    let makers: [fn(usize) -> String; 4] = [
        |count| "- ".repeat(count),
        |count| "-\u{a0}".repeat(count),
        |count| (0..count).map(|it| format!("{}a:\n", " ".repeat(it % 500))).collect(),
        |count| format!("a: {}", "b: ".repeat(count)),
    ];
    for (number, make) in makers.into_iter().enumerate() {
        let time = |count: usize| {
            let host = HostNetwork::without_macs(make(count));
            let start = cpu_time();
            assert!(!check(host).findings().is_empty());
            cpu_time() - start
        };
        let few = time(16_000).max(Duration::from_millis(5));
        let many = time(128_000);
        assert!(many < few * 24, "{number}: {few:?} became {many:?} for 8 times as much");
    }
}

#[test]
fn brackets_in_text_do_not_count_as_nesting() {
    let brackets = "[{".repeat(100_000);
    for text in
        [format!("description: \"{brackets}\""), format!("# {brackets}\ndescription: >-\n  {brackets}\n")]
    {
        assert_eq!(keyfiles(text.as_bytes()).unwrap(), []);
    }
}

#[test]
fn other_costly_documents_are_refused_quickly() {
    let bomb: String = (1..21).map(|it| format!("a{it}: &a{it} [*a{0}, *a{0}, *a{0}]\n", it - 1)).collect();
    assert!(reason(&format!("a0: &a0 lol\n{bomb}")).starts_with("more than 131072 values"));
    let long = "x".repeat(1000);
    let text = format!("a: &a {long}\nb: [{}]", "*a,".repeat(1000));
    assert!(reason(&text).starts_with("aliases add more than 524288 bytes"));
    let nested: String = (0..128).map(|it| format!("&a{it} [")).collect();
    let reason_of_nested = reason(&format!("{nested}{}", "1,".repeat(10_000)));
    assert!(reason_of_nested.starts_with("did not find expected node content"), "{reason_of_nested}");
    assert!(reason(&"- ".repeat(200_000)).contains("128 levels deep at line 1 column 257"));
    let tags: String = (0..30_000).map(|it| format!("%TAG !{it}! a\n")).collect();
    assert!(reason(&tags).starts_with("more than 16 %TAG directives"));
    assert!(reason(&format!("[{}", "1,".repeat(200_000))).starts_with("more than 131072 values"));
}

#[test]
fn deep_lists_of_hosts_are_refused() {
    let deep = format!("[{}", "{a: ".repeat(16_000));
    let start = cpu_time();
    let error = read_hosts("hosts.yaml", deep.as_bytes()).unwrap_err();
    assert!(cpu_time() - start < MAX_TIME);
    assert!(error.to_string().contains("levels deep"), "{error}");
}

#[test]
fn checks_name_the_position_of_too_deep_values() {
    let host =
        HostNetwork::without_macs(format!("interfaces:\n- {}", "{a: ".repeat(16_000))).with_name("a.yaml");
    let report = check(host).to_string();
    assert!(report.contains("more than 128 levels deep at line 2 column "), "{report}");
}

/// The path in a finding about an unknown key contains the whole key.
#[test]
fn time_to_find_a_line_is_linear_in_the_path() {
    let lines = LineIndex::read("spec:\n  a: 1\n");
    let path = format!("spec.{}", "a.".repeat(200_000));
    let start = cpu_time();
    assert_eq!(lines.find(&path), Some(2));
    let time = cpu_time() - start;
    assert!(time < MAX_TIME, "{time:?}");
}

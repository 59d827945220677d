//! Tests the comparison of operation costs with the baseline file, which `.ci/instructions` uses.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../benches/instructions/baseline.rs"]
mod baseline;

use baseline::{Baseline, Cost, Difference, MeasuredOperation, Tolerance};

const TOLERANCE: Tolerance = Tolerance { instructions: 2, calls: 0 };
const TEXT: &str = "# counted with a counter\nopen 1000 10\nplan 500000 0\n";

fn counted_operation(name: &str, instructions: u64, calls: u64) -> MeasuredOperation {
    MeasuredOperation { name: name.to_owned(), cost: Cost { instructions, calls }, tolerance: TOLERANCE }
}

fn baseline_differences(counted: &[MeasuredOperation], is_everything: bool) -> Vec<String> {
    let differences = Baseline::parse(TEXT).unwrap().compare(counted, is_everything);
    let text = |difference: &Difference| {
        let sign = if difference.is_failure() { "failed" } else { "noted" };
        format!("{sign}: {difference}")
    };
    differences.iter().map(text).collect()
}

#[test]
fn count_within_the_tolerance_passes() {
    for (open, plan) in [(1000, 500_000), (1020, 510_000), (981, 490_200)] {
        let counted = [counted_operation("open", open, 10), counted_operation("plan", plan, 0)];
        assert_eq!(baseline_differences(&counted, true), <[String; 0]>::default());
    }
}

#[test]
fn increased_count_fails_and_is_named() {
    let grown = [counted_operation("open", 1021, 10), counted_operation("plan", 500_000, 1)];
    let expected = [
        "failed: open: instructions grew from 1000 to 1021, by 2.1 %",
        "failed: plan: system calls grew from 0 to 1, by 100.0 %",
    ];
    assert_eq!(baseline_differences(&grown, true), expected);
}

#[test]
fn decreased_count_is_reported() {
    let fallen = [counted_operation("open", 500, 10), counted_operation("plan", 500_000, 0)];
    assert_eq!(
        baseline_differences(&fallen, true),
        ["noted: open: instructions fell from 1000 to 500, by 50.0 %"]
    );
}

#[test]
fn operation_missing_in_baseline_or_counts_fails() {
    let expected =
        ["failed: pack: is not in the baseline", "failed: plan: is in the baseline, but was not counted"];
    let other = [counted_operation("open", 1000, 10), counted_operation("pack", 1, 1)];
    assert_eq!(baseline_differences(&other, true), expected);
    assert_eq!(baseline_differences(&other, false), expected[..1]);
}

#[test]
fn written_baseline_is_read_back() {
    let read = || Baseline::parse(TEXT).unwrap();
    assert_eq!(Baseline::parse(&read().to_string()).unwrap(), read());
    let now = [counted_operation("plan", 7, 3), counted_operation("pack", 1, 1)];
    let some = read().updated(&now, false, "another".to_owned());
    assert_eq!(some, Baseline::parse("# counted with another\nopen 1000 10\nplan 7 3\npack 1 1\n").unwrap());
    let all = read().updated(&now, true, "another".to_owned());
    assert_eq!(all, Baseline::parse("# counted with another\nplan 7 3\npack 1 1\n").unwrap());
}

#[test]
fn rejects_malformed_line() {
    for line in ["open", "open 1", "open 1 x", "open 1 2 3", "open -1 2"] {
        let error = Baseline::parse(&format!("# all\n{line}\n")).unwrap_err();
        assert!(error.contains("line 2") && error.contains(line), "{error}");
    }
    assert_eq!(Baseline::parse("a 1 2\na 1 2\n").unwrap_err(), "line 2: duplicate entry a");
}

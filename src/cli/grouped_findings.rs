//! Formats findings as lines of text. Many findings with the same message become one line that lists the first places.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use ignition::report::Severity;

use discovery::{DiscoveryReport, SourceLocation};

/// Maximum number of equal findings to print on separate lines, and of further places to list on one line.
const MAX_PLACES: usize = 3;

/// The severity and message of a finding. Findings with the same key form a group.
pub(super) type FindingKey<'a> = (Severity, &'a str);

/// Formats the findings of a report.
pub(super) fn report_lines(report: &DiscoveryReport) -> String {
    grouped_lines(report.as_slice(), |finding| {
        ((finding.severity, finding.message.as_str()), finding.place.clone())
    })
}

/// Formats findings in order, one line for each. More than [`MAX_PLACES`] findings with the same key become one group.
pub(super) fn grouped_lines<T: fmt::Display>(
    findings: &[T],
    parts: impl Fn(&T) -> (FindingKey<'_>, SourceLocation),
) -> String {
    let mut places = BTreeMap::<FindingKey<'_>, Vec<SourceLocation>>::new();
    for finding in findings {
        let (key, place) = parts(finding);
        places.entry(key).or_default().push(place);
    }
    let mut out = String::new();
    let mut printed = BTreeSet::new();
    for finding in findings {
        let (key, _) = parts(finding);
        let equal = places.get(&key).map(Vec::as_slice).unwrap_or_default();
        let is_group = equal.len() > MAX_PLACES;
        if is_group && !printed.insert(key) {
            continue;
        }
        let others = if is_group { other_places(equal) } else { Vec::new() };
        // Writing to a string does not fail.
        let _ = writeln!(out, "{finding}");
        if !others.is_empty() {
            let _ = writeln!(out, "  the same at {}", place_list(&others));
        }
    }
    out
}

/// Returns the places other than the first, without duplicates.
fn other_places(places: &[SourceLocation]) -> Vec<&SourceLocation> {
    let mut distinct: BTreeSet<&SourceLocation> = places.first().into_iter().collect();
    places.iter().filter(|place| distinct.insert(place)).collect()
}

fn place_list(places: &[&SourceLocation]) -> String {
    let text = |place: &&SourceLocation| {
        let text = place.to_string().replace(char::is_control, "\u{fffd}");
        text.strip_suffix(':').map(str::to_owned).unwrap_or(text)
    };
    let listed = places.iter().take(MAX_PLACES).map(text).collect::<Vec<_>>().join(", ");
    match places.len().saturating_sub(MAX_PLACES) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(count: usize) -> DiscoveryReport {
        let mut report = DiscoveryReport::default();
        for number in 1..=count {
            let path = if number == 2 { "spec.x" } else { "" };
            let place =
                SourceLocation { file: format!("{number}.yaml"), line: Some(number), path: path.to_owned() };
            report.error(place, "bad value");
        }
        report.warning(SourceLocation::whole("other.yaml"), "bad value");
        report
    }

    #[test]
    fn few_equal_findings_have_a_line_each() {
        assert_eq!(report_lines(&report(3)), format!("{}\n", report(3)));
    }

    #[test]
    fn repeated_places_are_listed_once() {
        let mut report = DiscoveryReport::default();
        for _ in 0..4 {
            report.error(SourceLocation::whole("--karg-append"), "empty value");
        }
        assert_eq!(report_lines(&report), "--karg-append: error: empty value\n");
        report.error(SourceLocation::whole("a.yaml"), "empty value");
        report.error(SourceLocation::whole("--karg-append"), "empty value");
        report.error(SourceLocation::whole("a.yaml"), "empty value");
        let expected = "--karg-append: error: empty value\n  the same at a.yaml\n";
        assert_eq!(report_lines(&report), expected);
    }

    #[test]
    fn many_equal_findings_are_one_group() {
        let expected = "1.yaml:1: error: bad value\n  the same at 2.yaml:2: spec.x, 3.yaml:3, 4.yaml:4 and 96 more\n\
            other.yaml: warning: bad value\n";
        assert_eq!(report_lines(&report(100)), expected);
        let expected = "1.yaml:1: error: bad value\n  the same at 2.yaml:2: spec.x, 3.yaml:3, 4.yaml:4\n\
            other.yaml: warning: bad value\n";
        assert_eq!(report_lines(&report(4)), expected);
    }
}

//! The result of a run: as JSON, as Markdown, and as the generated part of a page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::axis::Axis;
use super::capacity;
use crate::figures::{Figure, Line, Measure};
use crate::machine::Machine;
use crate::report::{number, with_generated};

const BEGIN: &str = "<!-- scale: begin -->";
const END: &str = "<!-- scale: end -->";
const SUBJECT: &str = "kindling";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) version: String,
    pub(crate) command: String,
    pub(crate) rounds: u64,
    pub(crate) seconds: f64,
    pub(crate) curves: Vec<Curve>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    pub(crate) key: String,
    pub(crate) title: String,
    /// The unit of the sizes.
    pub(crate) unit: String,
    pub(crate) points: Vec<Point>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) size: u64,
    pub(crate) line: Line,
}

impl Curve {
    pub(crate) fn new(axis: Axis) -> Self {
        Self {
            key: axis.key().to_owned(),
            title: axis.title().to_owned(),
            unit: axis.unit().to_owned(),
            points: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, size: u64, measures: &[Measure]) {
        let existing = self.points.iter().position(|point| point.size == size);
        let at = existing.unwrap_or_else(|| {
            let line = Line::new(&format!("{}-{size}", self.key), &format!("{size} {}", self.unit));
            self.points.push(Point { size, line });
            self.points.len() - 1
        });
        if let Some(point) = self.points.get_mut(at) {
            point.line.add(SUBJECT, measures);
        }
    }

    /// Names and units of all measurements, in the order of their first occurrence.
    pub(crate) fn figures(&self) -> Vec<(&str, &str)> {
        let mut names: Vec<(&str, &str)> = Vec::new();
        for figure in self.points.iter().flat_map(|point| &point.line.figures) {
            let name = (figure.name.as_str(), figure.unit.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the medians of a measurement by size.
    pub(crate) fn medians(&self, name: &str) -> Vec<(u64, f64)> {
        let median = |point: &Point| Some((point.size, point.line.figure(name).and_then(middle)?));
        self.points.iter().filter_map(median).collect()
    }

    /// Writes a table with a row for each measurement and a column for each size.
    fn table(&self, text: &mut String) {
        let sizes: Vec<String> = self.points.iter().map(|point| grouped(point.size)).collect();
        let _ = writeln!(
            text,
            "\n### {}\n\n| {} | {} |\n|---|{}",
            self.title,
            self.unit,
            sizes.join(" | "),
            "---:|".repeat(sizes.len())
        );
        for (name, unit) in self.figures() {
            let cell = |point: &Point| {
                let median = point.line.figure(name).and_then(middle);
                median.map_or_else(|| "-".to_owned(), |median| format!("{} {unit}", number(median)))
            };
            let cells: Vec<String> = self.points.iter().map(cell).collect();
            let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
        }
    }
}

fn middle(figure: &Figure) -> Option<f64> {
    figure.median(SUBJECT)
}

/// Formats a number with commas between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + 6);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Report {
    /// Returns a table for each axis, after a line with the conditions of the run.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "{}\nkindling {}. Medians of {} rounds, {} s for each measurement of rates:\n\n```sh\n{}\n```\n",
            self.machine, self.version, self.rounds, self.seconds, self.command
        );
        for curve in &self.curves {
            curve.table(&mut text);
        }
        text.push_str(&capacity::markdown(&self.curves));
        text
    }

    /// Writes the tables into their page in a folder of documentation.
    ///
    /// # Errors
    ///
    /// Returns an error if the page is missing or has no generated part.
    pub(crate) fn write(&self, docs: &Path) -> Result<()> {
        let path = docs.join("scale.md");
        let about = || format!("writing {}", path.display());
        let page = fs::read_to_string(&path).with_context(about)?;
        let page = with_generated(&page, (BEGIN, END), &self.markdown()).with_context(about)?;
        fs::write(&path, page).with_context(about)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::measure::lower;
    use crate::raw;
    use crate::report::tests::{assert_golden, example as other};
    use crate::scale::probe::{higher, mib};

    pub(crate) fn example() -> Report {
        let mut hosts = Curve::new(Axis::Hosts);
        let mut connections = Curve::new(Axis::Connections);
        for (round, factor) in [(1, 1.0), (2, 1.5), (3, 1.25)] {
            for (size, time) in [(10, 1.0), (100, 2.5), (1_000, 25.0), (10_000, 400.0)] {
                hosts.add(
                    size,
                    &[
                        lower("to the <API>", "ms", time * factor),
                        lower("first byte", "ms", time),
                        mib("memory", round << 20),
                    ],
                );
            }
            for (size, rate) in [(1, 9_000.0), (10, 30_000.0)] {
                connections.add(
                    size,
                    &[
                        higher("rate", "requests/s", rate * factor),
                        lower("growth", "KiB", 0.0),
                        lower("CPU time of bytes", "s/GiB", 1.0 / factor),
                    ],
                );
            }
        }
        Report {
            machine: other().machine,
            version: "0.1.0".to_owned(),
            command: "cargo run --profile dist -p bench-http -- scale".to_owned(),
            rounds: 3,
            seconds: 2.0,
            curves: vec![hosts, connections],
        }
    }

    #[test]
    fn tables_match_the_golden() {
        assert_golden("scale.md", &example().markdown());
    }

    #[test]
    fn rounds_are_grouped_by_size() {
        let curve = example().curves.remove(0);
        assert_eq!(
            curve.medians("to the <API>"),
            [(10, 1.25), (100, 3.125), (1_000, 31.25), (10_000, 500.0)]
        );
        assert_eq!(curve.medians("nothing"), []);
        assert_eq!(curve.figures(), [("to the <API>", "ms"), ("first byte", "ms"), ("memory", "MiB")]);
    }

    #[test]
    fn report_round_trips_through_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        raw::save(&path, &example()).unwrap();
        assert_eq!(raw::open::<Report>(&path).unwrap(), example());
    }

    #[test]
    fn tables_are_written_into_their_page() {
        let folder = tempfile::tempdir().unwrap();
        assert!(example().write(folder.path()).is_err());
        fs::write(folder.path().join("scale.md"), format!("# Title\n{BEGIN}\n{END}\nfoot\n")).unwrap();
        example().write(folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("scale.md")).unwrap();
        assert!(page.starts_with("# Title\n") && page.ends_with("\nfoot\n"), "{page}");
        assert!(page.contains("\n### Hosts of an infra-env\n"), "{page}");
    }

    #[test]
    fn page_of_this_repository_has_the_markers() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scale.md");
        let page = fs::read_to_string(page).unwrap();
        assert!(with_generated(&page, (BEGIN, END), "new").unwrap().contains("new"));
    }

    #[test]
    fn thousands_have_commas() {
        assert_eq!(
            [1, 999, 1_000, 65_536, 1_048_576].map(grouped),
            ["1", "999", "1,000", "65,536", "1,048,576"]
        );
    }
}

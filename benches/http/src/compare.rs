//! Compares two runs, and reports the ratios that are above 1 in one run and below 1 in the other.

use std::fmt::Write as _;

use crate::figures::{Line, Ratio, Sign};
use crate::report::Report;

/// A measurement whose ratio is above 1 in one run and below 1 in the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) title: String,
    pub(crate) figure: String,
    pub(crate) first: Ratio,
    pub(crate) second: Ratio,
}

impl Difference {
    /// Returns `true` if all rounds of each run agree, so that noise does not explain the difference.
    pub(crate) fn is_clear(&self) -> bool {
        let signs = [self.first.spread.sign(), self.second.spread.sign()];
        !signs.contains(&Sign::Either)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    /// Number of ratios in both runs.
    pub(crate) compared: usize,
    pub(crate) differences: Vec<Difference>,
    /// Titles of lines in only one of the runs.
    pub(crate) alone: Vec<String>,
}

pub(crate) fn compare(first: &Report, second: &Report) -> Comparison {
    let mut comparison = Comparison { compared: 0, differences: Vec::new(), alone: Vec::new() };
    for line in &first.lines {
        match second.lines.iter().find(|other| other.key == line.key) {
            Some(other) => comparison.add(line, other, (&first.subject, &second.subject)),
            None => comparison.alone.push(line.title.clone()),
        }
    }
    let only = |line: &&Line| !first.lines.iter().any(|other| other.key == line.key);
    comparison.alone.extend(second.lines.iter().filter(only).map(|line| line.title.clone()));
    comparison
}

impl Comparison {
    fn add(&mut self, line: &Line, other: &Line, subjects: (&str, &str)) {
        for figure in &line.figures {
            let first = figure.ratio(subjects.0);
            let second = other.figure(&figure.name).and_then(|figure| figure.ratio(subjects.1));
            let Some((first, second)) = first.zip(second) else { continue };
            self.compared += 1;
            let (one, two) = (first.spread.median, second.spread.median);
            if (one > 1.0 && two < 1.0) || (one < 1.0 && two > 1.0) {
                let title = line.title.clone();
                self.differences.push(Difference { title, figure: figure.name.clone(), first, second });
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "both runs have {} ratios; {} are on different sides of 1\n",
            self.compared,
            self.differences.len()
        );
        for difference in &self.differences {
            let show = |ratio: &Ratio| {
                let spread = ratio.spread;
                format!("{:.2} ({:.2} to {:.2})", spread.median, spread.low, spread.high)
            };
            let clear = if difference.is_clear() { "in every round" } else { "within their spread" };
            let _ = writeln!(
                text,
                "  {}, {}: {} and {}, {clear}",
                difference.title,
                difference.figure,
                show(&difference.first),
                show(&difference.second)
            );
        }
        for title in &self.alone {
            let _ = writeln!(text, "  {title}: in one run only");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::example;

    fn faster(factor: f64) -> Report {
        let mut report = example();
        for figure in report.lines.iter_mut().flat_map(|line| &mut line.figures) {
            if figure.name == "rate" {
                figure.samples.get_mut("kindling").unwrap().iter_mut().for_each(|rate| *rate *= factor);
            }
        }
        report
    }

    #[test]
    fn run_does_not_differ_from_itself() {
        let comparison = compare(&example(), &example());
        assert_eq!(
            (comparison.compared, comparison.differences, comparison.alone),
            (3, Vec::new(), Vec::new())
        );
    }

    #[test]
    fn ratios_on_different_sides_of_one_are_reported() {
        let comparison = compare(&example(), &faster(1.3));
        let titles: Vec<&str> =
            comparison.differences.iter().map(|difference| difference.title.as_str()).collect();
        assert_eq!(titles, ["ranges <of> 2 KiB, HTTP"]);
        assert!(!comparison.differences[0].is_clear());
        let comparison = compare(&example(), &faster(0.1));
        assert_eq!(comparison.differences.len(), 1);
        assert!(comparison.differences[0].is_clear());
        assert!(
            comparison.text().contains("whole image, 1 client, HTTP, rate: 1.40 (1.10 to 1.50) and 0.14")
        );
        assert!(comparison.text().contains("in every round"));
    }

    #[test]
    fn lines_of_only_one_run_are_reported() {
        let mut shorter = example();
        shorter.lines.remove(0);
        for comparison in [compare(&example(), &shorter), compare(&shorter, &example())] {
            assert_eq!(comparison.alone, ["whole image, 1 client, HTTP"]);
            assert!(comparison.text().contains("in one run only"));
        }
    }
}

//! The short form of a run for `docs/performance.md`: one table of ratios, and a list of the other measurements.

use std::fmt::Write as _;

use crate::figures::{Figure, Line};
use crate::report::{Report, number};

/// The measurements with columns in the table.
const COLUMNS: [&str; 2] = ["rate", "CPU time of the server"];
/// Maximum width of a line of the page.
const WIDTH: usize = 120;

impl Report {
    /// Returns the conditions of the run, a row for each line with a rate, and a list of the measurements of the other
    /// lines.
    pub(crate) fn summary(&self) -> String {
        let (rates, others): (Vec<&Line>, Vec<&Line>) =
            self.lines.iter().partition(|line| line.figure(COLUMNS[0]).is_some());
        let mut text = self.conditions();
        text.push_str("\n| work | rate | ratio | CPU time | ratio |\n|---|---:|---|---:|---|\n");
        for line in rates {
            let cells = COLUMNS.map(|name| line.figure(name).map_or("- | -".to_owned(), |it| self.cells(it)));
            let _ = writeln!(text, "| {} | {} |", line.title, cells.join(" | "));
        }
        text.push('\n');
        for line in others {
            let figures: Vec<String> = line.figures.iter().map(|figure| self.phrase(figure)).collect();
            let item = format!("* {}: {}", line.title, figures.join("; "));
            let item = if item.len() > WIDTH { item.replace("; ", ";\n  ") } else { item };
            let _ = writeln!(text, "{item}");
        }
        text
    }

    fn cells(&self, figure: &Figure) -> String {
        format!("{} | {}", self.value(figure), self.spread(figure).unwrap_or_else(|| "-".to_owned()))
    }

    fn phrase(&self, figure: &Figure) -> String {
        let ratio = self.spread(figure).map_or(String::new(), |spread| format!(", ratio {spread}"));
        format!("{} {}{ratio}", figure.name, self.value(figure))
    }

    fn value(&self, figure: &Figure) -> String {
        let median = figure.median(&self.subject);
        median.map_or_else(|| "-".to_owned(), |median| format!("{} {}", number(median), figure.unit))
    }

    /// Returns the median, lowest and highest ratio to the better rival, over all rounds.
    fn spread(&self, figure: &Figure) -> Option<String> {
        let spread = figure.ratio(&self.subject)?.spread;
        Some(format!("{:.2} ({:.2} to {:.2})", spread.median, spread.low, spread.high))
    }
}

#[cfg(test)]
mod tests {
    use crate::report::tests::{assert_golden, example};

    #[test]
    fn summary_matches_the_golden() {
        assert_golden("summary.md", &example().summary());
    }
}

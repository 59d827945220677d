//! The result of a run: as JSON, as Markdown, and as a list of missed bounds.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::load::LoadTally;
use super::measure::RoundSample;
use super::workload::{CONTROL, FigureBound, FigureLimit, SUBJECT, Sizes, Workload};
use crate::figures::{Figure, Line, Spread};
use crate::machine::Machine;
use crate::report::number;
use crate::work::Size;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) version: String,
    pub(crate) command: String,
    pub(crate) database: String,
    pub(crate) rounds: u64,
    pub(crate) seconds: f64,
    pub(crate) sizes: Sizes,
    pub(crate) rows: Vec<ResultRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResultRow {
    pub(crate) line: Line,
    /// Check-ins during all measurements of the row.
    pub(crate) load: LoadTally,
}

impl Report {
    /// Returns a table of all measurements, below a line with the conditions of the run.
    pub(crate) fn markdown(&self) -> String {
        let Sizes { hosts, infra_envs, networks, .. } = self.sizes;
        let mut text = format!(
            "{}\nkindling {}, {}, {hosts} hosts; images of {infra_envs} infra-envs with {networks} static networks each.\n\
             Medians of {} rounds (lowest to highest), {} s for each measurement:\n\n```sh\n{}\n```\n\n\
             | work | figure | measured | limit | result |\n|---|---|---|---|---|\n",
            self.machine, self.version, self.database, self.rounds, self.seconds, self.command
        );
        for row in &self.rows {
            self.table_rows(&mut text, row);
        }
        for row in self.rows.iter().filter(|row| row.load.check_ins > 0) {
            let LoadTally { check_ins, replies, late, failed, failure } = &row.load;
            let _ = write!(
                text,
                "\n* {}: {check_ins} check-ins with {replies} replies; {failed} failed, {late} began late or not at all",
                row.line.title
            );
            if let Some(failure) = failure {
                let _ = write!(text, " (first failure: {failure})");
            }
        }
        text.push('\n');
        text
    }

    fn table_rows(&self, text: &mut String, row: &ResultRow) {
        let bounds = row.bounds();
        for figure in &row.line.figures {
            let bound = bounds.iter().find(|bound| bound.figure == figure.name);
            let limit = bound.map_or("-".to_owned(), |bound| limit(bound, &figure.unit));
            let result = bound.map_or("-", |bound| self.result(row, bound));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {limit} | {result} |",
                row.line.title,
                figure.name,
                measured(figure)
            );
        }
    }

    fn result(&self, row: &ResultRow, bound: &FigureBound) -> &'static str {
        if self.sizes != Sizes::new(Size::Full) {
            "not checked"
        } else if row.load.misses() > 0 {
            "**invalid**"
        } else if bound.is_kept(&row.line) {
            "kept"
        } else {
            "**missed**"
        }
    }

    /// Describes each row that is invalid or misses a bound.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for row in &self.rows {
            let title = &row.line.title;
            if row.load.misses() > 0 {
                let LoadTally { late, failed, .. } = row.load;
                faults.push(format!(
                    "{title}: invalid: {late} check-ins began late or not at all, {failed} failed"
                ));
                continue;
            }
            for bound in row.bounds().iter().filter(|bound| !bound.is_kept(&row.line)) {
                let figure = row.line.figure(bound.figure);
                let result = figure.map_or("not measured".to_owned(), measured);
                let unit = figure.map_or("", |figure| figure.unit.as_str());
                faults.push(format!("{title}: {} is {result}, limit {}", bound.figure, limit(bound, unit)));
            }
        }
        faults
    }
}

impl ResultRow {
    pub(crate) fn add(&mut self, sample: RoundSample) {
        self.line.add(sample.contestant, &sample.measures);
        self.load.add(sample.load);
    }

    fn bounds(&self) -> &'static [FigureBound] {
        Workload::ALL
            .iter()
            .find(|workload| workload.key() == self.line.key)
            .map_or(&[], |workload| workload.bounds())
    }
}

/// Formats the median, lowest and highest value of a measurement, and of its ratio to the control if there is one.
fn measured(figure: &Figure) -> String {
    let Some(spread) = figure.samples.get(SUBJECT).and_then(|samples| Spread::from_values(samples)) else {
        return "-".to_owned();
    };
    let Spread { median, low, high } = spread;
    let own = format!("{} ({} to {}) {}", number(median), number(low), number(high), figure.unit);
    let Some(ratio) = figure.ratio(SUBJECT) else { return own.trim_end().to_owned() };
    let Spread { median, low, high } = ratio.spread;
    format!("ratio {median:.2} ({low:.2} to {high:.2}) to {CONTROL}; {own}")
}

fn limit(bound: &FigureBound, unit: &str) -> String {
    match bound.limit {
        FigureLimit::LowestRatio(least) => format!("ratio at least {least}"),
        FigureLimit::Highest(most) => format!("at most {most} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::workload::{CORE_SHARE, RATE};
    use crate::figures::{Better, Measure};
    use crate::measure::lower;
    use crate::raw;
    use crate::report::tests::{assert_golden, example as other};

    fn example() -> Report {
        let sizes = Sizes::new(Size::Full);
        let rate = |value| Measure { name: RATE, unit: "requests/s", better: Better::Higher, value };
        let row = |workload: Workload| ResultRow {
            line: Line::new(workload.key(), &workload.title(&sizes)),
            load: LoadTally { check_ins: 5_010, replies: 10_020, ..LoadTally::default() },
        };
        let mut ranges = row(Workload::Ranges);
        let mut check_ins = row(Workload::CheckIns);
        let mut start = ResultRow { load: LoadTally::default(), ..row(Workload::Start) };
        for (subject, control) in [(99_000.0, 100_000.0), (98_000.0, 100_000.0), (100_000.0, 99_000.0)] {
            ranges.line.add(SUBJECT, &[rate(subject)]);
            ranges.line.add(CONTROL, &[rate(control)]);
            let cost =
                Measure { name: CORE_SHARE, unit: "%", better: Better::Lower, value: subject / 5_000.0 };
            check_ins.line.add(SUBJECT, &[cost, lower("CPU time of a check-in", "\u{b5}s", 1_194.0)]);
            start.line.add(SUBJECT, &[lower("start to ready", "ms", 25.0)]);
        }
        Report {
            machine: other().machine,
            version: "0.1.0".to_owned(),
            command: "cargo run --profile dist -p bench-http -- agents".to_owned(),
            database: "SQLite".to_owned(),
            rounds: 3,
            seconds: 10.0,
            sizes,
            rows: vec![ranges, check_ins, start],
        }
    }

    #[test]
    fn table_matches_the_golden() {
        assert_golden("agents.md", &example().markdown());
    }

    #[test]
    fn exceeded_limits_are_faults() {
        let faults = example().faults();
        let [share, memory] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(share.ends_with("share of one core is 19.8 (19.6 to 20.0) %, limit at most 15 %"), "{share}");
        assert!(memory.contains("private memory is not measured"), "{memory}");
    }

    #[test]
    fn late_or_failed_check_ins_make_a_row_invalid() {
        for load in [
            LoadTally { check_ins: 9, late: 1, ..LoadTally::default() },
            LoadTally { check_ins: 9, failed: 1, failure: Some("why".to_owned()), ..LoadTally::default() },
        ] {
            let mut report = example();
            report.rows.truncate(1);
            assert!(report.faults().is_empty());
            report.rows[0].load = load;
            assert!(report.faults()[0].contains(": invalid: "), "{:?}", report.faults());
            assert!(report.markdown().contains("| **invalid** |"), "{}", report.markdown());
        }
    }

    #[test]
    fn short_run_checks_no_bounds() {
        let report = Report { sizes: Sizes::new(Size::Small), ..example() };
        assert!(report.markdown().contains("| not checked |") && !report.markdown().contains("kept"));
    }

    #[test]
    fn report_round_trips_through_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        raw::save(&path, &example()).unwrap();
        assert_eq!(raw::open::<Report>(&path).unwrap(), example());
    }
}

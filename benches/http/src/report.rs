//! The result of a run: as JSON, as Markdown, and as the generated part of a page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::bare::SendMethod;
use crate::bench::WITHOUT_FAST_PATH;
use crate::figures::{Figure, Line, Spread};
use crate::machine::Machine;

/// Markers around the generated part of a page.
const BEGIN: &str = "<!-- bench-http: begin -->";
const END: &str = "<!-- bench-http: end -->";

/// Measurements that the tables of minimal servers contain.
const BOUNDED: [&str; 2] = ["rate", "CPU time of the server"];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) command: String,
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
    /// Length of the image in bytes.
    pub(crate) image_len: u64,
    /// The contestant whose measurements are the dividend of the ratios.
    pub(crate) subject: String,
    /// All contestants with their versions, in the order of columns.
    pub(crate) contestants: Vec<(String, String)>,
    /// The negotiated TLS version and cipher suite of each contestant.
    pub(crate) suites: Vec<(String, String)>,
    pub(crate) lines: Vec<Line>,
    /// Measurements of the minimal servers in the same rounds.
    #[serde(default)]
    pub(crate) bare: Vec<Line>,
    /// Measurements of Kindling without its fast path in the same rounds; empty unless requested.
    #[serde(default)]
    pub(crate) without_fast_path: Vec<Line>,
    /// The configuration of nginx; empty if nginx was not measured.
    pub(crate) nginx: String,
}

impl Report {
    /// Returns all tables, after a line with the conditions of the run.
    pub(crate) fn markdown(&self) -> String {
        let mut text = self.conditions() + &self.command();
        for name in self.figure_names() {
            self.section(&mut text, &name);
        }
        self.without_fast_path(&mut text);
        self.write_minimal_servers(&mut text);
        if !self.nginx.is_empty() {
            let _ =
                write!(text, "\n### Configuration of nginx\n\n```nginx\n{}\n```\n", self.nginx.trim_end());
        }
        text
    }

    /// Returns the command of the run and the cipher suites, for the text below the conditions.
    fn command(&self) -> String {
        let mut text = format!("\n```sh\n{}\n```\n", self.command);
        for (name, suite) in &self.suites {
            let _ = write!(text, "\nTLS with {name}: {suite}.");
        }
        if !self.suites.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Returns a paragraph on the machine, the programs and the run.
    pub(crate) fn conditions(&self) -> String {
        let versions: Vec<String> = self
            .contestants
            .iter()
            .map(|(name, version)| format!("{name} {version}").trim().to_owned())
            .collect();
        format!(
            "{}\n{}.\nAn image of {} MiB, {} rounds, {} s for each measurement.\n",
            self.machine,
            versions.join(", "),
            self.image_len >> 20,
            self.rounds,
            self.seconds,
        )
    }

    /// Returns the names of all measurements, in the order of their first occurrence.
    fn figure_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for figure in self.lines.iter().flat_map(|line| &line.figures) {
            if !names.contains(&figure.name) {
                names.push(figure.name.clone());
            }
        }
        names
    }

    fn section(&self, text: &mut String, name: &str) {
        let rows: Vec<(&Line, &Figure)> =
            self.lines.iter().filter_map(|line| Some((line, line.figure(name)?))).collect();
        let _ = writeln!(text, "\n### {}\n", capitalised(name));
        let columns: Vec<&String> = self
            .contestants
            .iter()
            .map(|(contestant, _)| contestant)
            .filter(|contestant| rows.iter().any(|(_, figure)| figure.samples.contains_key(*contestant)))
            .collect();
        let has_ratios = rows.iter().any(|(_, figure)| figure.ratio(&self.subject).is_some());
        let mut heads = vec!["work".to_owned()];
        heads.extend(columns.iter().map(|name| (*name).clone()));
        if has_ratios {
            heads.push("ratio (lowest to highest)".to_owned());
        }
        let _ = writeln!(text, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
        for (line, figure) in rows {
            let mut cells = vec![line.title.clone()];
            cells.extend(columns.iter().map(|name| cell(figure, name)));
            if has_ratios {
                cells.push(self.ratio_cell(figure));
            }
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }

    fn ratio_cell(&self, figure: &Figure) -> String {
        let Some(ratio) = figure.ratio(&self.subject) else { return "-".to_owned() };
        let spread = ratio.spread;
        let text = format!("**{:.2}** ({:.2} to {:.2})", spread.median, spread.low, spread.high);
        if self.contestants.len() > 2 { format!("{text} to {}", ratio.rival) } else { text }
    }

    /// Writes the section about the minimal servers, which show the limits of each send method.
    fn write_minimal_servers(&self, text: &mut String) {
        if self.bare.is_empty() {
            return;
        }
        text.push_str(
            "\n### Minimal servers\n\n\
             Each has an event loop for each processor, knows one file, accepts every request, looks only at `Range`, \
             and responds with a head as long as Kindling's.\n\
             They copy from a mapping, use `sendfile`, or use a pipe of 1 MiB. \
             After each value is its ratio to the better rival.\n\n",
        );
        self.write_uncompared_servers(text, &self.bare, &SendMethod::ALL.map(SendMethod::name));
    }

    fn without_fast_path(&self, text: &mut String) {
        if self.without_fast_path.is_empty() {
            return;
        }
        text.push_str(
            "\n### Without the fast path\n\n\
             Kindling with `--fast-path off`, in the same rounds. Each figure is followed by its ratio to the better rival.\n\n",
        );
        self.write_uncompared_servers(text, &self.without_fast_path, &[WITHOUT_FAST_PATH]);
    }

    /// Writes a table of the subject and of the servers that are not compared with it.
    fn write_uncompared_servers(&self, text: &mut String, lines: &[Line], others: &[&str]) {
        let mut names = vec![self.subject.as_str()];
        names.extend(others);
        let _ = writeln!(
            text,
            "| work | figure | {} |\n|---|---|{}",
            names.join(" | "),
            "---|".repeat(names.len())
        );
        for (line, other) in lines.iter().filter_map(|other| Some((self.line(&other.key)?, other))) {
            for figure in BOUNDED {
                let (Some(figure), Some(other)) = (line.figure(figure), other.figure(figure)) else {
                    continue;
                };
                let samples = |name: &&str| figure.samples.get(*name).or_else(|| other.samples.get(*name));
                let cells = names.iter().map(|name| self.bounded_cell(figure, samples(name)));
                let cells: Vec<String> = cells.collect();
                let _ = writeln!(text, "| {} | {} | {} |", line.title, figure.name, cells.join(" | "));
            }
        }
    }

    fn bounded_cell(&self, figure: &Figure, samples: Option<&Vec<f64>>) -> String {
        let Some((samples, spread)) =
            samples.and_then(|samples| Some((samples, Spread::from_values(samples)?)))
        else {
            return "-".to_owned();
        };
        let ratio = figure.ratio_of(samples, &self.subject);
        let ratio = ratio.map_or(String::new(), |ratio| format!(", **{:.2}**", ratio.spread.median));
        format!("{} {}{ratio}", number(spread.median), figure.unit)
    }

    fn line(&self, key: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.key == key)
    }

    /// Writes the summary into `performance.md` in a folder of documentation.
    ///
    /// # Errors
    ///
    /// Returns an error if the page is missing or has no generated part.
    pub(crate) fn write(&self, docs: &Path) -> Result<()> {
        let path = docs.join("performance.md");
        let about = || format!("writing {}", path.display());
        let page = fs::read_to_string(&path).with_context(about)?;
        let page = with_generated(&page, (BEGIN, END), &self.summary()).with_context(about)?;
        fs::write(&path, page).with_context(about)
    }
}

/// Replaces the generated part of a page, which is between two markers.
///
/// # Errors
///
/// Returns an error if the page has no generated part, or several.
pub(crate) fn with_generated(page: &str, (begin, end): (&str, &str), generated: &str) -> Result<String> {
    let missing = || format!("the page has no generated part between {begin} and {end}");
    let (before, rest) = page.split_once(begin).with_context(missing)?;
    let (_, after) = rest.split_once(end).with_context(missing)?;
    ensure!(!after.contains(begin) && !after.contains(end), "the page has more than one generated part");
    Ok(format!("{before}{begin}\n{}\n{end}{after}", generated.trim_end()))
}

fn cell(figure: &Figure, contestant: &str) -> String {
    figure
        .median(contestant)
        .map_or_else(|| "-".to_owned(), |median| format!("{} {}", number(median), figure.unit))
}

/// Formats a number with three significant digits, or with all digits before the decimal point.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::figures::{Better, Measure};
    use crate::raw;

    pub(crate) fn example() -> Report {
        let rate = |value| Measure { name: "rate", unit: "GiB/s", better: Better::Higher, value };
        let cost =
            |value| Measure { name: "CPU time of the server", unit: "s/GiB", better: Better::Lower, value };
        let own = |value| Measure { name: "first bytes, median", unit: "ms", better: Better::Lower, value };
        let mut stream = Line::new("http-stream-1", "whole image, 1 client, HTTP");
        let mut ranges = Line::new("http-ranges-2k-32", "ranges <of> 2 KiB, HTTP");
        let mut images = Line::new("http-new-images-200", "200 concurrent new images, HTTP");
        for (subject, sendfile, buffers) in [(3.0, 2.0, 1.0), (2.2, 2.0, 1.5), (2.8, 2.0, 2.5)] {
            stream.add("kindling", &[rate(subject), cost(subject / 8.0)]);
            stream.add("nginx sendfile", &[rate(sendfile), cost(sendfile / 8.0)]);
            stream.add("nginx buffers", &[rate(buffers), cost(buffers / 8.0)]);
            ranges.add("kindling", &[rate(subject * 30.0)]);
            ranges.add("nginx sendfile", &[rate(100.0)]);
            ranges.add("nginx buffers", &[rate(20.0)]);
            images.add("kindling", &[own(subject)]);
        }
        let mut bare = Line::new("http-stream-1", "whole image, 1 client, HTTP");
        for (writes, sendfile) in [(3.0, 2.2), (2.9, 2.3), (3.1, 2.4)] {
            bare.add("bare writes", &[rate(writes), cost(writes / 8.0)]);
            bare.add("bare sendfile", &[rate(sendfile), cost(sendfile / 8.0)]);
        }
        let mut without_fast_path = Line::new("http-ranges-2k-32", "ranges <of> 2 KiB, HTTP");
        for value in [60.0, 70.0, 50.0] {
            without_fast_path.add(WITHOUT_FAST_PATH, &[rate(value)]);
        }
        Report {
            machine: Machine {
                date: "2026-01-02".to_owned(),
                cpu: "Example 3000".to_owned(),
                cores: 2,
                kernel: "6.1.0".to_owned(),
                congestion: "cubic".to_owned(),
                load: "0.10".to_owned(),
            },
            command: "cargo run --profile dist -p bench-http".to_owned(),
            rounds: 3,
            seconds: 2.0,
            image_len: 1 << 30,
            subject: "kindling".to_owned(),
            contestants: [("kindling", "0.1.0"), ("nginx sendfile", "1.22.1"), ("nginx buffers", "1.22.1")]
                .map(|(name, version)| (name.to_owned(), version.to_owned()))
                .into(),
            suites: vec![("kindling".to_owned(), "TLSv1_3 TLS13_AES_256_GCM_SHA384".to_owned())],
            lines: vec![stream, ranges, images],
            bare: vec![bare],
            without_fast_path: vec![without_fast_path],
            nginx: "sendfile @SENDFILE@;\n".to_owned(),
        }
    }

    /// Compares text with a file in `goldens`; `UPDATE_GOLDEN=1 cargo test -p bench-http` rewrites it.
    pub(crate) fn assert_golden(name: &str, text: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, text).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap();
        assert!(golden == text, "{} differs from the new text:\n{text}", path.display());
    }

    #[test]
    fn tables_match_the_golden() {
        assert_golden("report.md", &example().markdown());
    }

    #[test]
    fn report_round_trips_through_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        raw::save(&path, &example()).unwrap();
        assert_eq!(raw::open::<Report>(&path).unwrap(), example());
        fs::write(&path, "{}").unwrap();
        assert!(raw::open::<Report>(&path).is_err());
    }

    #[test]
    fn text_around_the_generated_part_is_kept() {
        let page = format!("# Title\n\n{BEGIN}\nold\n{END}\n\nfoot\n");
        let with_generated = |page: &str, text: &str| with_generated(page, (BEGIN, END), text);
        let once = with_generated(&page, "new\n").unwrap();
        assert_eq!(once, format!("# Title\n\n{BEGIN}\nnew\n{END}\n\nfoot\n"));
        assert_eq!(with_generated(&once, "new\n").unwrap(), once);
        for page in ["", BEGIN, END, &format!("{END}{BEGIN}"), &format!("{BEGIN}{END}{BEGIN}{END}")] {
            assert!(with_generated(page, "new").is_err(), "{page}");
        }
    }

    #[test]
    fn summary_is_written_into_its_page() {
        let folder = tempfile::tempdir().unwrap();
        assert!(example().write(folder.path()).is_err());
        fs::write(folder.path().join("performance.md"), format!("# Title\n{BEGIN}{END}\n")).unwrap();
        example().write(folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("performance.md")).unwrap();
        assert!(page.starts_with("# Title\n") && page.contains("\n\n| work | rate |"), "{page}");
    }

    #[test]
    fn numbers_have_three_digits() {
        let numbers = [0.01234, 0.5, 1.234, 12.34, 123.4, 12_345.6];
        assert_eq!(numbers.map(number), ["0.012", "0.500", "1.23", "12.3", "123", "12346"]);
    }
}

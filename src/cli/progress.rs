//! The progress bars of all commands, and the log lines that replace them if stderr is not a terminal.
//!
//! * [`StderrScreen::show_progress`] shows downloads and checks of base images (`serve`, `discovery create`, `plan`).
//! * [`file_bar`] shows how much of a file is written (`discovery create` and `apply`).
//! * [`status_line`] shows a changing text (`simulate`).

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::images::library::{BaseImageState, ImageState, Library};

/// Number of equal parts of an image. Without a terminal, a line is logged after each part.
const TENTHS: u64 = 10;
/// Maximum time between two log lines about an image.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// All progress bars of the process.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Hides the progress bars while `write` writes to the terminal.
pub(in crate::cli) fn without_bars<T>(write: impl FnOnce() -> T) -> T {
    BARS.suspend(write)
}

/// Removes all bars from the terminal.
pub(in crate::cli) fn clear_bars() {
    // An error here must not make the command fail.
    let _ = BARS.clear();
}

/// Standard error, shared by progress bars and log lines. The bars are hidden while a line is written.
#[derive(Clone, Debug)]
pub(in crate::cli) struct StderrScreen {
    shows_bars: bool,
}

impl StderrScreen {
    /// Shows progress bars if stderr is a terminal.
    pub(in crate::cli) fn with_bars() -> Self {
        Self { shows_bars: io::stderr().is_terminal() }
    }

    /// Shows log lines instead of progress bars.
    pub(in crate::cli) fn without_bars() -> Self {
        Self { shows_bars: false }
    }

    /// Shows the progress of a library's images. Ends only if the task is aborted.
    pub(in crate::cli) async fn show_progress(self, library: Library) {
        let mut changes = library.state_changes();
        let mut lines = ProgressLog::default();
        let mut bars = self.shows_bars.then(ProgressBars::default);
        loop {
            for image in library.states() {
                match &mut bars {
                    Some(bars) => bars.update_bar(&image),
                    None => lines.log_if_due(&image, Instant::now()),
                }
            }
            // Also continue after a timeout, to log that the image still makes no progress.
            if let Ok(Err(_)) = tokio::time::timeout(LONGEST_SILENCE, changes.changed()).await {
                return;
            }
        }
    }
}

impl Write for StderrScreen {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        without_bars(|| io::stderr().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Returns a progress bar for writing a file of `len` bytes. It is hidden if stderr is not a terminal.
pub(in crate::cli) fn file_bar(len: u64) -> ProgressBar {
    if io::stderr().is_terminal() {
        let template = "{bar:30} {bytes}/{total_bytes}, {binary_bytes_per_sec}";
        BARS.add(with_template(ProgressBar::new(len), template))
    } else {
        ProgressBar::hidden()
    }
}

/// Returns a status line with the elapsed time and a message. It is hidden if stderr is not a terminal.
pub(in crate::cli) fn status_line() -> ProgressBar {
    if io::stderr().is_terminal() {
        BARS.add(with_template(ProgressBar::new_spinner(), "{elapsed_precise} {wide_msg}"))
    } else {
        ProgressBar::hidden()
    }
}

/// Sets the style of a bar. Keeps the default style if the template is invalid.
fn with_template(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Returns a word for the operation on an image, the number of processed bytes and the total number of bytes.
fn operation_progress(state: &BaseImageState) -> Option<(&'static str, u64, u64)> {
    match *state {
        BaseImageState::Downloading { have, total: Some(total) } => Some(("downloaded", have, total)),
        BaseImageState::Verifying { have, total } => Some(("verified", have, total)),
        _ => None,
    }
}

/// The last logged progress of each image.
#[derive(Debug, Default)]
struct ProgressLog(BTreeMap<String, ReportedProgress>);

#[derive(Debug)]
struct ReportedProgress {
    work: &'static str,
    tenth: u64,
    at: Instant,
}

impl ProgressLog {
    fn log_if_due(&mut self, image: &ImageState, now: Instant) {
        if let Some((work, have, total)) = self.due_progress(image, now) {
            let percent = parts_done(have, total, 100);
            tracing::info!(image = image.name, have, total, percent, "base image is being {work}");
        }
    }

    /// Returns the progress to log, or `None` if no line is due.
    fn due_progress(&mut self, image: &ImageState, now: Instant) -> Option<(&'static str, u64, u64)> {
        let Some((work, have, total)) = operation_progress(&image.state) else {
            self.0.remove(&image.name);
            return None;
        };
        let tenth = parts_done(have, total, TENTHS);
        let last_report = self.0.get(&image.name);
        let is_new = last_report.is_none_or(|last_report| {
            last_report.work != work
                || last_report.tenth != tenth
                || now.duration_since(last_report.at) >= LONGEST_SILENCE
        });
        if !is_new {
            return None;
        }
        let is_first = last_report.is_none();
        self.0.insert(image.name.clone(), ReportedProgress { work, tenth, at: now });
        // Do not log the first state of an operation, only the progress after it.
        (!is_first).then_some((work, have, total))
    }
}

/// Divides `total` into `parts` equal parts, and returns the number of complete parts in `have`.
fn parts_done(have: u64, total: u64, parts: u64) -> u64 {
    have.min(total).saturating_mul(parts).checked_div(total).unwrap_or(parts)
}

/// The progress bars of all images with an operation in progress.
#[derive(Debug, Default)]
struct ProgressBars(BTreeMap<String, ProgressBar>);

impl ProgressBars {
    fn update_bar(&mut self, image: &ImageState) {
        let Some((work, have, total)) = operation_progress(&image.state) else {
            if let Some(bar) = self.0.remove(&image.name) {
                bar.finish_and_clear();
            }
            return;
        };
        let bar = self.0.entry(image.name.clone()).or_insert_with(|| {
            let template =
                "{prefix} {bar:30} {bytes}/{total_bytes} {msg}, {binary_bytes_per_sec}, {eta} left";
            let bar = with_template(ProgressBar::new(total), template);
            bar.set_prefix(image.name.clone());
            bar.set_message(work);
            BARS.add(bar)
        });
        bar.set_message(work);
        bar.set_length(total);
        bar.set_position(have);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use inventory::catalogue::OsImage;

    fn image_in_state(state: BaseImageState) -> ImageState {
        let image: OsImage = serde_json::from_value(json!({
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "u", "version": "1",
        }))
        .unwrap();
        ImageState { image, name: "one.iso".to_owned(), state, is_added: false }
    }

    fn downloading_image(have: u64) -> ImageState {
        image_in_state(BaseImageState::Downloading { have, total: Some(1000) })
    }

    #[test]
    fn each_tenth_of_a_download_logs_one_line() {
        let mut lines = ProgressLog::default();
        let now = Instant::now();
        let logged: Vec<u64> = (0..=1000)
            .filter_map(|have| lines.due_progress(&downloading_image(have), now))
            .map(|(_, have, _)| have)
            .collect();
        assert_eq!(logged, (1..=10).map(|tenth| tenth * 100).collect::<Vec<_>>());
        let verifying = image_in_state(BaseImageState::Verifying { have: 0, total: 1000 });
        assert_eq!(lines.due_progress(&verifying, now), Some(("verified", 0, 1000)));
    }

    #[test]
    fn slow_download_logs_after_timeout() {
        let mut lines = ProgressLog::default();
        let now = Instant::now();
        let logged: Vec<u64> = (0..100)
            .filter(|second| {
                lines.due_progress(&downloading_image(1), now + Duration::from_secs(*second)).is_some()
            })
            .collect();
        assert_eq!(logged, [30, 60, 90]);
        assert_eq!(lines.due_progress(&image_in_state(BaseImageState::Absent), now), None);
        assert_eq!(lines.due_progress(&downloading_image(5), now), None, "another download begins");
    }

    #[test]
    fn parts_done_stays_in_range_for_extreme_values() {
        assert_eq!(parts_done(0, 0, 10), 10);
        assert_eq!(parts_done(5, 4, 10), 10);
        assert_eq!(parts_done(1 << 40, 1 << 41, 100), 50);
    }
}

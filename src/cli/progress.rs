//! All progress bars of the command line, and the log lines that replace them if stderr is not a terminal.
//!
//! * [`Screen::follow`] shows the base images of a library that are being downloaded or hashed (`serve`,
//!   `discovery create` and `plan`).
//! * [`file_bar`] shows one file that is being written (`discovery create` and `apply`).

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::images::library::{ImageState, Library, State};

/// A line is written for each tenth of an image,
const TENTHS: u64 = 10;
/// and after so long.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// The standard error, where lines go past bars.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Screen(Option<MultiProgress>);

impl Screen {
    /// With bars where it is a terminal of people.
    pub(in crate::cli) fn for_people() -> Self {
        Self(io::stderr().is_terminal().then(MultiProgress::new))
    }

    /// Without bars.
    pub(in crate::cli) fn for_programs() -> Self {
        Self(None)
    }

    /// Shows how far the images of a library are, for ever.
    pub(in crate::cli) async fn follow(self, library: Library) {
        let mut changes = library.changes();
        let mut lines = Lines::default();
        let mut bars = self.0.map(|screen| Bars { screen, bars: BTreeMap::new() });
        loop {
            for image in library.states() {
                match &mut bars {
                    Some(bars) => bars.show(&image),
                    None => lines.tell(&image, Instant::now()),
                }
            }
            // Without a change, the time is a reason to tell again.
            if let Ok(Err(_)) = tokio::time::timeout(LONGEST_SILENCE, changes.changed()).await {
                return;
            }
        }
    }
}

impl Write for Screen {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Some(bars) => bars.suspend(|| io::stderr().write(line)),
            None => io::stderr().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Returns the bar for a file of `len` bytes that is being written. It is hidden if stderr is not a terminal.
pub(in crate::cli) fn file_bar(len: u64) -> ProgressBar {
    if io::stderr().is_terminal() {
        styled(ProgressBar::new(len), "{bar:30} {bytes}/{total_bytes}, {binary_bytes_per_sec}")
    } else {
        ProgressBar::hidden()
    }
}

/// Keeps the usual style if the template is invalid.
fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The bytes of an image that there are, and those that there will be, while something is done with it.
fn progress(state: &State) -> Option<(&'static str, u64, u64)> {
    match *state {
        State::Downloading { have, total: Some(total) } => Some(("fetched", have, total)),
        State::Verifying { have, total } => Some(("looked at", have, total)),
        _ => None,
    }
}

/// What was told of each image, and when.
#[derive(Debug, Default)]
struct Lines(BTreeMap<String, Told>);

#[derive(Debug)]
struct Told {
    work: &'static str,
    tenth: u64,
    at: Instant,
}

impl Lines {
    fn tell(&mut self, image: &ImageState, now: Instant) {
        if let Some((work, have, total)) = self.due(image, now) {
            let percent = share(have, total, 100);
            tracing::info!(image = image.name, have, total, percent, "the image is being {work}");
        }
    }

    /// What is to be told of an image now, if anything.
    fn due(&mut self, image: &ImageState, now: Instant) -> Option<(&'static str, u64, u64)> {
        let Some((work, have, total)) = progress(&image.state) else {
            self.0.remove(&image.name);
            return None;
        };
        let tenth = share(have, total, TENTHS);
        let told = self.0.get(&image.name);
        let is_new = told.is_none_or(|told| {
            told.work != work || told.tenth != tenth || now.duration_since(told.at) >= LONGEST_SILENCE
        });
        if !is_new {
            return None;
        }
        let is_first = told.is_none();
        self.0.insert(image.name.clone(), Told { work, tenth, at: now });
        // That it begins is told where it begins.
        (!is_first).then_some((work, have, total))
    }
}

/// How many of `parts` equal parts are there.
fn share(have: u64, total: u64, parts: u64) -> u64 {
    have.min(total).saturating_mul(parts).checked_div(total).unwrap_or(parts)
}

/// A bar for each image that something is done with.
#[derive(Debug)]
struct Bars {
    screen: MultiProgress,
    bars: BTreeMap<String, ProgressBar>,
}

impl Bars {
    fn show(&mut self, image: &ImageState) {
        let Some((work, have, total)) = progress(&image.state) else {
            if let Some(bar) = self.bars.remove(&image.name) {
                bar.finish_and_clear();
            }
            return;
        };
        let bar = self.bars.entry(image.name.clone()).or_insert_with(|| {
            let template =
                "{prefix} {bar:30} {bytes}/{total_bytes} {msg}, {binary_bytes_per_sec}, {eta} left";
            let bar = styled(ProgressBar::new(total), template);
            bar.set_prefix(image.name.clone());
            bar.set_message(work);
            self.screen.add(bar)
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
    use crate::images::OsImage;

    fn image(state: State) -> ImageState {
        let image: OsImage = serde_json::from_value(json!({
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "u", "version": "1",
        }))
        .unwrap();
        ImageState { image, name: "one.iso".to_owned(), state }
    }

    fn downloading(have: u64) -> ImageState {
        image(State::Downloading { have, total: Some(1000) })
    }

    #[test]
    fn lines_are_as_many_as_tenths() {
        let mut lines = Lines::default();
        let now = Instant::now();
        let told: Vec<u64> = (0..=1000)
            .filter_map(|have| lines.due(&downloading(have), now))
            .map(|(_, have, _)| have)
            .collect();
        assert_eq!(told, (1..=10).map(|tenth| tenth * 100).collect::<Vec<_>>());
        let verifying = image(State::Verifying { have: 0, total: 1000 });
        assert_eq!(lines.due(&verifying, now), Some(("looked at", 0, 1000)));
    }

    #[test]
    fn a_slow_download_is_told_of_as_well() {
        let mut lines = Lines::default();
        let now = Instant::now();
        let told: Vec<u64> = (0..100)
            .filter(|second| lines.due(&downloading(1), now + Duration::from_secs(*second)).is_some())
            .collect();
        assert_eq!(told, [30, 60, 90]);
        assert_eq!(lines.due(&image(State::Absent), now), None);
        assert_eq!(lines.due(&downloading(5), now), None, "another download begins");
    }

    #[test]
    fn shares_of_nothing_and_of_much_are_shares() {
        assert_eq!(share(0, 0, 10), 10);
        assert_eq!(share(5, 4, 10), 10);
        assert_eq!(share(1 << 40, 1 << 41, 100), 50);
    }
}

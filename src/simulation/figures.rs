//! Counts and latencies of the requests by all agents.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::observer::{AgentEvent, AgentObserver, RequestKind};

use super::report::{RequestFigures, StepCounts};

/// Maximum number of different error texts to count separately. The number of texts is unlimited, because they may
/// contain ids.
const MAX_ERRORS: usize = 20;
/// The text under which all other errors are counted.
const OTHER_ERRORS: &str = "other errors";
/// Number of latency classes: four for each power of two of microseconds, up to 19 hours.
const CLASSES: usize = 4 * 36;

/// The counters of a simulation. All agents run on one thread, so locking never waits.
#[derive(Debug, Default)]
pub(super) struct SimulationFigures(Mutex<Counters>);

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) registered: u64,
    pub(super) steps: StepCounts,
    requests: BTreeMap<&'static str, Latencies>,
    errors: BTreeMap<String, u64>,
}

impl SimulationFigures {
    pub(super) fn lock(&self) -> MutexGuard<'_, Counters> {
        // The data is valid even in a poisoned lock, because no code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentObserver for SimulationFigures {
    fn observe(&self, event: &AgentEvent<'_>) {
        let mut counters = self.lock();
        match event {
            AgentEvent::Request { kind, took, outcome } => {
                let latencies = counters.requests.entry(request_name(*kind)).or_default();
                latencies.add(*took);
                if let Err(error) = outcome {
                    latencies.failed += 1;
                    counters.count_error(error_text(error));
                }
            }
            AgentEvent::Registered { .. } => counters.registered += 1,
            AgentEvent::StepsReceived { count, .. } => {
                counters.steps.received += u64::try_from(*count).unwrap_or(u64::MAX);
            }
            AgentEvent::StepEnded { step_type, exit_code } => {
                *counters.steps.by_type.entry(step_type.to_string()).or_default() += 1;
                if !exit_code.is_success() {
                    counters.steps.failed += 1;
                }
            }
            AgentEvent::ReplyOmitted { .. } => counters.steps.replies_omitted += 1,
            AgentEvent::StepSkipped { .. } => counters.steps.skipped += 1,
            _ => {}
        }
    }
}

impl Counters {
    /// Counts an error under its text, or under [`OTHER_ERRORS`] if there are too many different texts.
    pub(super) fn count_error(&mut self, text: String) {
        let is_new = !self.errors.contains_key(&text);
        let text = if is_new && self.errors.len() >= MAX_ERRORS { OTHER_ERRORS.to_owned() } else { text };
        *self.errors.entry(text).or_default() += 1;
    }

    pub(super) fn errors(&self) -> BTreeMap<String, u64> {
        self.errors.clone()
    }

    pub(super) fn requests(&self) -> BTreeMap<String, RequestFigures> {
        self.requests.iter().map(|(name, latencies)| ((*name).to_owned(), latencies.figures())).collect()
    }
}

fn request_name(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Register => "register",
        RequestKind::Poll => "poll",
        RequestKind::Reply => "reply",
        _ => "other",
    }
}

/// Formats an error and its root cause.
pub(super) fn error_text(error: &dyn Error) -> String {
    let Some(mut cause) = error.source() else { return error.to_string() };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    format!("{error}: {cause}")
}

/// A histogram of latencies. The upper bound of a class is at most a quarter above the lower bound, so quantiles are at
/// most a quarter too large.
#[derive(Debug)]
struct Latencies {
    count: u64,
    failed: u64,
    longest: Duration,
    classes: Vec<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { count: 0, failed: 0, longest: Duration::ZERO, classes: vec![0; CLASSES] }
    }
}

impl Latencies {
    fn add(&mut self, latency: Duration) {
        self.count += 1;
        self.longest = self.longest.max(latency);
        let class = latency_class(latency).min(CLASSES - 1);
        if let Some(count) = self.classes.get_mut(class) {
            *count += 1;
        }
    }

    fn figures(&self) -> RequestFigures {
        RequestFigures {
            count: self.count,
            failed: self.failed,
            p50_ms: self.quantile_ms(50),
            p99_ms: self.quantile_ms(99),
            max_ms: milliseconds(self.longest),
        }
    }

    /// Returns the latency that `percent` of the requests do not exceed, in milliseconds.
    fn quantile_ms(&self, percent: u64) -> f64 {
        let rank = (self.count * percent).div_ceil(100);
        let mut sum = 0;
        for (count, number) in self.classes.iter().zip(0..) {
            sum += count;
            if sum >= rank {
                return milliseconds(upper_bound(number).min(self.longest));
            }
        }
        milliseconds(self.longest)
    }
}

/// Returns the class of a latency. It depends on the highest bit of the number of microseconds, and on the next two
/// bits.
fn latency_class(latency: Duration) -> usize {
    let micros = latency.as_micros().clamp(4, 1 << 62);
    let power = micros.ilog2();
    let quarter = (micros >> (power - 2)) & 3;
    usize::try_from(power - 2).unwrap_or(CLASSES) * 4 + usize::try_from(quarter).unwrap_or(0)
}

/// Returns the exclusive upper bound of a class.
fn upper_bound(class: u32) -> Duration {
    let (power, quarter) = (class / 4, class % 4);
    Duration::from_micros((u64::from(quarter) + 5) << power)
}

fn milliseconds(duration: Duration) -> f64 {
    // Round to microseconds.
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_within_their_class() {
        for micros in [0, 1, 4, 5, 7, 8, 9, 1000, 1023, 1024, 123_456, 60_000_000] {
            let latency = Duration::from_micros(micros);
            let class = u32::try_from(latency_class(latency)).unwrap();
            assert!(latency < upper_bound(class), "{micros}");
            assert!(class == 0 || latency >= upper_bound(class - 1), "{micros}");
        }
        assert!(latency_class(Duration::MAX) >= CLASSES);
    }

    #[test]
    fn quantiles_follow_from_the_latencies() {
        let mut latencies = Latencies::default();
        (1..=100).for_each(|number| latencies.add(Duration::from_millis(number)));
        let figures = latencies.figures();
        assert!((50.0..=63.0).contains(&figures.p50_ms), "{figures:?}");
        assert!((99.0..=100.0).contains(&figures.p99_ms), "{figures:?}");
        assert!((figures.max_ms - 100.0).abs() < 0.01);
        assert!(Latencies::default().figures().p99_ms.abs() < f64::EPSILON);
    }

    #[test]
    fn number_of_error_texts_is_limited() {
        let mut counters = Counters::default();
        (0..1000).for_each(|number| counters.count_error(format!("error {number}")));
        counters.count_error("error 3".to_owned());
        let errors = counters.errors();
        assert_eq!(errors.len(), MAX_ERRORS + 1);
        assert_eq!((errors["error 3"], errors[OTHER_ERRORS]), (2, 980));
    }
}

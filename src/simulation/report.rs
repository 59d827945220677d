//! What a simulation shows.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// The state of a simulation. All counts are from its start on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SimulationReport {
    /// Time since the start.
    pub elapsed_seconds: f64,
    /// The hosts.
    pub hosts: HostCounts,
    /// Number of hosts by the status that the server shows. Absent until the first list of hosts was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statuses: Option<BTreeMap<String, u64>>,
    /// Requests by purpose: `register`, `poll` and `reply`.
    pub requests: BTreeMap<String, RequestFigures>,
    /// The steps.
    pub steps: StepCounts,
    /// Number of errors by their text.
    pub errors: BTreeMap<String, u64>,
}

/// Counts of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostCounts {
    /// All hosts.
    pub total: u32,
    /// Hosts whose agent was started.
    pub started: u32,
    /// Registrations that the server accepted. Agents may register more than once.
    pub registrations: u64,
    /// Hosts whose agent gave up.
    pub ended: u32,
}

/// Figures of the requests of one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RequestFigures {
    /// Requests, including failed ones.
    pub count: u64,
    /// Failed requests.
    pub failed: u64,
    /// Median time until the response was read, at most a quarter too large.
    pub p50_ms: f64,
    /// The same for 99 % of the requests.
    pub p99_ms: f64,
    /// Longest time.
    pub max_ms: f64,
}

/// Counts of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepCounts {
    /// Steps that the server handed out.
    pub received: u64,
    /// Steps that failed.
    pub failed: u64,
    /// Steps that were not started, because the same one was running.
    pub skipped: u64,
    /// Replies that were not sent, because the server has the same output already.
    pub replies_omitted: u64,
    /// Steps that ended, by type.
    pub by_type: BTreeMap<String, u64>,
}

/// Several lines of text, as the summary of a simulation.
impl fmt::Display for SimulationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostCounts { total, started, registrations, ended } = self.hosts;
        writeln!(
            f,
            "{:.1} s, {started} of {total} hosts started, {registrations} registrations, {ended} ended",
            self.elapsed_seconds
        )?;
        if let Some(statuses) = &self.statuses {
            writeln!(f, "statuses: {}", format_counts(statuses))?;
        }
        for (name, figures) in &self.requests {
            let RequestFigures { count, failed, p50_ms, p99_ms, max_ms } = figures;
            writeln!(
                f,
                "{name:<9} {count:>8} requests, {failed} failed, median {p50_ms:.1} ms, 99 % {p99_ms:.1} ms, \
                 longest {max_ms:.1} ms"
            )?;
        }
        let StepCounts { received, failed, skipped, replies_omitted, .. } = &self.steps;
        writeln!(
            f,
            "steps     {received:>8} received, {failed} failed, {skipped} skipped, {replies_omitted} replies omitted"
        )?;
        for (error, count) in &self.errors {
            writeln!(f, "{count} x {error}")?;
        }
        Ok(())
    }
}

/// Returns counts in one line.
pub(super) fn format_counts(counts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    parts.join(", ")
}

impl SimulationReport {
    /// Returns the state in one line, for a progress display.
    #[must_use]
    pub fn progress_line(&self) -> String {
        let HostCounts { total, started, ended, .. } = self.hosts;
        let (requests, failed) = (self.all_requests(), self.failed_requests());
        let mut line = format!("{started}/{total} hosts, {requests} requests, {failed} failed");
        if ended > 0 {
            line.push_str(&format!(", {ended} ended"));
        }
        if let Some(statuses) = self.statuses.as_ref().filter(|statuses| !statuses.is_empty()) {
            line.push_str(": ");
            line.push_str(&format_counts(statuses));
        }
        line
    }

    /// Returns the number of requests of all agents.
    pub(super) fn all_requests(&self) -> u64 {
        self.requests.values().map(|figures| figures.count).sum()
    }

    /// Returns the number of failed requests of all agents.
    pub(super) fn failed_requests(&self) -> u64 {
        self.requests.values().map(|figures| figures.failed).sum()
    }

    /// Returns the text of the most frequent error.
    pub(super) fn most_frequent_error(&self) -> String {
        let most = self.errors.iter().max_by_key(|(_, count)| **count);
        most.map_or_else(|| "unknown error".to_owned(), |(text, _)| text.clone())
    }
}

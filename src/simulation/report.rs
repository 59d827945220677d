//! Reports about a simulation, and their formats.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// The state of a simulation. All counts begin at the start of the simulation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SimulationReport {
    /// Time since the start of the simulation, in seconds.
    pub elapsed_seconds: f64,
    /// Counts of hosts and registrations.
    pub hosts: HostCounts,
    /// Number of hosts by their status on the server. Absent until the list of hosts is read for the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statuses: Option<BTreeMap<String, u64>>,
    /// Counts and latencies of requests by purpose: `register`, `poll` and `reply`.
    pub requests: BTreeMap<String, RequestFigures>,
    /// Counts of steps and replies.
    pub steps: StepCounts,
    /// Number of errors by text. After 20 different texts, others are counted together.
    pub errors: BTreeMap<String, u64>,
}

/// Counts of simulated hosts and of their registrations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostCounts {
    /// Number of all simulated hosts.
    pub total: u32,
    /// Number of hosts whose agent was started.
    pub started: u32,
    /// Number of accepted registrations. Agents may register more than once.
    pub registrations: u64,
    /// Number of hosts whose agent gave up.
    pub ended: u32,
}

/// Counts and latencies of the requests for one purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RequestFigures {
    /// Number of requests, including failed ones.
    pub count: u64,
    /// Number of failed requests.
    pub failed: u64,
    /// Median time until the response was read, in milliseconds. At most a quarter too large.
    pub p50_ms: f64,
    /// The 99th percentile of the same time, in milliseconds. At most a quarter too large.
    pub p99_ms: f64,
    /// Maximum of the same time, in milliseconds.
    pub max_ms: f64,
}

/// Counts of the steps and replies of all agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StepCounts {
    /// Number of steps that agents received from the server.
    pub received: u64,
    /// Number of steps that failed.
    pub failed: u64,
    /// Number of steps that were not started, because the same step was running.
    pub skipped: u64,
    /// Number of replies that were not sent, because the server already has the same output.
    pub replies_omitted: u64,
    /// Number of completed steps by type, including failed ones.
    pub by_type: BTreeMap<String, u64>,
}

/// Formats a summary of several lines.
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

/// Formats counts in one line, such as `1 insufficient, 3 known`.
pub(super) fn format_counts(counts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    parts.join(", ")
}

impl SimulationReport {
    /// Formats the state in one line, for a progress display.
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

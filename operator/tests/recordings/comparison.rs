//! Compares the values that a client has seen with the recorded values.

use std::collections::BTreeSet;

use crate::words::line;

/// A known difference between a recorded value and the value of this service.
#[derive(Debug)]
pub(crate) struct KnownDifference {
    /// The field with the difference. The object name `*` stands for every object.
    pub(crate) field: &'static str,
    /// The recorded value, or `None` if upstream's service does not set the field.
    pub(crate) recorded: Option<&'static str>,
    /// The value of this service, or `None` if it does not set the field.
    pub(crate) played: Option<&'static str>,
    pub(crate) reason: &'static str,
}

impl KnownDifference {
    /// Returns `true` if `value` is the recorded value of this difference, for the field `field`.
    pub(crate) fn is_recorded(&self, field: &str, value: &str) -> bool {
        self.recorded.is_some_and(|recorded| self.matches(&line(field, value), recorded))
    }

    /// Returns `true` if a line contains the field with this value.
    fn matches(&self, text: &str, value: &str) -> bool {
        let pattern = line(self.field, value);
        let Some((before, after)) = pattern.split_once('*') else { return text == pattern };
        let name = text.strip_prefix(before).and_then(|text| text.strip_suffix(after));
        name.is_some_and(|name| !name.is_empty() && !name.contains(' '))
    }
}

/// The values in the recording and in this run, each as a line `field: value`.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) recorded: BTreeSet<String>,
    pub(crate) played: BTreeSet<String>,
    pub(crate) known: &'static [KnownDifference],
    /// Number of writes to the Kubernetes API, without leases and events.
    pub(crate) writes: usize,
}

impl Comparison {
    /// Panics if a difference is unknown, or if a known difference does not occur.
    pub(crate) fn assert_equal(&self) {
        let mut missing: Vec<_> = self.recorded.difference(&self.played).collect();
        let mut extra: Vec<_> = self.played.difference(&self.recorded).collect();
        let mut problems = Vec::new();
        for difference in self.known {
            for (lines, value) in [(&mut missing, difference.recorded), (&mut extra, difference.played)] {
                let Some(value) = value else { continue };
                let before = lines.len();
                lines.retain(|text| !difference.matches(text, value));
                if lines.len() == before {
                    problems.push(format!(
                        "no longer differs ({}): {}: {value}",
                        difference.reason, difference.field
                    ));
                }
            }
        }
        problems.extend(missing.iter().map(|text| format!("recorded only: {text}")));
        problems.extend(extra.iter().map(|text| format!("here only: {text}")));
        assert!(problems.is_empty(), "{problems:#?}");
    }
}

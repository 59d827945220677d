//! Records the step outputs that the service already has, so that the agent does not send them again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use assisted::Extensible;
use assisted::step::StepType;
use tokio::time::Instant;

/// Time after which an unchanged output is sent again.
const VALIDITY: Duration = Duration::from_secs(3600);

/// Digests of the last accepted output of each step type. Digests take less memory than reports.
#[derive(Debug, Default)]
pub(crate) struct SentReplies(HashMap<StepType, (OutputDigest, Instant)>);

/// A digest of an output. It detects changes in the reports of one host, but must not be used to compare reports of
/// different hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputDigest(u64);

impl OutputDigest {
    pub(crate) fn new(output: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        output.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl SentReplies {
    /// Returns `true` if the service accepted this output within the last hour.
    pub(crate) fn contains(&self, step_type: &Extensible<StepType>, digest: OutputDigest) -> bool {
        let entry = step_type.known().and_then(|step_type| self.0.get(&step_type));
        entry.is_some_and(|(last, at)| *last == digest && at.elapsed() < VALIDITY)
    }

    /// Records an output that the service accepted.
    pub(crate) fn insert(&mut self, step_type: &Extensible<StepType>, digest: OutputDigest) {
        if let Some(step_type) = step_type.known() {
            self.0.insert(step_type, (digest, Instant::now()));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

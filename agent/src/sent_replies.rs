//! The replies that the service already has.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use assisted::Extensible;
use assisted::step::StepType;
use tokio::time::Instant;

/// Time after which a reply is sent again.
const VALIDITY: Duration = Duration::from_secs(3600);

/// Digests of the last accepted output of each type of step. Digests take less memory than reports.
#[derive(Debug, Default)]
pub(crate) struct SentReplies(HashMap<StepType, (OutputDigest, Instant)>);

/// A digest of an output. It detects changes of a report; it is not for comparing reports of different origin.
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
        let sent = step_type.known().and_then(|step_type| self.0.get(&step_type));
        sent.is_some_and(|(known, at)| *known == digest && at.elapsed() < VALIDITY)
    }

    /// Records an output that the service accepted.
    pub(crate) fn insert(&mut self, step_type: &Extensible<StepType>, digest: OutputDigest) {
        if let Some(step_type) = step_type.known() {
            self.0.insert(step_type, (digest, Instant::now()));
        }
    }

    /// Forgets all outputs.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

//! Records the step outputs that the service has or is receiving, so that the agent does not send them again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assisted::step::StepType;
use tokio::time::Instant;

/// Time after which an unchanged output is sent again.
const VALIDITY: Duration = Duration::from_secs(3600);

/// Digests of the last output of each step type. Digests take less memory than reports.
#[derive(Debug, Default)]
pub(crate) struct SentReplies(HashMap<StepType, (OutputDigest, Delivery)>);

/// Whether the service has an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// The output is being sent. A slow service can take longer than the interval between two runs of the step.
    Sending,
    /// The service accepted the output at this time.
    Accepted(Instant),
}

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
    fn contains(&self, step_type: StepType, digest: OutputDigest) -> bool {
        self.0.get(&step_type).is_some_and(|(last, delivery)| {
            *last == digest
                && match delivery {
                    Delivery::Sending => true,
                    Delivery::Accepted(at) => at.elapsed() < VALIDITY,
                }
        })
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// An output that is being sent. If this value is dropped before the service accepts the output, the agent sends the
/// output again after the next run of the step.
pub(crate) struct SendingReply<'a> {
    replies: &'a Mutex<SentReplies>,
    step_type: StepType,
    digest: OutputDigest,
}

impl<'a> SendingReply<'a> {
    /// Records that an output is being sent. Returns `None` if the service accepted the same output within the last
    /// hour, or if it is being sent already.
    pub(crate) fn start(
        replies: &'a Mutex<SentReplies>,
        step_type: StepType,
        digest: OutputDigest,
    ) -> Option<Self> {
        let mut locked = lock(replies);
        if locked.contains(step_type, digest) {
            return None;
        }
        locked.0.insert(step_type, (digest, Delivery::Sending));
        Some(Self { replies, step_type, digest })
    }

    /// Records that the service accepted the output.
    pub(crate) fn accepted(self) {
        let accepted = Delivery::Accepted(Instant::now());
        lock(self.replies).0.insert(self.step_type, (self.digest, accepted));
    }
}

impl Drop for SendingReply<'_> {
    fn drop(&mut self) {
        let mut locked = lock(self.replies);
        if locked.0.get(&self.step_type) == Some(&(self.digest, Delivery::Sending)) {
            locked.0.remove(&self.step_type);
        }
    }
}

/// Locks the records.
pub(crate) fn lock(replies: &Mutex<SentReplies>) -> MutexGuard<'_, SentReplies> {
    // No code panics while it holds the lock, so the lock is never poisoned.
    replies.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_sent_again_unless_accepted() {
        let replies = Mutex::new(SentReplies::default());
        let [first, second] = ["first", "second"].map(OutputDigest::new);
        let start = |digest| SendingReply::start(&replies, StepType::Inventory, digest);

        let sending = start(first).unwrap();
        assert!(start(first).is_none());
        drop(sending);
        start(first).unwrap().accepted();
        assert!(start(first).is_none());

        // The failed delivery of an earlier output leaves the record of a later one.
        let earlier = start(second).unwrap();
        start(first).unwrap().accepted();
        drop(earlier);
        assert!(start(first).is_none());
        start(second).unwrap();
        start(second).unwrap();
    }
}

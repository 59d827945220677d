//! The limit on the work of one evaluation.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

use super::value::{Limit, Stop};

/// Maximum number of steps in an evaluation. This many steps take a fraction of a second. A query on an inventory needs
/// a few thousand steps.
const MAX_STEPS: u64 = 1_000_000;

/// The steps used by an evaluation, and caches that save steps.
#[derive(Default)]
pub(super) struct Budget {
    steps: u64,
    /// Compiled regular expressions, keyed by flags and text.
    pub(super) expressions: BTreeMap<(Arc<str>, Arc<str>), Regex>,
}

impl Budget {
    /// Uses up `steps` steps. Fails if the evaluation exceeds its limit.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), Stop> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS { Err(Stop::Limit(Limit::Steps)) } else { Ok(()) }
    }
}

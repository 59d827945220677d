//! Budget of one evaluation.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

use super::value::{Limit, Stop};

/// Maximum number of steps of an evaluation: a fraction of a second. A query over an inventory takes some thousands.
const MAX_STEPS: u64 = 1_000_000;

/// Steps of an evaluation, and what it keeps to save steps.
#[derive(Default)]
pub(super) struct Budget {
    steps: u64,
    /// Compiled regular expressions by flags and text.
    pub(super) expressions: BTreeMap<(Arc<str>, Arc<str>), Regex>,
}

impl Budget {
    /// Counts `steps`, or fails if the evaluation has no more of them.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), Stop> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS { Err(Stop::Limit(Limit::Steps)) } else { Ok(()) }
    }
}

//! The set of faults of one host.

use std::collections::BTreeSet;

use assisted::reply::{ExitCode, ReplyPayload};
use assisted::step::StepType;

use super::fault::Fault;
use super::step_fault::{MEDIA_LOST, StepFailureMode};
use crate::machine::{StepFailure, StepOutcome};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FaultSet(BTreeSet<Fault>);

impl FaultSet {
    pub(super) fn new(faults: &[Fault]) -> Self {
        let mut set = Self::default();
        faults.iter().for_each(|fault| set.insert(*fault));
        set
    }

    /// Adds a fault. A fault of a step replaces an earlier fault of the same step.
    pub(super) fn insert(&mut self, fault: Fault) {
        if let Fault::Step(new) = fault {
            self.0.retain(|other| !matches!(other, Fault::Step(old) if old.step() == new.step()));
        }
        self.0.insert(fault);
    }

    pub(super) fn contains(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// Returns the result of a step with a fault, or `None` if the step has no fault.
    pub(super) fn step_result(&self, step: StepType) -> Option<Result<StepOutcome, StepFailure>> {
        let mode = self.0.iter().find_map(|fault| match fault {
            Fault::Step(fault) if fault.step() == step => Some(fault.mode()),
            _ => None,
        })?;
        let failure = |code, message: &str| Err(StepFailure::new(code, message));
        Some(match mode {
            StepFailureMode::Exit1 => failure(ExitCode::FAILED, "simulated fault: the command failed"),
            StepFailureMode::Timeout => {
                failure(ExitCode::TIMED_OUT, "simulated fault: the command timed out")
            }
            StepFailureMode::InvalidOutput => {
                Ok(StepOutcome::Output(ReplyPayload::Text("simulated fault: not JSON".into())))
            }
            StepFailureMode::EmptyOutput => Ok(StepOutcome::Done),
            StepFailureMode::MediaLost => failure(ExitCode::MEDIA_LOST, MEDIA_LOST),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_fault_of_a_step_replaces_the_earlier_one() {
        let parse = |text: &str| text.parse::<Fault>().unwrap();
        let (first, last) = (parse("step:verify-vips=timeout"), parse("step:verify-vips=exit-1"));
        let set = FaultSet::new(&[parse("step:inventory=exit-1"), first, Fault::NoNtp, last]);
        assert!(!set.contains(first) && set.contains(last) && set.contains(Fault::NoNtp));
        assert_eq!(set.step_result(StepType::VerifyVips).unwrap().unwrap_err().exit_code(), ExitCode::FAILED);
        assert!(set.step_result(StepType::Inventory).is_some());
        assert_eq!(set.step_result(StepType::DomainResolution), None);
    }
}

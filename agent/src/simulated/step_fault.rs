//! Faults that make individual steps of a simulated host fail.

use std::fmt;

use assisted::step::StepType;

/// The way in which a step with a fault fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StepFailureMode {
    /// The command fails with exit code 1.
    Exit1,
    /// The command times out: exit code 124.
    Timeout,
    /// The command succeeds, with output that is not JSON.
    InvalidOutput,
    /// The command succeeds, without output.
    EmptyOutput,
    /// The boot media cannot be read: exit code 256.
    MediaLost,
}

impl StepFailureMode {
    /// All modes.
    pub const ALL: &'static [Self] =
        &[Self::Exit1, Self::Timeout, Self::InvalidOutput, Self::EmptyOutput, Self::MediaLost];

    fn as_str(self) -> &'static str {
        match self {
            Self::Exit1 => "exit-1",
            Self::Timeout => "timeout",
            Self::InvalidOutput => "invalid-output",
            Self::EmptyOutput => "empty-output",
            Self::MediaLost => "media-lost",
        }
    }
}

impl fmt::Display for StepFailureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A fault of one step: each run of the step fails in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepFault {
    step: StepType,
    mode: StepFailureMode,
}

/// The error for a text that is not a fault of a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownStepFault {
    /// Agents do not run steps of this type.
    #[error("unknown step {step:?}; expected one of {}", list_of(StepFault::STEPS))]
    Step {
        /// The unknown step type.
        step: String,
    },
    /// The failure is not one of [`StepFailureMode::ALL`].
    #[error("unknown failure {mode:?} of step {step}; expected one of {}", list_of(StepFailureMode::ALL))]
    Mode {
        /// Type of the step that the text names.
        step: StepType,
        /// The unknown failure.
        mode: String,
    },
}

impl StepFault {
    /// Prefix of the text of a step fault.
    pub(super) const PREFIX: &'static str = "step:";
    /// The steps that can fail: all steps that agents run.
    const STEPS: &'static [StepType] = &[
        StepType::Inventory,
        StepType::ConnectivityCheck,
        StepType::FreeNetworkAddresses,
        StepType::DhcpLeaseAllocate,
        StepType::NtpSynchronizer,
        StepType::DomainResolution,
        StepType::ApiVipConnectivityCheck,
        StepType::TangConnectivityCheck,
        StepType::VerifyVips,
        StepType::InstallationDiskSpeedCheck,
        StepType::ContainerImageAvailability,
        StepType::Install,
        StepType::StopInstallation,
        StepType::LogsGather,
        StepType::UpgradeAgent,
        StepType::DownloadBootArtifacts,
        StepType::RebootForReclaim,
    ];

    /// Creates a fault of a step.
    ///
    /// # Errors
    ///
    /// Returns an error if agents do not run this type of step, such as `execute`.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent::simulated::{Fault, StepFailureMode, StepFault};
    /// use assisted::step::StepType;
    ///
    /// let fault = Fault::Step(StepFault::new(StepType::VerifyVips, StepFailureMode::Timeout)?);
    /// assert_eq!(fault.to_string(), "step:verify-vips=timeout");
    /// # Ok::<(), agent::simulated::UnknownStepFault>(())
    /// ```
    pub fn new(step: StepType, mode: StepFailureMode) -> Result<Self, UnknownStepFault> {
        if Self::STEPS.contains(&step) {
            Ok(Self { step, mode })
        } else {
            Err(UnknownStepFault::Step { step: step.to_string() })
        }
    }

    /// Returns the step that fails.
    #[must_use]
    pub fn step(self) -> StepType {
        self.step
    }

    /// Returns how the step fails.
    #[must_use]
    pub fn mode(self) -> StepFailureMode {
        self.mode
    }

    /// Parses the text of a fault after its prefix, such as `ntp-synchronizer=exit-1`.
    pub(super) fn parse(text: &str) -> Result<Self, UnknownStepFault> {
        let (step, mode) = text.split_once('=').unwrap_or((text, ""));
        let find_step = |it: &&StepType| it.as_str() == step;
        let step = *Self::STEPS
            .iter()
            .find(find_step)
            .ok_or_else(|| UnknownStepFault::Step { step: step.to_owned() })?;
        let find_mode = |it: &&StepFailureMode| it.as_str() == mode;
        let mode = *StepFailureMode::ALL
            .iter()
            .find(find_mode)
            .ok_or_else(|| UnknownStepFault::Mode { step, mode: mode.to_owned() })?;
        Ok(Self { step, mode })
    }
}

impl fmt::Display for StepFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}={}", Self::PREFIX, self.step, self.mode)
    }
}

/// Error text of a step whose boot media cannot be read.
pub(super) const MEDIA_LOST: &str =
    "cannot access the media (ISO) - media was likely disconnected: simulated fault";

/// Joins names with commas for a message.
pub(super) fn list_of(names: &[impl fmt::Display]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Fault;

    #[test]
    fn every_step_with_an_action_can_fail() {
        for step in StepType::ALL {
            let is_unused = matches!(step, StepType::Execute | StepType::NextStepRunner);
            let fault = StepFault::new(*step, StepFailureMode::Exit1);
            assert_eq!(fault.is_err(), is_unused, "{step}");
        }
    }

    #[test]
    fn fault_text_round_trips() {
        for step in StepFault::STEPS {
            for mode in StepFailureMode::ALL {
                let fault = Fault::Step(StepFault { step: *step, mode: *mode });
                assert_eq!(fault.to_string(), format!("step:{step}={mode}"));
                assert_eq!(fault.to_string().parse(), Ok(fault));
            }
        }
    }

    #[test]
    fn errors_for_unknown_names_list_valid_names() {
        for (text, start) in [
            ("step:", r#"unknown step ""; expected one of inventory, connectivity-check, "#),
            ("step:execute=exit-1", r#"unknown step "execute"; expected one of inventory, "#),
            ("step:Inventory=exit-1", r#"unknown step "Inventory"; expected one of inventory, "#),
            ("step:inventory", r#"unknown failure "" of step inventory; expected one of exit-1, timeout, "#),
            (
                "step:inventory=exit-2",
                r#"unknown failure "exit-2" of step inventory; expected one of exit-1, "#,
            ),
            ("step:inventory=exit-1=2", r#"unknown failure "exit-1=2" of step inventory; "#),
        ] {
            let error = text.parse::<Fault>().unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }
}

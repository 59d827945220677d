//! The effects of refused reports on a host.
//!
//! An agent repeats a refused report every minute and does not show the reason to users. The host therefore keeps the
//! reason until a report of the same step is accepted, or until the host boots again. If the reason concerns the
//! inventory, the status text ends with it. A reply that cannot be parsed counts as an inventory report.

use assisted::host::HostStatus;
use assisted::step::StepType;
use rules::host::state::Transition;

use super::findings::HostFindings;

/// The key of refused replies whose step is unknown, because they were not parsed.
pub(crate) const UNPARSED: &str = "";

/// Returns `true` if the last report of a step was refused.
pub(crate) fn is_refused(findings: &HostFindings, step: StepType) -> bool {
    findings.refused.contains_key(step.as_str())
}

/// Forgets the refused reports of a step after the service accepted a report of the step.
pub(crate) fn forget(findings: &mut HostFindings, step: StepType) {
    findings.refused.remove(step.as_str());
    if step == StepType::Inventory {
        findings.refused.remove(UNPARSED);
    }
}

/// Returns the reason why the last inventory report, or a reply that could not be parsed, was refused.
pub(crate) fn shown_reason(findings: &HostFindings) -> Option<&str> {
    let refused = [StepType::Inventory.as_str(), UNPARSED].map(|step| findings.refused.get(step));
    refused.into_iter().flatten().next().map(|refused| refused.reason.as_str())
}

/// Appends the [reason](shown_reason) of a refused inventory report to the status text, if the new status of the host
/// is discovering or insufficient.
pub(crate) fn with_reason(reason: Option<&str>, transition: Transition) -> Transition {
    use HostStatus::{Discovering, DiscoveringUnbound, Insufficient, InsufficientUnbound};
    let is_affected = matches!(
        transition.status(),
        Some(Discovering | DiscoveringUnbound | Insufficient | InsufficientUnbound)
    );
    match reason {
        Some(reason) if is_affected => {
            transition.with_info_suffix(&format!("; its last report was refused: {reason}"))
        }
        _ => transition,
    }
}

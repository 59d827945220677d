//! Computes the conditions of an Agent from its host.

use assisted::host::{HostStatus, Validation, ValidationStatus};
use inventory::service::HostDetails;

use crate::conditions::ConditionValue;

/// The state of the synchronization between the spec of an Agent and its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpecSync {
    /// The host matches the spec.
    Synced,
    /// A user must change the spec, or an object that it refers to.
    InputError(String),
    /// The service failed to apply the spec.
    BackendError(String),
}

impl SpecSync {
    fn condition(&self) -> ConditionValue {
        match self {
            Self::Synced => ConditionValue::new("True", "SyncOK", "The Spec has been successfully applied"),
            Self::InputError(cause) => {
                let message = format!("The Spec could not be synced due to an input error: {cause}");
                ConditionValue::new("False", "InputError", message)
            }
            Self::BackendError(cause) => {
                let message = format!("The Spec could not be synced due to backend error: {cause}");
                ConditionValue::new("False", "BackendError", message)
            }
        }
    }
}

/// The types of the conditions, in the order in which a new Agent contains them.
pub(crate) const CONDITION_TYPES: [&str; 6] =
    ["SpecSynced", "Connected", "RequirementsMet", "Validated", "Installed", "Bound"];

/// Returns the conditions with their types.
pub(crate) fn conditions(
    host: &HostDetails,
    is_approved: bool,
    sync: &SpecSync,
) -> impl Iterator<Item = (&'static str, ConditionValue)> + use<> {
    let status = host.record.status();
    let info = host.record.status_info();
    let values = [
        sync.condition(),
        connected(status),
        requirements_met(status, is_approved),
        validated(host),
        installed(status, info),
        bound(status),
    ];
    CONDITION_TYPES.into_iter().zip(values)
}

fn connected(status: HostStatus) -> ConditionValue {
    if matches!(status, HostStatus::Disconnected | HostStatus::DisconnectedUnbound) {
        let message =
            "The agent has not contacted the installation service in some time, user action should be taken";
        return ConditionValue::new("False", "AgentIsDisconnected", message);
    }
    let message = "The agent's connection to the installation service is unimpaired";
    ConditionValue::new("True", "AgentIsConnected", message)
}

fn requirements_met(status: HostStatus, is_approved: bool) -> ConditionValue {
    use HostStatus as S;
    if let Some(transition) = transition(status) {
        return transition;
    }
    match status {
        S::Known | S::KnownUnbound if is_approved => {
            ConditionValue::new("True", "AgentIsReady", "The agent is ready to begin the installation")
        }
        S::Known | S::KnownUnbound => {
            ConditionValue::new("False", "AgentIsNotApproved", "The agent is not approved")
        }
        S::Installed | S::Error | S::AddedToExistingCluster => {
            ConditionValue::new("True", "AgentInstallationStopped", "The agent installation stopped")
        }
        _ if is_installing(status) => {
            let message = "Installation already started and is in progress";
            ConditionValue::new("True", "AgentAlreadyInstalling", message)
        }
        _ if is_before_installation(status) => {
            let message = "The agent is not ready to begin the installation";
            ConditionValue::new("False", "AgentNotReady", message)
        }
        _ => unknown(status),
    }
}

fn validated(host: &HostDetails) -> ConditionValue {
    use HostStatus as S;
    let status = host.record.status();
    if let Some(transition) = transition(status) {
        return transition;
    }
    match status {
        S::Insufficient | S::InsufficientUnbound => {
            let message = format!("The agent's validations are failing: {}", failing(host));
            ConditionValue::new("False", "ValidationsFailing", message)
        }
        S::PendingForInput => {
            let message = format!("The agent's validations are pending for user: {}", failing(host));
            ConditionValue::new("False", "ValidationsUserPending", message)
        }
        _ if host.validations.is_empty() => {
            let message = "The agent's validations have not yet been calculated";
            ConditionValue::new("Unknown", "ValidationsUnknown", message)
        }
        _ => ConditionValue::new("True", "ValidationsPassing", "The agent's validations are passing"),
    }
}

/// Returns the messages of the validations that have not passed, by category.
fn failing(host: &HostDetails) -> String {
    let validations = host.validations.values().flatten();
    let has_passed =
        |it: &Validation| it.status == ValidationStatus::Success || it.status == ValidationStatus::Disabled;
    let failing = validations.filter(|it| !has_passed(it));
    failing.map(|it| it.message.as_str()).collect::<Vec<_>>().join(",")
}

fn installed(status: HostStatus, info: &str) -> ConditionValue {
    use HostStatus as S;
    if let Some(transition) = transition(status) {
        return transition;
    }
    match status {
        S::Installed | S::AddedToExistingCluster => {
            let message = format!("The installation has completed: {info}");
            ConditionValue::new("True", "InstallationCompleted", message)
        }
        S::Error => {
            let message = format!("The installation has failed: {info}");
            ConditionValue::new("False", "InstallationFailed", message)
        }
        _ if is_installing(status) => {
            let message = format!("The installation is in progress: {info}");
            ConditionValue::new("False", "InstallationInProgress", message)
        }
        _ if is_before_installation(status) || matches!(status, S::Known | S::KnownUnbound) => {
            let message = "The installation has not yet started";
            ConditionValue::new("False", "InstallationNotStarted", message)
        }
        _ => unknown(status),
    }
}

fn bound(status: HostStatus) -> ConditionValue {
    use HostStatus as S;
    match status {
        S::DisconnectedUnbound
        | S::KnownUnbound
        | S::InsufficientUnbound
        | S::DisabledUnbound
        | S::DiscoveringUnbound => {
            ConditionValue::new("False", "Unbound", "The agent is not bound to any cluster deployment")
        }
        S::UnbindingPendingUserAction => {
            let message = "The agent is currently unbinding; Pending host reboot from infraenv image";
            ConditionValue::new("False", "UnbindingPendingUserAction", message)
        }
        _ => transition(status).unwrap_or_else(|| {
            ConditionValue::new("True", "Bound", "The agent is bound to a cluster deployment")
        }),
    }
}

/// Returns the condition of a host that is being bound or unbound.
fn transition(status: HostStatus) -> Option<ConditionValue> {
    let (reason, message) = match status {
        HostStatus::Binding => ("Binding", "The agent is currently binding to a cluster deployment"),
        HostStatus::Unbinding | HostStatus::UnbindingPendingUserAction => {
            ("Unbinding", "The agent is currently unbinding from a cluster deployment")
        }
        _ => return None,
    };
    Some(ConditionValue::new("False", reason, message))
}

fn unknown(status: HostStatus) -> ConditionValue {
    let message = format!("The installation status is currently not recognized: {status}");
    ConditionValue::new("Unknown", "UnknownStatus", message)
}

fn is_installing(status: HostStatus) -> bool {
    use HostStatus as S;
    matches!(
        status,
        S::PreparingForInstallation
            | S::PreparingSuccessful
            | S::Installing
            | S::InstallingInProgress
            | S::InstallingPendingUserAction
    )
}

fn is_before_installation(status: HostStatus) -> bool {
    use HostStatus as S;
    matches!(
        status,
        S::Discovering
            | S::Insufficient
            | S::Disconnected
            | S::DiscoveringUnbound
            | S::InsufficientUnbound
            | S::DisconnectedUnbound
            | S::PendingForInput
    )
}

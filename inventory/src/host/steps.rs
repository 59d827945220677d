//! The steps that an agent receives when it checks in.

use assisted::host::HostStatus;
use assisted::step::{PostStepAction, Step, StepType, Steps};
use serde_json::json;
use uuid::Uuid;

use super::record::HostRecord;
use crate::Settings;
use crate::infra_env::{ImageSource, InfraEnvRecord};

/// Returns the types of the steps for a status, the seconds until the next check-in, and the action after the steps.
///
/// Steps of an installation, and steps that depend on other hosts or networks of the cluster, are not implemented.
fn steps_of_status(host: &HostRecord) -> (&'static [StepType], u32, PostStepAction) {
    use HostStatus as S;
    use PostStepAction::{Continue, Exit};
    use StepType::{Inventory, NtpSynchronizer};
    match host.status() {
        S::DiscoveringUnbound | S::InsufficientUnbound | S::KnownUnbound => {
            (&[Inventory, NtpSynchronizer], 60, Continue)
        }
        S::Discovering if host.joins() => (&[Inventory, NtpSynchronizer], 60, Continue),
        S::Discovering => (&[Inventory], 60, Continue),
        S::PendingForInput if host.joins() => (&[Inventory], 60, Continue),
        S::Insufficient | S::PendingForInput | S::Known => (&[Inventory, NtpSynchronizer], 60, Continue),
        S::Disconnected | S::DisconnectedUnbound => (&[Inventory], 120, Continue),
        S::Disabled | S::DisabledUnbound | S::Resetting | S::Error | S::Cancelled => (&[], 120, Continue),
        S::Binding | S::Unbinding | S::UnbindingPendingUserAction => (&[], 0, Exit),
        _ => (&[], 60, Continue),
    }
}

/// Returns `true` if the agent of a host with this status can be upgraded.
fn can_upgrade(status: HostStatus) -> bool {
    use HostStatus as S;
    matches!(
        status,
        S::Binding
            | S::Discovering
            | S::DiscoveringUnbound
            | S::Insufficient
            | S::InsufficientUnbound
            | S::Known
            | S::KnownUnbound
            | S::PendingForInput
    )
}

/// Returns `true` if the agent must be upgraded before it receives other steps.
pub(crate) fn must_upgrade(host: &HostRecord, settings: &Settings) -> bool {
    settings.upgrade_agents && can_upgrade(host.status()) && host.agent_version != settings.agent_image
}

/// Returns the steps for the agent of a host.
pub(crate) fn steps_for(host: &HostRecord, infra_env: &InfraEnvRecord, settings: &Settings) -> Steps {
    let (kinds, seconds, action) = if must_upgrade(host, settings) {
        (&[StepType::UpgradeAgent] as &[_], 60, PostStepAction::Continue)
    } else {
        steps_of_status(host)
    };
    let step = |kind: &StepType| {
        let id = format!("{kind}-{:08x}", Uuid::new_v4().as_fields().0);
        Step::new(*kind, id, arguments(*kind, host, &infra_env.image, settings))
    };
    Steps {
        next_instruction_seconds: seconds,
        post_step_action: action.into(),
        instructions: kinds.iter().map(step).collect(),
    }
}

/// Returns the arguments of a step.
fn arguments(kind: StepType, host: &HostRecord, source: &ImageSource, settings: &Settings) -> Vec<String> {
    match kind {
        StepType::Inventory => vec![host.id.to_string()],
        StepType::NtpSynchronizer => vec![json!({"ntp_source": time_servers(source)}).to_string()],
        StepType::UpgradeAgent => vec![json!({"agent_image": settings.agent_image}).to_string()],
        _ => Vec::new(),
    }
}

/// Returns the time servers of an infra-env. It has either a full list or an additional one.
fn time_servers(source: &ImageSource) -> &str {
    if source.ntp_sources.is_empty() { &source.additional_ntp_sources } else { &source.ntp_sources }
}

//! The steps that an agent receives when it checks in.

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::record::HostRecord;
use super::status::HostStatus;
use crate::Settings;
use crate::infra_env::{ImageSource, InfraEnvRecord};
use crate::string_enum::string_enum;

string_enum! {
    /// Type of a step.
    #[schema(as = step_type)]
    pub(crate) StepType {
        /// Check the connectivity to other hosts.
        ConnectivityCheck = "connectivity-check",
        /// Run a command.
        Execute = "execute",
        /// Send an inventory report.
        Inventory = "inventory",
        /// Install the host.
        Install = "install",
        /// Find unused addresses.
        FreeNetworkAddresses = "free-network-addresses",
        /// Lease addresses for the cluster.
        DhcpLeaseAllocate = "dhcp-lease-allocate",
        /// Check the connectivity to the API of the cluster that the host joins.
        ApiVipConnectivityCheck = "api-vip-connectivity-check",
        /// Check the connectivity to Tang servers.
        TangConnectivityCheck = "tang-connectivity-check",
        /// Synchronize the clock.
        NtpSynchronizer = "ntp-synchronizer",
        /// Measure the speed of a disk.
        InstallationDiskSpeedCheck = "installation-disk-speed-check",
        /// Check the availability of container images.
        ContainerImageAvailability = "container-image-availability",
        /// Resolve DNS names.
        DomainResolution = "domain-resolution",
        /// Stop the installation.
        StopInstallation = "stop-installation",
        /// Collect logs.
        LogsGather = "logs-gather",
        /// Run the program that asks for steps.
        NextStepRunner = "next-step-runner",
        /// Upgrade the agent.
        UpgradeAgent = "upgrade-agent",
        /// Download kernel, initrd and root file system.
        DownloadBootArtifacts = "download-boot-artifacts",
        /// Boot the discovery image again.
        RebootForReclaim = "reboot-for-reclaim",
        /// Check whether virtual IP addresses are free.
        VerifyVips = "verify-vips",
    }

    /// Action of an agent after its steps.
    #[schema(as = post_step_action)]
    pub(crate) PostStepAction {
        /// Check in again.
        Continue = "continue",
        /// Exit. The agent then registers again.
        Exit = "exit",
    }
}

/// Steps for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = steps)]
pub(crate) struct Steps {
    /// Seconds until the next check-in.
    #[serde(skip_serializing_if = "is_zero")]
    pub next_instruction_seconds: u32,
    /// Action after the steps.
    pub post_step_action: PostStepAction,
    /// The steps. The agent starts all of them at once.
    pub instructions: Vec<Step>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A step for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = step)]
pub(crate) struct Step {
    /// Type of the step.
    pub step_type: StepType,
    /// Id of the step. The reply repeats it.
    pub step_id: String,
    /// Arguments of the step.
    pub args: Vec<String>,
}

/// Result of a step.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = step_reply)]
pub(crate) struct StepReply {
    /// Type of the step.
    pub step_type: Option<StepType>,
    /// Id of the step.
    #[expect(dead_code, reason = "agents send it, but replies are stored by step type")]
    pub step_id: Option<String>,
    /// Exit code. 0 means success.
    pub exit_code: Option<i64>,
    /// Output, as JSON in a string.
    pub output: Option<String>,
    /// Error output.
    pub error: Option<String>,
}

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
    let step = |kind: &StepType| Step {
        step_type: *kind,
        step_id: format!("{kind}-{:08x}", Uuid::new_v4().as_fields().0),
        args: arguments(*kind, host, &infra_env.image, settings),
    };
    Steps {
        next_instruction_seconds: seconds,
        post_step_action: action,
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

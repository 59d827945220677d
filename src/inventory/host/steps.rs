//! What the agent of a host is told to do.

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::record::HostRecord;
use super::status::HostStatus;
use super::string_enum::string_enum;
use crate::inventory::Settings;
use crate::inventory::infra_env::{ImageSource, InfraEnvRecord};
use crate::inventory::request::request_bodies;

string_enum! {
    /// Something that an agent can do.
    #[schema(as = step_type)]
    StepType {
        /// Try to reach other hosts.
        ConnectivityCheck = "connectivity-check",
        /// Run a program.
        Execute = "execute",
        /// Say what the machine is made of.
        Inventory = "inventory",
        /// Install.
        Install = "install",
        /// Look for addresses that nobody uses.
        FreeNetworkAddresses = "free-network-addresses",
        /// Lease addresses for the cluster.
        DhcpLeaseAllocate = "dhcp-lease-allocate",
        /// Try to reach the cluster that the host joins.
        ApiVipConnectivityCheck = "api-vip-connectivity-check",
        /// Try to reach what unlocks disks.
        TangConnectivityCheck = "tang-connectivity-check",
        /// Set the clock.
        NtpSynchronizer = "ntp-synchronizer",
        /// Measure a disk.
        InstallationDiskSpeedCheck = "installation-disk-speed-check",
        /// Fetch container images.
        ContainerImageAvailability = "container-image-availability",
        /// Resolve names.
        DomainResolution = "domain-resolution",
        /// Stop to install.
        StopInstallation = "stop-installation",
        /// Collect logs.
        LogsGather = "logs-gather",
        /// Ask for steps.
        NextStepRunner = "next-step-runner",
        /// Take another version of the agent.
        UpgradeAgent = "upgrade-agent",
        /// Fetch what the image is booted with.
        DownloadBootArtifacts = "download-boot-artifacts",
        /// Boot the image again.
        RebootForReclaim = "reboot-for-reclaim",
        /// See whether addresses of the cluster are free.
        VerifyVips = "verify-vips",
    }

    /// What an agent does after the steps.
    #[schema(as = post_step_action)]
    PostStepAction {
        /// It asks again.
        Continue = "continue",
        /// It registers again.
        Exit = "exit",
    }
}

/// What an agent is told to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = steps)]
pub struct Steps {
    /// How long it waits before it asks again.
    #[serde(skip_serializing_if = "is_zero")]
    pub next_instruction_seconds: u32,
    /// What it does after the steps.
    pub post_step_action: PostStepAction,
    /// The steps, which it takes all at once.
    pub instructions: Vec<Step>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Something that an agent is told to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = step)]
pub struct Step {
    /// What.
    pub step_type: StepType,
    /// The id that its reply names.
    pub step_id: String,
    /// With what.
    pub args: Vec<String>,
}

/// What an agent says of a step.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = step_reply)]
pub struct StepReply {
    /// Which kind of step it was.
    pub step_type: Option<StepType>,
    /// Its id.
    pub step_id: Option<String>,
    /// How it ended; well if 0.
    pub exit_code: Option<i64>,
    /// What it found, as JSON in a string.
    pub output: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

request_bodies! {
    StepReply: "reply";
}

/// The kinds of steps for a state, how long to wait for the next ones, and what to do then.
///
/// Of steps that follow from an installation, from the cluster's other hosts or from its networks there are none yet.
fn plan(host: &HostRecord) -> (&'static [StepType], u32, PostStepAction) {
    use HostStatus as S;
    use PostStepAction::{Continue, Exit};
    use StepType::{Inventory, NtpSynchronizer};
    match host.status {
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

/// Whether a host in this state takes another version of the agent.
fn may_upgrade(status: HostStatus) -> bool {
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

/// Whether the agent of a host has to become another version before anything else.
pub(super) fn has_to_upgrade(host: &HostRecord, settings: &Settings) -> bool {
    settings.upgrade_agents && may_upgrade(host.status) && host.agent_version != settings.agent_image
}

/// What a host is told to do.
pub(super) fn steps_for(host: &HostRecord, infra_env: Option<&InfraEnvRecord>, settings: &Settings) -> Steps {
    let source = infra_env.map(|infra_env| &infra_env.image);
    let (kinds, seconds, action) = if has_to_upgrade(host, settings) {
        (&[StepType::UpgradeAgent] as &[_], 60, PostStepAction::Continue)
    } else {
        plan(host)
    };
    let step = |kind: &StepType| Step {
        step_type: *kind,
        step_id: format!("{kind}-{:08x}", Uuid::new_v4().as_fields().0),
        args: arguments(*kind, host, source, settings),
    };
    Steps {
        next_instruction_seconds: seconds,
        post_step_action: action,
        instructions: kinds.iter().map(step).collect(),
    }
}

fn arguments(
    kind: StepType,
    host: &HostRecord,
    source: Option<&ImageSource>,
    settings: &Settings,
) -> Vec<String> {
    match kind {
        StepType::Inventory => vec![host.id.to_string()],
        StepType::NtpSynchronizer => vec![json!({"ntp_source": time_servers(source)}).to_string()],
        StepType::UpgradeAgent => vec![json!({"agent_image": settings.agent_image}).to_string()],
        _ => Vec::new(),
    }
}

/// The time servers of an infra-env: it has the one kind or the other.
fn time_servers(source: Option<&ImageSource>) -> &str {
    match source {
        Some(source) if source.ntp_sources.is_empty() => &source.additional_ntp_sources,
        Some(source) => &source.ntp_sources,
        None => "",
    }
}

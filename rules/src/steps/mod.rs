//! The steps that an agent receives when it checks in.
//!
//! The status of a host decides its steps, the time until the next check-in, and what the agent does after the steps.
//! There are three tables: for hosts of a cluster to be installed (day 1), for hosts that join an existing cluster (day
//! 2), and for hosts without a cluster (pool).
//!
//! Each type of step has a generator for its arguments. A step is omitted if it does not apply to the host, for example
//! if the cluster has no virtual IP addresses. It is also omitted if its generator fails: [`PlannedSteps::skipped`]
//! then contains the reason, and the agent still receives all other steps.
//!
//! The arguments have the same bytes as in the Assisted Installer, with these differences:
//!
//! * [`ConnectivityTargets`] orders hosts by id and skips hosts without addresses.
//! * Networks and additional headers have a fixed order. In the Assisted Installer, their order changes between calls.
//! * The port of a registry is never part of a name to resolve.
//! * `<`, `>` and `&` in JSON strings are not escaped.

mod connectivity;
mod dhcp;
mod domains;
mod free_addresses;
mod ignition_endpoint;
mod input;
mod inventory;
mod logs;
mod ntp;
mod table;
mod tang;
mod throttle;
mod vips;

pub use connectivity::ConnectivityTargets;
pub use dhcp::{api_vip_mac, ingress_vip_mac};
pub use domains::release_image_host;
pub use input::{StepInput, StepSettings};
pub use throttle::ConnectivityThrottle;

use assisted::host::HostStatus;
use assisted::request::{ReclaimRequest, StepRequest, UpgradeRequest};
use assisted::step::{Step, StepType, Steps};

use self::input::StepError;
use self::table::{Row, Table};
use crate::view::{ClusterView, HostView};

/// The directory in which the agent's container mounts the file system of the host.
const HOST_FS_MOUNT_DIR: &str = "/host";

/// The response to a check-in, and the steps that could not be included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedSteps {
    /// The response to the agent.
    pub steps: Steps,
    /// Types of steps whose generator failed, each with the reason. Used for the log.
    pub skipped: Vec<(StepType, String)>,
}

/// Returns the steps for the agent of a host. `step_id` creates a unique id for each step.
#[must_use]
pub fn steps(input: &StepInput<'_>, step_id: &mut dyn FnMut(StepType) -> String) -> PlannedSteps {
    let row = if must_upgrade(input.host, input.settings) {
        Row::soon(&[StepType::UpgradeAgent])
    } else {
        Table::from_input(input).row(input.host.status)
    };
    let mut planned = PlannedSteps {
        steps: Steps {
            next_instruction_seconds: row.seconds,
            post_step_action: row.action.into(),
            instructions: Vec::new(),
        },
        skipped: Vec::new(),
    };
    for step_type in row.steps.iter().filter(|step_type| !input.settings.disabled_steps.contains(step_type)) {
        match arguments(*step_type, input) {
            Ok(Some(args)) => {
                planned.steps.instructions.push(Step::new(*step_type, step_id(*step_type), args))
            }
            Ok(None) => {}
            Err(error) => planned.skipped.push((*step_type, error.to_string())),
        }
    }
    planned
}

/// Returns `true` if the agent of a host must be upgraded before it receives other steps.
#[must_use]
pub fn must_upgrade(host: &HostView, settings: &StepSettings) -> bool {
    settings.upgrade_agents
        && !settings.disabled_steps.contains(&StepType::UpgradeAgent)
        && allows_upgrade(host.status)
        && *host.agent_version != *settings.agent_image
}

/// Returns `true` if the agent of a host with this status can be upgraded.
fn allows_upgrade(status: HostStatus) -> bool {
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

/// Returns the arguments of a step, or `None` if the step does not apply to the host.
fn arguments(step_type: StepType, input: &StepInput<'_>) -> Result<Option<Vec<String>>, StepError> {
    if step_type == StepType::ConnectivityCheck {
        // This argument is copied from a text that all hosts of the cluster share. `request` creates all other
        // arguments from typed values.
        let argument = input.targets.and_then(|targets| targets.argument_for(input.host.id));
        return Ok(argument.map(|argument| vec![argument]));
    }
    Ok(request(step_type, input)?.map(|request| request.to_args()).transpose()?)
}

/// Returns the typed arguments of a step, or `None` if the step does not apply to the host.
fn request(step_type: StepType, input: &StepInput<'_>) -> Result<Option<StepRequest>, StepError> {
    let StepInput { host, settings, .. } = *input;
    let cluster = || -> Result<&ClusterView, StepError> { input.cluster.ok_or(StepError::NoCluster) };
    let request = match step_type {
        StepType::Inventory => StepRequest::Inventory(inventory::request(host, settings)),
        StepType::FreeNetworkAddresses => return Ok(free_addresses::request(host, settings)),
        StepType::DhcpLeaseAllocate => return dhcp::request(host, &cluster()?.cluster),
        StepType::NtpSynchronizer => StepRequest::Ntp(ntp::request(input)),
        StepType::DomainResolution => StepRequest::Domains(domains::request(&cluster()?.cluster)?),
        StepType::ApiVipConnectivityCheck => {
            StepRequest::ApiVip(Box::new(ignition_endpoint::request(host, &cluster()?.cluster)?))
        }
        StepType::TangConnectivityCheck => return tang::request(host, &cluster()?.cluster),
        StepType::VerifyVips => return Ok(vips::request(&cluster()?.cluster)),
        StepType::LogsGather => return logs::request(host, cluster()?),
        StepType::StopInstallation => StepRequest::StopInstallation,
        StepType::UpgradeAgent => {
            StepRequest::Upgrade(UpgradeRequest { agent_image: settings.agent_image.clone() })
        }
        StepType::RebootForReclaim => {
            StepRequest::RebootForReclaim(ReclaimRequest { host_fs_mount_dir: HOST_FS_MOUNT_DIR.to_owned() })
        }
        StepType::ConnectivityCheck
        | StepType::Install
        | StepType::InstallationDiskSpeedCheck
        | StepType::ContainerImageAvailability
        | StepType::DownloadBootArtifacts
        | StepType::Execute
        | StepType::NextStepRunner => return Err(StepError::NotAvailable),
    };
    Ok(Some(request))
}

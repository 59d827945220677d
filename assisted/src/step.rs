//! Steps: the tasks that the service assigns to an agent.
//!
//! A [`Step`] has a type and a list of strings as arguments. [`StepRequest`](crate::request::StepRequest) is the typed
//! form of the arguments.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::extensible::Extensible;
use crate::secret::Redacted;
use crate::string_enum::string_enum;
use crate::wire::{is_default, null_as_default};

string_enum! {
    /// Type of a step.
    StepType as step_type {
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
        /// Start the step runner, the program that polls for steps.
        NextStepRunner = "next-step-runner",
        /// Upgrade the agent.
        UpgradeAgent = "upgrade-agent",
        /// Download kernel, initrd and root file system.
        DownloadBootArtifacts = "download-boot-artifacts",
        /// Boot the discovery image again.
        RebootForReclaim = "reboot-for-reclaim",
        /// Check that virtual IP addresses are free.
        VerifyVips = "verify-vips",
    }

    /// Action of an agent after its steps.
    #[derive(Default)]
    PostStepAction as post_step_action {
        /// Check in again.
        #[default]
        Continue = "continue",
        /// Exit. The agent then registers again.
        Exit = "exit",
    }

    /// Use of a virtual IP address.
    VipType as vip_type {
        /// The cluster's API.
        Api = "api",
        /// The cluster's ingress.
        Ingress = "ingress",
    }
}

/// Steps for an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = steps))]
pub struct Steps {
    /// Seconds until the next check-in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next_instruction_seconds: u32,
    /// Action after the steps.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = PostStepAction, required = true))]
    pub post_step_action: Extensible<PostStepAction>,
    /// The steps. The agent starts all of them at the same time.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub instructions: Vec<Step>,
}

/// A step for an agent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = step))]
pub struct Step {
    /// Type of the step.
    #[cfg_attr(feature = "openapi", schema(value_type = StepType))]
    pub step_type: Extensible<StepType>,
    /// Id of the step. The reply repeats it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub step_id: String,
    /// Arguments of the step.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub args: Vec<String>,
}

/// Redacts the arguments, which may contain tokens and Ignition configs. Shows only their lengths.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args: Vec<_> = self.args.iter().map(|arg| Redacted(arg)).collect();
        f.debug_struct("Step")
            .field("step_type", &self.step_type)
            .field("step_id", &self.step_id)
            .field("args", &args)
            .finish()
    }
}

impl Step {
    /// Returns a step.
    pub fn new(step_type: StepType, step_id: impl Into<String>, args: Vec<String>) -> Self {
        Self { step_type: step_type.into(), step_id: step_id.into(), args }
    }
}

//! Typed arguments of each type of step.
//!
//! A service creates a [`Step`] with [`StepRequest::to_step`], and an agent parses its arguments with
//! [`StepRequest::parse`]. Unknown keys in the arguments are ignored, so an agent can work with a newer service.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::connectivity::ConnectivityCheckHost;
use crate::host::{Header, HostRole};
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::infra_env::Proxy;
use crate::list::List;
use crate::secret::Secret;
use crate::step::{Step, StepType, VipType};
use crate::wire::{is_default, null_as_default};

/// A step, with its arguments in typed form.
///
/// # Examples
///
/// ```
/// use assisted::request::{NtpRequest, StepRequest};
///
/// let request = StepRequest::Ntp(NtpRequest { ntp_source: "ntp.example.com".to_owned() });
/// let step = request.to_step("ntp-synchronizer-77aa01bc")?;
/// assert_eq!(step.args, [r#"{"ntp_source":"ntp.example.com"}"#]);
/// assert_eq!(StepRequest::parse(&step)?, request);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepRequest {
    /// Send an inventory report.
    Inventory(InventoryRequest),
    /// Check the connectivity to other hosts.
    ConnectivityCheck(List<ConnectivityCheckHost>),
    /// Find unused addresses in these networks, given in CIDR notation.
    FreeAddresses(List<String>),
    /// Lease IP addresses for the cluster's API and ingress.
    DhcpLeases(DhcpRequest),
    /// Synchronize the clock.
    Ntp(NtpRequest),
    /// Resolve DNS names of the cluster.
    Domains(DomainRequest),
    /// Check the connectivity to the API of the cluster that the host joins.
    ApiVip(Box<ApiVipRequest>),
    /// Check the connectivity to Tang servers.
    Tang(TangRequest),
    /// Check whether virtual IP addresses are free.
    Vips(List<VipToVerify>),
    /// Measure the speed of a disk.
    DiskSpeed(DiskSpeedRequest),
    /// Check the availability of container images.
    Images(ImagesRequest),
    /// Install the host.
    Install(Box<InstallRequest>),
    /// Collect logs.
    LogsGather(LogsRequest),
    /// Stop the installation.
    StopInstallation,
    /// Upgrade the agent.
    Upgrade(UpgradeRequest),
    /// Download the kernel, the initrd and the root file system of the discovery image.
    BootArtifacts(BootArtifactsRequest),
    /// Boot the discovery image again.
    RebootForReclaim(ReclaimRequest),
}

/// An error in the arguments of a step.
///
/// An agent replies with [`ExitCode::INVALID`](crate::reply::ExitCode::INVALID) and the text of the error. The text
/// therefore includes the cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepArgumentsError {
    /// The step type is unknown, because a newer service sent it, or is no longer used.
    #[error("failed to find action for step type {0}")]
    UnknownType(String),
    /// The step has the wrong number of arguments.
    #[error("step {step_type} has {found} arguments, expected {expected}")]
    Count {
        /// Type of the step.
        step_type: StepType,
        /// Expected number of arguments.
        expected: usize,
        /// Number of arguments of the step.
        found: usize,
    },
    /// An argument is not valid JSON, lacks a key, or has an invalid value.
    #[error("invalid argument of step {step_type}: {cause}")]
    Json {
        /// Type of the step.
        step_type: StepType,
        /// The error of the JSON parser.
        cause: serde_json::Error,
    },
    /// A plain-text argument is invalid.
    #[error("invalid argument {argument:?} of step {step_type}")]
    Text {
        /// Type of the step.
        step_type: StepType,
        /// The invalid argument.
        argument: String,
    },
}

impl StepRequest {
    /// Parses the arguments of a step.
    ///
    /// # Errors
    ///
    /// Returns an error if the step type is unknown or no longer used, or if an argument is missing, superfluous or
    /// invalid.
    pub fn parse(step: &Step) -> Result<Self, StepArgumentsError> {
        let unknown = || StepArgumentsError::UnknownType(step.step_type.to_string());
        let args = Arguments { step_type: step.step_type.known().ok_or_else(unknown)?, all: &step.args };
        Ok(match args.step_type {
            StepType::Inventory => Self::Inventory(InventoryRequest::parse(args)?),
            StepType::ConnectivityCheck => Self::ConnectivityCheck(args.parse_only_argument()?),
            StepType::FreeNetworkAddresses => Self::FreeAddresses(args.parse_only_argument()?),
            StepType::DhcpLeaseAllocate => Self::DhcpLeases(args.parse_only_argument()?),
            StepType::NtpSynchronizer => Self::Ntp(args.parse_only_argument()?),
            StepType::DomainResolution => Self::Domains(args.parse_only_argument()?),
            StepType::ApiVipConnectivityCheck => Self::ApiVip(args.parse_only_argument()?),
            StepType::TangConnectivityCheck => Self::Tang(args.parse_only_argument()?),
            StepType::VerifyVips => Self::Vips(args.parse_only_argument()?),
            StepType::InstallationDiskSpeedCheck => Self::DiskSpeed(DiskSpeedRequest::parse(args)?),
            StepType::ContainerImageAvailability => Self::Images(args.parse_only_argument()?),
            StepType::Install => Self::Install(args.parse_only_argument()?),
            StepType::LogsGather => Self::LogsGather(args.parse_only_argument()?),
            StepType::StopInstallation => match args.all {
                [] => Self::StopInstallation,
                _ => return Err(args.count(0)),
            },
            StepType::UpgradeAgent => Self::Upgrade(args.parse_only_argument()?),
            StepType::DownloadBootArtifacts => Self::BootArtifacts(args.parse_only_argument()?),
            StepType::RebootForReclaim => Self::RebootForReclaim(args.parse_only_argument()?),
            StepType::Execute | StepType::NextStepRunner => return Err(unknown()),
        })
    }

    /// Returns the type of the step.
    #[must_use]
    pub fn step_type(&self) -> StepType {
        match self {
            Self::Inventory(_) => StepType::Inventory,
            Self::ConnectivityCheck(_) => StepType::ConnectivityCheck,
            Self::FreeAddresses(_) => StepType::FreeNetworkAddresses,
            Self::DhcpLeases(_) => StepType::DhcpLeaseAllocate,
            Self::Ntp(_) => StepType::NtpSynchronizer,
            Self::Domains(_) => StepType::DomainResolution,
            Self::ApiVip(_) => StepType::ApiVipConnectivityCheck,
            Self::Tang(_) => StepType::TangConnectivityCheck,
            Self::Vips(_) => StepType::VerifyVips,
            Self::DiskSpeed(_) => StepType::InstallationDiskSpeedCheck,
            Self::Images(_) => StepType::ContainerImageAvailability,
            Self::Install(_) => StepType::Install,
            Self::LogsGather(_) => StepType::LogsGather,
            Self::StopInstallation => StepType::StopInstallation,
            Self::Upgrade(_) => StepType::UpgradeAgent,
            Self::BootArtifacts(_) => StepType::DownloadBootArtifacts,
            Self::RebootForReclaim(_) => StepType::RebootForReclaim,
        }
    }

    /// Returns the arguments of the step.
    ///
    /// # Errors
    ///
    /// Returns an error if an argument cannot be serialized as JSON.
    pub fn to_args(&self) -> Result<Vec<String>, serde_json::Error> {
        let text = match self {
            Self::Inventory(request) => return Ok(request.to_args()),
            Self::StopInstallation => return Ok(Vec::new()),
            Self::DiskSpeed(request) => return request.to_args(),
            Self::ConnectivityCheck(hosts) => serde_json::to_string(hosts),
            Self::FreeAddresses(networks) => serde_json::to_string(networks),
            Self::DhcpLeases(request) => serde_json::to_string(request),
            Self::Ntp(request) => serde_json::to_string(request),
            Self::Domains(request) => serde_json::to_string(request),
            Self::ApiVip(request) => serde_json::to_string(request),
            Self::Tang(request) => serde_json::to_string(request),
            Self::Vips(vips) => serde_json::to_string(vips),
            Self::Images(request) => serde_json::to_string(request),
            Self::Install(request) => serde_json::to_string(request),
            Self::LogsGather(request) => serde_json::to_string(request),
            Self::Upgrade(request) => serde_json::to_string(request),
            Self::BootArtifacts(request) => serde_json::to_string(request),
            Self::RebootForReclaim(request) => serde_json::to_string(request),
        };
        Ok(vec![text?])
    }

    /// Returns a step with these arguments and the given id.
    ///
    /// # Errors
    ///
    /// Returns an error if an argument cannot be serialized as JSON.
    pub fn to_step(&self, step_id: impl Into<String>) -> Result<Step, serde_json::Error> {
        Ok(Step::new(self.step_type(), step_id, self.to_args()?))
    }
}

/// The unparsed arguments of a step.
#[derive(Clone, Copy, Debug)]
struct Arguments<'a> {
    step_type: StepType,
    all: &'a [String],
}

impl Arguments<'_> {
    /// Parses the argument of a step that has exactly one.
    fn parse_only_argument<T: DeserializeOwned>(self) -> Result<T, StepArgumentsError> {
        match self.all {
            [one] => self.json(one),
            _ => Err(self.count(1)),
        }
    }

    fn json<T: DeserializeOwned>(self, argument: &str) -> Result<T, StepArgumentsError> {
        let step_type = self.step_type;
        serde_json::from_str(argument).map_err(|cause| StepArgumentsError::Json { step_type, cause })
    }

    fn count(self, expected: usize) -> StepArgumentsError {
        StepArgumentsError::Count { step_type: self.step_type, expected, found: self.all.len() }
    }

    fn text(self, argument: &str) -> StepArgumentsError {
        StepArgumentsError::Text { step_type: self.step_type, argument: argument.to_owned() }
    }
}

/// Arguments of `inventory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InventoryRequest {
    /// Id of the host that sends the report.
    pub host_id: HostId,
    /// Maximum size of the report, in bytes.
    pub output_max_size: Option<u64>,
    /// Minimum size of a disk to include in the report, in bytes.
    pub disk_min_size: Option<u64>,
}

impl InventoryRequest {
    const OUTPUT_MAX_SIZE: &'static str = "--output-max-size=";
    const DISK_MIN_SIZE: &'static str = "--disk-min-size=";

    fn parse(args: Arguments<'_>) -> Result<Self, StepArgumentsError> {
        let [host_id, options @ ..] = args.all else { return Err(args.count(1)) };
        let host_id = host_id.parse().map_err(|_| args.text(host_id))?;
        let mut request = Self { host_id, output_max_size: None, disk_min_size: None };
        for option in options {
            let bytes = |text: &str| text.parse().map_err(|_| args.text(option)).map(Some);
            if let Some(text) = option.strip_prefix(Self::OUTPUT_MAX_SIZE) {
                request.output_max_size = bytes(text)?;
            } else if let Some(text) = option.strip_prefix(Self::DISK_MIN_SIZE) {
                request.disk_min_size = bytes(text)?;
            } else {
                return Err(args.text(option));
            }
        }
        Ok(request)
    }

    fn to_args(self) -> Vec<String> {
        let option = |name: &str, bytes: Option<u64>| bytes.map(|bytes| format!("{name}{bytes}"));
        let options = [
            option(Self::OUTPUT_MAX_SIZE, self.output_max_size),
            option(Self::DISK_MIN_SIZE, self.disk_min_size),
        ];
        std::iter::once(self.host_id.to_string()).chain(options.into_iter().flatten()).collect()
    }
}

/// Arguments of `dhcp-lease-allocate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpRequest {
    /// Earlier lease of the API address, in the format of dhclient.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_vip_lease: String,
    /// MAC address to lease the API address with.
    pub api_vip_mac: String,
    /// Earlier lease of the ingress address, in the format of dhclient.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ingress_vip_lease: String,
    /// MAC address to lease the ingress address with.
    pub ingress_vip_mac: String,
    /// Network interface of the host in the machine network.
    pub interface: String,
}

/// Arguments of `ntp-synchronizer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NtpRequest {
    /// Time servers to add, separated by commas. May be empty.
    pub ntp_source: String,
}

/// Arguments of `domain-resolution`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainRequest {
    /// Names to resolve.
    pub domains: List<DomainName>,
}

/// A DNS name to resolve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainName {
    /// The DNS name.
    pub domain_name: String,
}

/// Arguments of `api-vip-connectivity-check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiVipRequest {
    /// The only CA certificate to trust: PEM, encoded as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
    /// Token to send to the Ignition endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint_token: Option<Secret>,
    /// HTTP headers to send to the Ignition endpoint.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub request_headers: Vec<Header>,
    /// URL of the Ignition config.
    pub url: String,
    /// Whether to check the network of the URL's IP address.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify_cidr: bool,
}

/// Arguments of `tang-connectivity-check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TangRequest {
    /// Tang servers: a list of objects with `url` and `thumbprint`, as JSON in a string.
    pub tang_servers: String,
}

/// A virtual IP address to check. The argument of `verify-vips` is a list of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VipToVerify {
    /// The IP address.
    pub vip: String,
    /// Whether the address is for the cluster's API or its ingress.
    pub vip_type: VipType,
}

/// Arguments of `installation-disk-speed-check`. The check overwrites data on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSpeedRequest {
    /// Device path of the disk.
    pub path: String,
    /// Maximum duration of the check.
    pub timeout: Duration,
}

/// The first argument of `installation-disk-speed-check`, as JSON.
#[derive(Serialize, Deserialize)]
struct DiskPath {
    path: String,
}

impl DiskSpeedRequest {
    fn parse(args: Arguments<'_>) -> Result<Self, StepArgumentsError> {
        let [disk, timeout] = args.all else { return Err(args.count(2)) };
        let DiskPath { path } = args.json(disk)?;
        let seconds = timeout.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Self { path, timeout: seconds.ok_or_else(|| args.text(timeout))? })
    }

    fn to_args(&self) -> Result<Vec<String>, serde_json::Error> {
        let disk = serde_json::to_string(&DiskPath { path: self.path.clone() })?;
        Ok(vec![disk, format!("{:.2}", self.timeout.as_secs_f64())])
    }
}

/// Arguments of `container-image-availability`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImagesRequest {
    /// References of the container images.
    pub images: List<String>,
    /// Maximum duration for all images together, in seconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout: i64,
}

/// Arguments of `install`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallRequest {
    /// Id or device path of the installation disk.
    pub boot_device: String,
    /// Whether the installer waits for the cluster version operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_cvo: Option<bool>,
    /// Cluster of the host.
    pub cluster_id: ClusterId,
    /// Number of control plane nodes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub control_plane_count: i64,
    /// Container image of the controller in the cluster.
    pub controller_image: String,
    /// CoreOS image to install to the existing root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub coreos_image: String,
    /// Disks to wipe.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disks_to_format: List<String>,
    /// Whether the installer switches to the target image before the first boot, which saves a reboot.
    #[serde(default, skip_serializing_if = "is_default")]
    pub enable_skip_mco_reboot: bool,
    /// Id of the host to install.
    pub host_id: HostId,
    /// Infra-env of the host.
    pub infra_env_id: InfraEnvId,
    /// Arguments of coreos-installer: a list, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    /// Container image of the installer.
    pub installer_image: String,
    /// Container image of the machine config operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mco_image: String,
    /// Reference of the must-gather image, or several references by operator, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub must_gather_image: String,
    /// Whether the controller reports the number of reboots.
    #[serde(default, skip_serializing_if = "is_default")]
    pub notify_num_reboots: bool,
    /// OpenShift version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    /// Proxies for the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Role of the host.
    pub role: HostRole,
    /// IP addresses of the service, for hosts that cannot resolve its DNS name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub service_ips: List<String>,
    /// Whether the installer skips erasing the installation disk before it writes the image.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip_installation_disk_cleanup: bool,
}

/// Arguments of `logs-gather`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsRequest {
    /// Whether the host is the bootstrap host.
    pub bootstrap: bool,
    /// Cluster of the host.
    pub cluster_id: ClusterId,
    /// Id of the host whose logs are collected.
    pub host_id: HostId,
    /// Infra-env of the host.
    pub infra_env_id: InfraEnvId,
    /// Whether the agent also runs the gather script of the OpenShift installer.
    pub installer_gather: bool,
    /// IP addresses of the other control plane nodes. Set for the bootstrap host.
    #[serde(default, deserialize_with = "null_as_default")]
    pub master_ips: List<String>,
}

/// Arguments of `upgrade-agent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeRequest {
    /// Container image of the new agent.
    pub agent_image: String,
}

/// Arguments of `download-boot-artifacts`. The URLs may contain tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootArtifactsRequest {
    /// Directory in the agent's container where the file system of the host is mounted.
    pub host_fs_mount_dir: String,
    /// URL of the initrd.
    pub initrd_url: Secret,
    /// URL of the kernel.
    pub kernel_url: Secret,
    /// URL of the root file system, which the kernel command line refers to.
    pub rootfs_url: Secret,
}

/// Arguments of `reboot-for-reclaim`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimRequest {
    /// Directory in the agent's container where the file system of the host is mounted.
    pub host_fs_mount_dir: String,
}

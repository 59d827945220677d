//! Replies of agents: the result of each step, and the reports in them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cluster::VipVerification;
use crate::connectivity::ConnectivityReport;
use crate::extensible::Extensible;
use crate::inventory_report::InventoryReport;
use crate::list::List;
use crate::secret::Redacted;
use crate::step::{Step, StepType, VipType};
use crate::text::Text;
use crate::wire::reported;

/// Exit code of a step: the exit code of the step's command, or one of the constants below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExitCode(
    /// The code, as the API transmits it.
    pub i64,
);

impl ExitCode {
    /// The step succeeded.
    pub const SUCCESS: Self = Self(0);
    /// The command failed.
    pub const FAILED: Self = Self(1);
    /// A container image is not available.
    pub const IMAGE_UNAVAILABLE: Self = Self(2);
    /// The command timed out.
    pub const TIMED_OUT: Self = Self(124);
    /// A container with this name is already running.
    pub const CONTAINER_EXISTS: Self = Self(125);
    /// The host cannot read its boot media.
    pub const MEDIA_LOST: Self = Self(256);
    /// The arguments of the step are invalid, or the agent failed.
    pub const INVALID: Self = Self(-1);

    /// Returns `true` if the step succeeded.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }
}

impl fmt::Display for ExitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Result of a step.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = step_reply))]
pub struct StepReply {
    /// Type of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<StepType>))]
    pub step_type: Option<Extensible<StepType>>,
    /// Id of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Exit code. 0 means success.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>))]
    pub exit_code: Option<ExitCode>,
    /// Output, as JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Error output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Redacts the output, which may contain an Ignition config. Shows only its length.
impl fmt::Debug for StepReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepReply")
            .field("step_type", &self.step_type)
            .field("step_id", &self.step_id)
            .field("exit_code", &self.exit_code)
            .field("output", &self.output.as_deref().map(Redacted))
            .field("error", &self.error)
            .finish()
    }
}

impl StepReply {
    /// Returns the reply to a successful step without output.
    #[must_use]
    pub fn done(step: &Step) -> Self {
        Self {
            step_type: Some(step.step_type.clone()),
            step_id: Some(step.step_id.clone()),
            ..Self::default()
        }
    }

    /// Returns the reply to a successful step, with a report.
    ///
    /// # Errors
    ///
    /// Returns an error if the payload cannot be written as JSON.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::reply::{ExitCode, NtpReport, NtpSource, ReplyPayload, StepReply};
    /// use assisted::step::{Step, StepType};
    ///
    /// let step = Step::new(StepType::NtpSynchronizer, "ntp-synchronizer-77aa01bc", Vec::new());
    /// let source = NtpSource { source_name: "ntp.example.com".into(), source_state: "synced".into() };
    /// let payload = ReplyPayload::Ntp(NtpReport { ntp_sources: vec![source].into() });
    ///
    /// let reply = StepReply::success(&step, &payload)?;
    /// assert_eq!(reply.exit_code(), ExitCode::SUCCESS);
    /// assert_eq!(reply.payload()?, Some(payload));
    ///
    /// let reply = StepReply::failure(&step, ExitCode::TIMED_OUT, "no answer from chronyd");
    /// assert_eq!(reply.payload()?, None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn success(step: &Step, payload: &ReplyPayload<'_>) -> Result<Self, serde_json::Error> {
        Ok(Self { output: Some(payload.to_output()?), ..Self::done(step) })
    }

    /// Returns the reply to a failed step.
    pub fn failure(step: &Step, exit_code: ExitCode, error: impl Into<String>) -> Self {
        Self { exit_code: Some(exit_code), error: Some(error.into()), ..Self::done(step) }
    }

    /// Adds a report to a reply. The service also reads reports about images and disks from the replies to failed
    /// steps.
    ///
    /// # Errors
    ///
    /// Returns an error if the payload cannot be written as JSON.
    pub fn with_payload(self, payload: &ReplyPayload<'_>) -> Result<Self, serde_json::Error> {
        Ok(Self { output: Some(payload.to_output()?), ..self })
    }

    /// Returns the type of the step, unless it is absent or unknown.
    #[must_use]
    pub fn known_type(&self) -> Option<StepType> {
        self.step_type.as_ref().and_then(Extensible::known)
    }

    /// Returns the exit code. An absent code counts as 0.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        self.exit_code.unwrap_or_default()
    }

    /// Parses the output. Returns `None` if the output is absent or empty, or if the type of the step is unknown.
    ///
    /// # Errors
    ///
    /// Returns an error if the output is not a valid report for the type of the step.
    pub fn payload(&self) -> Result<Option<ReplyPayload<'_>>, serde_json::Error> {
        let output = self.output.as_deref().unwrap_or_default();
        match self.known_type() {
            Some(step_type) if !output.is_empty() => ReplyPayload::parse(step_type, output).map(Some),
            _ => Ok(None),
        }
    }
}

/// The report in a reply. If it was parsed, it borrows its texts from the reply's output.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyPayload<'a> {
    /// Reply to `inventory`.
    Inventory(Box<InventoryReport<'a>>),
    /// Reply to `connectivity-check`.
    Connectivity(ConnectivityReport<'a>),
    /// Reply to `free-network-addresses`.
    FreeAddresses(List<FreeNetwork<'a>>),
    /// Reply to `dhcp-lease-allocate`.
    DhcpLeases(DhcpReport<'a>),
    /// Reply to `ntp-synchronizer`.
    Ntp(NtpReport<'a>),
    /// Reply to `domain-resolution`.
    Domains(DomainReport<'a>),
    /// Reply to `api-vip-connectivity-check`.
    ApiVip(ApiVipReport<'a>),
    /// Reply to `tang-connectivity-check`.
    Tang(TangReport<'a>),
    /// Reply to `verify-vips`.
    Vips(List<VerifiedVip<'a>>),
    /// Reply to `installation-disk-speed-check`.
    DiskSpeed(DiskSpeedReport<'a>),
    /// Reply to `container-image-availability`.
    Images(ImagesReport<'a>),
    /// Reply to `upgrade-agent`.
    Upgrade(UpgradeReport<'a>),
    /// Output of a step that has no report, such as `install` and `download-boot-artifacts`. The service ignores it.
    Text(Text<'a>),
}

impl<'a> ReplyPayload<'a> {
    /// Parses the output of a step of the given type.
    ///
    /// # Errors
    ///
    /// Returns an error if the output is not a valid report for this type.
    pub fn parse(step_type: StepType, output: &'a str) -> Result<Self, serde_json::Error> {
        Ok(match step_type {
            StepType::Inventory => Self::Inventory(Box::new(read(output)?)),
            StepType::ConnectivityCheck => Self::Connectivity(read(output)?),
            StepType::FreeNetworkAddresses => Self::FreeAddresses(read(output)?),
            StepType::DhcpLeaseAllocate => Self::DhcpLeases(read(output)?),
            StepType::NtpSynchronizer => Self::Ntp(read(output)?),
            StepType::DomainResolution => Self::Domains(read(output)?),
            StepType::ApiVipConnectivityCheck => Self::ApiVip(read(output)?),
            StepType::TangConnectivityCheck => Self::Tang(read(output)?),
            StepType::VerifyVips => Self::Vips(read(output)?),
            StepType::InstallationDiskSpeedCheck => Self::DiskSpeed(read(output)?),
            StepType::ContainerImageAvailability => Self::Images(read(output)?),
            StepType::UpgradeAgent => Self::Upgrade(read(output)?),
            StepType::Execute
            | StepType::Install
            | StepType::StopInstallation
            | StepType::LogsGather
            | StepType::NextStepRunner
            | StepType::DownloadBootArtifacts
            | StepType::RebootForReclaim => Self::Text(output.into()),
        })
    }

    /// Returns the text to set as a reply's `output`.
    ///
    /// # Errors
    ///
    /// Returns an error if the payload cannot be written as JSON.
    pub fn to_output(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Inventory(report) => serde_json::to_string(report),
            Self::Connectivity(report) => serde_json::to_string(report),
            Self::FreeAddresses(report) => serde_json::to_string(report),
            Self::DhcpLeases(report) => serde_json::to_string(report),
            Self::Ntp(report) => serde_json::to_string(report),
            Self::Domains(report) => serde_json::to_string(report),
            Self::ApiVip(report) => serde_json::to_string(report),
            Self::Tang(report) => serde_json::to_string(report),
            Self::Vips(report) => serde_json::to_string(report),
            Self::DiskSpeed(report) => serde_json::to_string(report),
            Self::Images(report) => serde_json::to_string(report),
            Self::Upgrade(report) => serde_json::to_string(report),
            Self::Text(text) => Ok(text.to_string()),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(output: &'a str) -> Result<T, serde_json::Error> {
    serde_json::from_str(output)
}

reported! {
    /// Result of checking that a virtual IP address is free: an item of the reply to `verify-vips`.
    VerifiedVip<'a> {
        /// Result of the check. Absent if the address was not checked.
        verification: Option<Extensible<VipVerification>>,
        /// The checked IP address.
        vip: Text<'a>,
        /// Whether the address is for the cluster's API or its ingress.
        vip_type: Option<Extensible<VipType>>,
    }

    /// The reply to `ntp-synchronizer`.
    NtpReport<'a> {
        /// Time servers of the host, each with its state.
        ntp_sources: List<NtpSource<'a>>,
    }

    /// A time server.
    NtpSource<'a> {
        /// Name or address.
        source_name: Text<'a>,
        /// State: `synced`, `combined`, `not_combined`, `unreachable`, `error` or `variable`.
        source_state: Text<'a>,
    }

    /// An item of the reply to `free-network-addresses`.
    FreeNetwork<'a> {
        /// Network in CIDR notation.
        network: Text<'a>,
        /// Unused addresses in the network.
        free_addresses: List<Text<'a>>,
    }

    /// The reply to `dhcp-lease-allocate`.
    DhcpReport<'a> {
        /// Address for the cluster's API.
        api_vip_address: Text<'a>,
        /// Lease of the API address, in the format of dhclient.
        api_vip_lease: Text<'a>,
        /// Address for the cluster's ingress.
        ingress_vip_address: Text<'a>,
        /// Lease of the ingress address, in the format of dhclient.
        ingress_vip_lease: Text<'a>,
    }

    /// The reply to `domain-resolution`.
    DomainReport<'a> {
        /// Results, one per DNS name.
        resolutions: List<DomainResolution<'a>>,
    }

    /// Result of one DNS lookup.
    DomainResolution<'a> {
        /// DNS name from the step's arguments.
        domain_name: Text<'a>,
        /// IPv4 addresses.
        ipv4_addresses: List<Text<'a>>,
        /// IPv6 addresses.
        ipv6_addresses: List<Text<'a>>,
        /// Canonical names.
        cnames: List<Text<'a>>,
    }

    /// The reply to `tang-connectivity-check`.
    TangReport<'a> {
        /// Whether all Tang servers responded.
        is_success: bool,
        /// Responses, one per Tang server.
        tang_server_response: List<TangServer<'a>>,
    }

    /// The response of a Tang server.
    TangServer<'a> {
        /// URL of the server's advertisement.
        tang_url: Text<'a>,
        /// The advertised keys: the signed payload of the response.
        payload: Text<'a>,
        /// Signatures of the payload.
        signatures: List<TangSignature<'a>>,
    }

    /// A signature of a Tang server.
    TangSignature<'a> {
        /// The protected header of the signature.
        protected: Text<'a>,
        /// The signature itself, in the encoding of the server.
        signature: Text<'a>,
    }

    /// The reply to `container-image-availability`.
    ImagesReport<'a> {
        /// Results, one per image.
        images: List<ImageReport<'a>>,
    }

    /// Availability of a container image.
    ImageReport<'a> {
        /// Reference of the image.
        name: Text<'a>,
        /// Result of the download: `success` or `failure`.
        result: Text<'a>,
        /// Size of the image, in bytes.
        size_bytes: f64,
        /// Duration of the download, in seconds. Absent if the image was present.
        time: f64,
        /// Speed of the download, in megabytes per second. Absent if the image was present.
        download_rate: f64,
    }

    /// The reply to `installation-disk-speed-check`.
    DiskSpeedReport<'a> {
        /// Device path of the disk.
        path: Text<'a>,
        /// Time to write and sync a block, in milliseconds.
        io_sync_duration: i64,
    }

    /// The reply to `upgrade-agent`.
    UpgradeReport<'a> {
        /// Container image of the new agent.
        agent_image: Text<'a>,
        /// Result of the download: `success` or `failure`. Empty if another download of the image is in progress.
        result: Text<'a>,
    }
}

reported! {
    without Debug:

    /// The reply to `api-vip-connectivity-check`.
    ApiVipReport<'a> {
        /// Whether the agent downloaded the Ignition config.
        is_success: bool,
        /// URL of the Ignition config.
        url: Text<'a>,
        /// Reason for a failed download.
        download_error: Text<'a>,
        /// The Ignition config without the files that the service does not need.
        ignition: Text<'a>,
    }
}

/// Redacts the Ignition config and its URL, which may contain a password. Shows only their lengths.
impl fmt::Debug for ApiVipReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiVipReport")
            .field("is_success", &self.is_success)
            .field("url", &Redacted(&self.url))
            .field("download_error", &self.download_error)
            .field("ignition", &Redacted(&self.ignition))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_ITEMS: usize = 16 << 10;

    #[test]
    fn unknown_keys_are_ignored_and_null_is_the_default() {
        let text = r#"{"colour": {"of": ["x"]}, "ntp_sources": [{"source_name": "a", "source_state": null, "x": 1}]}"#;
        let report: NtpReport<'_> = read(text).unwrap();
        assert_eq!(serde_json::to_string(&report).unwrap(), r#"{"ntp_sources":[{"source_name":"a"}]}"#);
        assert_eq!(
            serde_json::to_string(&read::<NtpReport<'_>>("{}").unwrap()).unwrap(),
            r#"{"ntp_sources":null}"#
        );
    }

    #[test]
    fn keys_match_case_insensitively() {
        let text =
            r#"{"NTP_Sources": [{"SOURCE_NAME": "a", "Source_State": "synced", "\u0053ource_Other": 1}]}"#;
        let report: NtpReport<'_> = read(text).unwrap();
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"ntp_sources":[{"source_name":"a","source_state":"synced"}]}"#
        );
    }

    #[test]
    fn rejects_lists_with_too_many_items() {
        let items = |count: usize| format!(r#"{{"ntp_sources": [{}]}}"#, vec!["{}"; count].join(","));
        read::<NtpReport<'_>>(&items(MAX_ITEMS)).unwrap();
        let refusal = read::<NtpReport<'_>>(&items(MAX_ITEMS + 1)).unwrap_err();
        assert!(refusal.to_string().contains("invalid length 16385"), "{refusal}");
    }
}

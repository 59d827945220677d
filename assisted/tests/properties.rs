//! Property tests: values of every report, step argument and time survive serialization and parsing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

use std::fmt::Debug;
use std::time::Duration;

use assisted::cluster::VipVerification;
use assisted::connectivity::{
    ConnectivityCheckHost, ConnectivityCheckNic, ConnectivityReport, LinkReport, MtuReport, PingReport,
    RemoteHost,
};
use assisted::host::{DiskInfo, DiskSpeedInfo, Header, HostRole, HostStatus};
use assisted::infra_env::Proxy;
use assisted::inventory_report::{
    Boot, Cpu, Disk, DiskSpeed, Eligibility, Gpu, Interface, InventoryReport, Iscsi, Memory, Route,
    SystemVendor, Truncation,
};
use assisted::reply::{
    ApiVipReport, DhcpReport, DiskSpeedReport, DomainReport, DomainResolution, ExitCode, FreeNetwork,
    ImageReport, ImagesReport, NtpReport, NtpSource, ReplyPayload, StepReply, TangReport, TangServer,
    TangSignature, UpgradeReport, VerifiedVip,
};
use assisted::request::{
    ApiVipRequest, BootArtifactsRequest, DhcpRequest, DiskSpeedRequest, DomainName, DomainRequest,
    ImagesRequest, InstallRequest, InventoryRequest, LogsRequest, NtpRequest, ReclaimRequest, StepRequest,
    TangRequest, UpgradeRequest, VipToVerify,
};
use assisted::step::{Step, StepType, VipType};
use assisted::{ClusterId, Extensible, HostId, InfraEnvId, List, Micros, Millis, Secret, Text};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// Random bytes that determine the drawn values. Fewer and smaller bytes result in smaller values, so that failures
/// shrink.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        let index = usize::from(self.byte()) % values.len();
        *values.get(index).unwrap()
    }
}

/// A value that can be drawn from random choices.
trait Draw: Sized {
    fn draw(from: &mut Choices<'_>) -> Self;
}

impl Draw for bool {
    fn draw(from: &mut Choices<'_>) -> Self {
        from.byte() % 2 == 1
    }
}

impl Draw for i64 {
    fn draw(from: &mut Choices<'_>) -> Self {
        let small = from.byte();
        if small < 200 { Self::from(small) - 3 } else { Self::from_be_bytes([(); 8].map(|()| from.byte())) }
    }
}

/// Multiples of 1/8, because serde_json may parse other fractions with an error in the last bit.
impl Draw for f64 {
    fn draw(from: &mut Choices<'_>) -> Self {
        Self::from(i32::from_be_bytes([0, from.byte(), from.byte(), from.byte()]) - 1000) / 8.0
    }
}

impl Draw for String {
    fn draw(from: &mut Choices<'_>) -> Self {
        const CHARS: [char; 16] = [
            'a',
            'Z',
            '0',
            ' ',
            '"',
            '\\',
            '/',
            '\n',
            '\t',
            '\0',
            '{',
            '[',
            '<',
            'é',
            '\u{2028}',
            '\u{1f600}',
        ];
        (0..from.byte() % 6).map(|_| from.one_of(&CHARS)).collect()
    }
}

impl Draw for Text<'_> {
    fn draw(from: &mut Choices<'_>) -> Self {
        String::draw(from).into()
    }
}

impl Draw for Secret {
    fn draw(from: &mut Choices<'_>) -> Self {
        Self::new(String::draw(from))
    }
}

impl Draw for Uuid {
    fn draw(from: &mut Choices<'_>) -> Self {
        Self::from_bytes([(); 16].map(|()| from.byte()))
    }
}

impl<T: Draw> Draw for Box<T> {
    fn draw(from: &mut Choices<'_>) -> Self {
        Self::new(T::draw(from))
    }
}

impl<T: Draw> Draw for Option<T> {
    fn draw(from: &mut Choices<'_>) -> Self {
        bool::draw(from).then(|| T::draw(from))
    }
}

impl<T: Draw> Draw for Vec<T> {
    fn draw(from: &mut Choices<'_>) -> Self {
        List::draw(from).0.unwrap_or_default()
    }
}

impl<T: Draw> Draw for List<T> {
    fn draw(from: &mut Choices<'_>) -> Self {
        match from.byte() % 5 {
            0 => Self(None),
            count => (1..count).map(|_| T::draw(from)).collect(),
        }
    }
}

macro_rules! draw {
    ($($name:ident $(<$life:lifetime>)? { $($field:ident),+ $(,)? })+) => {$(
        impl Draw for $name $(<$life>)? {
            fn draw(from: &mut Choices<'_>) -> Self {
                Self { $($field: Draw::draw(from)),+ }
            }
        }
    )+};
}

macro_rules! draw_newtypes {
    ($($name:ident),+) => {$(
        impl Draw for $name {
            fn draw(from: &mut Choices<'_>) -> Self {
                Self(Draw::draw(from))
            }
        }
    )+};
}

macro_rules! draw_enums {
    ($($name:ident: $values:expr;)+) => {$(
        impl Draw for $name {
            fn draw(from: &mut Choices<'_>) -> Self {
                from.one_of(&$values)
            }
        }
    )+};
}

impl<T: Draw> Draw for Extensible<T> {
    fn draw(from: &mut Choices<'_>) -> Self {
        if bool::draw(from) { Self::Known(T::draw(from)) } else { Self::Unknown(String::draw(from)) }
    }
}

draw_newtypes!(ClusterId, InfraEnvId, HostId, ExitCode);

draw_enums! {
    VipType: *VipType::ALL;
    HostRole: *HostRole::ALL;
    VipVerification: [VipVerification::Unverified, VipVerification::Failed, VipVerification::Succeeded];
}

draw! {
    InventoryReport<'_> {
        bmc_address, bmc_v6address, boot, cpu, disks, gpus, hostname, interfaces, memory, routes, system_vendor,
        tpm_version, truncation,
    }
    Boot<'_> { command_line, current_boot_mode, device_type, pxe_interface, secure_boot_state }
    Cpu<'_> { architecture, count, flags, frequency, model_name }
    Disk<'_> {
        bootable, by_id, by_path, drive_type, has_uuid, hctl, holders, id, installation_eligibility, io_perf,
        is_installation_media, iscsi, model, name, partition_types, path, removable, serial, size_bytes, smart, vendor,
        wwn,
    }
    Eligibility<'_> { eligible, not_eligible_reasons }
    DiskSpeed { sync_duration }
    Iscsi<'_> { host_ip_address }
    Gpu<'_> { address, device_id, name, vendor, vendor_id }
    Interface<'_> {
        biosdevname, client_id, flags, has_carrier, ipv4_addresses, ipv6_addresses, mac_address, mtu, name, product,
        speed_mbps, interface_type, vendor,
    }
    Memory<'_> { physical_bytes, physical_bytes_method, usable_bytes }
    Route<'_> { destination, family, gateway, interface, metric }
    SystemVendor<'_> { manufacturer, product_name, serial_number, is_virtual }
    Truncation<'_> { reasons, kind }

    ConnectivityReport<'_> { remote_hosts }
    RemoteHost<'_> { host_id, l2_connectivity, l3_connectivity, mtu_report }
    LinkReport<'_> { outgoing_nic, outgoing_ip_address, remote_ip_address, remote_mac, successful }
    PingReport<'_> { outgoing_nic, remote_ip_address, successful, average_rtt_ms, packet_loss_percentage }
    MtuReport<'_> { outgoing_nic, remote_ip_address, mtu_successful }
    FreeNetwork<'_> { network, free_addresses }
    DhcpReport<'_> { api_vip_address, api_vip_lease, ingress_vip_address, ingress_vip_lease }
    NtpReport<'_> { ntp_sources }
    NtpSource<'_> { source_name, source_state }
    DomainReport<'_> { resolutions }
    DomainResolution<'_> { domain_name, ipv4_addresses, ipv6_addresses, cnames }
    ApiVipReport<'_> { is_success, url, download_error, ignition }
    TangReport<'_> { is_success, tang_server_response }
    TangServer<'_> { tang_url, payload, signatures }
    TangSignature<'_> { protected, signature }
    VerifiedVip<'_> { verification, vip, vip_type }
    DiskSpeedReport<'_> { path, io_sync_duration }
    ImagesReport<'_> { images }
    ImageReport<'_> { name, result, size_bytes, time, download_rate }
    UpgradeReport<'_> { agent_image, result }
    DiskInfo<'_> { disk_speed, path }
    DiskSpeedInfo { tested, exit_code, speed_ms }

    ConnectivityCheckHost { host_id, nics }
    ConnectivityCheckNic { ip_addresses, mac, name }
    DhcpRequest { api_vip_lease, api_vip_mac, ingress_vip_lease, ingress_vip_mac, interface }
    NtpRequest { ntp_source }
    DomainRequest { domains }
    DomainName { domain_name }
    ApiVipRequest { ca_certificate, ignition_endpoint_token, request_headers, url, verify_cidr }
    Header { key, value }
    TangRequest { tang_servers }
    VipToVerify { vip, vip_type }
    ImagesRequest { images, timeout }
    Proxy { http_proxy, https_proxy, no_proxy }
    InstallRequest {
        boot_device, check_cvo, cluster_id, control_plane_count, controller_image, coreos_image, disks_to_format,
        enable_skip_mco_reboot, host_id, infra_env_id, installer_args, installer_image, mco_image, must_gather_image,
        notify_num_reboots, openshift_version, proxy, role, service_ips, skip_installation_disk_cleanup,
    }
    LogsRequest { bootstrap, cluster_id, host_id, infra_env_id, installer_gather, master_ips }
    UpgradeRequest { agent_image }
    BootArtifactsRequest { host_fs_mount_dir, initrd_url, kernel_url, rootfs_url }
    ReclaimRequest { host_fs_mount_dir }
}

impl Draw for InventoryRequest {
    fn draw(from: &mut Choices<'_>) -> Self {
        let bytes = |from: &mut Choices<'_>| Option::<i64>::draw(from).map(i64::unsigned_abs);
        Self { host_id: Draw::draw(from), output_max_size: bytes(from), disk_min_size: bytes(from) }
    }
}

/// The timeout is written with two decimals, so draw multiples of 250 ms.
impl Draw for DiskSpeedRequest {
    fn draw(from: &mut Choices<'_>) -> Self {
        let timeout = Duration::from_millis(u64::from(from.byte()) * 250);
        Self { path: Draw::draw(from), timeout }
    }
}

fn payload(step_type: StepType, from: &mut Choices<'_>) -> Option<ReplyPayload<'static>> {
    Some(match step_type {
        StepType::Inventory => ReplyPayload::Inventory(Draw::draw(from)),
        StepType::ConnectivityCheck => ReplyPayload::Connectivity(Draw::draw(from)),
        StepType::FreeNetworkAddresses => ReplyPayload::FreeAddresses(drawn_list(from)),
        StepType::DhcpLeaseAllocate => ReplyPayload::DhcpLeases(Draw::draw(from)),
        StepType::NtpSynchronizer => ReplyPayload::Ntp(Draw::draw(from)),
        StepType::DomainResolution => ReplyPayload::Domains(Draw::draw(from)),
        StepType::ApiVipConnectivityCheck => ReplyPayload::ApiVip(Draw::draw(from)),
        StepType::TangConnectivityCheck => ReplyPayload::Tang(Draw::draw(from)),
        StepType::VerifyVips => ReplyPayload::Vips(drawn_list(from)),
        StepType::InstallationDiskSpeedCheck => ReplyPayload::DiskSpeed(Draw::draw(from)),
        StepType::ContainerImageAvailability => ReplyPayload::Images(Draw::draw(from)),
        StepType::UpgradeAgent => ReplyPayload::Upgrade(Draw::draw(from)),
        _ => return None,
    })
}

fn request(step_type: StepType, from: &mut Choices<'_>) -> Option<StepRequest> {
    Some(match step_type {
        StepType::Inventory => StepRequest::Inventory(Draw::draw(from)),
        StepType::ConnectivityCheck => StepRequest::ConnectivityCheck(drawn_list(from)),
        StepType::FreeNetworkAddresses => StepRequest::FreeAddresses(drawn_list(from)),
        StepType::DhcpLeaseAllocate => StepRequest::DhcpLeases(Draw::draw(from)),
        StepType::NtpSynchronizer => StepRequest::Ntp(Draw::draw(from)),
        StepType::DomainResolution => StepRequest::Domains(DomainRequest { domains: drawn_list(from) }),
        StepType::ApiVipConnectivityCheck => StepRequest::ApiVip(Draw::draw(from)),
        StepType::TangConnectivityCheck => StepRequest::Tang(Draw::draw(from)),
        StepType::VerifyVips => StepRequest::Vips(drawn_list(from)),
        StepType::InstallationDiskSpeedCheck => StepRequest::DiskSpeed(Draw::draw(from)),
        StepType::ContainerImageAvailability => {
            StepRequest::Images(ImagesRequest { images: drawn_list(from), timeout: Draw::draw(from) })
        }
        StepType::Install => StepRequest::Install(Draw::draw(from)),
        StepType::LogsGather => StepRequest::LogsGather(Draw::draw(from)),
        StepType::StopInstallation => StepRequest::StopInstallation,
        StepType::UpgradeAgent => StepRequest::Upgrade(Draw::draw(from)),
        StepType::DownloadBootArtifacts => StepRequest::BootArtifacts(Draw::draw(from)),
        StepType::RebootForReclaim => StepRequest::RebootForReclaim(Draw::draw(from)),
        StepType::Execute | StepType::NextStepRunner => return None,
    })
}

/// Draws a required list, which is never null.
fn drawn_list<T: Draw>(from: &mut Choices<'_>) -> List<T> {
    Vec::draw(from).into()
}

fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    let read: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(read, *value, "{text}");
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

fn step_type() -> impl Strategy<Value = StepType> {
    prop::sample::select(StepType::ALL)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..600)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn reports_survive_a_round_trip(step_type in step_type(), bytes in bytes()) {
        let mut from = Choices(&bytes);
        let step = Step::new(step_type, String::draw(&mut from), Vec::new());
        let Some(payload) = payload(step_type, &mut from) else { return Ok(()) };
        let reply = StepReply::success(&step, &payload).unwrap();
        survives(&reply);
        prop_assert_eq!(reply.payload().unwrap(), Some(payload));
    }

    #[test]
    fn failures_survive_a_round_trip(step_type in step_type(), bytes in bytes()) {
        let mut from = Choices(&bytes);
        let step = Step::new(step_type, String::draw(&mut from), Vec::new());
        survives(&StepReply::failure(&step, ExitCode::draw(&mut from), String::draw(&mut from)));
    }

    #[test]
    fn arguments_survive_a_round_trip(step_type in step_type(), bytes in bytes()) {
        let Some(request) = request(step_type, &mut Choices(&bytes)) else { return Ok(()) };
        let step = request.to_step("step-1").unwrap();
        survives(&step);
        let parsed = StepRequest::parse(&step).unwrap_or_else(|error| panic!("{error:?}: {step:?}"));
        prop_assert_eq!(parsed, request);
    }

    #[test]
    fn findings_of_disks_survive_a_round_trip(bytes in bytes()) {
        let info = DiskInfo::draw(&mut Choices(&bytes));
        let text = serde_json::to_string(&info).unwrap();
        let read: DiskInfo<'_> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &info);
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn unknown_values_survive_a_round_trip(text in ".*") {
        let value: Extensible<HostStatus> = serde_json::from_value(text.clone().into()).unwrap();
        survives(&value);
        prop_assert_eq!(value.to_string(), text);
    }

    /// From the first second after the unset time, in the year 1, to the end of the year 9999.
    #[test]
    fn times_survive_a_round_trip(micros in -62_135_596_799_000_000_i64..253_402_300_800_000_000) {
        survives(&Millis(chrono::DateTime::from_timestamp_millis(micros / 1000)));
        survives(&Micros(chrono::DateTime::from_timestamp_micros(micros)));
    }
}

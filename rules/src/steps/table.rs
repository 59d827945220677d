//! The steps for each status of a host, from three tables.

use assisted::host::HostStatus;
use assisted::step::{PostStepAction, StepType};

use super::input::StepInput;

/// The tables of steps, one for each kind of host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// For hosts of a cluster to be installed.
    Day1,
    /// For hosts that join an existing cluster.
    Day2,
    /// For hosts without a cluster.
    Pool,
}

impl Table {
    /// Returns the table for a host. After a host is bound to an existing cluster, table `Day1` applies until its agent
    /// registers again, because only then the kind of the host changes.
    pub(super) fn from_input(input: &StepInput<'_>) -> Self {
        match input.cluster {
            None => Self::Pool,
            Some(_) if input.host.joins() => Self::Day2,
            Some(_) => Self::Day1,
        }
    }

    pub(super) fn row(self, status: HostStatus) -> Row {
        match self {
            Self::Day1 => day1(status),
            Self::Day2 => day2(status),
            Self::Pool => pool(status),
        }
    }
}

/// The steps of one status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The steps, in order. Steps that do not apply to the host are omitted later.
    pub(super) steps: &'static [StepType],
    /// Seconds until the next check-in.
    pub(super) seconds: u32,
    /// What the agent does after the steps.
    pub(super) action: PostStepAction,
}

impl Row {
    /// Returns a row with a check-in interval of one minute.
    pub(super) const fn soon(steps: &'static [StepType]) -> Self {
        Self { steps, seconds: 60, action: PostStepAction::Continue }
    }

    /// Returns a row with a check-in interval of two minutes.
    const fn later(steps: &'static [StepType]) -> Self {
        Self { steps, seconds: 120, action: PostStepAction::Continue }
    }

    /// The agent exits immediately, and then registers again.
    const EXIT: Self = Self { steps: &[], seconds: 0, action: PostStepAction::Exit };
}

const AFTER_FAILURE: Row = Row::later(&[StepType::LogsGather, StepType::StopInstallation]);

fn day1(status: HostStatus) -> Row {
    use HostStatus as S;
    use StepType::{
        ConnectivityCheck, ContainerImageAvailability, DhcpLeaseAllocate, DomainResolution,
        FreeNetworkAddresses, Install, InstallationDiskSpeedCheck, Inventory, NtpSynchronizer,
        TangConnectivityCheck, VerifyVips,
    };
    match status {
        S::Discovering => Row::soon(&[Inventory]),
        S::Disconnected => Row::later(&[Inventory]),
        S::Insufficient | S::PendingForInput => Row::soon(&[
            Inventory,
            ConnectivityCheck,
            TangConnectivityCheck,
            FreeNetworkAddresses,
            DhcpLeaseAllocate,
            NtpSynchronizer,
            DomainResolution,
            VerifyVips,
        ]),
        S::Known => Row::soon(&[
            ConnectivityCheck,
            TangConnectivityCheck,
            FreeNetworkAddresses,
            DhcpLeaseAllocate,
            Inventory,
            NtpSynchronizer,
            DomainResolution,
            VerifyVips,
        ]),
        S::PreparingForInstallation => {
            Row::soon(&[DhcpLeaseAllocate, InstallationDiskSpeedCheck, ContainerImageAvailability])
        }
        S::Installing => Row::soon(&[Install, DhcpLeaseAllocate]),
        S::InstallingInProgress => Row::soon(&[DhcpLeaseAllocate]),
        S::Error | S::Cancelled => AFTER_FAILURE,
        S::Disabled | S::Resetting => Row::later(&[]),
        S::Binding => Row::EXIT,
        _ => Row::soon(&[]),
    }
}

fn day2(status: HostStatus) -> Row {
    use HostStatus as S;
    use StepType::{
        ApiVipConnectivityCheck, ConnectivityCheck, DomainResolution, Install, Inventory, NtpSynchronizer,
        TangConnectivityCheck,
    };
    match status {
        S::Discovering => Row::soon(&[Inventory, NtpSynchronizer, DomainResolution]),
        S::Disconnected => Row::later(&[Inventory]),
        S::Insufficient => Row::soon(&[
            Inventory,
            ConnectivityCheck,
            ApiVipConnectivityCheck,
            TangConnectivityCheck,
            NtpSynchronizer,
            DomainResolution,
        ]),
        S::PendingForInput => {
            Row::soon(&[Inventory, ConnectivityCheck, ApiVipConnectivityCheck, TangConnectivityCheck])
        }
        S::Known => Row::soon(&[
            ConnectivityCheck,
            ApiVipConnectivityCheck,
            TangConnectivityCheck,
            Inventory,
            NtpSynchronizer,
            DomainResolution,
        ]),
        S::Installing => Row::soon(&[Install]),
        S::Error | S::Cancelled => AFTER_FAILURE,
        S::Disabled | S::Resetting => Row::later(&[]),
        _ => Row::soon(&[]),
    }
}

fn pool(status: HostStatus) -> Row {
    use HostStatus as S;
    use StepType::{DownloadBootArtifacts, Inventory, NtpSynchronizer, RebootForReclaim};
    match status {
        S::DiscoveringUnbound | S::InsufficientUnbound | S::KnownUnbound => {
            Row::soon(&[Inventory, NtpSynchronizer])
        }
        S::DisconnectedUnbound => Row::later(&[Inventory]),
        S::DisabledUnbound => Row::later(&[]),
        S::Unbinding | S::UnbindingPendingUserAction => Row::EXIT,
        S::Reclaiming => Row::soon(&[DownloadBootArtifacts]),
        // The agent exits because the host reboots.
        S::ReclaimingRebooting => Row { action: PostStepAction::Exit, ..Row::later(&[RebootForReclaim]) },
        _ => Row::soon(&[]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// One line for each group of statuses: steps in short form, seconds and action. Any other status has no steps, 60
    /// seconds and `continue`.
    const DAY_1: &str = "
        discovering | inventory | 60 | continue
        disconnected | inventory | 120 | continue
        insufficient pending-for-input | inventory connectivity tang free dhcp ntp domain vips | 60 | continue
        known | connectivity tang free dhcp inventory ntp domain vips | 60 | continue
        preparing-for-installation | dhcp disk images | 60 | continue
        installing | install dhcp | 60 | continue
        installing-in-progress | dhcp | 60 | continue
        error cancelled | logs stop | 120 | continue
        disabled resetting | | 120 | continue
        binding | | 0 | exit";
    const DAY_2: &str = "
        discovering | inventory ntp domain | 60 | continue
        disconnected | inventory | 120 | continue
        insufficient | inventory connectivity apivip tang ntp domain | 60 | continue
        pending-for-input | inventory connectivity apivip tang | 60 | continue
        known | connectivity apivip tang inventory ntp domain | 60 | continue
        installing | install | 60 | continue
        error cancelled | logs stop | 120 | continue
        disabled resetting | | 120 | continue";
    const POOL: &str = "
        discovering-unbound insufficient-unbound known-unbound | inventory ntp | 60 | continue
        disconnected-unbound | inventory | 120 | continue
        disabled-unbound | | 120 | continue
        unbinding unbinding-pending-user-action | | 0 | exit
        reclaiming | artifacts | 60 | continue
        reclaiming-rebooting | reboot | 120 | exit";

    fn step(short: &str) -> &str {
        match short {
            "connectivity" => "connectivity-check",
            "tang" => "tang-connectivity-check",
            "apivip" => "api-vip-connectivity-check",
            "free" => "free-network-addresses",
            "dhcp" => "dhcp-lease-allocate",
            "ntp" => "ntp-synchronizer",
            "domain" => "domain-resolution",
            "vips" => "verify-vips",
            "disk" => "installation-disk-speed-check",
            "images" => "container-image-availability",
            "logs" => "logs-gather",
            "stop" => "stop-installation",
            "artifacts" => "download-boot-artifacts",
            "reboot" => "reboot-for-reclaim",
            full => full,
        }
    }

    fn line(row: Row) -> (Vec<&'static str>, u32, &'static str) {
        (row.steps.iter().map(|step| step.as_str()).collect(), row.seconds, row.action.as_str())
    }

    #[test]
    fn each_status_has_the_steps_of_its_table() {
        for (table, text) in [(Table::Day1, DAY_1), (Table::Day2, DAY_2), (Table::Pool, POOL)] {
            let mut rows = BTreeMap::new();
            for row in text.trim().lines() {
                let [statuses, steps, seconds, action] =
                    row.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
                let steps: Vec<_> = steps.split_whitespace().map(step).collect();
                for status in statuses.split_whitespace() {
                    assert!(HostStatus::ALL.iter().any(|valid| valid.as_str() == status), "{status}");
                    rows.insert(status, (steps.clone(), seconds.parse().unwrap(), action));
                }
            }
            for status in HostStatus::ALL {
                let expected = rows.get(status.as_str()).cloned().unwrap_or((Vec::new(), 60, "continue"));
                assert_eq!(line(table.row(*status)), expected, "{table:?} {status}");
            }
        }
    }
}

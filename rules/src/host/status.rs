//! The properties of a host that follow from its status alone.

use assisted::event::Severity;
use assisted::host::HostStatus;

/// The status text of a host that cannot read its discovery media.
pub const MEDIA_DISCONNECTED: &str = "Unable to read from the discovery media. It was either disconnected \
    or poor network conditions prevented it from being read. Try using the minimal ISO option and be sure to keep the \
    media connected until the installation is completed";

/// Returns the severity of the event that reports a change to this status.
pub fn severity(status: HostStatus) -> Severity {
    match status {
        HostStatus::Disconnected | HostStatus::InstallingPendingUserAction | HostStatus::Insufficient => {
            Severity::Warning
        }
        HostStatus::Error => Severity::Error,
        _ => Severity::Info,
    }
}

/// Returns `true` if the host is not bound to a cluster, and check-ins and reports decide its status.
pub fn is_in_pool(status: HostStatus) -> bool {
    use HostStatus::{DisconnectedUnbound, DiscoveringUnbound, InsufficientUnbound, KnownUnbound};
    matches!(status, DiscoveringUnbound | InsufficientUnbound | KnownUnbound | DisconnectedUnbound)
}

/// Returns `true` if the host is not bound to a cluster. This includes hosts that are being unbound or reclaimed.
pub fn is_unbound(status: HostStatus) -> bool {
    use HostStatus::{
        DisabledUnbound, Reclaiming, ReclaimingRebooting, Unbinding, UnbindingPendingUserAction,
    };
    is_in_pool(status)
        || matches!(
            status,
            DisabledUnbound | Reclaiming | ReclaimingRebooting | Unbinding | UnbindingPendingUserAction
        )
}

/// Returns `true` if the host is bound to a cluster and its installation has not started.
pub fn is_before_installation(status: HostStatus) -> bool {
    use HostStatus::{Disconnected, Discovering, Insufficient, Known, PendingForInput};
    matches!(status, Discovering | Insufficient | Known | PendingForInput | Disconnected)
}

/// Returns `true` if users can change the role, the name and the disks of the host.
pub fn allows_changes(status: HostStatus) -> bool {
    is_in_pool(status) || is_before_installation(status) || status == HostStatus::Binding
}

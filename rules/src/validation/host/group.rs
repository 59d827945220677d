//! Groups of host validations. A status rule can require that all validations of a group are satisfied.

use assisted::host::HostStage;

/// A group of host validations. A status rule can require that all of them are satisfied. Otherwise the host has
/// another status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostGroup {
    /// The agent checks in and can read its boot media. Otherwise the host is `disconnected`.
    Connection,
    /// A usable inventory report is stored. Otherwise the host is `discovering`.
    ValidInventory,
    /// The hardware suffices for at least one role. Otherwise a host in a cluster is `insufficient`.
    MinimumHardware,
    /// The user has provided the settings that the host's validations need. Otherwise the host is `pending-for-input`.
    RequiredInput,
    /// The host can be installed. Otherwise a host in a cluster is `insufficient`.
    SufficientForInstall,
    /// A host without a cluster can be bound to one. Otherwise it is `insufficient-unbound`.
    Unbound,
}

/// Stages in which the host no longer runs the agent of the discovery image.
pub(super) const AFTER_REBOOT: &[HostStage] = &[
    HostStage::Rebooting,
    HostStage::WaitingForIgnition,
    HostStage::Configuring,
    HostStage::Joined,
    HostStage::Done,
];

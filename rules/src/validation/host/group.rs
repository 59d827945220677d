//! The sets of host validations that rules require together.

use assisted::host::HostStage;

/// A set of host validations that rules require together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostGroup {
    /// The agent checks in, and its boot media can be read. A host is otherwise disconnected.
    Connection,
    /// A usable inventory report is stored. A host is otherwise being discovered.
    ValidInventory,
    /// The hardware suffices for some role. A host of a cluster is otherwise insufficient.
    MinimumHardware,
    /// The user has made the settings that the host depends on. The host otherwise waits for input.
    RequiredInput,
    /// The host can be installed. A host of a cluster is otherwise insufficient.
    SufficientForInstall,
    /// A host without a cluster can be bound to one. It is otherwise insufficient.
    Unbound,
}

/// Stages in which the host does not run the agent of the discovery image any more.
pub(super) const AFTER_REBOOT: &[HostStage] = &[
    HostStage::Rebooting,
    HostStage::WaitingForIgnition,
    HostStage::Configuring,
    HostStage::Joined,
    HostStage::Done,
];

//! What the rules of hosts decide besides the status.

use assisted::host::HostStatus;

use crate::transitions::StateMachine;

/// The reason why an event does not change a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRefusal {
    /// No rule matches.
    NoRule,
    /// The host must boot from its installation disk.
    MustBootFromDisk,
    /// The host must boot from its installation disk, but the inventory report has no such disk.
    NoInstallationDisk,
    /// The host is installed.
    AlreadyInstalled,
}

/// What a transition discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReset {
    /// Everything that the agent has reported since the last boot.
    Boot,
}

/// Hosts as a [`StateMachine`].
pub(super) enum HostMachine {}

impl StateMachine for HostMachine {
    type Status = HostStatus;
    type Refusal = HostRefusal;
    type Reset = HostReset;
}

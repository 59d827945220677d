//! Defines hosts as a state machine, for the generic rules in `transitions`.

use assisted::host::HostStatus;

use crate::transitions::StateMachine;

/// The reason why an event is refused. The host does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRefusal {
    /// No rule of the event matches.
    NoRule,
    /// The host must boot from its installation disk.
    MustBootFromDisk,
    /// The host must boot from its installation disk, but the inventory report has no such disk.
    NoInstallationDisk,
    /// The host is already installed.
    AlreadyInstalled,
}

/// The stored facts about a host that a transition discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReset {
    /// Everything that the agent has reported since the last boot.
    Boot,
}

/// The [`StateMachine`] of hosts.
pub(super) enum HostMachine {}

impl StateMachine for HostMachine {
    type Status = HostStatus;
    type Refusal = HostRefusal;
    type Reset = HostReset;
}

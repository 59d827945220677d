//! The stages of an installation that a host passes through.

use assisted::host::{HostKind, HostRole, HostStage};

use super::record::HostRecord;

/// Returns the stages of a host's installation, in order. A host without a role has no stages.
pub(crate) fn stages_of(host: &HostRecord) -> &'static [HostStage] {
    use HostStage::{
        Configuring, CopyingRegistry, Done, Installing, Joined, Rebooting, Starting, WaitingForBootkube,
        WaitingForControlPlane, WaitingForController, WaitingForIgnition, WritingImage,
    };
    const SINGLE: &[HostStage] =
        &[Starting, Installing, WaitingForBootkube, WritingImage, CopyingRegistry, Rebooting, Joined, Done];
    const BOOTSTRAP: &[HostStage] = &[
        Starting,
        Installing,
        WritingImage,
        CopyingRegistry,
        WaitingForControlPlane,
        WaitingForBootkube,
        WaitingForController,
        Rebooting,
        Configuring,
        Joined,
        Done,
    ];
    const MASTER: &[HostStage] =
        &[Starting, Installing, WritingImage, CopyingRegistry, Rebooting, Configuring, Joined, Done];
    const WORKER: &[HostStage] = &[
        Starting,
        Installing,
        WritingImage,
        WaitingForControlPlane,
        Rebooting,
        WaitingForIgnition,
        Configuring,
        Joined,
        Done,
    ];
    let all = match host.role {
        _ if host.single_node => SINGLE,
        _ if host.bootstrap => BOOTSTRAP,
        HostRole::Bootstrap => BOOTSTRAP,
        HostRole::Master | HostRole::Arbiter => MASTER,
        HostRole::Worker => WORKER,
        HostRole::AutoAssign => &[],
    };
    // A host that joins an existing cluster reports no stage after its reboot.
    match all.split_inclusive(|stage| *stage == Rebooting).next() {
        Some(until_reboot) if host.kind == HostKind::Joining => until_reboot,
        _ => all,
    }
}

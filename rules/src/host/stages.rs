//! The stages that a host passes through during its installation.

use assisted::host::{HostKind, HostRole, HostStage};

/// The facts about a host that decide its stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageFacts {
    /// The kind of the host. [`HostKind::Joining`] marks a host that joins an existing cluster.
    pub kind: HostKind,
    /// The role assigned to the host. [`HostRole::AutoAssign`] means that it has no role yet.
    pub role: HostRole,
    /// Whether the host is the only node of its cluster.
    pub single_node: bool,
    /// Whether the host runs the temporary bootstrap control plane.
    pub bootstrap: bool,
}

/// Returns the stages of a host's installation, in order. The list is empty for a host without a role.
#[must_use]
pub fn stages_of(host: StageFacts) -> &'static [HostStage] {
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
    // A host that joins an existing cluster reports no stages after its reboot.
    match all.split_inclusive(|stage| *stage == Rebooting).next() {
        Some(until_reboot) if host.kind == HostKind::Joining => until_reboot,
        _ => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTER: StageFacts =
        StageFacts { kind: HostKind::Host, role: HostRole::Master, single_node: false, bootstrap: false };

    #[test]
    fn single_node_and_bootstrap_take_precedence_over_the_role() {
        let bootstrap = StageFacts { bootstrap: true, ..MASTER };
        assert!(stages_of(bootstrap).contains(&HostStage::WaitingForBootkube));
        assert_eq!(stages_of(bootstrap), stages_of(StageFacts { role: HostRole::Bootstrap, ..MASTER }));
        let single = stages_of(StageFacts { single_node: true, ..bootstrap });
        assert!(single.contains(&HostStage::WaitingForBootkube) && !single.contains(&HostStage::Configuring));
        assert!(!stages_of(MASTER).contains(&HostStage::WaitingForBootkube));
    }

    #[test]
    fn last_stage_of_a_joining_host_is_its_reboot() {
        let worker = StageFacts { role: HostRole::Worker, ..MASTER };
        assert_eq!(stages_of(worker).last(), Some(&HostStage::Done));
        let joining = StageFacts { kind: HostKind::Joining, ..worker };
        assert_eq!(stages_of(joining).last(), Some(&HostStage::Rebooting));
    }

    #[test]
    fn host_without_role_has_no_stages() {
        assert!(stages_of(StageFacts { role: HostRole::AutoAssign, ..MASTER }).is_empty());
    }
}

//! The stages of an installation that a host passes through.

use assisted::host::{HostKind, HostRole, HostStage};

/// The facts that decide the stages of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageFacts {
    /// The kind, which shows whether the host joins an existing cluster.
    pub kind: HostKind,
    /// The role.
    pub role: HostRole,
    /// Whether the host is the only one of its cluster.
    pub single_node: bool,
    /// Whether the host runs the temporary bootstrap control plane.
    pub bootstrap: bool,
}

/// Returns the stages of a host's installation, in order. A host without a role has no stages.
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
    // A host that joins an existing cluster reports no stage after its reboot.
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
    fn single_node_and_bootstrap_come_before_the_role() {
        let bootstrap = StageFacts { bootstrap: true, ..MASTER };
        assert!(stages_of(bootstrap).contains(&HostStage::WaitingForBootkube));
        assert_eq!(stages_of(bootstrap), stages_of(StageFacts { role: HostRole::Bootstrap, ..MASTER }));
        let single = stages_of(StageFacts { single_node: true, ..bootstrap });
        assert!(single.contains(&HostStage::WaitingForBootkube) && !single.contains(&HostStage::Configuring));
        assert!(!stages_of(MASTER).contains(&HostStage::WaitingForBootkube));
    }

    #[test]
    fn joining_host_ends_with_its_reboot() {
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

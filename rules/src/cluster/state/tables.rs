//! The status rules for each event of a cluster. The status texts come from the Assisted Installer.

use assisted::cluster::ClusterStatus::{
    self, AddingHosts, Insufficient, PendingForInput, Ready, Unmonitored,
};

use super::facts::ClusterConclusions;
use super::machine::ClusterMachine;
use crate::transitions::StatusInfo::Text;
use crate::transitions::{TransitionRule, TransitionTable};

/// Statuses of clusters that the user still configures, before their installation.
pub(super) const CONFIGURED: &[ClusterStatus] = &[PendingForInput, Ready, Insufficient];

/// The rules of [`ClusterEvent::Refresh`](super::ClusterEvent::Refresh).
pub(super) enum Refresh {}

impl TransitionTable for Refresh {
    type Machine = ClusterMachine;
    type Facts<'a> = ClusterConclusions;
    const RULES: &'static [TransitionRule<Self>] = &[
        TransitionRule::<Self>::to(CONFIGURED, PendingForInput, Text("User input required"))
            .when("a required setting is missing", |facts| !facts.has_required_settings),
        TransitionRule::<Self>::to(CONFIGURED, PendingForInput, Text("User input required"))
            .when("a virtual IP address is missing, and no DHCP server assigns it", |facts| {
                !facts.has_vips && !facts.has_vip_dhcp_allocation
            }),
        TransitionRule::<Self>::to(CONFIGURED, Insufficient, Text("Cluster is not ready for install"))
            .when("a virtual IP address is missing, or a validation blocks the installation", |facts| {
                !(facts.has_vips && facts.is_installable)
            }),
        TransitionRule::<Self>::to(CONFIGURED, Ready, Text("Cluster ready to be installed")),
        TransitionRule::<Self>::stay(&[AddingHosts, Unmonitored]),
    ];
}

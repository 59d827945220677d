//! The validations of hosts, in computing order.

pub mod belongs_to_machine_cidr;
pub mod belongs_to_majority_group;
pub mod connected;
mod group;
pub mod has_default_route;
pub mod has_inventory;
pub mod has_min_cpu_cores;
pub mod has_min_memory;
pub mod has_min_valid_disks;
pub mod hostname_unique;
pub mod hostname_valid;
mod input;
pub mod inventory_not_fully_truncated;
pub mod inventory_not_partially_truncated;
pub mod machine_cidr_defined;
pub mod media_connected;
mod minimum;
mod missing_inventory;
mod truncation;

pub use group::HostGroup;
pub use input::{HostCluster, HostInput, MinimumHardware};

use super::definition::{ListOrder, ValidationId as _};
use super::outcome::{ValidationInput, registry};
use super::results::ValidationResults;
use super::unimplemented;

registry! {
    /// The id of a host validation.
    pub ids: HostValidationId,
    /// The outcome of a host validation.
    outcomes: HostOutcome,
    group: HostGroup,
    input: HostInput,
    order: ListOrder::Computing,
    unimplemented: unimplemented::OF_HOSTS,
    validations: {
        Connected = "connected", connected::ConnectedOutcome, "The agent checks in.";
        MediaConnected = "media-connected", media_connected::MediaConnectedOutcome, "The boot media can be read.";
        HasInventory = "has-inventory", has_inventory::HasInventoryOutcome, "An inventory report is stored.";
        InventoryNotPartiallyTruncated = "inventory-not-partially-truncated",
            inventory_not_partially_truncated::PartialTruncationOutcome, "The agent left out no part of its report.";
        InventoryNotFullyTruncated = "inventory-not-fully-truncated",
            inventory_not_fully_truncated::FullTruncationOutcome, "The agent did not leave out its whole report.";
        HasMinCpuCores = "has-min-cpu-cores",
            has_min_cpu_cores::MinCpuCoresOutcome, "The processors suffice for some role.";
        HasMinMemory = "has-min-memory",
            has_min_memory::MinMemoryOutcome, "The memory suffices for some role.";
        HasMinValidDisks = "has-min-valid-disks",
            has_min_valid_disks::MinValidDisksOutcome, "A disk is eligible for the installation.";
        MachineCidrDefined = "machine-cidr-defined",
            machine_cidr_defined::MachineCidrOutcome, "The cluster has machine networks.";
        HostnameUnique = "hostname-unique",
            hostname_unique::UniqueHostnameOutcome, "No other host of the cluster has the same name.";
        BelongsToMachineCidr = "belongs-to-machine-cidr",
            belongs_to_machine_cidr::MachineCidrMemberOutcome, "The host has addresses in the machine networks.";
        HostnameValid = "hostname-valid", hostname_valid::HostnameOutcome, "The name of the host is valid.";
        BelongsToMajorityGroup = "belongs-to-majority-group",
            belongs_to_majority_group::MajorityGroupOutcome, "The host reaches the majority of the hosts.";
        HasDefaultRoute = "has-default-route",
            has_default_route::DefaultRouteOutcome, "The host has a default route.";
    }
}

/// The outcomes of all host validations.
pub type HostResults = ValidationResults<HostOutcome>;

impl ValidationInput<HostValidationId> for HostInput<'_> {
    fn is_disabled(&self, id: HostValidationId) -> bool {
        let has_no_list = self.cluster.is_none_or(|it| it.view.cluster.ignored_host_validations.is_empty());
        has_no_list && self.settings.disabled_host.contains(id)
    }

    fn is_hidden(&self, id: HostValidationId) -> bool {
        self.host.stage.is_some_and(|stage| id.definition().hidden_in.contains(&stage))
    }
}

#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
pub(in crate::validation) mod tests;

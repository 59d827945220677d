//! The validations of clusters, and the results of one cluster.

pub mod all_hosts_are_ready_to_install;
pub mod api_vips_defined;
pub mod api_vips_valid;
pub mod cluster_cidr_defined;
pub mod dns_domain_defined;
mod group;
pub mod ingress_vips_defined;
pub mod ingress_vips_valid;
mod input;
pub mod machine_cidr_defined;
pub mod machine_cidr_equals_to_calculated_cidr;
pub mod network_prefix_valid;
pub mod network_type_valid;
pub mod networks_same_address_families;
pub mod no_cidrs_overlapping;
pub mod ntp_server_configured;
pub mod pull_secret_set;
mod required_networks;
pub mod service_cidr_defined;
pub mod sufficient_masters_count;
mod vip_inputs;
mod vip_problem;
#[cfg(test)]
mod vip_tests;
mod vips_defined;
mod vips_valid;

pub use group::ClusterGroup;
pub use input::ClusterInput;

use serde::{Deserialize, Serialize};

use super::definition::ListOrder;
use super::outcome::{ValidationInput, registry};
use super::results::ValidationResults;
use super::stored::{self, StoredResultsError};
use super::unimplemented;
use crate::cluster::connectivity_groups::ConnectivityGroups;
use crate::summary::VerifiedVip;

impl ValidationInput<ClusterValidationId> for ClusterInput<'_> {
    fn is_disabled(&self, id: ClusterValidationId) -> bool {
        let has_no_list = self.view.cluster.ignored_cluster_validations.is_empty();
        has_no_list && self.settings.disabled_cluster.contains(id)
    }

    fn is_hidden(&self, _: ClusterValidationId) -> bool {
        false
    }
}

registry! {
    /// The id of a cluster validation.
    pub ids: ClusterValidationId,
    /// The outcome of a cluster validation.
    outcomes: ClusterOutcome,
    group: ClusterGroup,
    input: ClusterInput,
    order: ListOrder::ById,
    unimplemented: unimplemented::OF_CLUSTERS,
    validations: {
        MachineCidrDefined = "machine-cidr-defined",
            machine_cidr_defined::MachineCidrOutcome, "A machine network is set.";
        ClusterCidrDefined = "cluster-cidr-defined",
            cluster_cidr_defined::ClusterCidrOutcome, "A cluster network is set.";
        ServiceCidrDefined = "service-cidr-defined",
            service_cidr_defined::ServiceCidrOutcome, "A service network is set.";
        NoCidrsOverlapping = "no-cidrs-overlapping",
            no_cidrs_overlapping::CidrsOverlappingOutcome, "The networks do not overlap.";
        NetworksSameAddressFamilies = "networks-same-address-families",
            networks_same_address_families::AddressFamiliesOutcome, "The networks have the same address families.";
        NetworkPrefixValid = "network-prefix-valid",
            network_prefix_valid::NetworkPrefixOutcome, "The cluster networks have room for all nodes and their pods.";
        NetworkTypeValid = "network-type-valid",
            network_type_valid::NetworkTypeOutcome, "The network type suits the other settings.";
        NtpServerConfigured = "ntp-server-configured",
            ntp_server_configured::NtpServerOutcome, "The clocks of the hosts show the same time.";
        DnsDomainDefined = "dns-domain-defined", dns_domain_defined::DnsDomainOutcome, "A base domain is set.";
        PullSecretSet = "pull-secret-set", pull_secret_set::PullSecretOutcome, "A pull secret is set.";
        MachineCidrEqualsToCalculatedCidr = "machine-cidr-equals-to-calculated-cidr",
            machine_cidr_equals_to_calculated_cidr::CalculatedNetworkOutcome,
            "The machine networks contain the virtual IP addresses.";
        ApiVipsDefined = "api-vips-defined",
            api_vips_defined::ApiVipsDefinedOutcome, "A virtual IP address of the API is set.";
        IngressVipsDefined = "ingress-vips-defined",
            ingress_vips_defined::IngressVipsDefinedOutcome, "A virtual IP address of the ingress is set.";
        ApiVipsValid = "api-vips-valid",
            api_vips_valid::ApiVipsValidOutcome, "The virtual IP addresses of the API are unused.";
        IngressVipsValid = "ingress-vips-valid",
            ingress_vips_valid::IngressVipsValidOutcome, "The virtual IP addresses of the ingress are unused.";
        AllHostsAreReadyToInstall = "all-hosts-are-ready-to-install",
            all_hosts_are_ready_to_install::HostsReadyOutcome, "All hosts can be installed.";
        SufficientMastersCount = "sufficient-masters-count",
            sufficient_masters_count::MastersCountOutcome, "The control plane has the right size.";
    }
}

/// The decisions of one assessment about a cluster, apart from the cluster's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterResults {
    /// The outcomes of all cluster validations.
    #[serde(flatten)]
    pub outcomes: ValidationResults<ClusterOutcome>,
    /// Verification results of the virtual IP addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vips: Vec<VerifiedVip>,
    /// The connectivity groups of the hosts. `None` if not computed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<ConnectivityGroups>,
    /// Whether the control plane must run workloads, because the cluster has too few workers. `None` if not computed
    /// yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forces_schedulable_masters: Option<bool>,
}

impl ClusterResults {
    /// Returns the stored form of the results.
    ///
    /// # Errors
    ///
    /// Returns an error if an argument of an outcome cannot be serialized as JSON.
    pub fn to_stored(&self) -> Result<String, StoredResultsError> {
        stored::write(self)
    }

    /// Parses stored results. See [`ValidationResults::from_stored`].
    ///
    /// # Errors
    ///
    /// Returns an error if the text is malformed, or if another version of the service stored it in a different form.
    pub fn from_stored(text: &str) -> Result<Self, StoredResultsError> {
        stored::read(text)
    }

    /// Returns `true` if the outcomes are [equal except for measured numbers](ValidationResults::has_same_outcomes),
    /// and everything else is equal.
    #[must_use]
    pub fn has_same_outcomes(&self, other: &Self) -> bool {
        let Self { outcomes, vips, groups, forces_schedulable_masters } = self;
        outcomes.has_same_outcomes(&other.outcomes)
            && *vips == other.vips
            && *groups == other.groups
            && *forces_schedulable_masters == other.forces_schedulable_masters
    }
}

#[cfg(test)]
mod tests;

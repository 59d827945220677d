//! The validations of one host, and the reasons why each of its disks is not eligible.

use ignition::version::Version;

use crate::disk::{DiskReasons, DiskRules, eligibility};
use crate::requirements::HardwareRequirements;
use crate::validation::host::{HostCluster, MinimumHardware};
use crate::validation::{HostInput, HostResults, ValidationSettings};
use crate::view::{ClusterSettings, HostView};

/// The service settings that affect assessments.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationSettings<'a> {
    /// The hardware that hosts need, for each version and role.
    pub hardware: &'a HardwareRequirements,
    /// The validations that the operator has disabled.
    pub validations: &'a ValidationSettings,
}

impl EvaluationSettings<'_> {
    /// Returns the disk rules for a host. A host without a cluster may get any role, so the requirements of the role
    /// with the smallest disk apply, for the version of the host's base image.
    #[must_use]
    pub fn disk_rules(
        &self,
        host: &HostView,
        cluster: Option<&ClusterSettings>,
        image_version: Option<&Version>,
    ) -> DiskRules {
        let required = match cluster {
            Some(cluster) => self.hardware.total_for_host(cluster, host),
            None => {
                self.hardware.for_unbound_host(&image_version.map_or_else(String::new, Version::to_string))
            }
        };
        let version = cluster.filter(|_| !host.joins()).and_then(|cluster| cluster.version.as_ref());
        let architecture = host.summary.inventory.as_ref().map_or("", |inventory| &inventory.architecture);
        DiskRules::new(&required, version.or(image_version), architecture)
    }

    /// Returns the minimum hardware for the least demanding role. The role of the host does not matter.
    fn minimum(&self, cluster: Option<&ClusterSettings>, image_version: Option<&Version>) -> MinimumHardware {
        let roles = match cluster {
            Some(cluster) => self.hardware.for_cluster(cluster),
            None => self.hardware.for_version(&image_version.map_or_else(String::new, Version::to_string)),
        };
        let minimum = roles.minimum_of_any_role(cluster);
        MinimumHardware { cpu_cores: minimum.cpu_cores, ram_mib: minimum.ram_mib }
    }
}

/// The disk eligibility and the validation results of one host, from the same assessment.
#[derive(Clone, Debug, PartialEq)]
pub struct HostEvaluation {
    /// The reasons why each disk is not eligible, in the order of the inventory report. Empty for an eligible disk.
    pub disks: Vec<DiskReasons>,
    /// The results of all host validations.
    pub results: HostResults,
}

impl HostEvaluation {
    /// Evaluates a host. `image_version` is the version of its infra-env's base image, or `None` if it is unknown.
    #[must_use]
    pub fn new(
        host: &HostView,
        cluster: Option<HostCluster<'_>>,
        image_version: Option<&Version>,
        settings: EvaluationSettings<'_>,
    ) -> Self {
        let cluster_settings = cluster.map(|cluster| &*cluster.view.cluster);
        let disks = match &host.summary.inventory {
            Some(inventory) => {
                eligibility(inventory, &settings.disk_rules(host, cluster_settings, image_version))
            }
            None => Vec::new(),
        };
        let results = HostResults::evaluate(&HostInput {
            host,
            cluster,
            eligible_disks: disks.iter().filter(|disk| disk.is_eligible()).count(),
            minimum: settings.minimum(cluster_settings, image_version),
            settings: settings.validations,
        });
        Self { disks, results }
    }
}

//! Hardware requirements: the CPU cores, memory, disk size and network quality that a host needs for its role.
//!
//! [`HardwareRequirements`] is a table with entries for OpenShift versions. The built-in table has the values of the
//! Assisted Installer, and a service may replace it. The version of the cluster selects the entry, and the role of the
//! host selects the requirements in it. A host without a cluster needs the requirements of the role with the smallest
//! disk.

mod error;
mod parse;
mod roles;

use std::collections::BTreeMap;

use assisted::host::HostRole;
use ignition::version::Version;

pub use error::InvalidRequirements;
pub use roles::{HostRequirements, MinimumRequirements, RoleRequirements};

use self::parse::Entries;
use crate::summary::InventorySummary;
use crate::view::{ClusterSettings, HostView};

/// Product names of edge workers, unless the service configures others.
const EDGE_WORKER_PRODUCTS: &str = "BlueField SoC";

/// CPU architecture of edge workers.
const EDGE_WORKER_ARCHITECTURE: &str = "aarch64";

/// A table of hardware requirements for all OpenShift versions.
///
/// # Examples
///
/// ```
/// use rules::requirements::HardwareRequirements;
///
/// let table = HardwareRequirements::default();
/// assert_eq!(table.for_version("4.18.9").sno.cpu_cores, 8);
/// assert_eq!(table.for_version("4.22.0").sno.cpu_cores, 4);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HardwareRequirements {
    entries: Entries,
    /// Product names in lower case, without spaces.
    edge_worker_products: Vec<Box<str>>,
}

/// Returns the built-in table, with the values of the Assisted Installer.
impl Default for HardwareRequirements {
    fn default() -> Self {
        let master = HostRequirements {
            cpu_cores: 4,
            ram_mib: 16384,
            disk_size_gb: 100,
            disk_speed_ms: 10,
            network_latency_ms: Some(100.0),
            packet_loss_percent: Some(0.0),
        };
        let worker = HostRequirements {
            cpu_cores: 2,
            ram_mib: 8192,
            network_latency_ms: Some(1000.0),
            packet_loss_percent: Some(10.0),
            ..master
        };
        let arbiter = HostRequirements { disk_size_gb: 50, packet_loss_percent: Some(0.0), ..worker };
        let sno =
            HostRequirements { cpu_cores: 8, network_latency_ms: None, packet_loss_percent: None, ..master };
        let edge_worker = HostRequirements {
            disk_size_gb: 15,
            network_latency_ms: None,
            packet_loss_percent: None,
            ..worker
        };
        let default = RoleRequirements { master, arbiter, worker, sno, edge_worker };
        let from_4_22 = RoleRequirements { sno: HostRequirements { cpu_cores: 4, ..sno }, ..default.clone() };
        let entries = Entries {
            exact: BTreeMap::new(),
            min_version: BTreeMap::from([(Version::new(4, 22), from_4_22)]),
            default,
        };
        Self { entries, edge_worker_products: product_names(EDGE_WORKER_PRODUCTS) }
    }
}

impl HardwareRequirements {
    /// Parses a table: a JSON list with the format of the Assisted Installer's `HW_VALIDATOR_REQUIREMENTS`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not such a list, if it has no entry for version `default`, if two entries have
    /// the same version and `match_type`, or if a requirement is missing or too low.
    ///
    /// # Examples
    ///
    /// ```
    /// use rules::requirements::HardwareRequirements;
    ///
    /// let role = r#"{"cpu_cores": 4, "ram_mib": 8192, "disk_size_gb": 100}"#;
    /// let json = format!(
    ///     r#"[{{"version": "default", "master": {role}, "worker": {role}, "sno": {role}}},
    ///         {{"version": "4.20", "match_type": "min_version", "worker": {{"cpu_cores": 2}}}}]"#
    /// );
    /// let table = HardwareRequirements::parse(&json)?;
    /// assert_eq!(table.for_version("4.20.3").worker.cpu_cores, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(json: &str) -> Result<Self, InvalidRequirements> {
        let entries = Entries::parse(json)?;
        Ok(Self { entries, edge_worker_products: product_names(EDGE_WORKER_PRODUCTS) })
    }

    /// Replaces the list of products that count as edge workers. `names` is a comma-separated list.
    #[must_use]
    pub fn with_edge_worker_products(self, names: &str) -> Self {
        Self { edge_worker_products: product_names(names), ..self }
    }

    /// Returns the requirements for an OpenShift version. An entry for exactly this version takes precedence, then the
    /// entry with the highest `min_version` that is not above it, then the default entry. An empty text means an
    /// unknown version.
    #[must_use]
    pub fn for_version(&self, version: &str) -> &RoleRequirements {
        self.entries.find(version)
    }

    /// Returns the requirements for the OpenShift version of a cluster.
    #[must_use]
    pub fn for_cluster(&self, cluster: &ClusterSettings) -> &RoleRequirements {
        let version = cluster.version.as_ref().map_or_else(String::new, Version::to_string);
        self.for_version(&version)
    }

    /// Returns OpenShift's requirements for a host, according to the effective role of the host.
    #[must_use]
    pub fn for_host(&self, cluster: &ClusterSettings, host: &HostView) -> HostRequirements {
        let roles = self.for_cluster(cluster);
        let is_edge_worker =
            || host.summary.inventory.as_ref().is_some_and(|inventory| self.is_edge_worker(inventory));
        match host.effective_role() {
            HostRole::Master | HostRole::Bootstrap if cluster.is_single_node() => roles.sno,
            HostRole::Master | HostRole::Bootstrap => roles.master,
            HostRole::Arbiter => roles.arbiter,
            HostRole::Worker | HostRole::AutoAssign if is_edge_worker() => roles.edge_worker,
            HostRole::Worker | HostRole::AutoAssign => roles.worker,
        }
    }

    /// Returns the requirements of OpenShift and of the cluster's operators for a host, according to the effective role
    /// of the host. The service offers no operators yet, so the result equals [`HardwareRequirements::for_host`].
    #[must_use]
    pub fn total_for_host(&self, cluster: &ClusterSettings, host: &HostView) -> HostRequirements {
        self.for_host(cluster, host)
    }

    /// Returns the requirements for a host without a cluster. They are the requirements of the role with the smallest
    /// disk. `version` is the OpenShift version of the host's infra-env.
    #[must_use]
    pub fn for_unbound_host(&self, version: &str) -> HostRequirements {
        let RoleRequirements { worker, master, arbiter, .. } = *self.for_version(version);
        let smaller = |one: HostRequirements, other: HostRequirements| {
            if other.disk_size_gb < one.disk_size_gb { other } else { one }
        };
        smaller(smaller(worker, master), arbiter)
    }

    fn is_edge_worker(&self, inventory: &InventorySummary) -> bool {
        let is_product = |name: &str| {
            let name = normalized_product(name);
            self.edge_worker_products.iter().any(|product| **product == *name)
        };
        &*inventory.architecture == EDGE_WORKER_ARCHITECTURE
            && inventory.vendor.as_ref().is_some_and(|vendor| is_product(&vendor.product))
    }
}

/// Splits a comma-separated list of product names. Empty names are dropped: they would match machines without a product
/// name.
fn product_names(names: &str) -> Vec<Box<str>> {
    let names = names.split(',').map(normalized_product);
    names.filter(|name| !name.is_empty()).map(String::into_boxed_str).collect()
}

fn normalized_product(name: &str) -> String {
    name.to_lowercase().replace(' ', "")
}

#[cfg(test)]
mod tests;

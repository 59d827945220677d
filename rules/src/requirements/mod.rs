//! Hardware requirements: CPU cores, memory, disk size and network quality that a host needs for its role.
//!
//! [`HardwareRequirements`] is a table with an entry for some OpenShift versions. The built-in one has the figures of
//! the Assisted Installer; a service may replace it. A host needs the requirements of its role in the entry for the
//! version of its cluster. A host without a cluster needs the requirements of the role with the smallest disk.

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

/// Products that are edge workers unless the service has other settings.
const EDGE_WORKER_PRODUCTS: &str = "BlueField SoC";

/// CPU architecture of edge workers.
const EDGE_WORKER_ARCHITECTURE: &str = "aarch64";

/// The requirements of all OpenShift versions.
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
    /// Names of products in lower case and without spaces.
    edge_worker_products: Vec<Box<str>>,
}

/// The table that the Assisted Installer is shipped with.
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
    /// Returns an error if the text is not such a list, if it has no entry for version `default`, if two entries are for
    /// the same version, or if a requirement is missing or too low.
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

    /// Replaces the names of the products that are edge workers. `names` are separated by commas.
    #[must_use]
    pub fn with_edge_worker_products(self, names: &str) -> Self {
        Self { edge_worker_products: product_names(names), ..self }
    }

    /// Returns the requirements of an OpenShift version: the entry for exactly this version, or else the entry with the
    /// highest `min_version` that is not above it, or else the default entry. An empty text means an unknown version.
    #[must_use]
    pub fn for_version(&self, version: &str) -> &RoleRequirements {
        self.entries.find(version)
    }

    /// Returns the requirements of a cluster's OpenShift version.
    #[must_use]
    pub fn for_cluster(&self, cluster: &ClusterSettings) -> &RoleRequirements {
        let version = cluster.version.as_ref().map_or_else(String::new, Version::to_string);
        self.for_version(&version)
    }

    /// Returns the requirements of OpenShift for a host in the role that it will have.
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

    /// Returns the requirements of OpenShift and of the cluster's operators for a host in the role that it will have.
    /// The service offers no operators yet, so this is [`HardwareRequirements::for_host`].
    #[must_use]
    pub fn total_for_host(&self, cluster: &ClusterSettings, host: &HostView) -> HostRequirements {
        self.for_host(cluster, host)
    }

    /// Returns the requirements for a host without a cluster, whose infra-env has the given OpenShift version: those of
    /// the role that needs the smallest disk.
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

/// Splits the names of products at commas. An empty name would match machines that report no product.
fn product_names(names: &str) -> Vec<Box<str>> {
    let names = names.split(',').map(normalized_product);
    names.filter(|name| !name.is_empty()).map(String::into_boxed_str).collect()
}

fn normalized_product(name: &str) -> String {
    name.to_lowercase().replace(' ', "")
}

#[cfg(test)]
mod tests;

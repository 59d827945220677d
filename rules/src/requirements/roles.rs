//! The types of hardware requirements: for one role, for all roles, and for a host without a role.

use crate::view::ClusterSettings;

/// The requirements for a host with one role.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostRequirements {
    /// Minimum number of CPU cores.
    pub cpu_cores: i64,
    /// Minimum memory in MiB.
    pub ram_mib: i64,
    /// Minimum size of the installation disk in GB (10^9 bytes).
    pub disk_size_gb: i64,
    /// Maximum duration of a write to the installation disk, in milliseconds. 0 means no limit.
    pub disk_speed_ms: i64,
    /// Maximum round-trip time to the other hosts, in milliseconds. `None` means no limit.
    pub network_latency_ms: Option<f64>,
    /// Maximum packet loss on the way to the other hosts, in percent. `None` means no limit.
    pub packet_loss_percent: Option<f64>,
}

/// The requirements for one OpenShift version, by role.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleRequirements {
    /// Requirements for a control plane node of a multi-node cluster.
    pub master: HostRequirements,
    /// Requirements for an arbiter.
    pub arbiter: HostRequirements,
    /// Requirements for a worker.
    pub worker: HostRequirements,
    /// Requirements for the node of a single-node cluster.
    pub sno: HostRequirements,
    /// Requirements for a worker that is a data processing unit.
    pub edge_worker: HostRequirements,
}

/// The minimum requirements for a host, before its role is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumRequirements {
    /// Minimum number of CPU cores.
    pub cpu_cores: i64,
    /// Minimum memory in MiB.
    pub ram_mib: i64,
}

impl RoleRequirements {
    /// Returns the lower of the requirements for a control plane node and for a worker. `cluster` is `None` for a host
    /// without a cluster.
    #[must_use]
    pub fn minimum_of_any_role(&self, cluster: Option<&ClusterSettings>) -> MinimumRequirements {
        let master = match cluster {
            Some(cluster) if cluster.is_single_node() => &self.sno,
            _ => &self.master,
        };
        MinimumRequirements {
            cpu_cores: master.cpu_cores.min(self.worker.cpu_cores),
            ram_mib: master.ram_mib.min(self.worker.ram_mib),
        }
    }
}

//! The requirements of each role.

use crate::view::ClusterSettings;

/// The requirements that a host has to meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostRequirements {
    /// Minimum number of CPU cores.
    pub cpu_cores: i64,
    /// Minimum memory in MiB.
    pub ram_mib: i64,
    /// Minimum size of the installation disk in GB, which is 10^9 bytes.
    pub disk_size_gb: i64,
    /// Maximum time that a write to the installation disk may take, in milliseconds. 0: no limit.
    pub disk_speed_ms: i64,
    /// Maximum round-trip time to the other hosts, in milliseconds.
    pub network_latency_ms: Option<f64>,
    /// Maximum share of packets that are lost on the way to the other hosts, in percent.
    pub packet_loss_percent: Option<f64>,
}

/// The requirements of an OpenShift version, by role.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleRequirements {
    /// Requirements for a control plane node of a cluster with several nodes.
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

/// The requirements that a host has to meet to get any role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumRequirements {
    /// Minimum number of CPU cores.
    pub cpu_cores: i64,
    /// Minimum memory in MiB.
    pub ram_mib: i64,
}

impl RoleRequirements {
    /// Returns the requirements for the least demanding of control plane node and worker. `None`: the host has no
    /// cluster.
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

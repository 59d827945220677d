//! The choices for a host that a resource outside this service owns. Clients of the API cannot change these choices.

use std::collections::BTreeSet;

use assisted::host::HostUpdateParams;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::HostId;
use crate::infra_env::ResourceOwner;

/// The resource that owns choices for a host. The resource always owns the installer arguments, the Ignition override,
/// the Ignition endpoint and the labels of the node: if the resource has no value for one of these choices, the value
/// of the host is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostOwner {
    /// The resource, which conflict errors name.
    pub resource: ResourceOwner,
    /// The choices that the resource owns in addition, because it has values for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub optional: BTreeSet<OptionalChoice>,
}

/// A choice that a resource may leave to clients of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OptionalChoice {
    /// Host name.
    Hostname,
    /// Role.
    Role,
    /// Machine config pool.
    MachineConfigPool,
    /// Installation disk.
    InstallationDisk,
}

impl HostOwner {
    /// Returns an error if an update changes a choice that the resource owns.
    ///
    /// # Errors
    ///
    /// Returns a conflict that names the resource.
    pub(crate) fn allow_update(&self, host: HostId, params: &HostUpdateParams) -> Result<(), Error> {
        use OptionalChoice as Choice;
        let decides = |choice| self.optional.contains(&choice);
        let decided = [
            ("host_name", params.host_name.is_some() && decides(Choice::Hostname)),
            ("host_role", params.host_role.is_some() && decides(Choice::Role)),
            (
                "machine_config_pool_name",
                params.machine_config_pool_name.is_some() && decides(Choice::MachineConfigPool),
            ),
            (
                "disks_selected_config",
                params.disks_selected_config.is_some() && decides(Choice::InstallationDisk),
            ),
            ("ignition_endpoint_token", params.ignition_endpoint_token.is_some()),
            ("ignition_endpoint_http_headers", params.ignition_endpoint_http_headers.is_some()),
            ("node_labels", params.node_labels.is_some()),
        ];
        match decided.into_iter().find(|(_, is_decided)| *is_decided) {
            Some((field, _)) => Err(self.refusal(host, field)),
            None => Ok(()),
        }
    }

    /// Returns the conflict for a change to a field that the resource owns.
    pub(crate) fn refusal(&self, host: HostId, field: &str) -> Error {
        let resource = &self.resource;
        Error::conflict(format!(
            "{field} of host {host} is defined by {resource}; change that object instead"
        ))
    }
}

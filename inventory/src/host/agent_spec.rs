//! The choices for a host that a Kubernetes custom resource requests.

use std::collections::{BTreeMap, BTreeSet};

use assisted::Secret;
use assisted::host::{ChosenRole, DiskChoice, DiskRole, Header, HostRole, HostUpdateParams, NodeLabel};
use rules::disk::is_named;
use rules::host::status::allows_changes;

use super::assessment::HostContext;
use super::draft::HostDraft;
use super::owner::{HostOwner, OptionalChoice};
use super::record::{Choices, HostRecord};
use super::update::{
    apply_update, check_ignition_override, check_installer_args, check_update, set_ignition_override,
    set_installer_args,
};
use crate::error::Error;
use crate::infra_env::ResourceOwner;
use crate::journal::Journal;
use crate::json::to_json_text;

/// The requested choices for a host. An absent value leaves the host's choice unchanged. An empty list, map or text
/// removes the choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// The resource that requests the choices. API clients can no longer change the choices that this resource owns.
    pub owner: Option<ResourceOwner>,
    /// Whether an administrator has approved the host.
    pub approved: bool,
    /// Host name.
    pub hostname: Option<String>,
    /// Name of the role, such as `worker`.
    pub role: Option<String>,
    /// Machine config pool.
    pub machine_config_pool: Option<String>,
    /// Installation disk: its id, its `by-path` link or its device path.
    pub installation_disk: Option<String>,
    /// Arguments of coreos-installer.
    pub installer_args: Vec<String>,
    /// User-supplied Ignition override, as JSON.
    pub ignition_config_override: String,
    /// Token for the Ignition endpoint.
    pub ignition_endpoint_token: Secret,
    /// HTTP headers for the Ignition endpoint.
    pub ignition_endpoint_headers: Vec<Header>,
    /// Labels of the node.
    pub node_labels: BTreeMap<String, String>,
}

impl HostSpec {
    /// Returns the resource and the choices that it owns.
    fn host_owner(&self) -> Option<HostOwner> {
        let choices = [
            (OptionalChoice::Hostname, self.hostname.is_some()),
            (OptionalChoice::Role, self.role.is_some()),
            (OptionalChoice::MachineConfigPool, self.machine_config_pool.is_some()),
            (OptionalChoice::InstallationDisk, self.installation_disk.is_some()),
        ];
        let decided = choices.into_iter().filter(|(_, is_decided)| *is_decided);
        let optional: BTreeSet<_> = decided.map(|(choice, _)| choice).collect();
        self.owner.clone().map(|resource| HostOwner { resource, optional })
    }
}

/// Applies the differences between a host and its requested choices.
///
/// Approval, installer arguments and the Ignition override are applied in every status. In a status that does not allow
/// changes, the other choices are left unchanged without an error.
pub(crate) fn apply_spec(
    draft: &mut HostDraft,
    spec: &HostSpec,
    context: &HostContext<'_>,
    journal: &mut Journal,
) -> Result<(), Error> {
    let host = &mut draft.record;
    if differ_as_json(&spec.installer_args, &host.choices.installer_args)? {
        check_installer_args(&spec.installer_args)?;
        set_installer_args(host, &spec.installer_args, journal)?;
    }
    let config = &spec.ignition_config_override;
    if *config != host.choices.ignition_config_overrides {
        if !config.is_empty() {
            check_ignition_override(config)?;
        }
        set_ignition_override(host, config, journal);
    }
    host.choices.approved = spec.approved;
    host.choices.owner = spec.host_owner();
    if !allows_changes(host.status()) {
        return Ok(());
    }
    let params = differences(draft, spec)?;
    if params == HostUpdateParams::default() {
        return Ok(());
    }
    check_update(&params)?;
    apply_update(draft, &params, context, journal)
}

/// Returns `true` if the arguments differ from the stored list. A host that never had arguments stores an empty text.
fn differ_as_json(args: &[String], stored: &str) -> Result<bool, Error> {
    let is_absent = stored.is_empty() && args.is_empty();
    Ok(!is_absent && to_json_text("installer_args", &args)? != stored)
}

/// Returns an update of the choices that differ from the requested ones.
fn differences(draft: &HostDraft, spec: &HostSpec) -> Result<HostUpdateParams, Error> {
    let (host, choices) = (&draft.record, &draft.record.choices);
    let other = |requested: &Option<String>, stored: &String| {
        requested.clone().filter(|requested| requested != stored)
    };
    let role = spec.role.as_deref().map(|name| role_of(host, name)).transpose()?;
    let disk = spec.installation_disk.as_deref();
    let disk = match disk {
        Some(disk) if !is_installation_disk(draft, disk)? => {
            Some(vec![DiskChoice { id: disk.to_owned(), role: Some(DiskRole::Install) }])
        }
        _ => None,
    };
    Ok(HostUpdateParams {
        host_role: role.filter(|role| HostRole::from(*role) != host.role),
        host_name: other(&spec.hostname, &choices.hostname),
        machine_config_pool_name: other(&spec.machine_config_pool, &choices.machine_config_pool_name),
        disks_selected_config: disk,
        ignition_endpoint_token: (spec.ignition_endpoint_token != choices.ignition_endpoint_token)
            .then(|| spec.ignition_endpoint_token.clone()),
        ignition_endpoint_http_headers: has_other_headers(spec, choices)
            .then(|| spec.ignition_endpoint_headers.clone()),
        node_labels: (spec.node_labels != choices.node_labels).then(|| labels(spec)),
        ..HostUpdateParams::default()
    })
}

fn role_of(host: &HostRecord, name: &str) -> Result<ChosenRole, Error> {
    serde_json::from_value(name.into()).map_err(|_| {
        Error::invalid(format!(
            "Requested role ({name}) is invalid for host {} from infraEnv {}",
            host.id, host.infra_env_id
        ))
    })
}

/// Returns `true` if a name identifies the installation disk of the host.
fn is_installation_disk(draft: &HostDraft, name: &str) -> Result<bool, Error> {
    let Some(current) = &draft.record.choices.installation_disk else { return Ok(false) };
    let inventory = draft.summary()?.inventory.as_ref();
    let mut disks = inventory.iter().flat_map(|inventory| &inventory.disks);
    let has_both_names = disks.any(|disk| is_named(disk, &current.id) && is_named(disk, name));
    Ok(has_both_names || name == current.id)
}

fn has_other_headers(spec: &HostSpec, choices: &Choices) -> bool {
    let requested = spec.ignition_endpoint_headers.iter().map(|header| (&header.key, &header.value));
    let stored = choices.ignition_endpoint_http_headers.iter().map(|(key, value)| (key, value));
    !requested.eq(stored)
}

fn labels(spec: &HostSpec) -> Vec<NodeLabel> {
    let labels = spec.node_labels.iter();
    labels.map(|(key, value)| NodeLabel { key: key.clone(), value: value.clone() }).collect()
}

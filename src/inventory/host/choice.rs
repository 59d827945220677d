//! What users choose of a host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use ignition::document::Document;
use ignition::report;
use ignition::validate::validate;
use regex::Regex;

use super::journal::Journal;
use super::machine::{Disk, Machine};
use super::model::{DiskChoice, DiskFormatting, DiskRole, HostUpdateParams, NodeLabel};
use super::record::{HostRecord, InstallationDisk};
use super::refresh::refresh;
use super::validation::check_host_name;
use crate::api_error::ApiError;
use crate::inventory::event::Severity;
use crate::inventory::{Secret, Settings};

impl HostUpdateParams {
    /// Refuses what no host could be changed to.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        if let Some(name) = &self.host_name {
            check_host_name(name).map_err(ApiError::bad)?;
        }
        for label in self.node_labels.iter().flatten() {
            check_label(label)?;
        }
        if self.fencing_credentials.is_some() {
            return Err(ApiError::bad(
                "Clusters with fencing are not supported, and fencing_credentials with them",
            ));
        }
        Ok(())
    }

    /// Changes a host.
    pub(super) fn apply(
        &self,
        host: &mut HostRecord,
        settings: &Settings,
        journal: &mut Journal,
    ) -> Result<(), ApiError> {
        self.check_state(host)?;
        if let Some(role) = self.host_role {
            host.role = role.into();
            host.suggested_role = role.into();
        }
        if let Some(name) = &self.host_name {
            host.choices.hostname.clone_from(name);
        }
        if let Some(disks) = &self.disks_selected_config {
            host.choices.installation_disk = chosen_disk(host, disks)?;
        }
        if let Some(disks) = &self.disks_skip_formatting {
            skip_formatting(host, disks)?;
        }
        if let Some(pool) = &self.machine_config_pool_name {
            host.choices.machine_config_pool_name.clone_from(pool);
        }
        if let Some(token) = &self.ignition_endpoint_token {
            host.choices.ignition_endpoint_token = Secret::new(token);
        }
        if let Some(headers) = &self.ignition_endpoint_http_headers {
            let headers = headers.iter().map(|header| (header.key.clone(), Secret::new(&header.value)));
            host.choices.ignition_endpoint_http_headers = headers.collect();
        }
        if let Some(labels) = &self.node_labels {
            let labels = labels.iter().map(|label| (label.key.clone(), label.value.clone()));
            host.choices.node_labels = labels.collect::<BTreeMap<_, _>>();
        }
        refresh(host, settings, journal);
        Ok(())
    }

    /// What decides the installation cannot change under it.
    fn check_state(&self, host: &HostRecord) -> Result<(), ApiError> {
        let decisive = [
            ("role", self.host_role.is_some()),
            ("hostname", self.host_name.is_some()),
            ("installation disk", self.disks_selected_config.is_some()),
            ("formatting of disks", self.disks_skip_formatting.is_some()),
            ("machine config pool", self.machine_config_pool_name.is_some()),
        ];
        match decisive.into_iter().find(|(_, given)| *given) {
            Some((what, _)) if !host.status.lets_choose() => Err(ApiError::conflict(format!(
                "Host {} is in state {}, where its {what} cannot be changed",
                host.id, host.status
            ))),
            _ => Ok(()),
        }
    }
}

/// The inventory report of a host; an empty one if it has sent none.
pub(super) fn machine_of(host: &HostRecord) -> Result<Machine, ApiError> {
    if host.findings.inventory.is_empty() {
        return Ok(Machine::default());
    }
    serde_json::from_str(&host.findings.inventory).map_err(|error| {
        tracing::error!(host = %host.id, %error, "a stored inventory is damaged");
        ApiError::internal(format!("the inventory of host {} is damaged", host.id))
    })
}

fn chosen_disk(host: &HostRecord, disks: &[DiskChoice]) -> Result<Option<InstallationDisk>, ApiError> {
    let mut chosen = disks.iter().filter(|disk| disk.role == Some(DiskRole::Install));
    let Some(first) = chosen.next() else { return Ok(None) };
    if chosen.next().is_some() {
        return Err(ApiError::conflict(format!("Host {} is installed on one disk, not on several", host.id)));
    }
    let machine = machine_of(host)?;
    let disk = machine.eligible_disks().find(|disk| disk.is_named(&first.id)).ok_or_else(|| {
        ApiError::conflict(format!(
            "Requested installation disk {:?} is not part of the host's valid disks",
            first.id
        ))
    })?;
    Ok(Some(disk.as_installation_disk()))
}

fn skip_formatting(host: &mut HostRecord, disks: &[DiskFormatting]) -> Result<(), ApiError> {
    let machine = machine_of(host)?;
    let known: BTreeSet<_> = machine.disks.iter().map(Disk::identity).collect();
    if let Some(unknown) = disks.iter().find(|disk| !known.contains(&disk.disk_id)) {
        return Err(ApiError::bad(format!(
            "Disk {:?} is not in the inventory of host {}",
            unknown.disk_id, host.id
        )));
    }
    let mut skipped: BTreeSet<_> =
        std::mem::take(&mut host.choices.skip_formatting_disks).into_iter().collect();
    for disk in disks {
        if disk.skip_formatting {
            skipped.insert(disk.disk_id.clone());
        } else {
            skipped.remove(&disk.disk_id);
        }
    }
    host.choices.skip_formatting_disks = skipped.into_iter().collect();
    Ok(())
}

#[expect(clippy::unwrap_used, reason = "the patterns are ours, and tests use them")]
static LABEL: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        Regex::new(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$").unwrap(),
        Regex::new(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$").unwrap(),
    ]
});

/// Labels are those of Kubernetes: a name of 63 characters, maybe after a domain, and a value like a name, or none.
fn check_label(label: &NodeLabel) -> Result<(), ApiError> {
    let [name_form, domain_form] = &*LABEL;
    let (domain, name) = match label.key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, label.key.as_str()),
    };
    let domain_holds = domain.is_none_or(|domain| domain.len() <= 253 && domain_form.is_match(domain));
    if !domain_holds || !name_form.is_match(name) {
        return Err(ApiError::bad(format!("{:?} cannot be the key of a node label", label.key)));
    }
    if !label.value.is_empty() && !name_form.is_match(&label.value) {
        return Err(ApiError::bad(format!("{:?} cannot be the value of a node label", label.value)));
    }
    Ok(())
}

#[expect(clippy::unwrap_used, reason = "the pattern is ours, and a test uses it")]
static ARGUMENT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"^[A-Za-z0-9@!#$%*()_+-=//.,";':{}\[\]]+$"#).unwrap());

/// What the arguments of an installer have at most, in characters.
const MOST_ARGUMENTS: usize = 65_535;

/// Refuses arguments that the installer does not take.
pub(super) fn check_installer_args(args: &[String]) -> Result<(), ApiError> {
    const FLAGS: [&str; 9] = [
        "--append-karg",
        "--delete-karg",
        "-n",
        "--copy-network",
        "--network-dir",
        "--save-partlabel",
        "--save-partindex",
        "--image-url",
        "--image-file",
    ];
    for arg in args {
        if arg.starts_with('-') && !FLAGS.contains(&arg.as_str()) {
            let flags = FLAGS.join(" ");
            return Err(ApiError::bad(format!(
                "found unexpected flag {arg} for installer - allowed flags are [{flags}]"
            )));
        }
        if !ARGUMENT.is_match(arg) {
            return Err(ApiError::bad(format!("found unexpected chars in value {arg:?} for installer")));
        }
    }
    if args.iter().map(String::len).sum::<usize>() > MOST_ARGUMENTS {
        return Err(ApiError::bad(format!(
            "arguments of the installer have more than {MOST_ARGUMENTS} characters"
        )));
    }
    Ok(())
}

/// Keeps arguments for the installer.
pub(super) fn keep_installer_args(host: &mut HostRecord, args: &[String], journal: &mut Journal) {
    host.choices.installer_args = serde_json::to_string(args).unwrap_or_default();
    let message = format!("custom installer arguments were applied: {}", host.choices.installer_args);
    journal.tell(host, "host_installer_args_applied", Severity::Info, message);
}

/// Refuses what cannot be laid over an Ignition config.
pub(super) fn check_ignition_override(config: &str) -> Result<(), ApiError> {
    let fault = |reason: String| ApiError::bad(format!("error parsing ignition: {reason}"));
    let parsed = Document::parse(config.as_bytes()).map_err(|error| fault(error.to_string()))?;
    let spec = parsed.document.spec().to_string();
    if !matches!(spec.as_str(), "3.1.0" | "3.2.0") {
        return Err(fault(format!("spec {spec} is not supported: 3.1.0 and 3.2.0 are")));
    }
    let found = validate(&parsed.document);
    match found.findings().iter().find(|finding| finding.severity == report::Severity::Error) {
        Some(finding) => Err(fault(format!("{} at {:?}", finding.message, finding.pointer))),
        None => Ok(()),
    }
}

/// Keeps what shall be otherwise in the Ignition config of a host.
pub(super) fn keep_ignition_override(host: &mut HostRecord, config: &str, journal: &mut Journal) {
    config.clone_into(&mut host.choices.ignition_config_overrides);
    journal.tell(
        host,
        "host_discovery_ignition_config_applied",
        Severity::Info,
        "custom Ignition config was applied",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_kubernetes() {
        let check = |key: &str, value: &str| {
            check_label(&NodeLabel { key: key.to_owned(), value: value.to_owned() }).is_ok()
        };
        assert!(check("node.example.com/zone", "a-1"));
        assert!(check("zone", ""));
        assert!(check(&"a".repeat(63), &"b".repeat(63)));
        for key in ["", "/zone", "a/", "a b", "-a", "Node.example.com/a", "a/b/c", &"a".repeat(64)] {
            assert!(!check(key, "x"), "{key:?}");
        }
        for value in ["-", "a b", "a/b", &"b".repeat(64)] {
            assert!(!check("zone", value), "{value:?}");
        }
    }

    #[test]
    fn the_installer_takes_some_flags_and_no_strange_values() {
        let check = |args: &[&str]| {
            check_installer_args(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
        };
        check(&[]).unwrap();
        check(&["--append-karg", "ip=192.0.2.1::192.0.2.254:255.255.255.0:a:eth0:none", "-n"]).unwrap();
        let refusal = check(&["--firstboot-args", "x"]).unwrap_err();
        assert!(
            refusal.reason().starts_with("found unexpected flag --firstboot-args for installer"),
            "{refusal}"
        );
        for value in ["a b", "$(a)\n", "", "a|b", "`a`"] {
            let refusal = check(&[value]).unwrap_err();
            assert!(refusal.reason().starts_with("found unexpected chars in value"), "{refusal}");
        }
    }
}

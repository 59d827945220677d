//! Updates of hosts by users: the checks and the changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use assisted::host::{DiskChoice, DiskFormatting, DiskRole, HostUpdateParams, NodeLabel};
use ignition::config::Config;
use ignition::report;
use ignition::validate::validate;
use regex::Regex;
use rules::disk::{installation_disk, is_named};
use rules::host::status::allows_changes;
use rules::validation::host::hostname_valid::check_hostname;

use super::assessment::{HostContext, assess_unbound};
use super::draft::HostDraft;
use super::facts::host_view;
use super::record::{HostRecord, InstallationDisk};
use crate::error::Error;
use crate::event::Severity;
use crate::journal::Journal;
use crate::json::to_json_text;

/// Returns an error for values that are invalid for every host.
pub(crate) fn check_update(params: &HostUpdateParams) -> Result<(), Error> {
    if let Some(name) = &params.host_name {
        check_hostname(name).map_err(|error| Error::invalid(error.to_string()))?;
    }
    for label in params.node_labels.iter().flatten() {
        check_label(label)?;
    }
    if params.fencing_credentials.is_some() {
        return Err(Error::invalid(
            "fencing_credentials cannot be set: clusters with fencing are not supported",
        ));
    }
    Ok(())
}

pub(crate) fn apply_update(
    draft: &mut HostDraft,
    params: &HostUpdateParams,
    context: &HostContext<'_>,
    journal: &mut Journal,
) -> Result<(), Error> {
    check_state(&draft.record, params)?;
    if let Some(disks) = &params.disks_selected_config {
        draft.record.choices.installation_disk = chosen_disk(draft, disks, context)?;
    }
    if let Some(disks) = &params.disks_skip_formatting {
        skip_formatting(draft, disks)?;
    }
    let host = &mut draft.record;
    if let Some(role) = params.host_role {
        host.role = role.into();
        host.suggested_role = role.into();
    }
    if let Some(name) = &params.host_name {
        host.choices.hostname.clone_from(name);
    }
    if let Some(pool) = &params.machine_config_pool_name {
        host.choices.machine_config_pool_name.clone_from(pool);
    }
    if let Some(token) = &params.ignition_endpoint_token {
        host.choices.ignition_endpoint_token = token.clone();
    }
    if let Some(headers) = &params.ignition_endpoint_http_headers {
        let headers = headers.iter().map(|header| (header.key.clone(), header.value.clone()));
        host.choices.ignition_endpoint_http_headers = headers.collect();
    }
    if let Some(labels) = &params.node_labels {
        let labels = labels.iter().map(|label| (label.key.clone(), label.value.clone()));
        host.choices.node_labels = labels.collect::<BTreeMap<_, _>>();
    }
    assess_unbound(draft, context, journal)
}

/// Returns an error if the installation has started and the update contains a value that the installation depends on.
fn check_state(host: &HostRecord, params: &HostUpdateParams) -> Result<(), Error> {
    let restricted = [
        ("role", params.host_role.is_some()),
        ("hostname", params.host_name.is_some()),
        ("installation disk", params.disks_selected_config.is_some()),
        ("formatting of disks", params.disks_skip_formatting.is_some()),
        ("machine config pool", params.machine_config_pool_name.is_some()),
    ];
    match restricted.into_iter().find(|(_, is_set)| *is_set) {
        Some((what, _)) if !allows_changes(host.status()) => Err(Error::conflict(format!(
            "Host {} is in state {}, where its {what} cannot be changed",
            host.id,
            host.status()
        ))),
        _ => Ok(()),
    }
}

/// Returns the disk that the update selects as installation disk.
fn chosen_disk(
    draft: &HostDraft,
    disks: &[DiskChoice],
    context: &HostContext<'_>,
) -> Result<Option<InstallationDisk>, Error> {
    let host = &draft.record;
    let mut install_disks = disks.iter().filter(|disk| disk.role == Some(DiskRole::Install));
    let Some(first) = install_disks.next() else { return Ok(None) };
    if install_disks.next().is_some() {
        return Err(Error::conflict(format!("Host {} can have only one installation disk", host.id)));
    }
    let view = host_view(host, true, Arc::new(draft.summary()?.clone()));
    let reasons = context.disk_reasons(&view);
    let inventory = view.summary.inventory.as_deref();
    let disk = inventory.and_then(|inventory| {
        let mut disks = inventory.disks.iter().zip(&reasons);
        let is_eligible = disks.any(|(disk, reasons)| reasons.is_eligible() && is_named(disk, &first.id));
        is_eligible.then(|| installation_disk(inventory, &reasons, Some(&first.id)))?
    });
    let disk = disk.ok_or_else(|| {
        Error::conflict("Requested installation disk is not part of the host's valid disks")
    })?;
    Ok(Some(InstallationDisk { id: disk.id, path: disk.path }))
}

/// Updates the disks that an installation does not format.
fn skip_formatting(draft: &mut HostDraft, disks: &[DiskFormatting]) -> Result<(), Error> {
    let inventory = draft.summary()?.inventory.as_ref();
    let disk_ids: BTreeSet<_> =
        inventory.iter().flat_map(|inventory| &inventory.disks).map(|disk| disk.id.to_string()).collect();
    let host = &mut draft.record;
    if let Some(unknown) = disks.iter().find(|disk| !disk_ids.contains(&disk.disk_id)) {
        return Err(Error::invalid(format!(
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

/// The patterns of a label's name or value, and of its domain.
#[expect(clippy::unwrap_used, reason = "the patterns are constant, and tests use them")]
static LABEL_PATTERNS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        Regex::new(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$").unwrap(),
        Regex::new(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$").unwrap(),
    ]
});

/// Checks a label by the rules of Kubernetes: the key is a name of at most 63 characters with an optional domain as
/// prefix, and the value is empty or follows the rule for names.
fn check_label(label: &NodeLabel) -> Result<(), Error> {
    let [name_pattern, domain_pattern] = &*LABEL_PATTERNS;
    let (domain, name) = match label.key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, label.key.as_str()),
    };
    let is_valid_domain = domain.is_none_or(|domain| domain.len() <= 253 && domain_pattern.is_match(domain));
    if !is_valid_domain || !name_pattern.is_match(name) {
        return Err(Error::invalid(format!("{:?} cannot be the key of a node label", label.key)));
    }
    if !label.value.is_empty() && !name_pattern.is_match(&label.value) {
        return Err(Error::invalid(format!("{:?} cannot be the value of a node label", label.value)));
    }
    Ok(())
}

/// The characters that an argument of coreos-installer may contain.
#[expect(clippy::unwrap_used, reason = "the pattern is constant, and a test uses it")]
static ARGUMENT_PATTERN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"^[A-Za-z0-9@!#$%*()_+-=//.,";':{}\[\]]+$"#).unwrap());

/// Maximum total length of the arguments of coreos-installer, in bytes.
const MAX_ARGUMENTS_LEN: usize = 65_535;

/// Checks the flags and the characters of the arguments of coreos-installer.
pub(crate) fn check_installer_args(args: &[String]) -> Result<(), Error> {
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
            return Err(Error::invalid(format!(
                "found unexpected flag {arg} for installer - allowed flags are [{flags}]"
            )));
        }
        if !ARGUMENT_PATTERN.is_match(arg) {
            return Err(Error::invalid(format!("found unexpected chars in value {arg:?} for installer")));
        }
    }
    if args.iter().map(String::len).sum::<usize>() > MAX_ARGUMENTS_LEN {
        return Err(Error::invalid(format!(
            "the installer arguments have more than {MAX_ARGUMENTS_LEN} characters"
        )));
    }
    Ok(())
}

pub(crate) fn set_installer_args(
    host: &mut HostRecord,
    args: &[String],
    journal: &mut Journal,
) -> Result<(), Error> {
    host.choices.installer_args = to_json_text("installer_args", &args)?;
    let message = format!("custom installer arguments were applied: {}", host.choices.installer_args);
    journal.add_host_event(host, "host_installer_args_applied", Severity::Info, message);
    Ok(())
}

/// Checks that an Ignition override is a valid Ignition config of a supported spec.
pub(crate) fn check_ignition_override(config: &str) -> Result<(), Error> {
    let refusal = |reason: String| Error::invalid(format!("error parsing ignition: {reason}"));
    let parsed = Config::parse(config.as_bytes()).map_err(|error| refusal(error.to_string()))?;
    let spec = parsed.config.spec().to_string();
    if !matches!(spec.as_str(), "3.1.0" | "3.2.0") {
        return Err(refusal(format!("spec {spec} is not supported; use 3.1.0 or 3.2.0")));
    }
    let validation = validate(&parsed.config);
    match validation.findings().iter().find(|finding| finding.severity == report::Severity::Error) {
        Some(finding) => Err(refusal(format!("{} at {:?}", finding.message, finding.pointer))),
        None => Ok(()),
    }
}

pub(crate) fn set_ignition_override(host: &mut HostRecord, config: &str, journal: &mut Journal) {
    config.clone_into(&mut host.choices.ignition_config_overrides);
    journal.add_host_event(
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
    fn labels_follow_the_rules_of_kubernetes() {
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
    fn rejects_installer_args_with_unknown_flags_or_characters() {
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

//! Adds the names of the faulty NMStateConfigs to errors about the networks of an InfraEnv.

use crate::errors::ReconcileError;
use crate::networks::ConfigFault;
use crate::webhooks::rules::FieldFault;
use crate::webhooks::rules::nmstate_config::field_of;

/// Converts an error of the inventory. The inventory identifies networks by position; this function adds the names of
/// their NMStateConfigs.
pub(super) fn with_config_names(error: inventory::Error, names: &[String]) -> ReconcileError {
    if error.findings().is_empty() {
        return error.into();
    }
    let faults = error.findings().iter().map(|finding| {
        let name = names.get(finding.host).map_or("?", String::as_str);
        let place = if finding.path.is_empty() { String::new() } else { format!(" {}:", finding.path) };
        let fault = FieldFault::new(field_of(&finding.path), &*finding.message);
        let fault = ConfigFault { config: name.to_owned(), fault };
        (format!("NMStateConfig {name}:{place} {}", finding.message), fault)
    });
    let (messages, faults): (Vec<_>, _) = faults.unzip();
    ReconcileError::Networks { message: messages.join("; "), faults }
}

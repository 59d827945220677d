//! Kubernetes events that report faults of an InfraEnv or of its NMStateConfigs.

use std::collections::BTreeMap;

use super::InfraEnvController;
use crate::crds::InfraEnv;
use crate::errors::ReconcileError;
use crate::events::Warning;
use crate::networks::ConfigFault;
use crate::object::ObjectKey;
use crate::projection::infra_env::IMAGE_CREATION_ERROR;

/// The `action` of the events.
const ACTION: &str = "CreateImage";
/// The `reason` of events about NMStateConfigs.
const INVALID_NETWORK: &str = "InvalidNetwork";
/// Maximum number of NMStateConfigs that get events for one error of an InfraEnv. The limit is needed because a fault
/// in a template occurs in all configs created from the template. The condition of the InfraEnv lists all faulty
/// configs.
const MAX_CONFIGS: usize = 10;

impl InfraEnvController {
    /// Creates events about an error that a user must fix. Each event is about an object that the user must change.
    pub(super) async fn report(&self, key: &ObjectKey, object: &InfraEnv, error: &ReconcileError) {
        let ReconcileError::Networks { faults, .. } = error else {
            let note = error.to_string().trim_end().to_owned();
            let warning = Warning { action: ACTION, reason: IMAGE_CREATION_ERROR, note };
            return self.events.warn(object, warning).await;
        };
        for (config, note) in notes(faults).into_iter().take(MAX_CONFIGS) {
            let config = ObjectKey::new(&key.namespace, config);
            if let Some(config) = self.caches.networks.get(&config) {
                let warning = Warning { action: ACTION, reason: INVALID_NETWORK, note };
                self.events.warn(config.as_ref(), warning).await;
            }
        }
    }
}

/// Returns the message for each faulty config.
fn notes(faults: &[ConfigFault]) -> BTreeMap<&str, String> {
    let mut notes: BTreeMap<&str, String> = BTreeMap::new();
    for ConfigFault { config, fault } in faults {
        let note = notes.entry(config).or_default();
        if !note.is_empty() {
            note.push_str("; ");
        }
        note.push_str(&fault.to_string());
    }
    notes
}

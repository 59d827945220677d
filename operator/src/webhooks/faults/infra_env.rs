//! Finds the faults of InfraEnvs.

use super::spec_parts::{self, SpecPart};
use super::{CheckResult, FaultCheck};
use crate::controllers::infra_env::params;
use crate::crds::{InfraEnv, InfraEnvSpec};
use crate::errors::ReconcileError;
use crate::networks::{self, NamedConfig};
use crate::selector;
use crate::webhooks::rules::FieldFault;

impl FaultCheck {
    /// Checks the parts of an InfraEnv that are new or changed.
    pub(crate) async fn infra_env(&self, new: &InfraEnv, old: Option<&InfraEnv>) -> CheckResult {
        let old = old.map(|object| &object.spec);
        self.limited(async {
            let mut result = self.selected(new, old);
            for part in spec_parts::changed(&new.spec, old) {
                result.add(self.part(part).await);
            }
            result
        })
        .await
    }

    async fn part(&self, SpecPart { field, spec, .. }: SpecPart) -> CheckResult {
        let mut result = CheckResult::default();
        match params("", &spec) {
            Ok(params) => result = self.check_params(&field, params, |_| field.clone()).await,
            Err(ReconcileError::Input(message)) => {
                let message = message.strip_prefix(&format!("{field} ")).unwrap_or(&message);
                result.faults.push(FieldFault::new(field, message));
            }
            Err(error) => result.warnings.push(format!("{field}: not checked: {error}")),
        }
        result
    }

    /// Checks a new selector. Selected configs that conflict cause a warning, because the fault is in other objects.
    fn selected(&self, new: &InfraEnv, old: Option<&InfraEnvSpec>) -> CheckResult {
        const FIELD: &str = "spec.nmStateConfigLabelSelector";
        let selector = &new.spec.nm_state_config_label_selector;
        let mut result = CheckResult::default();
        if old.is_some_and(|old| old.nm_state_config_label_selector == *selector) {
            return result;
        }
        if let Err(message) = selector::matches(selector, None) {
            result.faults.push(FieldFault::new(FIELD, message));
            return result;
        }
        let namespace = new.metadata.namespace.as_deref().unwrap_or_default();
        let configs = self.caches.networks.in_namespace(namespace);
        let configs = configs.iter().filter(|(_, config)| config.metadata.deletion_timestamp.is_none());
        let configs = configs.map(|(key, config)| NamedConfig {
            name: &key.name,
            labels: config.metadata.labels.as_ref(),
            spec: &config.spec,
        });
        if let Err(error) = networks::select(selector, configs) {
            result.warnings.push(format!("{FIELD}: {error}"));
        }
        result
    }
}

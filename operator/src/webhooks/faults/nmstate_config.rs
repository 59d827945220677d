//! Finds the faults of NMStateConfigs.

use assisted::infra_env::InfraEnvCreateParams;

use super::{CheckResult, FaultCheck};
use crate::crds::{NMStateConfig, NMStateConfigSpec};
use crate::networks::{self, NamedConfig};
use crate::object::ObjectKey;
use crate::webhooks::rules::FieldFault;
use crate::webhooks::rules::nmstate_config::{NamedSelector, field_of, interface_faults, shared_addresses};

impl FaultCheck {
    /// Checks the new or changed parts of an NMStateConfig: its network, and MAC addresses that other configs also
    /// have.
    pub(crate) async fn nmstate_config(
        &self,
        key: &ObjectKey,
        new: &NMStateConfig,
        old: Option<&NMStateConfig>,
    ) -> CheckResult {
        self.limited(async {
            let mut result = self.network(&new.spec, old.map(|old| &old.spec)).await;
            result.add(self.neighbours(key, new, old));
            result
        })
        .await
    }

    async fn network(&self, new: &NMStateConfigSpec, old: Option<&NMStateConfigSpec>) -> CheckResult {
        if old == Some(new) {
            return CheckResult::default();
        }
        let result = self.whole_network(new).await;
        match old {
            Some(old) if !result.faults.is_empty() => {
                let former = self.whole_network(old).await.faults;
                result.without_former(former)
            }
            _ => result,
        }
    }

    async fn whole_network(&self, spec: &NMStateConfigSpec) -> CheckResult {
        const FIELD: &str = "spec.config";
        let faults = interface_faults(spec);
        if !faults.is_empty() {
            return CheckResult { faults, warnings: Vec::new() };
        }
        let network = match networks::network(spec) {
            Ok(network) => network,
            Err(message) => {
                return CheckResult {
                    faults: vec![FieldFault::new(FIELD, message)],
                    ..CheckResult::default()
                };
            }
        };
        let params = InfraEnvCreateParams {
            static_network_config: Some(vec![network]),
            ..InfraEnvCreateParams::new(String::new(), inventory::Secret::default())
        };
        self.check_params(FIELD, params, field_of).await
    }

    fn neighbours(&self, key: &ObjectKey, new: &NMStateConfig, old: Option<&NMStateConfig>) -> CheckResult {
        let decides =
            |config: &NMStateConfig| (config.spec.interfaces.clone(), config.metadata.labels.clone());
        if old.is_some_and(|old| decides(old) == decides(new)) {
            return CheckResult::default();
        }
        let caches = &self.caches;
        if !caches.infra_envs.is_synced() || !caches.networks.is_synced() {
            let warning = "not compared with other NMStateConfigs: the service has just started".to_owned();
            return CheckResult { faults: Vec::new(), warnings: vec![warning] };
        }
        let infra_envs = caches.infra_envs.in_namespace(&key.namespace);
        let infra_envs = infra_envs.iter().filter(|(_, object)| object.metadata.deletion_timestamp.is_none());
        let selectors = infra_envs.map(|(key, object)| NamedSelector {
            infra_env: &key.name,
            selector: &object.spec.nm_state_config_label_selector,
        });
        let selectors: Vec<_> = selectors.collect();
        let configs = caches.networks.in_namespace(&key.namespace);
        let configs = configs.iter().filter(|(_, object)| object.metadata.deletion_timestamp.is_none());
        let others: Vec<_> = configs.map(|(key, object)| named(&key.name, object)).collect();
        let faults = |config| shared_addresses(named(&key.name, config), &others, &selectors);
        let former = old.map(faults).unwrap_or_default();
        CheckResult { faults: faults(new), warnings: Vec::new() }.without_former(former)
    }
}

fn named<'a>(name: &'a str, object: &'a NMStateConfig) -> NamedConfig<'a> {
    NamedConfig { name, labels: object.metadata.labels.as_ref(), spec: &object.spec }
}

//! Finds the faults that a reconciliation of an object would report, and the fields with these faults.

mod infra_env;
mod nmstate_config;
mod spec_parts;

use std::sync::Arc;
use std::time::Duration;

use assisted::infra_env::InfraEnvCreateParams;
use inventory::{Error, ErrorKind, Inventory};
use tokio::sync::Semaphore;

use super::rules::{self, FieldFault};
use crate::mapping::InfraEnvCaches;

/// Maximum number of concurrent checks. Further checks wait, because a check of a network needs CPU time.
const MAX_CHECKS: usize = 4;

/// Maximum duration of the check of one object. The API server waits for 10 s.
const MAX_TIME: Duration = Duration::from_secs(8);

/// A checker that finds the faults of objects. Clones share the limit on concurrent checks.
#[derive(Clone, Debug)]
pub(crate) struct FaultCheck {
    inventory: Inventory,
    caches: InfraEnvCaches,
    slots: Arc<Semaphore>,
}

/// The faults and warnings that a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckResult {
    /// Faults, which deny the request.
    pub(crate) faults: Vec<FieldFault>,
    /// Warnings, which do not deny the request.
    pub(crate) warnings: Vec<String>,
}

impl CheckResult {
    fn add(&mut self, other: Self) {
        self.faults.extend(other.faults);
        self.warnings.extend(other.warnings);
    }

    /// Converts faults that the previous state of the object already had into warnings.
    fn without_former(self, former: Vec<FieldFault>) -> Self {
        let (faults, known) = rules::divide(self.faults, former);
        let mut warnings = self.warnings;
        warnings.extend(known.iter().map(FieldFault::to_string));
        Self { faults, warnings }
    }
}

impl FaultCheck {
    pub(crate) fn new(inventory: Inventory, caches: InfraEnvCaches) -> Self {
        Self { inventory, caches, slots: Arc::new(Semaphore::new(MAX_CHECKS)) }
    }

    /// Runs a check with a time limit. A timeout results in a warning.
    async fn limited(&self, check: impl Future<Output = CheckResult>) -> CheckResult {
        let check = async {
            // The semaphore is never closed.
            let _slot = self.slots.acquire().await;
            check.await
        };
        tokio::time::timeout(MAX_TIME, check).await.unwrap_or_else(|_| CheckResult {
            faults: Vec::new(),
            warnings: vec!["the object was not checked: the service is busy".to_owned()],
        })
    }

    /// Checks the parameters of an infra-env. A fault without a more precise location is reported for `field`.
    async fn check_params(
        &self,
        field: &str,
        params: InfraEnvCreateParams,
        field_of: impl Fn(&str) -> String,
    ) -> CheckResult {
        let fault = |path: &str, message: &str| FieldFault::new(field_of(path), message);
        let error: Error = match self.inventory.check_infra_env_params(params).await {
            Ok(findings) => {
                let warnings = findings.iter().map(|it| fault(&it.path, &it.message).to_string());
                return CheckResult { faults: Vec::new(), warnings: warnings.collect() };
            }
            Err(error) => error,
        };
        if error.kind() != ErrorKind::Invalid {
            let warnings = vec![format!("{field}: not checked: {error}")];
            return CheckResult { faults: Vec::new(), warnings };
        }
        let faults = match error.findings() {
            [] => vec![FieldFault::new(field, error.reason().trim_end())],
            findings => findings.iter().map(|it| fault(&it.path, &it.message)).collect(),
        };
        CheckResult { faults, warnings: Vec::new() }
    }
}

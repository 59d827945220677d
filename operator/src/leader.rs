//! Leader election: decides which replica may write to the Kubernetes API.
//!
//! The leader holds two leases: the lease in the inventory's database, and the `Lease` object that the upstream service
//! also uses, so that Kindling and the upstream service never act on the same objects. A replica stops writing before
//! its leases can expire.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use inventory::service::Leadership as InventoryLeadership;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Resource as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::errors::RequestError;

/// Name of the `Lease` object, which the upstream service also uses.
pub const LEASE: &str = "77190dcb.agent-install.openshift.io";
/// Time after which the lease of a killed leader expires.
const LEASE_DURATION: Duration = Duration::from_secs(15);
/// Maximum time for which a leader may write, from the start of its last renewal.
const MAX_WRITING: Duration = Duration::from_secs(10);
/// Interval at which the leader renews the lease, and other replicas read it.
const INTERVAL: Duration = Duration::from_secs(3);
/// Maximum duration of one request.
const MAX_TIME: Duration = Duration::from_secs(3);

/// The leadership of this replica, which decides whether it may write. Clones share the state.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<Option<Instant>>);

impl Leadership {
    /// Returns `true` if this replica may write now.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Waits until this replica may write.
    pub(crate) async fn gained(&mut self) {
        let is_valid = |until: &Option<Instant>| until.is_some_and(|until| Instant::now() < until);
        if self.0.wait_for(is_valid).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this replica may no longer write.
    pub(crate) async fn lost(&mut self) {
        loop {
            let Some(until) = *self.0.borrow_and_update() else { return };
            if Instant::now() >= until {
                return;
            }
            let changed = tokio::time::timeout_at(until, self.0.changed()).await;
            if matches!(changed, Ok(Err(_))) {
                return;
            }
        }
    }
}

/// This replica's part in the leader election, which uses the `Lease` object.
pub(crate) struct Election {
    api: Api<Lease>,
    namespace: String,
    identity: String,
    until: watch::Sender<Option<Instant>>,
    /// The last seen content of the lease, and the time since which it is unchanged.
    seen: Option<(LeaseSpec, Instant)>,
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Election {
    /// Creates the election for a namespace. `identity` is the name of this replica.
    pub(crate) fn new(client: Client, namespace: &str, identity: String) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            identity,
            until: watch::Sender::new(None),
            seen: None,
        }
    }

    pub(crate) fn leadership(&self) -> Leadership {
        Leadership(self.until.subscribe())
    }

    /// Acquires and renews the lease while this replica is the leader of the inventory. Ends when `ended` is set or its
    /// sender is dropped, and then releases the lease.
    pub(crate) async fn run(mut self, mut inventory: InventoryLeadership, mut ended: watch::Receiver<bool>) {
        let mut is_failing = false;
        loop {
            if !inventory.is_leader() {
                self.release().await;
                tokio::select! {
                    _ = inventory.acquired() => {}
                    _ = ended.wait_for(|is_ended| *is_ended) => break,
                }
            }
            // The replica must stop writing in time, even if the API server does not respond.
            let result = tokio::select! {
                result = self.hold() => result,
                () = inventory.lost() => continue,
                _ = ended.wait_for(|is_ended| *is_ended) => break,
            };
            match result {
                Ok(()) => is_failing = false,
                Err(_) if is_failing => {}
                Err(error) => {
                    is_failing = true;
                    let error = &error as &dyn Error;
                    tracing::warn!(error, "could not renew the lease of the operator, will retry");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = inventory.lost() => {}
                _ = ended.wait_for(|is_ended| *is_ended) => break,
            }
        }
        self.release().await;
    }

    /// Acquires or renews the lease, unless another replica holds it.
    async fn hold(&mut self) -> Result<(), RequestError> {
        let begin = Instant::now();
        let lease = self.request(self.api.get_opt(LEASE)).await?;
        let Some(lease) = lease else {
            let (api, lease) = (self.api.clone(), self.new_lease());
            self.request(api.create(&PostParams::default(), &lease)).await?;
            self.confirm(begin);
            return Ok(());
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let is_free = holder.is_empty();
        let is_own = holder == self.identity;
        if self.seen.as_ref().is_none_or(|(last_spec, _)| *last_spec != spec) {
            self.seen = Some((spec.clone(), begin));
        }
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.map_or(LEASE_DURATION, Duration::from_secs);
        let is_expired =
            self.seen.as_ref().is_some_and(|(_, since)| begin.duration_since(*since) >= duration);
        if !is_own && !is_free && !is_expired {
            self.until.send_replace(None);
            return Ok(());
        }
        let patch = self.renewal(&lease, is_own);
        let api = self.api.clone();
        let result = self.request(api.patch(LEASE, &PatchParams::default(), &Patch::Merge(&patch))).await;
        match result {
            Ok(_) => {
                self.confirm(begin);
                Ok(())
            }
            // The replica's own lease stays valid until it expires, even if another client has changed the object.
            Err(RequestError::Conflict) if is_own => Ok(()),
            // Another replica has acquired the lease.
            Err(RequestError::Conflict) => {
                self.until.send_replace(None);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Releases the lease if this replica holds it, so that another replica can take over immediately.
    pub(crate) async fn release(&mut self) {
        if self.until.send_replace(None).is_none() {
            return;
        }
        let Ok(Some(lease)) = self.request(self.api.get_opt(LEASE)).await else { return };
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        if holder != Some(&self.identity) {
            return;
        }
        let patch = json!({
            "metadata": {"resourceVersion": lease.meta().resource_version},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1},
        });
        let api = self.api.clone();
        // If this request fails, the lease expires later.
        let _ = self.request(api.patch(LEASE, &PatchParams::default(), &Patch::Merge(&patch))).await;
    }

    fn confirm(&self, begin: Instant) {
        if self.until.send_replace(Some(begin + MAX_WRITING)).is_none() {
            tracing::info!("this replica runs the controllers of custom resources now");
        }
    }

    fn renewal(&self, lease: &Lease, is_own: bool) -> Value {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        let duration = LEASE_DURATION.as_secs();
        let spec = if is_own {
            json!({"holderIdentity": self.identity, "leaseDurationSeconds": duration, "renewTime": now})
        } else {
            let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
            json!({"holderIdentity": self.identity, "leaseDurationSeconds": duration, "renewTime": now,
                "acquireTime": now, "leaseTransitions": transitions.saturating_add(1)})
        };
        json!({"metadata": {"resourceVersion": lease.meta().resource_version}, "spec": spec})
    }

    fn new_lease(&self) -> Lease {
        let metadata = ObjectMeta {
            name: Some(LEASE.to_owned()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            ..LeaseSpec::default()
        };
        Lease { metadata, spec: Some(spec) }
    }

    async fn request<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, RequestError> {
        match tokio::time::timeout(MAX_TIME, request).await {
            Ok(result) => result.map_err(RequestError::from),
            Err(_) => Err(RequestError::TimedOut { seconds: MAX_TIME.as_secs() }),
        }
    }
}

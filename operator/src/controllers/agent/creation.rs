//! Creates the Agent for a new host.

use std::collections::BTreeMap;
use std::sync::Arc;

use inventory::service::HostUrls;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource as _;
use kube::api::ObjectMeta;

use super::{AgentController, OwnedHost};
use crate::cached_agent::CachedAgent;
use crate::crds::names::{
    AGENT_FINALIZER, AUTO_APPROVED_ANNOTATION, INFRA_ENV_LABEL, INHERITED_NODE_LABELS_ANNOTATION, LABEL_TRUE,
    PROPAGATE_NODE_LABELS_ANNOTATION,
};
use crate::crds::{Agent, AgentSpec, InfraEnv};
use crate::errors::ReconcileError;
use crate::object::ObjectKey;
use crate::projection::SpecSync;
use crate::projection::agent::{AppliedSpec, view};

impl AgentController {
    /// Creates the Agent of a host, without its status.
    pub(super) async fn create(
        &self,
        key: &ObjectKey,
        host: &OwnedHost,
    ) -> Result<Arc<CachedAgent>, ReconcileError> {
        let now = self.inventory.clock().now();
        let spec = AppliedSpec { is_approved: false, sync: SpecSync::Synced };
        let view = view(&host.details, &HostUrls::default(), &spec, Vec::new(), now)?;
        let (mut meta, spec) = initial(&host.infra_env);
        meta.labels.get_or_insert_default().extend(view.labels);
        meta.annotations.get_or_insert_default().extend(view.annotations);
        meta.namespace = Some(key.namespace.clone());
        meta.finalizers = Some(vec![AGENT_FINALIZER.to_owned()]);
        let agent =
            Agent { metadata: ObjectMeta { name: Some(key.name.clone()), ..meta }, spec, status: None };
        let created = self.writer.create(&self.agents, &agent).await?;
        Ok(self.cached(key, created))
    }
}

/// Returns the metadata and spec that an InfraEnv assigns to its new Agents: labels, annotations, owner and spec.
pub(super) fn initial(infra_env: &InfraEnv) -> (ObjectMeta, AgentSpec) {
    let name = infra_env.metadata.name.clone().unwrap_or_default();
    let mut labels = BTreeMap::from([(INFRA_ENV_LABEL.to_owned(), name)]);
    labels.extend(infra_env.spec.agent_labels.clone());
    let node_labels = node_labels(infra_env);
    let mut annotations = BTreeMap::new();
    if !node_labels.is_empty() {
        let keys: Vec<&str> = node_labels.keys().map(String::as_str).collect();
        annotations.insert(INHERITED_NODE_LABELS_ANNOTATION.to_owned(), keys.join(","));
    }
    let approved = is_auto_approving(infra_env);
    if approved {
        annotations.insert(AUTO_APPROVED_ANNOTATION.to_owned(), LABEL_TRUE.to_owned());
    }
    let meta = ObjectMeta {
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![owner_reference(infra_env)]),
        ..ObjectMeta::default()
    };
    (meta, AgentSpec { approved, node_labels, ..AgentSpec::default() })
}

/// Returns `true` if the InfraEnv approves its Agents automatically.
pub(super) fn is_auto_approving(infra_env: &InfraEnv) -> bool {
    infra_env.spec.agent_approval.as_ref().is_some_and(|approval| approval.auto_approve)
}

/// Returns the owner reference of an Agent. The InfraEnv owns the Agent but is not its controller, and the Agent does
/// not block the deletion of the InfraEnv.
pub(super) fn owner_reference(infra_env: &InfraEnv) -> OwnerReference {
    OwnerReference {
        api_version: InfraEnv::api_version(&()).into_owned(),
        kind: InfraEnv::kind(&()).into_owned(),
        name: infra_env.metadata.name.clone().unwrap_or_default(),
        uid: infra_env.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// Returns the labels that the InfraEnv passes on to the nodes, as its annotation requests.
fn node_labels(infra_env: &InfraEnv) -> BTreeMap<String, String> {
    let annotations = infra_env.metadata.annotations.as_ref();
    let keys = annotations.and_then(|annotations| annotations.get(PROPAGATE_NODE_LABELS_ANNOTATION));
    let keys = keys.into_iter().flat_map(|keys| keys.split(',')).map(str::trim);
    let labels = infra_env.metadata.labels.as_ref();
    keys.filter_map(|key| labels?.get_key_value(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

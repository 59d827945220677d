//! The permissions of the kustomization: one for each API group, resource and verb of a rule.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::hub::AuditEntry;

const MANIFESTS: [&str; 3] = [
    include_str!("../../../packaging/kubernetes-hub/cluster-role.yaml"),
    include_str!("../../../packaging/kubernetes-hub/role.yaml"),
    include_str!("../../../packaging/kubernetes-hub/webhook-rights.yaml"),
];
/// Suffix of the names of ValidatingWebhookConfigurations.
const CONFIGURATION: &str = ".admission.agentinstall.openshift.io";

/// The scope in which a role applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// All namespaces with custom resources.
    Resources,
    /// Objects without a namespace.
    Cluster,
    /// The namespace of the lease.
    Lease,
}

/// The right to use one verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permission {
    /// Name of the role that grants the permission.
    pub(crate) role: String,
    pub(crate) scope: Scope,
    pub(crate) group: String,
    /// Plural name of the kind, with the subresource if there is one: `agents/status`.
    pub(crate) resource: String,
    pub(crate) verb: String,
    /// Names of the objects. Empty means all objects.
    pub(crate) names: Vec<String>,
}

impl Permission {
    /// Returns all permissions in the kustomization.
    pub(crate) fn shipped() -> Vec<Self> {
        let documents = MANIFESTS.iter().flat_map(|text| serde_yaml_ng::Deserializer::from_str(text));
        let documents = documents.map(|document| Value::deserialize(document).unwrap());
        documents.flat_map(|document| Self::of_role(&document)).collect()
    }

    fn of_role(document: &Value) -> Vec<Self> {
        let role = document["metadata"]["name"].as_str().unwrap().to_owned();
        let scope = match (document["kind"].as_str().unwrap(), role.as_str()) {
            ("ClusterRole", "kindling") => Scope::Resources,
            ("ClusterRole", _) => Scope::Cluster,
            ("Role", _) => Scope::Lease,
            _ => return Vec::new(),
        };
        let mut permissions = Vec::new();
        for rule in document["rules"].as_array().unwrap() {
            for (group, resource, verb) in members(rule) {
                let (role, names) = (role.clone(), texts(&rule["resourceNames"]));
                permissions.push(Self { role, scope, group, resource, verb, names });
            }
        }
        permissions
    }

    /// Returns the permission for webhook configurations whose names end with `suffix`.
    pub(crate) fn with_suffix(mut self, suffix: &str) -> Self {
        for name in self.names.iter_mut().filter(|name| name.ends_with(CONFIGURATION)) {
            name.push_str(suffix);
        }
        self
    }

    /// Returns a rule for a role that grants only this permission.
    pub(crate) fn rule(&self) -> Value {
        let mut rule = json!({"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]});
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }

    /// Returns `true` if the request needs this permission.
    pub(crate) fn covers(&self, entry: &AuditEntry, lease_namespace: &str) -> bool {
        let is_in_scope = match self.scope {
            Scope::Resources => true,
            Scope::Cluster => entry.namespace.is_empty(),
            Scope::Lease => entry.namespace == lease_namespace,
        };
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        is_in_scope
            && self.group == entry.group
            && (resource, subresource) == (&entry.resource, &entry.subresource)
            && self.verb == entry.verb
            && (self.names.is_empty() || self.names.contains(&entry.name))
    }

    /// Returns the permission that refused requests lack if this permission is missing.
    ///
    /// An admission plugin of OpenShift allows a user to change the owners of an object only if the user can delete the
    /// object.
    pub(crate) fn refused_without(&self) -> Self {
        let mut permission = self.clone();
        if (self.resource.as_str(), self.verb.as_str()) == ("agents", "delete") {
            "patch".clone_into(&mut permission.verb);
        }
        permission
    }
}

/// Returns all combinations of group, resource and verb in a rule.
fn members(rule: &Value) -> Vec<(String, String, String)> {
    let mut members = Vec::new();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            for verb in texts(&rule["verbs"]) {
                members.push((group.clone(), resource.clone(), verb));
            }
        }
    }
    members
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

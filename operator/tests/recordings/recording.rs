//! The format of a recording.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Requests of a client, and the changes that it saw.
#[derive(Debug, Deserialize)]
pub(crate) struct Recording {
    /// The number of writes to the Kubernetes API that the recorded service needed.
    pub(crate) writes: usize,
    pub(crate) timeline: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Entry {
    Action(Action),
    Machines { machines: MachineStep },
    Gone { gone: String },
    Change(Change),
}

/// A request of a client and its response.
#[derive(Debug, Deserialize)]
pub(crate) struct Action {
    /// Verb, kind and name.
    pub(crate) action: String,
    pub(crate) spec: Option<Value>,
    /// A merge patch of the spec.
    pub(crate) patch: Option<Value>,
    pub(crate) status: u16,
    pub(crate) error: Option<String>,
}

/// What the machines of the scenario do.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MachineStep {
    /// Three machines boot and register.
    Boot,
    /// They report their hardware and their clocks.
    Report,
    /// They poll and report the same again.
    Poll,
    /// Their Agents are deleted.
    Gone,
}

/// The new values of an object. The names of hosts and namespaces are replaced by words such as `<host-1>`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Change {
    /// Kind and name.
    pub(crate) of: String,
    pub(crate) labels: BTreeMap<String, Option<String>>,
    pub(crate) annotations: BTreeMap<String, Option<String>>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owners: Vec<(String, String)>,
    /// Status, reason and message by type.
    pub(crate) conditions: BTreeMap<String, (String, String, String)>,
    pub(crate) status: BTreeMap<String, Value>,
}

/// The values of fields. A field has the name of its object, such as `InfraEnv one condition ImageCreated`.
pub(crate) type Fields = BTreeMap<String, String>;

/// The value of a field that was removed.
pub(crate) const REMOVED: &str = "removed";

impl Recording {
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap()
    }
}

impl Change {
    pub(crate) fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        let object = &self.of;
        let mut add = |key: String, value: String| fields.insert(format!("{object} {key}"), value);
        for (member, texts) in [("label", &self.labels), ("annotation", &self.annotations)] {
            for (key, text) in texts {
                add(format!("{member} {key}"), text.clone().unwrap_or_else(|| REMOVED.to_owned()));
            }
        }
        if !self.finalizers.is_empty() {
            add("finalizers".to_owned(), self.finalizers.join(", "));
        }
        for (kind, name) in &self.owners {
            add("owner".to_owned(), format!("{kind} {name}"));
        }
        for (type_, (status, reason, message)) in &self.conditions {
            add(format!("condition {type_}"), format!("{status} {reason}: {message}"));
        }
        for (member, value) in &self.status {
            add_leaves(&mut add, &format!("status {member}"), value);
        }
        fields
    }
}

/// Adds the values of a member of a status. Lists are one value.
fn add_leaves(add: &mut impl FnMut(String, String) -> Option<String>, path: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                add_leaves(add, &format!("{path}.{name}"), member);
            }
        }
        Value::String(text) => {
            add(path.to_owned(), text.clone());
        }
        other => {
            add(path.to_owned(), other.to_string());
        }
    }
}

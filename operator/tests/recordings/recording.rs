//! The file format of a recording.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The requests of a client, and the changes that the client saw.
#[derive(Debug, Deserialize)]
pub(crate) struct Recording {
    /// Number of writes to the Kubernetes API that upstream's service made during the recording.
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

/// A request of the client, and its response.
#[derive(Debug, Deserialize)]
pub(crate) struct Action {
    /// Verb, kind and name of the object.
    pub(crate) action: String,
    pub(crate) spec: Option<Value>,
    /// Merge patch of the spec.
    pub(crate) patch: Option<Value>,
    pub(crate) status: u16,
    pub(crate) error: Option<String>,
}

/// An action of all machines in the scenario.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MachineStep {
    /// Three machines boot and register.
    Boot,
    /// The machines report their hardware and their clocks.
    Report,
    /// The machines poll, and send the same reports again.
    Poll,
    /// The Agents of the machines are deleted.
    Gone,
}

/// The new values of one object. Placeholder words such as `<host-1>` replace the names of hosts and namespaces.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Change {
    /// Kind and name of the object.
    pub(crate) of: String,
    pub(crate) labels: BTreeMap<String, Option<String>>,
    pub(crate) annotations: BTreeMap<String, Option<String>>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owners: Vec<(String, String)>,
    /// Status, reason and message of each condition, by type.
    pub(crate) conditions: BTreeMap<String, (String, String, String)>,
    pub(crate) status: BTreeMap<String, Value>,
}

/// The values of fields. The name of a field begins with its object, such as `InfraEnv one condition ImageCreated`.
pub(crate) type Fields = BTreeMap<String, String>;

/// The value that represents a removed field.
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

/// Adds the values of a status member. A list counts as one value.
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

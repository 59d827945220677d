//! A client that watches the resources of a namespace, and records the values that it sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures_util::TryStreamExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::recording::{Change, Fields, REMOVED};
use crate::words::{Words, line};

/// Minimum length of an annotation for which only the presence is compared.
const LONG_TEXT: usize = 300;

/// Returns the API group, version and plural name of a kind.
pub(crate) fn kind(name: &str) -> (&'static str, &'static str, &'static str) {
    const GROUP: &str = "agent-install.openshift.io";
    match name {
        "InfraEnv" => (GROUP, "v1beta1", "infraenvs"),
        "Agent" => (GROUP, "v1beta1", "agents"),
        "AgentClassification" => (GROUP, "v1beta1", "agentclassifications"),
        "Secret" => ("", "v1", "secrets"),
        other => panic!("{other}"),
    }
}

/// The current objects, and all values that objects have had so far.
#[derive(Debug, Default)]
struct Seen {
    objects: BTreeMap<String, Fields>,
    lines: BTreeSet<String>,
}

/// A client that watches a namespace. Its watches end when it is dropped.
pub(crate) struct Observer {
    seen: Arc<Mutex<Seen>>,
    _watches: JoinSet<()>,
}

impl Observer {
    pub(crate) fn start(client: &Client, namespace: &str, words: &Words) -> Self {
        let record = Arc::<Mutex<Seen>>::default();
        let mut watches = JoinSet::new();
        for name in ["InfraEnv", "Agent", "AgentClassification", "Secret"] {
            let (group, version, plural) = kind(name);
            let gvk = GroupVersionKind::gvk(group, version, name);
            let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
            let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
            watches.spawn(follow(name, api, Arc::clone(&record), words.clone()));
        }
        Self { seen: record, _watches: watches }
    }

    /// Returns the current value of a field.
    pub(crate) fn value(&self, field: &str) -> Option<String> {
        let record = self.seen.lock().unwrap();
        record.objects.values().find_map(|fields| fields.get(field).cloned())
    }

    /// Returns `true` if an object exists. `object` has the form `InfraEnv one`.
    pub(crate) fn exists(&self, object: &str) -> bool {
        self.seen.lock().unwrap().objects.contains_key(object)
    }

    /// Returns all values that the objects have had so far.
    pub(crate) fn lines(&self) -> BTreeSet<String> {
        self.seen.lock().unwrap().lines.clone()
    }
}

async fn follow(kind: &'static str, api: Api<DynamicObject>, record: Arc<Mutex<Seen>>, words: Words) {
    let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
    loop {
        match events.try_next().await {
            Ok(Some(Event::Apply(object) | Event::InitApply(object))) => {
                record.lock().unwrap().apply(change(kind, &object, &words));
            }
            Ok(Some(Event::Delete(object))) => {
                let name = change(kind, &object, &words).of;
                record.lock().unwrap().objects.remove(&name);
            }
            // Errors need no handling, because the watcher retries.
            Ok(Some(Event::Init | Event::InitDone)) | Err(_) => {}
            Ok(None) => return,
        }
    }
}

impl Seen {
    fn apply(&mut self, change: Change) {
        let fields = change.fields();
        let before = self.objects.insert(change.of, fields.clone()).unwrap_or_default();
        for (field, value) in &fields {
            if before.get(field) != Some(value) {
                self.lines.insert(line(field, value));
            }
        }
        // Only removed labels and annotations are recorded. Recordings do not contain removed members of a status.
        let is_recorded = |field: &&String| [" label ", " annotation "].iter().any(|it| field.contains(it));
        for field in before.keys().filter(|field| !fields.contains_key(*field)).filter(is_recorded) {
            self.lines.insert(line(field, REMOVED));
        }
    }
}

/// Returns the compared values of an object.
fn change(kind: &str, object: &DynamicObject, words: &Words) -> Change {
    let text = words.replace(&serde_json::to_string(object).unwrap());
    let object: Value = serde_json::from_str(&text).unwrap();
    let (meta, status) = (&object["metadata"], &object["status"]);
    let texts = |member: &str| -> BTreeMap<String, Option<String>> {
        let members = meta[member].as_object().into_iter().flatten();
        members.map(|(key, value)| (key.clone(), value.as_str().map(cut))).collect()
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = list(&status["conditions"])
        .into_iter()
        .map(|it| (text(&it["type"]), (text(&it["status"]), text(&it["reason"]), text(&it["message"]))));
    let is_compared = |name: &str| !["conditions", "inventory", "validationsInfo"].contains(&name);
    let members = status.as_object().into_iter().flatten().filter(|(name, _)| is_compared(name));
    Change {
        of: format!("{kind} {}", text(&meta["name"])),
        labels: texts("labels"),
        annotations: texts("annotations"),
        finalizers: list(&meta["finalizers"]).iter().map(text).collect(),
        owners: list(&meta["ownerReferences"])
            .iter()
            .map(|it| (text(&it["kind"]), text(&it["name"])))
            .collect(),
        conditions: conditions.collect(),
        status: members.map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

fn cut(text: &str) -> String {
    if text.len() < LONG_TEXT { text.to_owned() } else { "<text>".to_owned() }
}

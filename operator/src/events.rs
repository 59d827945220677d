//! Creates Kubernetes events about objects, which `kubectl describe` shows.
//!
//! The name of an event is derived from its content. So while the API server stores an event, it refuses any event with
//! the same content, even from another replica.

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use kube::api::ObjectMeta;
use sha2::{Digest as _, Sha256};

use crate::writer::{NamespacedKind, Writer};

/// The name of the reporting controller.
const REPORTER: &str = "kindling";
/// Maximum length of an event's message, in bytes. The API server refuses longer messages.
const MAX_NOTE: usize = 1024;
/// Maximum length of the reporting replica's name, in bytes.
const MAX_INSTANCE: usize = 128;
/// Maximum length of the object name within the name of an event. The name of an event is limited to 253 bytes.
const MAX_OBJECT_NAME: usize = 200;

/// A recorder of Kubernetes events about objects. It only logs an event that cannot be written, because conditions
/// report the same faults.
#[derive(Clone, Debug)]
pub(crate) struct EventRecorder {
    writer: Writer,
    instance: String,
}

/// The content of a warning event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The failed action as one word.
    pub(crate) action: &'static str,
    /// The cause of the warning, as one word.
    pub(crate) reason: &'static str,
    /// The cause of the warning, as a message for users.
    pub(crate) note: String,
}

impl EventRecorder {
    /// Returns a recorder for the replica named `instance`.
    pub(crate) fn new(writer: Writer, instance: &str) -> Self {
        Self { writer, instance: cut(instance, MAX_INSTANCE).to_owned() }
    }

    /// Creates a warning event about an object, unless the API server still stores the same warning.
    pub(crate) async fn warn<K: NamespacedKind>(&self, object: &K, warning: Warning) {
        let event = self.event(object, warning);
        if let Err(error) = self.writer.create_if_absent(&event).await {
            let error = &error as &dyn std::error::Error;
            let kind = K::kind(&());
            let name = object.meta().name.as_deref().unwrap_or_default();
            tracing::warn!(error, %kind, name, "could not write an event");
        }
    }

    fn event<K: Resource<DynamicType = ()>>(&self, object: &K, warning: Warning) -> Event {
        let regarding = object.object_ref(&());
        let Warning { action, reason, note } = warning;
        let name = [&regarding.uid, &regarding.name].map(|it| it.as_deref().unwrap_or_default());
        let metadata = ObjectMeta {
            name: Some(event_name(name, (reason, &note))),
            namespace: regarding.namespace.clone(),
            ..ObjectMeta::default()
        };
        Event {
            metadata,
            action: Some(action.to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            note: Some(shortened(note)),
            reason: Some(reason.to_owned()),
            regarding: Some(regarding),
            reporting_controller: Some(REPORTER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some("Warning".to_owned()),
            ..Event::default()
        }
    }
}

/// Returns the name of an event. It begins with the name of the object.
fn event_name([uid, name]: [&str; 2], (reason, note): (&str, &str)) -> String {
    let digest = Sha256::digest([uid, reason, note].join("\0"));
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    // Each label of a DNS name must end with a letter or digit.
    let name = cut(name, MAX_OBJECT_NAME).trim_end_matches(['.', '-']);
    format!("{name}.{hex}")
}

fn shortened(note: String) -> String {
    const ELLIPSIS: &str = " ...";
    if note.len() <= MAX_NOTE {
        return note;
    }
    format!("{}{ELLIPSIS}", cut(&note, MAX_NOTE - ELLIPSIS.len()))
}

/// Truncates a text to `max` bytes.
fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_depends_only_on_the_content() {
        let name = event_name(["uid", "a"], ("Reason", "note"));
        assert_eq!(name, event_name(["uid", "a"], ("Reason", "note")));
        for other in [
            event_name(["other", "a"], ("Reason", "note")),
            event_name(["uid", "a"], ("Other", "note")),
            event_name(["uid", "a"], ("Reason", "other")),
        ] {
            assert_ne!(name, other);
            assert!(other.starts_with("a.") && other.len() == 18, "{other}");
        }
    }

    #[test]
    fn name_of_an_object_with_a_long_name_is_valid() {
        let long = format!("{}-{}", "a".repeat(MAX_OBJECT_NAME - 1), "b".repeat(50));
        let name = event_name(["uid", &long], ("Reason", "note"));
        assert!(name.starts_with(&format!("{}.", "a".repeat(MAX_OBJECT_NAME - 1))), "{name}");
        assert!(name.len() <= 253);
    }

    #[test]
    fn long_note_is_truncated_between_characters() {
        let note = shortened("ä".repeat(MAX_NOTE));
        assert!(note.len() <= MAX_NOTE && note.len() > MAX_NOTE - 8 && note.ends_with("ä ..."), "{note}");
        assert_eq!(shortened("short".to_owned()), "short");
    }
}

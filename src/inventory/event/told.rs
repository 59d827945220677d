//! Events that others tell.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Category, Event, Severity};
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::request::{RequestId, request_bodies};
use crate::inventory::time::Millis;

/// What a message has at most, in characters. An event with a longer one is not kept.
const MOST_MESSAGE: usize = 4096;

/// What a name has at most, in characters.
const MOST_NAME: usize = 255;

/// What the rest has at most, in bytes.
const MOST_PROPS: usize = 64 << 10;

/// An event that somebody tells.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = trigger_event_params)]
pub struct ToldEvent {
    /// What kind of thing; stable.
    pub name: Option<String>,
    /// To which cluster.
    pub cluster_id: Option<ClusterId>,
    /// To which host.
    pub host_id: Option<HostId>,
    /// To which infra-env.
    pub infra_env_id: Option<InfraEnvId>,
    /// How bad it is.
    pub severity: Severity,
    /// For whom.
    pub category: Option<Category>,
    /// In words.
    pub message: String,
    /// When, by the clock of who tells it; the clock here is what counts.
    pub event_time: Millis,
    /// In answer to which request, by who tells it; what counts is the request that tells it.
    pub request_id: Option<Uuid>,
    /// More: an object, or a list of names and values in turn, as JSON in a string.
    pub props: Option<String>,
}

request_bodies! {
    ToldEvent: "triggerEventParams";
}

impl ToldEvent {
    /// The event as it is kept. Nothing if it is too long to be.
    pub(super) fn into_event(self, RequestId(request): RequestId) -> Option<Event> {
        let name = self.name.unwrap_or_default();
        if self.message.chars().count() > MOST_MESSAGE || name.chars().count() > MOST_NAME {
            return None;
        }
        let event = Event::now(&name, self.severity, self.message).in_answer_to(request);
        Some(Event {
            category: self.category.unwrap_or_default(),
            cluster: self.cluster_id,
            host: self.host_id,
            infra_env: self.infra_env_id,
            props: self.props.as_deref().and_then(read_props),
            ..event
        })
    }
}

/// What more is told, as an object. Nothing if it is neither an object nor a list of names and values.
fn read_props(text: &str) -> Option<String> {
    if text.len() > MOST_PROPS {
        return None;
    }
    let object = match serde_json::from_str(text).ok()? {
        Value::Object(object) => object,
        Value::Array(list) => pairs(list)?,
        _ => return None,
    };
    Some(Value::Object(object).to_string())
}

fn pairs(list: Vec<Value>) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    let mut list = list.into_iter();
    while let Some(name) = list.next() {
        let Value::String(name) = name else { return None };
        object.insert(name, list.next()?);
    }
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn props_are_an_object_or_become_one() {
        assert_eq!(read_props(r#"{"a": 1}"#).unwrap(), r#"{"a":1}"#);
        assert_eq!(read_props(r#"["a", 1, "b", [2]]"#).unwrap(), r#"{"a":1,"b":[2]}"#);
        assert_eq!(read_props("[]").unwrap(), "{}");
        for text in ["", "1", r#""a""#, r#"["a"]"#, "[1, 2]", "{"] {
            assert_eq!(read_props(text), None, "{text}");
        }
        let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(MOST_PROPS));
        assert_eq!(read_props(&long), None);
    }
}

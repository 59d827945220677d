//! Stores the events that agents and controllers report.

use assisted::event::ReportedEvent;
use serde_json::{Map, Value};

use crate::Inventory;
use crate::error::Error;
use crate::event::Event;
use crate::journal::Journal;
use crate::request_id::RequestId;

/// Maximum length of an event message, in characters.
const MAX_MESSAGE: usize = 4096;

/// Maximum length of an event name, in characters.
const MAX_NAME: usize = 255;

/// Maximum length of `props`, in bytes.
const MAX_PROPS: usize = 64 << 10;

impl Inventory {
    /// Stores an event that a client reports. An event with a text that is too long is dropped, because the client
    /// could not handle an error.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn report_event(
        &self,
        reported: ReportedEvent,
        request: RequestId,
    ) -> Result<(), Error> {
        if let Some(event) = stored_event(reported, &self.journal(Some(request))) {
            self.records().add_event(event).await?;
        }
        Ok(())
    }
}

/// Converts a reported event for storage. Returns `None` if the message or the name is too long.
fn stored_event(reported: ReportedEvent, journal: &Journal) -> Option<Event> {
    let name = reported.name.unwrap_or_default();
    if reported.message.chars().count() > MAX_MESSAGE || name.chars().count() > MAX_NAME {
        return None;
    }
    let event = journal.event(&name, reported.severity, reported.message);
    Some(Event {
        category: reported.category.unwrap_or_default(),
        cluster: reported.cluster_id,
        host: reported.host_id,
        infra_env: reported.infra_env_id,
        props: reported.props.as_deref().and_then(read_props),
        ..event
    })
}

/// Parses `props` into a JSON object. Returns `None` if the text is neither an object nor a list of names and values.
fn read_props(text: &str) -> Option<String> {
    if text.len() > MAX_PROPS {
        return None;
    }
    let object = match serde_json::from_str(text).ok()? {
        Value::Object(object) => object,
        Value::Array(list) => object_from_pairs(list)?,
        _ => return None,
    };
    Some(Value::Object(object).to_string())
}

fn object_from_pairs(list: Vec<Value>) -> Option<Map<String, Value>> {
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
    fn props_are_normalized_to_an_object() {
        assert_eq!(read_props(r#"{"a": 1}"#).unwrap(), r#"{"a":1}"#);
        assert_eq!(read_props(r#"["a", 1, "b", [2]]"#).unwrap(), r#"{"a":1,"b":[2]}"#);
        assert_eq!(read_props("[]").unwrap(), "{}");
        for text in ["", "1", r#""a""#, r#"["a"]"#, "[1, 2]", "{"] {
            assert_eq!(read_props(text), None, "{text}");
        }
        let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(MAX_PROPS));
        assert_eq!(read_props(&long), None);
    }
}

//! Checks and converts the types of function arguments.

use std::sync::Arc;

use super::value::{Stop, Value};

/// Formats a value for an error message.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        // The message would show only the beginning of a large value, so it shows the type instead.
        value if value.weight() > 1000 => value.type_name().to_owned(),
        value => format!("{} ({})", value.type_name(), value.to_json().chars().take(30).collect::<String>()),
    }
}

pub(super) fn not_applicable(name: &str, input: &Value) -> Stop {
    Stop::error(format!("{name} cannot be applied to: {}", described(input)))
}

pub(super) fn number(value: &Value) -> Result<f64, Stop> {
    value.as_number().ok_or_else(|| Stop::error(format!("expected a number but got: {}", described(value))))
}

pub(super) fn text(value: &Value) -> Result<Arc<str>, Stop> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        value => Err(Stop::error(format!("expected a string but got: {}", described(value)))),
    }
}

pub(super) fn array<'v>(value: &'v Value, name: &str) -> Result<&'v [Value], Stop> {
    match value {
        Value::Array(array) => Ok(&array.items),
        value => Err(not_applicable(name, value)),
    }
}

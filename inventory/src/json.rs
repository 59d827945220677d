//! Conversion of records and responses into JSON. A value that cannot be converted is an internal error.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;

/// Returns a value as JSON.
///
/// # Errors
///
/// Returns an error if the value cannot be written as JSON.
pub fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    append_json(&mut text, value)?;
    Ok(text)
}

/// Appends a value to a JSON text.
///
/// # Errors
///
/// Returns an error if the value cannot be written as JSON. The text may then end with an incomplete value.
pub(crate) fn append_json(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(text, value)
        .map_err(|error| Error::broken(format_args!("a response cannot be written as JSON: {error}")))
}

/// Returns a value as JSON text, for a string field of a record or of a response. `what` names the field.
///
/// # Errors
///
/// Returns an error if the value cannot be written as JSON.
pub fn to_json_text(what: &str, value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::broken(format_args!("{what} cannot be written as JSON: {error}")))
}

/// Returns a value as a JSON value. `what` names the value in errors.
pub(crate) fn to_json_value(what: &str, value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value)
        .map_err(|error| Error::broken(format_args!("{what} cannot be written as JSON: {error}")))
}

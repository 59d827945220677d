//! Implements the built-in functions for strings.

use std::sync::Arc;

use super::arguments::{described, text};
use super::value::{Limit, Stop, Value};

pub(super) fn split(text: &str, separator: &str) -> Result<Value, Stop> {
    super::value::check_characters(text)?;
    let parts: Result<Vec<_>, _> = if text.is_empty() {
        Ok(Vec::new())
    } else if separator.is_empty() {
        text.chars().map(|c| Value::text(c.to_string())).collect()
    } else {
        text.split(separator).map(Value::text).collect()
    };
    Value::array(parts?)
}

pub(super) fn join(items: &Value, separator: &Value) -> Result<Value, Stop> {
    let Value::Array(array) = items else {
        return Err(Stop::error(format!("cannot iterate over: {}", described(items))));
    };
    let separator = text(separator)?;
    let mut joined = String::new();
    for (i, item) in array.items.iter().enumerate() {
        if i > 0 {
            joined.push_str(&separator);
        }
        match item {
            Value::Null => {}
            Value::Text(item) => joined.push_str(item),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => joined.push_str(&item.to_json()),
            item => return Err(Stop::error(format!("cannot join: {}", described(item)))),
        }
        super::value::within_weight(super::value::bytes_weight(joined.len()))?;
    }
    Value::text(joined)
}

pub(super) fn explode(input: &Value) -> Result<Value, Stop> {
    let text = text(input)?;
    super::value::check_characters(&text)?;
    Value::array(text.chars().map(|c| Value::Int(u32::from(c).into())).collect())
}

pub(super) fn implode(input: &Value) -> Result<Value, Stop> {
    let error = || Stop::error(format!("implode cannot be applied to: {}", described(input)));
    let Value::Array(array) = input else {
        return Err(error());
    };
    let characters = array.items.iter().map(|item| {
        let code = item.as_int().and_then(|code| u32::try_from(code).ok()).ok_or_else(error)?;
        char::from_u32(code).ok_or_else(error)
    });
    Value::text(characters.collect::<Result<String, _>>()?)
}

/// Returns the character offsets at which `part` occurs in `text`.
pub(super) fn indices(text: &str, part: &str) -> Result<Vec<Value>, Stop> {
    if part.is_empty() {
        return Ok(Vec::new());
    }
    super::value::check_characters(text)?;
    let mut positions = Vec::new();
    for (position, (start, _)) in text.char_indices().enumerate() {
        if text.get(start..).is_some_and(|rest| rest.starts_with(part)) {
            positions.push(Value::Int(i64::try_from(position).map_err(|_| Stop::Limit(Limit::Size))?));
        }
    }
    Ok(positions)
}

/// Applies a function to an input that must be a string.
pub(super) fn mapped(input: &Value, name: &str, map: impl Fn(&str) -> String) -> Result<Value, Stop> {
    match input {
        Value::Text(text) => Value::text(map(text)),
        input => Err(Stop::error(format!("{name} cannot be applied to: {}", described(input)))),
    }
}

/// Returns a substring. The bounds count characters.
pub(super) fn slice(text: &Arc<str>, from: usize, to: usize) -> Result<Value, Stop> {
    Value::text(text.chars().skip(from).take(to.saturating_sub(from)).collect::<String>())
}

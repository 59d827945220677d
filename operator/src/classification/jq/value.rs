//! JSON values in queries, with the ordering of jq and with limits.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum nesting of a value, because functions walk over values recursively.
const MAX_NESTING: u32 = 200;

/// Maximum weight of a value: one for each element, and one for each 4 bytes of text. An inventory weighs a few
/// thousand.
pub(super) const MAX_WEIGHT: u64 = 1 << 19;

/// A limit of evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// The number of steps.
    #[error("takes too many steps")]
    Steps,
    /// The nesting of calls and operators.
    #[error("is nested too deeply")]
    Nesting,
    /// The size or nesting of a value.
    #[error("makes a value that is too large")]
    Size,
}

/// The reason why an evaluation ends early.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// An error. `try` can catch it.
    Error(Value),
    /// A `break` to the label with this number.
    Break(u64),
    /// An exceeded limit. `try` cannot catch it.
    Limit(Limit),
    /// The consumer needs no more results.
    Consumer,
}

impl Stop {
    pub(super) fn error(text: impl AsRef<str>) -> Self {
        Self::Error(Value::Text(text.as_ref().into()))
    }
}

/// A JSON value. Clones share arrays, objects and strings.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    Array(Arc<Array>),
    Object(Arc<Object>),
}

#[derive(Debug)]
pub(super) struct Array {
    pub(super) items: Vec<Value>,
    weight: u64,
    nesting: u32,
}

#[derive(Debug)]
pub(super) struct Object {
    /// The members in key order, because gojq sorts the keys of objects.
    pub(super) members: BTreeMap<Arc<str>, Value>,
    weight: u64,
    nesting: u32,
}

impl Value {
    pub(super) fn array(items: Vec<Self>) -> Result<Self, Stop> {
        let (weight, nesting) = measure(items.iter())?;
        Ok(Self::Array(Arc::new(Array { items, weight, nesting })))
    }

    pub(super) fn object(members: BTreeMap<Arc<str>, Self>) -> Result<Self, Stop> {
        let (weight, nesting) = measure(members.values())?;
        let keys: u64 = members.keys().map(|key| text_weight(key)).sum();
        let weight = within_weight(weight.saturating_add(keys))?;
        Ok(Self::Object(Arc::new(Object { members, weight, nesting })))
    }

    pub(super) fn text(text: impl Into<Arc<str>>) -> Result<Self, Stop> {
        let text = text.into();
        within_weight(text_weight(&text))?;
        Ok(Self::Text(text))
    }

    pub(super) fn from_json(json: &serde_json::Value) -> Result<Self, Stop> {
        Self::from_nested_json(json, 0)
    }

    fn from_nested_json(json: &serde_json::Value, nesting: u32) -> Result<Self, Stop> {
        if nesting > MAX_NESTING {
            return Err(Stop::Limit(Limit::Size));
        }
        match json {
            serde_json::Value::Null => Ok(Self::Null),
            serde_json::Value::Bool(value) => Ok(Self::Bool(*value)),
            serde_json::Value::Number(number) => Ok(match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => Self::Int(int),
                (None, Some(float)) => Self::Float(float),
                (None, None) => Self::Null,
            }),
            serde_json::Value::String(text) => Self::text(text.as_str()),
            serde_json::Value::Array(items) => Self::array(
                items
                    .iter()
                    .map(|item| Self::from_nested_json(item, nesting + 1))
                    .collect::<Result<_, _>>()?,
            ),
            serde_json::Value::Object(members) => {
                let members = members.iter().map(|(key, member)| {
                    Ok((key.as_str().into(), Self::from_nested_json(member, nesting + 1)?))
                });
                Self::object(members.collect::<Result<_, Stop>>()?)
            }
        }
    }

    /// Returns the weight of the value: the cost of walking over all of it.
    pub(super) fn weight(&self) -> u64 {
        match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) => 1,
            Self::Text(text) => text_weight(text),
            Self::Array(array) => array.weight,
            Self::Object(object) => object.weight,
        }
    }

    fn nesting(&self) -> u32 {
        match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) => 0,
            Self::Array(array) => array.nesting,
            Self::Object(object) => object.nesting,
        }
    }

    /// Returns `false` for null and false, which are false in conditions. All other values are true.
    pub(super) fn is_true(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Int(int) => Some(int_as_float(*int)),
            Self::Float(float) => Some(*float),
            _ => None,
        }
    }

    /// Returns a number as an integer, without its fraction.
    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            Self::Float(float) => Some(float_as_int(*float)),
            _ => None,
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) | Self::Float(_) => "number",
            Self::Text(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    fn type_rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(false) => 1,
            Self::Bool(true) => 2,
            Self::Int(_) | Self::Float(_) => 3,
            Self::Text(_) => 4,
            Self::Array(_) => 5,
            Self::Object(_) => 6,
        }
    }

    /// Compares two values in jq's order: null, false, true, numbers, strings, arrays, objects.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => left.cmp(right),
            (Self::Text(left), Self::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
            (Self::Array(left), Self::Array(right)) => compare_all(left.items.iter(), right.items.iter()),
            (Self::Object(left), Self::Object(right)) => {
                let keys = left.members.keys().cmp(right.members.keys());
                keys.then_with(|| compare_all(left.members.values(), right.members.values()))
            }
            _ => match (self.as_number(), other.as_number()) {
                (Some(left), Some(right)) => compare_floats(left, right),
                _ => self.type_rank().cmp(&other.type_rank()),
            },
        }
    }

    /// Compares two values for sorting. Equals jq's order, except that NaN equals itself, so that the order is total.
    pub(super) fn total_order(&self, other: &Self) -> Ordering {
        match (self.compare(other), other.compare(self)) {
            (Ordering::Less, Ordering::Less) => Ordering::Equal,
            (order, _) => order,
        }
    }

    /// Returns the value as compact JSON.
    pub(super) fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Int(int) => out.push_str(&int.to_string()),
            Self::Float(float) => out.push_str(&float_text(*float)),
            Self::Text(text) => write_text(text, out),
            Self::Array(array) => {
                out.push('[');
                for (i, item) in array.items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Self::Object(object) => {
                out.push('{');
                for (i, (key, member)) in object.members.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_text(key, out);
                    out.push(':');
                    member.write_json(out);
                }
                out.push('}');
            }
        }
    }
}

fn measure<'a>(items: impl Iterator<Item = &'a Value>) -> Result<(u64, u32), Stop> {
    let mut weight = 1u64;
    let mut nesting = 0;
    for item in items {
        weight = weight.saturating_add(item.weight());
        nesting = nesting.max(item.nesting());
    }
    if nesting >= MAX_NESTING {
        return Err(Stop::Limit(Limit::Size));
    }
    Ok((within_weight(weight)?, nesting + 1))
}

pub(super) fn within_weight(weight: u64) -> Result<u64, Stop> {
    if weight > MAX_WEIGHT { Err(Stop::Limit(Limit::Size)) } else { Ok(weight) }
}

/// Rejects a string that is too large to be split into characters.
pub(super) fn check_characters(text: &str) -> Result<(), Stop> {
    within_weight(u64::try_from(text.len()).unwrap_or(u64::MAX)).map(|_| ())
}

/// Returns the weight of a string with this number of bytes.
pub(super) fn bytes_weight(bytes: usize) -> u64 {
    u64::try_from(bytes / 4).map_or(u64::MAX, |weight| weight.saturating_add(1))
}

fn text_weight(text: &str) -> u64 {
    bytes_weight(text.len())
}

fn compare_all<'a>(
    left: impl Iterator<Item = &'a Value>,
    mut right: impl Iterator<Item = &'a Value>,
) -> Ordering {
    for item in left {
        match right.next().map(|other| item.compare(other)) {
            None => return Ordering::Greater,
            Some(Ordering::Equal) => {}
            Some(order) => return order,
        }
    }
    if right.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

/// Compares numbers like jq: NaN is less than every number and less than itself.
fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(if left.is_nan() { Ordering::Less } else { Ordering::Greater })
}

#[expect(clippy::cast_precision_loss, reason = "gojq compares an integer with a float as floats")]
pub(super) fn int_as_float(int: i64) -> f64 {
    int as f64
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which is the clamp of gojq")]
pub(super) fn float_as_int(float: f64) -> i64 {
    float as i64
}

/// Formats a float like gojq: integers without a fraction, NaN as null, and infinity as the largest number.
fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "null".to_owned();
    }
    let float = float.clamp(f64::MIN, f64::MAX);
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e17).contains(&size) {
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((mantissa, exponent)) if !exponent.starts_with('-') => format!("{mantissa}e+{exponent}"),
            _ => text,
        };
    }
    format!("{float}")
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || c == '\u{7f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

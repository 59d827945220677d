//! Implements the built-in functions, which receive evaluated values as arguments. `prelude.jq` defines all other
//! functions.

use super::arguments::{array, described, not_applicable, number, text};
use super::budget::Budget;
use super::value::{self, Limit, Stop, Value};
use super::{regexes, strings};

/// A built-in function.
#[derive(Clone, Copy)]
pub(super) struct Function {
    name: &'static str,
    call: Call,
}

#[derive(Clone, Copy)]
enum Call {
    Nullary(fn(&Value) -> Result<Value, Stop>),
    Unary(fn(&Value, &Value) -> Result<Value, Stop>),
    Float(fn(f64) -> f64),
    Budgeted(usize, fn(&mut Budget, &Value, &[Value]) -> Result<Value, Stop>),
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The built-in functions, by name.
const FUNCTIONS: &[(&str, Call)] = &[
    ("_group_by", Call::Budgeted(1, group_by)),
    ("_match", Call::Budgeted(2, regexes::matches)),
    ("_sort_by", Call::Budgeted(1, sort_by)),
    ("_test", Call::Budgeted(2, regexes::test)),
    ("abs", Call::Nullary(abs)),
    ("ascii_downcase", Call::Nullary(|v| strings::mapped(v, "ascii_downcase", str::to_ascii_lowercase))),
    ("ascii_upcase", Call::Nullary(|v| strings::mapped(v, "ascii_upcase", str::to_ascii_uppercase))),
    ("ceil", Call::Float(f64::ceil)),
    ("contains", Call::Budgeted(1, contains)),
    ("endswith", Call::Unary(|v, end| affix(v, end, "endswith", |text, end| text.ends_with(end)))),
    ("error", Call::Unary(|_, error| Err(Stop::Error(error.clone())))),
    ("exp", Call::Float(f64::exp)),
    ("exp10", Call::Float(|x| 10f64.powf(x))),
    ("exp2", Call::Float(f64::exp2)),
    ("explode", Call::Nullary(strings::explode)),
    ("fabs", Call::Float(f64::abs)),
    ("flatten", Call::Budgeted(1, flatten)),
    ("floor", Call::Float(f64::floor)),
    ("fromjson", Call::Nullary(from_json)),
    ("has", Call::Unary(has)),
    ("implode", Call::Nullary(strings::implode)),
    ("indices", Call::Budgeted(1, indices)),
    ("infinite", Call::Nullary(|_| Ok(Value::Float(f64::INFINITY)))),
    ("isinfinite", Call::Nullary(|v| Ok(Value::Bool(number(v)?.is_infinite())))),
    ("isnan", Call::Nullary(|v| Ok(Value::Bool(number(v)?.is_nan())))),
    ("isnormal", Call::Nullary(|v| Ok(Value::Bool(number(v)?.is_normal())))),
    ("join", Call::Unary(strings::join)),
    ("keys", Call::Nullary(keys)),
    ("keys_unsorted", Call::Nullary(keys)),
    ("length", Call::Nullary(length)),
    ("log", Call::Float(f64::ln)),
    ("log10", Call::Float(f64::log10)),
    ("log2", Call::Float(f64::log2)),
    ("ltrim", Call::Nullary(|v| strings::mapped(v, "ltrim", |text| text.trim_start().to_owned()))),
    ("ltrimstr", Call::Unary(|v, start| trimmed(v, start, |text, start| text.strip_prefix(start)))),
    ("nan", Call::Nullary(|_| Ok(Value::Float(f64::NAN)))),
    ("pow", Call::Budgeted(2, power)),
    ("reverse", Call::Nullary(reverse)),
    ("round", Call::Float(f64::round)),
    ("rtrim", Call::Nullary(|v| strings::mapped(v, "rtrim", |text| text.trim_end().to_owned()))),
    ("rtrimstr", Call::Unary(|v, end| trimmed(v, end, |text, end| text.strip_suffix(end)))),
    ("sort", Call::Budgeted(0, |m, v, _| sort_by(m, v, std::slice::from_ref(v)))),
    ("split", Call::Unary(|v, separator| strings::split(&text(v)?, &text(separator)?))),
    ("sqrt", Call::Float(f64::sqrt)),
    (
        "startswith",
        Call::Unary(|v, start| affix(v, start, "startswith", |text, start| text.starts_with(start))),
    ),
    ("tojson", Call::Nullary(|v| Value::text(v.to_json()))),
    ("tonumber", Call::Nullary(to_number)),
    ("tostring", Call::Nullary(to_string)),
    ("trim", Call::Nullary(|v| strings::mapped(v, "trim", |text| text.trim().to_owned()))),
    ("trunc", Call::Float(f64::trunc)),
    ("type", Call::Nullary(|v| Value::text(v.type_name()))),
    ("utf8bytelength", Call::Nullary(|v| size(text(v)?.len()))),
];

/// Returns the built-in function with this name and number of arguments.
pub(super) fn function(name: &str, arguments: usize) -> Option<Function> {
    let name = match name {
        "@text" => "tostring",
        "@json" => "tojson",
        name => name,
    };
    let (name, call) = FUNCTIONS.iter().find(|(function_name, call)| {
        let count = match call {
            Call::Nullary(_) | Call::Float(_) => 0,
            Call::Unary(_) => 1,
            Call::Budgeted(count, _) => *count,
        };
        *function_name == name && count == arguments
    })?;
    Some(Function { name, call: *call })
}

impl Function {
    pub(super) fn call(self, budget: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Value, Stop> {
        // Count the steps of a walk over the input and all arguments. Functions that do more work count the additional
        // steps themselves.
        let work =
            arguments.iter().fold(input.weight(), |work, argument| work.saturating_add(argument.weight()));
        if !matches!(self.name, "type" | "length" | "has" | "error") {
            budget.spend(work)?;
        }
        match (self.call, arguments) {
            (Call::Nullary(call), _) => call(input),
            (Call::Unary(call), [argument]) => call(input, argument),
            (Call::Float(call), _) => match input {
                Value::Int(_) | Value::Float(_) => Ok(integer(call(number(input)?))),
                input => Err(not_applicable(self.name, input)),
            },
            (Call::Budgeted(_, call), arguments) => call(budget, input, arguments),
            (Call::Unary(_), _) => Err(Stop::error("wrong number of arguments")),
        }
    }
}

fn size(size: usize) -> Result<Value, Stop> {
    i64::try_from(size).map(Value::Int).map_err(|_| Stop::Limit(Limit::Size))
}

/// Converts a float without a fraction to an integer, like gojq.
fn integer(float: f64) -> Value {
    let int = value::float_as_int(float);
    if float.abs() < 9e18 && value::int_as_float(int) == float {
        Value::Int(int)
    } else {
        Value::Float(float)
    }
}

/// Parses a number in the text of a query, or the input of `tonumber`.
pub(super) fn number_from_text(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))
    {
        return None;
    }
    text.parse().map(Value::Int).ok().or_else(|| text.parse().map(integer).ok())
}

pub(super) fn index(value: &Value, key: &Value) -> Result<Value, Stop> {
    match (value, key) {
        (Value::Null, Value::Null | Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Object(_)) => {
            Ok(Value::Null)
        }
        (Value::Object(object), Value::Text(key)) => {
            Ok(object.members.get(key).cloned().unwrap_or(Value::Null))
        }
        (Value::Array(array), Value::Int(_) | Value::Float(_)) => {
            let position = value::float_as_int(number(key)?.floor());
            let position = position_in(position, array.items.len());
            Ok(position.and_then(|position| array.items.get(position)).cloned().unwrap_or(Value::Null))
        }
        (Value::Array(array), Value::Array(part)) => Value::array(array_indices(&array.items, &part.items)?),
        (value, Value::Object(bounds)) => {
            let bound = |name: &str| bounds.members.get(name).cloned().unwrap_or(Value::Null);
            slice(value, &bound("start"), &bound("end"))
        }
        (value, Value::Text(_)) => {
            Err(Stop::error(format!("expected an object but got: {}", described(value))))
        }
        (value, _) => Err(Stop::error(format!("expected an array but got: {}", described(value)))),
    }
}

/// Converts an index to a position. Negative indexes count from the end.
fn position_in(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(position) => Some(position),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

pub(super) fn slice(value: &Value, from: &Value, to: &Value) -> Result<Value, Stop> {
    let len = match value {
        Value::Null => return Ok(Value::Null),
        Value::Array(array) => array.items.len(),
        Value::Text(text) => text.chars().count(),
        value => return Err(Stop::error(format!("expected an array but got: {}", described(value)))),
    };
    let position = |index: f64| position_in(value::float_as_int(index), len).unwrap_or(0).min(len);
    let from = if matches!(from, Value::Null) { 0 } else { position(number(from)?.floor()) };
    let to = if matches!(to, Value::Null) { len } else { position(number(to)?.ceil()) };
    match value {
        Value::Text(text) => strings::slice(text, from, to),
        Value::Array(array) => Value::array(array.items.get(from..to).unwrap_or_default().to_vec()),
        _ => Ok(Value::Null),
    }
}

fn length(input: &Value) -> Result<Value, Stop> {
    match input {
        Value::Null => Ok(Value::Int(0)),
        Value::Bool(_) => Err(not_applicable("length", input)),
        Value::Int(_) | Value::Float(_) => abs(input),
        Value::Text(text) => size(text.chars().count()),
        Value::Array(array) => size(array.items.len()),
        Value::Object(object) => size(object.members.len()),
    }
}

fn abs(input: &Value) -> Result<Value, Stop> {
    match input {
        Value::Int(int) => {
            Ok(int.checked_abs().map_or_else(|| Value::Float(value::int_as_float(*int).abs()), Value::Int))
        }
        Value::Float(float) => Ok(Value::Float(float.abs())),
        input => Err(not_applicable("abs", input)),
    }
}

fn keys(input: &Value) -> Result<Value, Stop> {
    match input {
        Value::Array(array) => Value::array((0i64..).take(array.items.len()).map(Value::Int).collect()),
        Value::Object(object) => {
            Value::array(object.members.keys().map(|key| Value::Text(key.clone())).collect())
        }
        input => Err(not_applicable("keys", input)),
    }
}

fn has(input: &Value, key: &Value) -> Result<Value, Stop> {
    match (input, key) {
        (Value::Object(object), Value::Text(key)) => Ok(Value::Bool(object.members.contains_key(key))),
        (Value::Array(array), Value::Int(_) | Value::Float(_)) => {
            let position = usize::try_from(value::float_as_int(number(key)?)).ok();
            Ok(Value::Bool(position.is_some_and(|position| position < array.items.len())))
        }
        _ => Err(not_applicable("has", input)),
    }
}

fn affix(input: &Value, part: &Value, name: &str, test: fn(&str, &str) -> bool) -> Result<Value, Stop> {
    match (input, part) {
        (Value::Text(text), Value::Text(part)) => Ok(Value::Bool(test(text, part))),
        _ => Err(not_applicable(name, input)),
    }
}

fn trimmed(
    input: &Value,
    part: &Value,
    strip: for<'t> fn(&'t str, &str) -> Option<&'t str>,
) -> Result<Value, Stop> {
    match (input, part) {
        (Value::Text(text), Value::Text(part)) => {
            strip(text, part).map_or_else(|| Ok(input.clone()), Value::text)
        }
        _ => Err(not_applicable("trimstr", input)),
    }
}

fn contains(budget: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Value, Stop> {
    let [part] = arguments else {
        return Err(Stop::error("contains"));
    };
    has_part(budget, input, part).map(Value::Bool)
}

fn has_part(budget: &mut Budget, whole: &Value, part: &Value) -> Result<bool, Stop> {
    budget.spend(whole.weight().min(part.weight()))?;
    match (whole, part) {
        (Value::Text(whole), Value::Text(part)) => Ok(whole.contains(&**part)),
        (Value::Array(whole), Value::Array(part)) => {
            for item in &part.items {
                let mut any = false;
                for candidate in &whole.items {
                    any = any
                        || candidate.type_name() == item.type_name() && has_part(budget, candidate, item)?;
                }
                if !any {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(whole), Value::Object(part)) => {
            for (key, item) in &part.members {
                match whole.members.get(key) {
                    Some(member) if member.type_name() == item.type_name() => {
                        if !has_part(budget, member, item)? {
                            return Ok(false);
                        }
                    }
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (whole, part) if whole.type_name() == part.type_name() => Ok(whole.compare(part).is_eq()),
        (whole, part) => Err(Stop::error(format!(
            "contains({}) cannot be applied to: {}",
            part.type_name(),
            described(whole)
        ))),
    }
}

fn array_indices(items: &[Value], part: &[Value]) -> Result<Vec<Value>, Stop> {
    if part.is_empty() {
        return Ok(Vec::new());
    }
    let same = |window: &[Value]| window.iter().zip(part).all(|(item, other)| item.compare(other).is_eq());
    items.windows(part.len()).enumerate().filter(|(_, window)| same(window)).map(|(i, _)| size(i)).collect()
}

fn indices(budget: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Value, Stop> {
    let [part] = arguments else {
        return Err(Stop::error("indices"));
    };
    budget.spend(input.weight().saturating_mul(part.weight()))?;
    match (input, part) {
        (Value::Null, _) => Ok(Value::Null),
        (Value::Text(text), Value::Text(part)) => Value::array(strings::indices(text, part)?),
        (Value::Array(array), Value::Array(part)) => Value::array(array_indices(&array.items, &part.items)?),
        (Value::Array(array), part) => Value::array(array_indices(&array.items, std::slice::from_ref(part))?),
        _ => Err(not_applicable("indices", input)),
    }
}

/// Sorts an array by the given keys, one for each item. The sort is stable.
fn sort_by(budget: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Value, Stop> {
    let sorted = sorted_by(budget, input, arguments)?;
    Value::array(sorted.into_iter().map(|(_, item)| item).collect())
}

fn sorted_by(budget: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Vec<(Value, Value)>, Stop> {
    let [keys] = arguments else {
        return Err(Stop::error("sort"));
    };
    // Sorting compares each key about as often as the logarithm of the number of keys, so a factor of 20 is enough.
    budget.spend(keys.weight().saturating_mul(20))?;
    let (items, keys) = (array(input, "sort")?, array(keys, "sort")?);
    let mut pairs: Vec<_> = keys.iter().cloned().zip(items.iter().cloned()).collect();
    // jq orders NaN before itself, which the sort of the standard library could report as an invalid order.
    pairs.sort_by(|(left, _), (right, _)| left.total_order(right));
    Ok(pairs)
}

fn group_by(budget: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Value, Stop> {
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, item) in sorted_by(budget, input, arguments)? {
        match groups.last_mut() {
            Some((last, group)) if last.compare(&key).is_eq() => group.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    Value::array(groups.into_iter().map(|(_, group)| Value::array(group)).collect::<Result<_, _>>()?)
}

fn flatten(_: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Value, Stop> {
    let depth = arguments.first().map_or(Ok(0.0), number)?;
    if depth < 0.0 {
        return Err(Stop::error("flatten depth must not be negative"));
    }
    let mut flat = Vec::new();
    flatten_into(array(input, "flatten")?, depth, &mut flat);
    Value::array(flat)
}

fn flatten_into(items: &[Value], depth: f64, flat: &mut Vec<Value>) {
    for item in items {
        match item {
            Value::Array(array) if depth >= 1.0 => flatten_into(&array.items, depth - 1.0, flat),
            item => flat.push(item.clone()),
        }
    }
}

fn reverse(input: &Value) -> Result<Value, Stop> {
    match input {
        Value::Null => Value::array(Vec::new()),
        input => Value::array(array(input, "reverse")?.iter().rev().cloned().collect()),
    }
}

fn power(_: &mut Budget, _: &Value, arguments: &[Value]) -> Result<Value, Stop> {
    let [base, exponent] = arguments else {
        return Err(Stop::error("pow"));
    };
    Ok(integer(number(base)?.powf(number(exponent)?)))
}

fn to_string(input: &Value) -> Result<Value, Stop> {
    match input {
        Value::Text(_) => Ok(input.clone()),
        input => Value::text(input.to_json()),
    }
}

fn to_number(input: &Value) -> Result<Value, Stop> {
    match input {
        Value::Int(_) | Value::Float(_) => Ok(input.clone()),
        Value::Text(text) => number_from_text(text).ok_or_else(|| {
            Stop::error(format!("tonumber cannot be applied to {}: invalid number", input.to_json()))
        }),
        input => Err(not_applicable("tonumber", input)),
    }
}

fn from_json(input: &Value) -> Result<Value, Stop> {
    let text = text(input)?;
    let json = serde_json::from_str(&text).map_err(|error| Stop::error(format!("fromjson: {error}")))?;
    Value::from_json(&json)
}

//! The arithmetic operators `+`, `-`, `*`, `/` and `%`.

use std::collections::BTreeMap;
use std::sync::Arc;

use jaq_core::ops::Math;

use super::arguments::described;
use super::budget::Budget;
use super::strings;
use super::value::{self, Limit, Object, Stop, Value};

pub(super) fn calculate(
    budget: &mut Budget,
    operator: Math,
    left: &Value,
    right: &Value,
) -> Result<Value, Stop> {
    let numbers = matches!((left, right), (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)));
    if !numbers {
        budget.spend(left.weight().saturating_add(right.weight()))?;
    }
    match operator {
        Math::Add => add(left, right),
        Math::Sub => subtract(budget, left, right),
        Math::Mul => multiply(budget, left, right),
        Math::Div => divide(left, right),
        Math::Rem => remainder(left, right),
    }
}

pub(super) fn negate(operand: &Value) -> Result<Value, Stop> {
    match operand {
        Value::Int(int) => {
            Ok(int.checked_neg().map_or_else(|| Value::Float(-value::int_as_float(*int)), Value::Int))
        }
        Value::Float(float) => Ok(Value::Float(-float)),
        operand => Err(Stop::error(format!("cannot negate: {}", described(operand)))),
    }
}

fn failed(verb: &str, preposition: &str, left: &Value, right: &Value) -> Stop {
    Stop::error(format!("cannot {verb}: {}{preposition}{}", described(left), described(right)))
}

/// Calculates with integers. Uses floats if an operand is a float, or if the integer result is out of range.
fn numbers(
    left: &Value,
    right: &Value,
    ints: impl Fn(i64, i64) -> Option<i64>,
    floats: impl Fn(f64, f64) -> f64,
) -> Option<Value> {
    if let (Value::Int(left), Value::Int(right)) = (left, right)
        && let Some(int) = ints(*left, *right)
    {
        return Some(Value::Int(int));
    }
    Some(Value::Float(floats(left.as_number()?, right.as_number()?)))
}

pub(super) fn add_numbers(left: &Value, right: &Value) -> Result<Value, Stop> {
    numbers(left, right, i64::checked_add, |left, right| left + right)
        .ok_or_else(|| failed("add", " and ", left, right))
}

pub(super) fn add(left: &Value, right: &Value) -> Result<Value, Stop> {
    match (left, right) {
        (Value::Null, other) | (other, Value::Null) => Ok(other.clone()),
        (Value::Text(left), Value::Text(right)) => {
            value::within_weight(value::bytes_weight(left.len().saturating_add(right.len())))?;
            Value::text(format!("{left}{right}"))
        }
        (Value::Array(left), Value::Array(right)) => {
            Value::array([left.items.as_slice(), &right.items].concat())
        }
        (Value::Object(left), Value::Object(right)) => {
            let members = left.members.iter().chain(&right.members);
            Value::object(members.map(|(key, member)| (key.clone(), member.clone())).collect())
        }
        (left, right) => add_numbers(left, right),
    }
}

fn subtract(budget: &mut Budget, left: &Value, right: &Value) -> Result<Value, Stop> {
    let (Value::Array(items), Value::Array(removed)) = (left, right) else {
        return numbers(left, right, i64::checked_sub, |left, right| left - right)
            .ok_or_else(|| failed("subtract", " and ", left, right));
    };
    budget.spend(left.weight().saturating_mul(right.weight()))?;
    let rest =
        items.items.iter().filter(|item| !removed.items.iter().any(|other| item.compare(other).is_eq()));
    Value::array(rest.cloned().collect())
}

fn multiply(budget: &mut Budget, left: &Value, right: &Value) -> Result<Value, Stop> {
    match (left, right) {
        (Value::Text(text), times) | (times, Value::Text(text)) => {
            let count = times.as_number().ok_or_else(|| failed("multiply", " and ", left, right))?;
            if count < 0.0 || count.is_nan() {
                return Ok(Value::Null);
            }
            let count = usize::try_from(value::float_as_int(count)).map_err(|_| Stop::Limit(Limit::Size))?;
            let bytes = text.len().checked_mul(count).ok_or(Stop::Limit(Limit::Size))?;
            budget.spend(value::within_weight(value::bytes_weight(bytes))?)?;
            Value::text(text.repeat(count))
        }
        (Value::Object(left), Value::Object(right)) => merge(left, right),
        (left, right) => numbers(left, right, i64::checked_mul, |left, right| left * right)
            .ok_or_else(|| failed("multiply", " and ", left, right)),
    }
}

fn merge(left: &Object, right: &Object) -> Result<Value, Stop> {
    let mut members: BTreeMap<Arc<str>, Value> = left.members.clone();
    for (key, member) in &right.members {
        let merged = match (members.get(key), member) {
            (Some(Value::Object(left)), Value::Object(right)) => merge(left, right)?,
            (_, member) => member.clone(),
        };
        members.insert(key.clone(), merged);
    }
    Value::object(members)
}

fn divide(left: &Value, right: &Value) -> Result<Value, Stop> {
    if let (Value::Text(text), Value::Text(separator)) = (left, right) {
        return strings::split(text, separator);
    }
    if left.as_number().is_some() && right.as_number() == Some(0.0) {
        return Err(failed("divide", " by: ", left, right));
    }
    let ints = |left: i64, right: i64| {
        (left.checked_rem(right) == Some(0)).then(|| left.checked_div(right)).flatten()
    };
    numbers(left, right, ints, |left, right| left / right)
        .ok_or_else(|| failed("divide", " by: ", left, right))
}

fn remainder(left: &Value, right: &Value) -> Result<Value, Stop> {
    let error = || failed("modulo", " by: ", left, right);
    let (Some(dividend), Some(divisor)) = (left.as_int(), right.as_int()) else {
        return Err(error());
    };
    if [left, right].iter().any(|operand| operand.as_number().is_some_and(f64::is_nan)) {
        return Ok(Value::Float(f64::NAN));
    }
    if divisor == 0 {
        return Err(error());
    }
    // The divisor is not 0, so `checked_rem` succeeds. With absolute values, the smallest integer and -1 do not
    // overflow.
    Ok(Value::Int(dividend.unsigned_abs().checked_rem(divisor.unsigned_abs()).map_or(0, |rest| {
        let rest = i64::try_from(rest).unwrap_or(0);
        if dividend < 0 { -rest } else { rest }
    })))
}

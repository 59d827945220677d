//! Regular expressions in queries. Matching takes linear time.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::arguments::{described, text};
use super::budget::Budget;
use super::value::{self, Limit, Stop, Value};

/// Maximum memory of a compiled expression, in bytes. It also limits the work per byte of the matched text.
const MAX_COMPILED: usize = 1 << 18;

/// Maximum number of different expressions in one evaluation.
const MAX_EXPRESSIONS: usize = 16;

/// Returns the compiled expression. Each expression is compiled only once per evaluation.
fn compiled(budget: &mut Budget, expression: &Value, flags: &Value) -> Result<Regex, Stop> {
    let flags: Arc<str> = if matches!(flags, Value::Null) { "".into() } else { text(flags)? };
    let key = (flags, text(expression)?);
    if let Some(regex) = budget.expressions.get(&key) {
        return Ok(regex.clone());
    }
    if budget.expressions.len() >= MAX_EXPRESSIONS {
        return Err(Stop::Limit(Limit::Size));
    }
    let regex = compile(&key.1, &key.0)?;
    budget.expressions.insert(key, regex.clone());
    Ok(regex)
}

fn compile(expression: &str, flags: &str) -> Result<Regex, Stop> {
    let mut builder = RegexBuilder::new(expression);
    builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED);
    for flag in flags.chars() {
        match flag {
            'g' => {}
            'i' => _ = builder.case_insensitive(true),
            'x' => _ = builder.ignore_whitespace(true),
            's' => _ = builder.dot_matches_new_line(true),
            _ => return Err(Stop::error(format!("unsupported regular expression flag: {flags:?}"))),
        }
    }
    builder.build().map_err(|_| Stop::error(format!("invalid regular expression {expression:?}")))
}

fn spend(budget: &mut Budget, subject: &str) -> Result<(), Stop> {
    budget.spend(value::bytes_weight(subject.len()).saturating_mul(64))
}

/// Returns an array with the first match. With the flag `g`, the array contains all matches.
pub(super) fn matches(budget: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Value, Stop> {
    let [expression, flags] = arguments else {
        return Err(Stop::error("match"));
    };
    let Value::Text(subject) = input else {
        return Err(Stop::error(format!("match cannot be applied to: {}", described(input))));
    };
    let regex = compiled(budget, expression, flags)?;
    spend(budget, subject)?;
    let all = matches!(flags, Value::Text(flags) if flags.contains('g'));
    let mut results = Vec::new();
    for captures in regex.captures_iter(subject).take(if all { usize::MAX } else { 1 }) {
        let mut groups = regex.capture_names().zip(captures.iter());
        let Some((_, Some(whole))) = groups.next() else { continue };
        let groups = groups.map(|(name, group)| {
            let name = name.map_or(Ok(Value::Null), Value::text)?;
            Value::object(members(subject, group.map(|group| group.range()), [("name", name)])?)
        });
        let groups = Value::array(groups.collect::<Result<_, _>>()?)?;
        let result = Value::object(members(subject, Some(whole.range()), [("captures", groups)])?)?;
        budget.spend(result.weight().saturating_add(value::bytes_weight(subject.len())))?;
        results.push(result);
    }
    Value::array(results)
}

/// Returns `true` if the expression matches.
pub(super) fn test(budget: &mut Budget, input: &Value, arguments: &[Value]) -> Result<Value, Stop> {
    let [expression, flags] = arguments else {
        return Err(Stop::error("test"));
    };
    let Value::Text(subject) = input else {
        return Err(Stop::error(format!("test cannot be applied to: {}", described(input))));
    };
    let regex = compiled(budget, expression, flags)?;
    spend(budget, subject)?;
    Ok(Value::Bool(regex.is_match(subject)))
}

/// Returns the members of a match or of a group: offset and length in characters, and the text.
fn members(
    subject: &str,
    range: Option<std::ops::Range<usize>>,
    more: [(&str, Value); 1],
) -> Result<BTreeMap<Arc<str>, Value>, Stop> {
    let count = |text: &str| i64::try_from(text.chars().count()).map_err(|_| Stop::Limit(Limit::Size));
    let matched = range.as_ref().and_then(|range| subject.get(range.clone()));
    let offset = match range.and_then(|range| subject.get(..range.start)) {
        Some(before) => count(before)?,
        None => -1,
    };
    let mut members: BTreeMap<Arc<str>, Value> =
        more.into_iter().map(|(key, value)| (key.into(), value)).collect();
    members.insert("offset".into(), Value::Int(offset));
    members.insert("length".into(), Value::Int(matched.map_or(Ok(0), count)?));
    members.insert("string".into(), matched.map_or(Ok(Value::Null), Value::text)?);
    Ok(members)
}

//! An implementation of the jq language with limits.
//!
//! Any user who may create an AgentClassification can write a query, so a query must not stop or exhaust the server.
//! The queries are parsed by `jaq-core`. The evaluator of `jaq-core` is not used because it has no limits: it does not
//! count steps, and calls that nest too deeply end the process. This module evaluates queries itself:
//!
//! * `program` resolves names, so that an unknown function is an error before the query runs;
//! * `evaluator` evaluates queries, counts steps and nesting, and limits the size of values;
//! * `functions` and the modules that it uses implement the functions on values, and `prelude.jq` defines the functions
//!   that can be expressed in jq.
//!
//! A query cannot read files, the environment, the clock or any other input, because functions for this do not exist.
//!
//! # Differences from gojq
//!
//! The results of about 400 queries were compared with gojq 0.12.17. These are the differences:
//!
//! * not supported: assignment (`=`, `|=`, `+=`), `path`, `del`, `delpaths`, `setpath`, `pick`, formats other than
//!   `@text` and `@json`, dates, `?//`, `$__loc__`, `input`, `env`, `now`, `debug`, `halt`, `import`; a query with one
//!   of them is a syntax error;
//! * integers that do not fit into 64 bits become floats;
//! * a number needs a digit before the decimal point: `0.5`, not `.5`;
//! * `a < b < c` and `@text` before an object key are accepted;
//! * the source of `as` needs parentheses if it contains an operator or a sign: `(-1) as $x`;
//! * `\d`, `\w`, `\s` and `\b` in regular expressions match all of Unicode, not only ASCII;
//! * queries have limits: length of the text, number of tokens, number of steps, nesting of calls (about a thousand
//!   recursive calls) and size of values;
//! * error messages have other texts.

mod arguments;
mod arithmetic;
mod budget;
mod error;
mod evaluator;
mod functions;
mod program;
mod regexes;
mod strings;
mod value;

use error::query_error;
pub use error::{MAX_QUERY, QueryError};
use evaluator::Evaluator;
use program::Program;
pub use value::Limit;
use value::{Stop, Value};

/// Size of the stack on which queries are parsed and evaluated. Unused pages of the stack take no memory.
const STACK: usize = 64 * 1024 * 1024;

/// A parsed query with resolved names.
#[derive(Debug)]
pub struct JqQuery(Program);

/// The single result of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryOutcome {
    /// The result is the boolean `true`.
    True,
    /// The result is the boolean `false`.
    False,
    /// The result is not a boolean.
    Other,
}

impl JqQuery {
    /// Parses a query.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is too long, is not a jq query, or uses an unknown function or variable.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.len() > MAX_QUERY {
            return Err(QueryError::Length(text.len()));
        }
        on_large_stack(|| Program::parse(text)).map(Self)
    }

    /// Evaluates the query on `input`. The query must have exactly one result.
    ///
    /// # Errors
    ///
    /// Returns an error if the evaluation fails or exceeds a limit, or if the number of results is not one.
    pub fn outcome(&self, input: &serde_json::Value) -> Result<QueryOutcome, QueryError> {
        on_large_stack(|| {
            Ok(match self.single_result(input)? {
                Value::Bool(true) => QueryOutcome::True,
                Value::Bool(false) => QueryOutcome::False,
                _ => QueryOutcome::Other,
            })
        })
    }

    fn single_result(&self, input: &serde_json::Value) -> Result<Value, QueryError> {
        let mut result = None;
        let mut several = false;
        let input = Value::from_json(input).map_err(query_error)?;
        let end = Evaluator::default().run(&self.0, input, &mut |_, value| {
            several = result.is_some();
            if several {
                return Err(Stop::Consumer);
            }
            result = Some(value);
            Ok(())
        });
        if several {
            return Err(QueryError::SeveralResults);
        }
        end.map_err(query_error)?;
        result.ok_or(QueryError::NoResult)
    }
}

fn on_large_stack<T: Send>(work: impl FnOnce() -> Result<T, QueryError> + Send) -> Result<T, QueryError> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("jq".to_owned()).stack_size(STACK).spawn_scoped(scope, work);
        thread
            .map_err(|_| QueryError::Thread)?
            .join()
            .map_err(|_| QueryError::Evaluation("panic".to_owned()))?
    })
}
#[cfg(test)]
mod tests;

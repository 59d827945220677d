//! Queries in the jq language that run within bounds.
//!
//! Everyone who may create an AgentClassification writes queries, so a query must not stop or exhaust the server. Its
//! text is parsed by `jaq-core`; the rest is here, because the evaluator of `jaq-core` has no bound: it neither counts
//! steps nor limits the nesting of calls, and a call that nests too deeply ends the process. Here:
//!
//! * `program` resolves names, so an unknown function is an error before the query runs;
//! * `evaluator` evaluates. It counts steps and nesting, and values have a maximum size;
//! * `functions` and the modules that it uses have the functions on values, `prelude.jq` has the functions that jq
//!   itself can express.
//!
//! A query cannot read files, the environment, the clock or other input: functions for that do not exist.
//!
//! # Differences from gojq
//!
//! Results were compared with gojq 0.12.17 on some 400 queries. What differs:
//!
//! * not supported: assignment (`=`, `|=`, `+=`), `path`, `del`, `delpaths`, `setpath`, `pick`,
//!   formats other than `@text` and `@json`, dates, `?//`, `$__loc__`, `input`, `env`, `now`, `debug`, `halt`, `import`;
//!   a query with one of them is a syntax error;
//! * integers outside of 64 bits are floats;
//! * a number needs a digit before the point: `0.5`, not `.5`;
//! * `a < b < c` is accepted, and `@text` before a key of an object;
//! * the source of `as` needs parentheses if it contains an operator, even a sign: `(-1) as $x`;
//! * `\d`, `\w`, `\s` and `\b` of regular expressions know all of Unicode, not just ASCII;
//! * the limits: length of the text and number of its tokens, number of steps, nesting of calls (a recursion about a
//!   thousand calls deep) and size of values;
//! * texts of errors.

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

/// Size of the stack on which queries are parsed and evaluated. Pages of it that are not used take no memory.
const STACK: usize = 64 * 1024 * 1024;

/// A query whose text is parsed and whose names are resolved.
#[derive(Debug)]
pub struct JqQuery(Program);

/// The single result of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryOutcome {
    /// The boolean true.
    True,
    /// The boolean false.
    False,
    /// A result that is not a boolean.
    Other,
}

impl JqQuery {
    /// Parses the text of a query.
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

    /// Evaluates the query on `input`, which must yield one result.
    ///
    /// # Errors
    ///
    /// Returns an error if the evaluation fails or exceeds a bound, or if the number of results is not one.
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

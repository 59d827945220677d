//! Reasons why a query has no result.

use super::value::{Limit, Stop, Value};

/// Maximum length of the text of a query, in bytes.
pub const MAX_QUERY: usize = 8 * 1024;

/// The reason why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The text of the query is too long.
    #[error("query is {0} bytes long, the maximum is {MAX_QUERY}")]
    Length(usize),
    /// The text is not a jq query, or uses an unsupported part of the language.
    #[error("{0}")]
    Syntax(String),
    /// The evaluation failed.
    #[error("query failed: {0}")]
    Evaluation(String),
    /// The evaluation exceeds a limit.
    #[error("query {0}")]
    Limit(Limit),
    /// The query yields no result.
    #[error("query yields no result")]
    NoResult,
    /// The query yields more than one result.
    #[error("query yields more than one result")]
    SeveralResults,
    /// The operating system cannot start another thread.
    #[error("cannot start a thread for the query")]
    Thread,
}

pub(super) fn query_error(stop: Stop) -> QueryError {
    match stop {
        Stop::Error(Value::Text(text)) => QueryError::Evaluation(shortened(&text)),
        Stop::Error(value) => QueryError::Evaluation(shortened(&value.to_json())),
        Stop::Limit(limit) => QueryError::Limit(limit),
        Stop::Break(_) | Stop::Consumer => QueryError::Evaluation("break".to_owned()),
    }
}

/// Shortens a text for a message.
fn shortened(text: &str) -> String {
    const MAX: usize = 200;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

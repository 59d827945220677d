//! Conversion of single values between Rust and the database.

use std::fmt;

use uuid::Uuid;

/// Returns the error for a value in the database that is not a valid `what`.
pub(in crate::store) fn decode_error(what: &str, value: impl fmt::Debug) -> sqlx::Error {
    sqlx::Error::Decode(format!("{value:?} is not a valid {what}").into())
}

/// Converts an integer that must not be negative.
pub(in crate::store) fn unsigned(what: &str, number: i64) -> Result<u64, sqlx::Error> {
    u64::try_from(number).map_err(|_| decode_error(what, number))
}

/// Returns the length of a text in bytes.
pub(in crate::store) fn len_of(text: &str) -> i64 {
    // If the conversion saturates, the text does not fit into memory.
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Returns the text of an id for a column in which an empty text means no id.
pub(in crate::store) fn text_of(id: Option<Uuid>) -> String {
    id.map(|id| id.to_string()).unwrap_or_default()
}

pub(in crate::store) fn id_of(text: &str) -> Result<Option<Uuid>, sqlx::Error> {
    let id = Some(text).filter(|text| !text.is_empty()).map(str::parse).transpose();
    id.map_err(|_| decode_error("id", text))
}

/// Returns the first characters of a text, for error messages.
pub(in crate::store) fn start_of(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_number_is_an_error() {
        assert_eq!(unsigned("count", 0).unwrap(), 0);
        assert_eq!(unsigned("count", i64::MAX).unwrap(), i64::MAX.unsigned_abs());
        for number in [-1, i64::MIN] {
            let error = unsigned("count", number).unwrap_err();
            assert!(error.to_string().ends_with(&format!("{number} is not a valid count")), "{error}");
        }
    }
}

//! Encodes all rows of a page of records as one text, which is faster to read from SQLite.
//!
//! SQLite's driver passes each row to another thread and wakes the reader each time. So the database joins a page of
//! records into one text, which contains the short columns, the document and the reports of each record.

use std::sync::LazyLock;

use super::reports;
use crate::store::Reports;
use crate::store::columns::COLUMNS;
use crate::store::session::Cells;
use crate::store::values::{decode_error, start_of};

/// The short columns of a joined row. Their values never contain [`SEPARATOR`].
static SHORT: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let columns = COLUMNS.iter().map(|column| column.name);
    let others = ["record_generation", "schema_version", "made_at", "has_more"];
    ["parent", "id"].into_iter().chain(columns).chain(others).collect()
});

/// The separator after each short column and after the length of the document.
const SEPARATOR: char = '|';

/// The end of a row, after its reports. Cannot be confused with a report, which starts with a letter.
const END: char = ';';

/// Returns the SQL expression that joins the rows of a query with the columns [`SHORT`], `document` and `of_host`.
pub(super) fn join() -> String {
    let columns = SHORT.join(&format!(", '{SEPARATOR}', "));
    format!(
        "string_agg(concat({columns}, '{SEPARATOR}', octet_length(document), '{SEPARATOR}', document, of_host, \
         '{END}'), '')"
    )
}

/// A row parsed from the joined text.
#[derive(Debug)]
pub(super) struct JoinedRow<'a> {
    /// The values of [`SHORT`].
    columns: Vec<&'a str>,
    document: &'a str,
    /// The reports of a host.
    pub(super) of_host: Reports,
}

impl<'a> JoinedRow<'a> {
    /// Removes the first row from the joined rows and parses it.
    pub(super) fn take(rows: &mut &'a str) -> Result<Self, sqlx::Error> {
        let mut columns = Vec::with_capacity(SHORT.len());
        for _ in SHORT.iter() {
            columns.push(take_until(rows, SEPARATOR)?);
        }
        let len = take_until(rows, SEPARATOR)?;
        let split = len.parse().ok().and_then(|len| rows.split_at_checked(len));
        let (document, mut rest) = split.ok_or_else(|| decode_error("length of a document", len))?;
        let of_host = reports::take(&mut rest)?;
        take_until(&mut rest, END)?;
        *rows = rest;
        Ok(Self { columns, document, of_host })
    }
}

/// Removes the text up to and including a separator, and returns the text before the separator.
fn take_until<'a>(rows: &mut &'a str, separator: char) -> Result<&'a str, sqlx::Error> {
    let (text, rest) = rows.split_once(separator).ok_or_else(|| decode_error("row", start_of(rows)))?;
    *rows = rest;
    Ok(text)
}

impl Cells for JoinedRow<'_> {
    fn text(&self, column: &'static str) -> Result<&str, sqlx::Error> {
        if column == "document" {
            return Ok(self.document);
        }
        let cell = SHORT.iter().zip(&self.columns).find(|(name, _)| **name == column);
        cell.map(|(_, value)| *value).ok_or_else(|| sqlx::Error::ColumnNotFound(column.to_owned()))
    }

    /// An empty text stands for NULL.
    fn optional_text(&self, column: &'static str) -> Result<Option<&str>, sqlx::Error> {
        self.text(column).map(|text| Some(text).filter(|text| !text.is_empty()))
    }

    fn integer(&self, column: &'static str) -> Result<i64, sqlx::Error> {
        let text = self.text(column)?;
        text.parse().map_err(|_| decode_error(column, start_of(text)))
    }

    fn optional_integer(&self, column: &'static str) -> Result<Option<i64>, sqlx::Error> {
        if self.text(column)?.is_empty() { Ok(None) } else { self.integer(column).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ReportKind;

    const START: &str = "p|i||t|0|known|auto-assign|-5||||7|basis|1|2|3|0|";

    #[test]
    fn joined_rows_are_parsed_one_by_one() {
        let text = format!("{START}6|{{\"é\"}}inventory:3:a;|ntp_sources:0:;{START}0|;");
        let mut rest = text.as_str();
        let row = JoinedRow::take(&mut rest).unwrap();
        assert_eq!((row.text("document").unwrap(), row.text("status").unwrap()), ("{\"é\"}", "known"));
        assert_eq!(row.optional_text("cluster_id").unwrap(), None);
        assert_eq!(row.integer("schema_version").unwrap(), 2);
        assert_eq!(row.optional_integer("checked_in_at").unwrap(), Some(-5));
        assert_eq!(row.optional_integer("clock").unwrap(), None);
        assert_eq!(row.optional_integer("seen_generations").unwrap(), None);
        assert_eq!(row.optional_integer("seen_cluster").unwrap(), Some(7));
        assert_eq!(row.text("seen_basis").unwrap(), "basis");
        assert_eq!(row.of_host.0[&ReportKind::Inventory], "a;|");
        assert_eq!(row.of_host.0[&ReportKind::NtpSources], "");
        let row = JoinedRow::take(&mut rest).unwrap();
        assert_eq!((row.document, row.of_host, rest), ("", Reports::default(), ""));
    }

    #[test]
    fn damaged_rows_are_errors() {
        let is_refused = |mut row: &str| matches!(JoinedRow::take(&mut row), Err(sqlx::Error::Decode(_)));
        assert!(is_refused("") && is_refused("p|i"));
        for end in ["7|{}", "x|{};", "-1|{};", "1|é;", "2|{}", "2|{}.", "2|{}x:1:a;", "2|{}inventory:9:a;"] {
            assert!(is_refused(&format!("{START}{end}")), "{end}");
        }
        let text = format!("{START}0|;").replace("|3|", "|three|");
        let row = JoinedRow::take(&mut text.as_str()).unwrap();
        let error = row.integer("made_at").unwrap_err();
        assert!(error.to_string().ends_with("\"three\" is not a valid made_at"), "{error}");
        assert!(row.text("size").is_err());
    }
}

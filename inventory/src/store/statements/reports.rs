//! Statements on reports.

use crate::store::session::{Cells, Statement};
use crate::store::values::{decode_error, start_of, text_of};
use crate::store::{Key, ReportKind, ReportKinds, Reports};

fn bind_host(query: Statement, host: Key) -> Statement {
    query.bind(text_of(host.parent)).bind_id(host.id)
}

/// Returns the kinds as a list of SQL. They are constants of this program.
fn sql_list(kinds: impl Iterator<Item = ReportKind>) -> String {
    let kinds: Vec<_> = kinds.map(|kind| format!("'{kind}'")).collect();
    kinds.join(", ")
}

/// Returns a statement for reports of a host.
pub(in crate::store) fn select(host: Key, kinds: ReportKinds) -> Statement {
    let sql = format!(
        "SELECT kind, document FROM reports WHERE infra_env_id = $1 AND host_id = $2 AND kind IN ({})",
        sql_list(kinds.iter())
    );
    bind_host(Statement::composed(sql), host)
}

/// Returns the condition that a report counts in the size of its host.
pub(super) fn is_counted() -> String {
    format!("reports.kind NOT IN ({})", sql_list(ReportKind::all_unnamed()))
}

/// Returns a query for the length of those reports of a host in `records` that its size does not include. Returns `None`
/// if it includes all reports of these kinds.
pub(super) fn select_uncounted_len(kinds: ReportKinds) -> Option<String> {
    let uncounted = sql_list(kinds.iter().filter(|kind| !kind.is_named_by_host()));
    (!uncounted.is_empty()).then(|| {
        format!(
            "(SELECT CAST(COALESCE(SUM(reports.size), 0) AS BIGINT) FROM reports \
             WHERE reports.infra_env_id = records.parent AND reports.host_id = records.id \
             AND reports.kind IN ({uncounted}))"
        )
    })
}

/// Returns a query for all reports of a host in `records`, joined to one text that [`take`] reads.
pub(super) fn select_joined(kinds: ReportKinds) -> String {
    let kinds = sql_list(kinds.iter());
    // An expression keeps the database from one search of the index for each kind: most hosts have few reports.
    format!(
        "(SELECT string_agg(reports.kind || ':' || reports.size || ':' || reports.document, '') FROM reports \
         WHERE reports.infra_env_id = records.parent AND reports.host_id = records.id \
         AND reports.kind || '' IN ({kinds}))"
    )
}

/// Takes joined reports from the start of a text: for each the kind, the length in bytes, and the document. What
/// follows them does not start with a letter.
pub(super) fn take(text: &mut &str) -> Result<Reports, sqlx::Error> {
    let mut reports = Reports::default();
    while text.starts_with(|first: char| first.is_ascii_lowercase()) {
        let report = text.split_once(':').and_then(|(kind, rest)| {
            let (len, rest) = rest.split_once(':')?;
            let (document, rest) = rest.split_at_checked(len.parse().ok()?)?;
            Some((kind, document, rest))
        });
        let (kind, document, after) =
            report.ok_or_else(|| decode_error("length of a report", start_of(text)))?;
        reports.0.insert(parse_kind(kind)?, document.to_owned());
        *text = after;
    }
    Ok(reports)
}

fn parse_kind(kind: &str) -> Result<ReportKind, sqlx::Error> {
    let known = ReportKind::ALL.iter().find(|one| one.as_str() == kind);
    known.copied().ok_or_else(|| decode_error("kind of report", kind))
}

pub(in crate::store) fn report(row: &dyn Cells) -> Result<(ReportKind, String), sqlx::Error> {
    Ok((parse_kind(row.text("kind")?)?, row.text("document")?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_reports_are_split_by_length() {
        let reports = |parts: &[(ReportKind, &str)]| {
            Reports(parts.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect())
        };
        let taken = |text: &str| take(&mut &*text);
        assert_eq!(taken("").unwrap(), Reports::default());
        let expected = reports(&[(ReportKind::Inventory, "{\"a\":\"é\"}"), (ReportKind::NtpSources, "")]);
        assert_eq!(taken("ntp_sources:0:inventory:10:{\"a\":\"é\"}").unwrap(), expected);
        for damaged in
            ["inventory", "inventory:2", "inventory:3:{}", "inventory:x:{}", "inventory:1:é", "x:2:{}"]
        {
            assert!(matches!(taken(damaged), Err(sqlx::Error::Decode(_))), "{damaged}");
        }
    }
}

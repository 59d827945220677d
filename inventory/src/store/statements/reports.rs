//! Statements that read the reports of hosts.

use crate::store::session::{Cells, Statement};
use crate::store::values::{decode_error, start_of, text_of};
use crate::store::{Key, ReportKind, ReportKinds, Reports};

fn bind_host(query: Statement, host: Key) -> Statement {
    query.bind(text_of(host.parent)).bind_id(host.id)
}

/// Returns the kinds as an SQL list. They are constants of this program and need not be bound.
fn sql_list(kinds: impl Iterator<Item = ReportKind>) -> String {
    let kinds: Vec<_> = kinds.map(|kind| format!("'{kind}'")).collect();
    kinds.join(", ")
}

/// Returns a statement for the reports of a host.
pub(in crate::store) fn select(host: Key, kinds: ReportKinds) -> Statement {
    let sql = format!(
        "SELECT kind, document FROM reports WHERE infra_env_id = $1 AND host_id = $2 AND kind IN ({})",
        sql_list(kinds.iter())
    );
    bind_host(Statement::composed(sql), host)
}

/// Returns the condition that a report counts toward the size of its host.
pub(super) fn is_counted() -> String {
    format!("reports.kind NOT IN ({})", sql_list(ReportKind::all_unnamed()))
}

/// Returns an SQL expression for the total length of a host's reports that its stored size does not include. Returns
/// `None` if the size includes all reports of these kinds.
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

/// Returns an SQL expression that joins all reports of a host into one text for [`take`].
pub(super) fn select_joined(kinds: ReportKinds) -> String {
    let kinds = sql_list(kinds.iter());
    // Most hosts have few reports, so one index search for all kinds is faster. With `kind` instead of `kind || ''`,
    // the database would search the index once for each kind.
    format!(
        "(SELECT string_agg(reports.kind || ':' || reports.size || ':' || reports.document, '') FROM reports \
         WHERE reports.infra_env_id = records.parent AND reports.host_id = records.id \
         AND reports.kind || '' IN ({kinds}))"
    )
}

/// Removes joined reports from the start of a text. Each report has its kind, its length in bytes, and its document.
/// The text after the reports must not start with a letter.
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
    let matching = ReportKind::ALL.iter().find(|one| one.as_str() == kind);
    matching.copied().ok_or_else(|| decode_error("kind of report", kind))
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
        let parse = |text: &str| take(&mut &*text);
        assert_eq!(parse("").unwrap(), Reports::default());
        let expected = reports(&[(ReportKind::Inventory, "{\"a\":\"é\"}"), (ReportKind::NtpSources, "")]);
        assert_eq!(parse("ntp_sources:0:inventory:10:{\"a\":\"é\"}").unwrap(), expected);
        for damaged in
            ["inventory", "inventory:2", "inventory:3:{}", "inventory:x:{}", "inventory:1:é", "x:2:{}"]
        {
            assert!(matches!(parse(damaged), Err(sqlx::Error::Decode(_))), "{damaged}");
        }
    }
}

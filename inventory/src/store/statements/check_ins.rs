//! Statements that store the check-ins of hosts, and that replace check-ins in the future.

use serde::Serialize;

use crate::store::session::{Dialect, Statement};
use crate::store::values::text_of;
use crate::store::{CheckIn, CheckInLimit};

/// A row of the statement's list.
#[derive(Serialize)]
struct CheckInRow {
    parent: String,
    id: String,
    checked_in_at: i64,
    clock: Option<i64>,
}

/// Returns a statement that stores check-ins without changing the generations of hosts. It keeps a later stored
/// check-in, and skips hosts that do not exist or are deleted.
pub(super) fn store(dialect: Dialect, check_ins: &[CheckIn]) -> Result<Statement, sqlx::Error> {
    const UPDATE: &str = "UPDATE records SET checked_in_at = list.checked_in_at, \
                          clock = COALESCE(list.clock, records.clock)";
    const EARLIER: &str = "records.kind = list.kind AND records.parent = list.parent AND records.id = list.id \
                           AND records.deleted = 0 \
                           AND (records.checked_in_at IS NULL OR records.checked_in_at < list.checked_in_at)";
    let sql = match dialect {
        // The kind must be a column of the list. With a constant kind, SQLite would compare every host with the list
        // instead of looking up the hosts of the list.
        Dialect::Sqlite => format!(
            "WITH list AS MATERIALIZED (SELECT 'host' AS kind, value ->> 'parent' AS parent, value ->> 'id' AS id, \
             value ->> 'checked_in_at' AS checked_in_at, value ->> 'clock' AS clock FROM json_each($1)) \
             {UPDATE} FROM list WHERE {EARLIER}"
        ),
        // Rows are locked in key order, as in all changes, so that no two changes wait for each other.
        Dialect::Postgres => format!(
            "WITH list AS MATERIALIZED ( \
             SELECT list.* FROM (SELECT 'host' AS kind, sent.* FROM json_to_recordset($1::json) \
             AS sent (parent text, id text, checked_in_at bigint, clock bigint)) AS list JOIN records ON {EARLIER} \
             ORDER BY list.parent COLLATE \"C\", list.id COLLATE \"C\" FOR NO KEY UPDATE OF records) \
             {UPDATE} FROM list WHERE {EARLIER}"
        ),
    };
    let rows = check_ins.iter().map(|check_in| CheckInRow {
        parent: text_of(check_in.host.parent),
        id: check_in.host.id.to_string(),
        checked_in_at: check_in.at,
        clock: check_in.clock,
    });
    let rows = serde_json::to_string(&rows.collect::<Vec<_>>());
    Ok(Statement::composed(sql).bind(rows.map_err(|error| sqlx::Error::Encode(error.into()))?))
}

/// Returns the table `records`. For SQLite, it also forces the index, because the planner would choose another one and
/// read all hosts.
fn table_with_index(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "records INDEXED BY records_by_check_in",
        Dialect::Postgres => "records",
    }
}

/// Returns the condition that a host exceeds a limit. `$1` stands for the statuses of the limit, `$2` for its latest
/// time.
fn exceeds_limit(dialect: Dialect) -> String {
    let status = dialect.is_one_of("records.status", "$1");
    format!("records.kind = 'host' AND records.deleted = 0 AND {status} AND records.checked_in_at > $2")
}

fn bind_limit(sql: String, dialect: Dialect, limit: &CheckInLimit) -> Statement {
    let statuses = dialect.list(limit.statuses.iter().copied());
    Statement::composed(sql).bind(statuses).bind_integer(limit.latest)
}

/// Returns a statement that finds a host whose check-in exceeds a limit.
pub(in crate::store) fn select_after(dialect: Dialect, limit: &CheckInLimit) -> Statement {
    let records = table_with_index(dialect);
    bind_limit(format!("SELECT id FROM {records} WHERE {} LIMIT 1", exceeds_limit(dialect)), dialect, limit)
}

/// Returns a statement that replaces all check-ins that exceed a limit.
pub(super) fn replace_after(dialect: Dialect, limit: &CheckInLimit) -> Statement {
    let exceeds = exceeds_limit(dialect);
    let sql = match dialect {
        Dialect::Sqlite => {
            format!("UPDATE {} SET checked_in_at = $3 WHERE {exceeds}", table_with_index(dialect))
        }
        // Rows are locked in key order, as in [`store`].
        Dialect::Postgres => format!(
            "WITH list AS MATERIALIZED (SELECT parent, id FROM records WHERE {exceeds} \
             ORDER BY parent COLLATE \"C\", id COLLATE \"C\" FOR NO KEY UPDATE) \
             UPDATE records SET checked_in_at = $3 FROM list \
             WHERE {exceeds} AND records.parent = list.parent AND records.id = list.id"
        ),
    };
    bind_limit(sql, dialect, limit).bind_integer(limit.now)
}

//! Statements that write records, reports, MAC addresses and totals. Each statement writes any number of rows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use uuid::Uuid;

use super::effects::{CurrentRow, Effects, Totals, size_of};
use crate::store::columns::COLUMNS;
use crate::store::session::{Cells, Dialect, Session, Statement, Value, ValueType};
use crate::store::values::{decode_error, id_of, len_of, text_of};
use crate::store::{Key, Kind, ReportKind, Row};

/// The columns of a record's key.
const KEY: [(&str, ValueType); 3] =
    [("kind", ValueType::Text), ("parent", ValueType::Text), ("id", ValueType::Text)];

/// The columns of a host's key in tables that contain only hosts.
const HOST: [(&str, ValueType); 2] = [("infra_env_id", ValueType::Text), ("host_id", ValueType::Text)];

/// The condition that a row of `records` has the key of a row in `list`.
const HAS_KEY: &str = "records.kind = list.kind AND records.parent = list.parent AND records.id = list.id";

fn key_values(key: Key) -> Vec<Value> {
    vec![Value::from(key.kind.as_str()), Value::from(text_of(key.parent)), Value::from(key.id)]
}

fn host_values(host: Key) -> Vec<Value> {
    vec![Value::from(text_of(host.parent)), Value::from(host.id)]
}

/// The strength of a row lock. The lock is held until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    /// Prevents changes by other transactions.
    Shared,
    /// Also prevents shared locks of other transactions.
    Exclusive,
}

/// Reads and locks the rows with the given keys, in the order of the keys.
pub(super) async fn look_up<S: Session>(
    connection: &mut S,
    keys: &[Key],
    lock: Lock,
) -> Result<Vec<(Key, CurrentRow)>, sqlx::Error> {
    let row = |row: &S::Row| {
        let number = row.integer("number")?;
        let key = usize::try_from(number).ok().and_then(|number| keys.get(number));
        let current = CurrentRow {
            generation: row.integer("record_generation")?,
            deleted: row.integer("deleted")? != 0,
            size: row.integer("size")?,
            checked_in_at: row.optional_integer("checked_in_at")?,
            cluster: row.optional_text("cluster_id")?.map_or(Ok(None), id_of)?,
        };
        Ok((*key.ok_or_else(|| decode_error("number of a row", number))?, current))
    };
    connection.fetch(select_current(S::DIALECT, keys, lock)?, row).await
}

pub(super) fn select_current(dialect: Dialect, keys: &[Key], lock: Lock) -> Result<Statement, sqlx::Error> {
    let end = match (dialect, lock) {
        // SQLite has only one writer, so locks are unnecessary.
        (Dialect::Sqlite, _) => "",
        (Dialect::Postgres, Lock::Shared) => " ORDER BY list.number FOR SHARE OF records",
        (Dialect::Postgres, Lock::Exclusive) => " ORDER BY list.number FOR NO KEY UPDATE OF records",
    };
    let sql = format!(
        "SELECT list.number AS number, record_generation, deleted, size, checked_in_at, cluster_id FROM list, records \
         WHERE {HAS_KEY}{end}"
    );
    let columns = [KEY.as_slice(), &[("number", ValueType::Integer)]].concat();
    let rows = (0_i64..).zip(keys).map(|(number, key)| {
        let mut values = key_values(*key);
        values.push(Value::from(number));
        values
    });
    Statement::over(dialect, &columns, rows.collect(), &sql)
}

/// Takes an advisory lock on each key until the transaction ends, because a row lock needs an existing row. Every
/// insertion takes this lock.
pub(super) async fn lock_absent<S: Session>(connection: &mut S, keys: &[Key]) -> Result<(), sqlx::Error> {
    // SQLite has only one writer.
    if S::DIALECT == Dialect::Sqlite || keys.is_empty() {
        return Ok(());
    }
    let name = |key: &Key| format!("{}/{}/{}", key.kind.as_str(), text_of(key.parent), key.id);
    let rows = keys.iter().map(|key| vec![Value::from(name(key))]).collect();
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended(list.name, 0)) FROM list";
    let lock = Statement::over(S::DIALECT, &[("name", ValueType::Text)], rows, sql)?;
    connection.has_row(lock).await.map(drop)
}

/// The columns of an inserted or replaced row.
static WRITTEN: LazyLock<Vec<(&'static str, ValueType)>> = LazyLock::new(|| {
    let columns = COLUMNS.iter().map(|column| (column.name, column.value_type));
    let others = [
        ("document", ValueType::Text),
        ("size", ValueType::Integer),
        ("schema_version", ValueType::Integer),
        ("record_generation", ValueType::Integer),
    ];
    KEY.into_iter().chain(columns).chain(others).collect()
});

/// Returns the values of a row, in the order of [`WRITTEN`].
fn written_values(row: &Row) -> Vec<Value> {
    let mut values = key_values(row.key);
    values.extend(COLUMNS.iter().map(|column| (column.write)(&row.columns)));
    values.extend([
        Value::from(row.document.as_str()),
        Value::from(size_of(row)),
        Value::from(row.schema_version),
        Value::from(row.generation),
    ]);
    values
}

fn names(columns: &[(&'static str, ValueType)]) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Returns a statement that inserts rows with their times of creation, and skips rows that exist.
pub(super) fn insert<'a>(
    dialect: Dialect,
    rows: impl Iterator<Item = (i64, &'a Row)>,
) -> Result<Statement, sqlx::Error> {
    let columns = [WRITTEN.as_slice(), &[("made_at", ValueType::Integer)]].concat();
    let rows = rows.map(|(made_at, row)| {
        let mut values = written_values(row);
        values.push(Value::from(made_at));
        values
    });
    let names = names(&columns);
    // Without a `WHERE` clause, SQLite would parse `ON` as the start of a join condition.
    let sql =
        format!("INSERT INTO records ({names}) SELECT {names} FROM list WHERE 1 = 1 ON CONFLICT DO NOTHING");
    Statement::over(dialect, &columns, rows.collect(), &sql)
}

/// Returns a statement that replaces the rows that [`look_up`] locked at the previous generation. If the stored check-in
/// of a row is later, the statement keeps it. Check-ins do not change the generation, so the row may have a later
/// check-in than when the change was planned.
pub(super) fn replace<'a>(
    dialect: Dialect,
    rows: impl Iterator<Item = &'a Row>,
) -> Result<Statement, sqlx::Error> {
    let is_of_check_in =
        |name: &str| COLUMNS.iter().any(|column| column.is_of_check_in && column.name == name);
    let assignments = WRITTEN.iter().skip(KEY.len()).map(|(name, _)| {
        if is_of_check_in(name) {
            format!(
                "{name} = CASE WHEN records.checked_in_at > list.checked_in_at THEN records.{name} \
                 ELSE list.{name} END"
            )
        } else {
            format!("{name} = list.{name}")
        }
    });
    let sql = format!(
        "UPDATE records SET {} FROM list WHERE {HAS_KEY}",
        assignments.collect::<Vec<_>>().join(", ")
    );
    Statement::over(dialect, &WRITTEN, rows.map(written_values).collect(), &sql)
}

/// Returns a statement that deletes records.
pub(super) fn remove(dialect: Dialect, keys: &[Key]) -> Result<Statement, sqlx::Error> {
    let sql = "DELETE FROM records WHERE (kind, parent, id) IN (SELECT kind, parent, id FROM list)";
    Statement::over(dialect, &KEY, keys.iter().map(|key| key_values(*key)).collect(), sql)
}

/// Returns a statement that deletes all rows of the given hosts in a table.
fn remove_of_hosts(dialect: Dialect, table: &str, hosts: &[Key]) -> Result<Statement, sqlx::Error> {
    let sql = format!(
        "DELETE FROM {table} WHERE (infra_env_id, host_id) IN (SELECT infra_env_id, host_id FROM list)"
    );
    Statement::over(dialect, &HOST, hosts.iter().map(|host| host_values(*host)).collect(), &sql)
}

pub(super) fn remove_macs(dialect: Dialect, hosts: &[Key]) -> Result<Statement, sqlx::Error> {
    remove_of_hosts(dialect, "host_macs", hosts)
}

pub(super) fn remove_all_reports(dialect: Dialect, hosts: &[Key]) -> Result<Statement, sqlx::Error> {
    remove_of_hosts(dialect, "reports", hosts)
}

fn insert_macs(dialect: Dialect, macs: &[(Key, &str)]) -> Result<Statement, sqlx::Error> {
    let columns = [HOST.as_slice(), &[("mac", ValueType::Text)]].concat();
    let rows = macs.iter().map(|(host, mac)| {
        let mut values = host_values(*host);
        values.push(Value::from(*mac));
        values
    });
    let names = names(&columns);
    let sql = format!("INSERT INTO host_macs ({names}) SELECT {names} FROM list");
    Statement::over(dialect, &columns, rows.collect(), &sql)
}

pub(super) fn remove_reports(
    dialect: Dialect,
    reports: &[(Key, ReportKind)],
) -> Result<Statement, sqlx::Error> {
    let columns = [HOST.as_slice(), &[("kind", ValueType::Text)]].concat();
    let rows = reports.iter().map(|(host, kind)| {
        let mut values = host_values(*host);
        values.push(Value::from(kind.as_str()));
        values
    });
    let names = names(&columns);
    let sql = format!("DELETE FROM reports WHERE ({names}) IN (SELECT {names} FROM list)");
    Statement::over(dialect, &columns, rows.collect(), &sql)
}

fn report_columns() -> Vec<(&'static str, ValueType)> {
    let columns = [("kind", ValueType::Text), ("size", ValueType::Integer), ("document", ValueType::Text)];
    [HOST.as_slice(), &columns].concat()
}

/// Returns the values of a report, in the order of [`report_columns`].
fn report_values((host, kind, document): &(Key, ReportKind, &str)) -> Vec<Value> {
    let mut values = host_values(*host);
    values.extend([Value::from(kind.as_str()), Value::from(len_of(document)), Value::from(*document)]);
    values
}

fn put_reports(dialect: Dialect, reports: &[(Key, ReportKind, &str)]) -> Result<Statement, sqlx::Error> {
    let columns = report_columns();
    let names = names(&columns);
    let sql = format!(
        "INSERT INTO reports ({names}) SELECT {names} FROM list WHERE 1 = 1 \
         ON CONFLICT (infra_env_id, host_id, kind) DO UPDATE SET size = excluded.size, document = excluded.document"
    );
    Statement::over(dialect, &columns, reports.iter().map(report_values).collect(), &sql)
}

/// Returns a statement that replaces the given reports where a report of the same kind exists.
pub(super) fn rewrite_reports(
    dialect: Dialect,
    reports: &[(Key, ReportKind, &str)],
) -> Result<Statement, sqlx::Error> {
    let sql = "UPDATE reports SET size = list.size, document = list.document FROM list \
               WHERE reports.infra_env_id = list.infra_env_id AND reports.host_id = list.host_id \
               AND reports.kind = list.kind";
    Statement::over(dialect, &report_columns(), reports.iter().map(report_values).collect(), sql)
}

/// Returns a statement that recomputes the sizes of hosts, and returns the sizes that change.
pub(super) fn resize(dialect: Dialect, hosts: &[Key]) -> Result<Statement, sqlx::Error> {
    // Must match `counted_size`.
    let size = format!(
        "(CAST(octet_length(records.document) AS BIGINT) \
         + CAST((SELECT COALESCE(SUM(reports.size), 0) FROM reports WHERE infra_env_id = records.parent \
         AND host_id = records.id AND {}) AS BIGINT) + 4095) / 4096 * 4096",
        super::reports::is_counted()
    );
    // Most sizes stay the same. Skipping these rows avoids rewriting their documents.
    let sql = format!(
        "UPDATE records SET size = {size} FROM list WHERE {HAS_KEY} AND records.size <> {size} \
         RETURNING records.parent AS parent, records.id AS id, records.size AS size"
    );
    Statement::over(dialect, &KEY, hosts.iter().map(|host| key_values(*host)).collect(), &sql)
}

/// Returns a statement that adds to the totals of parents.
pub(super) fn add_totals(
    dialect: Dialect,
    totals: &BTreeMap<(Kind, Uuid), Totals>,
) -> Result<Statement, sqlx::Error> {
    let columns = [
        ("kind", ValueType::Text),
        ("parent", ValueType::Text),
        ("records", ValueType::Integer),
        ("bytes", ValueType::Integer),
    ];
    let rows = totals.iter().map(|((kind, parent), change)| {
        let (kind, parent) = (Value::from(kind.as_str()), Value::from(*parent));
        vec![kind, parent, Value::from(change.records), Value::from(change.bytes)]
    });
    let names = names(&columns);
    let sql = format!(
        "INSERT INTO totals ({names}) SELECT {names} FROM list WHERE 1 = 1 \
         ON CONFLICT (kind, parent) DO UPDATE SET records = totals.records + excluded.records, \
         bytes = totals.bytes + excluded.bytes"
    );
    Statement::over(dialect, &columns, rows.collect(), &sql)
}

/// Returns a statement that deletes the totals of removed parents.
pub(super) fn remove_totals(dialect: Dialect, parents: &[Key]) -> Result<Statement, sqlx::Error> {
    let rows = parents.iter().map(|parent| vec![Value::from(parent.id)]).collect();
    let sql = "DELETE FROM totals WHERE parent IN (SELECT parent FROM list) AND records = 0 AND bytes = 0";
    Statement::over(dialect, &[("parent", ValueType::Text)], rows, sql)
}

/// Returns a statement that adds to the membership counters of clusters.
fn add_memberships(dialect: Dialect, changes: &BTreeMap<Uuid, i64>) -> Result<Statement, sqlx::Error> {
    let columns = [("cluster_id", ValueType::Text), ("changes", ValueType::Integer)];
    let rows = changes.iter().map(|(cluster, changes)| vec![Value::from(*cluster), Value::from(*changes)]);
    let names = names(&columns);
    let sql = format!(
        "INSERT INTO memberships ({names}) SELECT {names} FROM list WHERE 1 = 1 \
         ON CONFLICT (cluster_id) DO UPDATE SET changes = memberships.changes + excluded.changes"
    );
    Statement::over(dialect, &columns, rows.collect(), &sql)
}

/// Returns a statement that deletes the membership counters of clusters.
fn remove_memberships(dialect: Dialect, clusters: &[Key]) -> Result<Statement, sqlx::Error> {
    let rows = clusters.iter().map(|cluster| vec![Value::from(cluster.id)]).collect();
    let sql = "DELETE FROM memberships WHERE cluster_id IN (SELECT cluster_id FROM list)";
    Statement::over(dialect, &[("cluster_id", ValueType::Text)], rows, sql)
}

/// Writes records, MAC addresses and reports. Returns `false` if a row to insert exists already, or a row to replace
/// does not exist.
pub(super) async fn write<S: Session>(
    connection: &mut S,
    effects: &mut Effects<'_>,
) -> Result<bool, sqlx::Error> {
    let dialect = S::DIALECT;
    let Effects { removed, inserted, replaced, .. } = &*effects;
    if !removed.is_empty() {
        let clusters = removed.iter().filter(|key| key.kind == Kind::Cluster);
        let assessments = clusters.map(|cluster| Key::of_assessment(cluster.id));
        let removed: Vec<_> = removed.iter().copied().chain(assessments).collect();
        connection.execute(remove(dialect, &removed)?).await?;
    }
    if !inserted.is_empty() {
        let rows = inserted.iter().map(|(made_at, row)| (*made_at, row.as_ref()));
        if connection.execute(insert(dialect, rows)?).await? != count(inserted) {
            return Ok(false);
        }
    }
    if !replaced.is_empty() {
        let rows = replaced.iter().map(AsRef::as_ref);
        if connection.execute(replace(dialect, rows)?).await? != count(replaced) {
            return Ok(false);
        }
    }
    let removed_hosts: Vec<_> = removed.iter().filter(|key| key.kind == Kind::Host).copied().collect();
    write_macs(connection, effects, &removed_hosts).await?;
    write_reports(connection, effects, &removed_hosts).await?;
    resize_hosts(connection, effects).await?;
    Ok(true)
}

/// Returns the length of a list as a number of rows.
fn count<T>(items: &[T]) -> u64 {
    // Never saturates: that many items do not fit into memory.
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

async fn write_macs<S: Session>(
    connection: &mut S,
    effects: &Effects<'_>,
    removed: &[Key],
) -> Result<(), sqlx::Error> {
    let replaced = effects.replaced.iter().map(AsRef::as_ref);
    let stale = replaced.clone().filter(|row| row.columns.macs.is_some()).map(|row| row.key);
    let stale: Vec<_> = stale.chain(removed.iter().copied()).collect();
    if !stale.is_empty() {
        connection.execute(remove_macs(S::DIALECT, &stale)?).await?;
    }
    let rows = effects.inserted.iter().map(|(_, row)| row.as_ref()).chain(replaced);
    let macs = rows.flat_map(|row| row.columns.macs.iter().flatten().map(|mac| (row.key, mac.as_str())));
    let macs: Vec<_> = macs.collect();
    if !macs.is_empty() {
        connection.execute(insert_macs(S::DIALECT, &macs)?).await?;
    }
    Ok(())
}

async fn write_reports<S: Session>(
    connection: &mut S,
    effects: &Effects<'_>,
    removed_hosts: &[Key],
) -> Result<(), sqlx::Error> {
    if !removed_hosts.is_empty() {
        connection.execute(remove_all_reports(S::DIALECT, removed_hosts)?).await?;
    }
    if !effects.removed_reports.is_empty() {
        connection.execute(remove_reports(S::DIALECT, &effects.removed_reports)?).await?;
    }
    if !effects.put_reports.is_empty() {
        connection.execute(put_reports(S::DIALECT, &effects.put_reports)?).await?;
    }
    if !effects.rewritten_reports.is_empty() {
        connection.execute(rewrite_reports(S::DIALECT, &effects.rewritten_reports)?).await?;
    }
    Ok(())
}

async fn resize_hosts<S: Session>(connection: &mut S, effects: &mut Effects<'_>) -> Result<(), sqlx::Error> {
    let hosts: Vec<_> = effects.resized.keys().copied().collect();
    if hosts.is_empty() {
        return Ok(());
    }
    let size = |row: &S::Row| {
        let key = super::records::row_key(Kind::Host, row)?;
        Ok((key, row.integer("size")?))
    };
    for (host, size) in connection.fetch(resize(S::DIALECT, &hosts)?, size).await? {
        effects.add_size(host, size);
    }
    Ok(())
}

/// Updates the totals of parents, and deletes the totals of removed parents.
pub(super) async fn write_totals<S: Session>(
    connection: &mut S,
    effects: &Effects<'_>,
) -> Result<(), sqlx::Error> {
    let changed = effects.totals.iter().filter(|(_, change)| **change != Totals::default());
    let changed: BTreeMap<_, _> = changed.map(|(parent, change)| (*parent, *change)).collect();
    if !changed.is_empty() {
        connection.execute(add_totals(S::DIALECT, &changed)?).await?;
    }
    let parents: Vec<_> = effects.removed.iter().filter(|key| key.kind == Kind::InfraEnv).copied().collect();
    if !parents.is_empty() {
        connection.execute(remove_totals(S::DIALECT, &parents)?).await?;
    }
    Ok(())
}

/// Updates the membership counters of clusters, and deletes the counters of removed clusters.
pub(super) async fn write_memberships<S: Session>(
    connection: &mut S,
    effects: &Effects<'_>,
) -> Result<(), sqlx::Error> {
    if !effects.memberships.is_empty() {
        connection.execute(add_memberships(S::DIALECT, &effects.memberships)?).await?;
    }
    let clusters: Vec<_> = effects.removed.iter().filter(|key| key.kind == Kind::Cluster).copied().collect();
    if !clusters.is_empty() {
        connection.execute(remove_memberships(S::DIALECT, &clusters)?).await?;
    }
    Ok(())
}

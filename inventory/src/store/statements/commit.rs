//! Statements that make a change, within a transaction of the caller.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};

use super::records::{bind_key, is_out_of_bounds, select_any};
use super::values::{len_of, text_of};
use super::{check_ins, events, reports};
use crate::clock::{Clock as _, SystemClock};
use crate::event::Event;
use crate::store::session::{Dialect, Session, Statement};
use crate::store::{Changes, CheckIn, CheckInLimit, Key, Kind, Outcome, RecordChange, Row, Step, StoreError};

/// A change that is ready to be made.
#[derive(Debug, Default)]
pub(in crate::store) struct Prepared {
    /// The steps on single records, with their times, each of which is unique.
    steps: Vec<(i64, Step)>,
    /// The hosts whose sizes the database must count again, because only their reports change.
    resized: BTreeSet<Key>,
    /// The requirements that are checked after all other steps.
    requirements: Vec<Step>,
    events: Vec<(i64, Event)>,
    /// The changes of records, for the feed.
    record_changes: Vec<RecordChange>,
    /// The ids of events to delete.
    forgotten: Vec<String>,
    /// The check-ins to store.
    check_ins: Vec<CheckIn>,
    /// The limit for stored check-ins.
    check_in_limit: Option<CheckInLimit>,
    /// Whether to test that the tables can be changed.
    is_test: bool,
}

/// Statements that need the right to read each table and to add rows to it, and that change nothing.
pub(in crate::store) const TEST_STATEMENTS: [&str; 5] = [
    "INSERT INTO records SELECT * FROM records WHERE 1 = 0",
    "INSERT INTO reports SELECT * FROM reports WHERE 1 = 0",
    "INSERT INTO host_macs SELECT * FROM host_macs WHERE 1 = 0",
    "INSERT INTO events SELECT * FROM events WHERE 1 = 0",
    "INSERT INTO leases SELECT * FROM leases WHERE 1 = 0",
];

impl Prepared {
    /// Sorts the steps so that concurrent changes are safe.
    ///
    /// All changes lock rows in the order of their keys, so that no two of them wait for each other.
    /// Requirements without a key run last. A change that adds a record which [`Step::RequireNone`] excludes
    /// requires a record that this change locks. So it has either added the record before, or it waits for this change
    /// and is then overtaken.
    pub(in crate::store) fn new(changes: Changes) -> Result<Self, StoreError> {
        let mut times = unique_micros(changes.steps.len().saturating_add(changes.events.len()))..;
        let mut steps: Vec<_> =
            changes.steps.into_iter().zip(&mut times).map(|(step, time)| (time, step)).collect();
        let requirements = steps.extract_if(.., |(_, step)| step.key().is_none());
        let requirements = requirements.map(|(_, step)| step).collect();
        steps.sort_by_key(|(_, step)| step.key());
        for (_, step) in &steps {
            check(step)?;
        }
        let mut resized = BTreeSet::new();
        for (_, step) in &steps {
            if let Step::PutReport(key, ..) | Step::RemoveReport(key, _) = step {
                resized.insert(*key);
            }
        }
        for (_, step) in &steps {
            if let Step::Insert(row) | Step::Replace(row) = step
                && row.reports_len.is_some()
            {
                resized.remove(&row.key);
            }
        }
        let record_changes = steps.iter().filter_map(|(_, step)| RecordChange::from_step(step)).collect();
        Ok(Self {
            steps,
            resized,
            requirements,
            events: times.zip(changes.events).collect(),
            record_changes,
            ..Self::default()
        })
    }

    /// Returns a change that only deletes events.
    pub(in crate::store) fn forgetting(forgotten: Vec<String>) -> Self {
        Self { forgotten, ..Self::default() }
    }

    /// Returns a change that only stores check-ins.
    pub(in crate::store) fn checking_in(check_ins: Vec<CheckIn>) -> Self {
        Self { check_ins, ..Self::default() }
    }

    /// Returns a change that only replaces check-ins after a limit.
    pub(in crate::store) fn limiting_check_ins(limit: CheckInLimit) -> Self {
        Self { check_in_limit: Some(limit), ..Self::default() }
    }

    /// Returns a change that changes nothing, and fails if changes are impossible.
    pub(in crate::store) fn testing() -> Self {
        Self { is_test: true, ..Self::default() }
    }

    /// Returns the changes of records, for the feed.
    pub(in crate::store) fn record_changes(&self) -> &[RecordChange] {
        &self.record_changes
    }

    fn has_insert_of(&self, key: Key) -> bool {
        self.steps.iter().any(|(_, step)| matches!(step, Step::Insert(row) if row.key == key))
    }

    fn has_write_of(&self, key: Key) -> bool {
        let is_read =
            |step: &Step| matches!(step, Step::Require(_) | Step::RequireAt(..) | Step::RequireSilent(..));
        self.steps.iter().any(|(_, step)| !is_read(step) && step.key() == Some(key))
    }
}

/// Returns an error for a document with a NUL, which JSON must escape. PostgreSQL refuses NUL in any text, and some
/// functions of SQLite end the text there.
fn check(step: &Step) -> Result<(), StoreError> {
    match step {
        Step::Insert(Row { key, document, .. })
        | Step::Replace(Row { key, document, .. })
        | Step::PutReport(key, _, document)
            if document.contains('\0') =>
        {
            Err(StoreError::Nul { key: *key })
        }
        _ => Ok(()),
    }
}

/// Reserves `count` timestamps in microseconds that are unique in this process. Returns the first, which is not before
/// the current time.
pub(in crate::store) fn unique_micros(count: usize) -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    // Not the clock of the inventory: these numbers must increase even while the clock of a test stands still.
    let now = SystemClock.now().timestamp_micros();
    // A change with more steps does not fit into memory.
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let first = |last: i64| last.saturating_add(1).max(now);
    let taken = |last| Some(first(last).saturating_add(count));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
    first(last.unwrap_or_else(|last| last))
}

/// Makes a change. If the outcome is not [`Outcome::Done`], the caller must roll back the transaction.
pub(in crate::store) async fn apply<S: Session>(
    connection: &mut S,
    change: &Prepared,
) -> Result<Outcome, sqlx::Error> {
    if change.is_test {
        for statement in TEST_STATEMENTS {
            connection.execute(Statement::new(statement)).await?;
        }
    }
    for (asked_at, step) in &change.steps {
        if !run(connection, step, *asked_at, change).await? {
            return Ok(Outcome::Overtaken);
        }
    }
    for host in &change.resized {
        connection.execute(resize(*host)).await?;
    }
    for requirement in &change.requirements {
        let outcome = check_requirement(connection, requirement).await?;
        if outcome != Outcome::Done {
            return Ok(outcome);
        }
    }
    for (asked_at, event) in &change.events {
        connection.execute(events::insert(event, *asked_at)).await?;
    }
    if !change.forgotten.is_empty() {
        connection.execute(events::forget(S::DIALECT, &change.forgotten)).await?;
    }
    if !change.check_ins.is_empty() {
        connection.execute(check_ins::store(S::DIALECT, &change.check_ins)?).await?;
    }
    if let Some(limit) = &change.check_in_limit {
        connection.execute(check_ins::replace_after(S::DIALECT, limit)).await?;
    }
    Ok(Outcome::Done)
}

/// Runs a step on a single record. Returns `false` if another change was faster.
async fn run<S: Session>(
    connection: &mut S,
    step: &Step,
    asked_at: i64,
    change: &Prepared,
) -> Result<bool, sqlx::Error> {
    match step {
        Step::Insert(row) => {
            lock_absent(connection, row.key).await?;
            let holds = connection.execute(insert(row, asked_at)).await? == 1;
            if holds {
                set_macs(connection, row).await?;
            }
            Ok(holds)
        }
        Step::Replace(row) => {
            let holds = connection.execute(replace(row)).await? == 1;
            if holds && row.columns.macs.is_some() {
                connection.execute(remove_macs(row.key)).await?;
                set_macs(connection, row).await?;
            }
            Ok(holds)
        }
        Step::Remove(key, generation) => {
            if change.has_insert_of(*key) {
                // The insertion takes this lock too, and all changes take it before the lock of the row.
                lock_absent(connection, *key).await?;
            }
            let holds = connection.execute(remove(*key, *generation)).await? == 1;
            if holds && key.kind == Kind::Host {
                connection.execute(remove_macs(*key)).await?;
                connection.execute(reports::remove_all(*key)).await?;
            }
            Ok(holds)
        }
        Step::PutReport(host, kind, document) => {
            connection.execute(reports::put(*host, *kind, document)).await?;
            Ok(true)
        }
        Step::RemoveReport(host, kind) => {
            connection.execute(reports::remove(*host, *kind)).await?;
            Ok(true)
        }
        Step::Require(key) => connection.has_row(require(*key, S::DIALECT, change.has_write_of(*key))).await,
        Step::RequireAt(key, 0) => {
            lock_absent(connection, *key).await?;
            Ok(!connection.has_row(exists(*key)).await?)
        }
        Step::RequireAt(key, generation) => {
            let query = require_at(*key, *generation, S::DIALECT, change.has_write_of(*key));
            connection.has_row(query).await
        }
        Step::RequireSilent(host, since) => {
            connection.has_row(require_silent(*host, *since, S::DIALECT, change.has_write_of(*host))).await
        }
        Step::RequireNone(_) | Step::RequireWithin(_) => Ok(true),
    }
}

/// Locks a record that does not exist until the transaction ends, which row locks cannot. An insertion of the record
/// takes the same lock.
async fn lock_absent<S: Session>(connection: &mut S, key: Key) -> Result<(), sqlx::Error> {
    // Only one connection of SQLite writes.
    if S::DIALECT == Dialect::Postgres {
        let name = format!("{}/{}/{}", key.kind.as_str(), text_of(key.parent), key.id);
        let lock = Statement::new("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))").bind(name);
        connection.has_row(lock).await?;
    }
    Ok(())
}

/// Locks records until the transaction ends, in the order of their keys. Works in PostgreSQL only.
pub(in crate::store) async fn lock(
    connection: &mut impl Session,
    keys: &BTreeSet<Key>,
) -> Result<(), sqlx::Error> {
    for key in keys {
        lock_absent(connection, *key).await?;
        let query = "SELECT id FROM records WHERE kind = $1 AND parent = $2 AND id = $3 FOR UPDATE";
        connection.has_row(bind_key(Statement::new(query), *key)).await?;
    }
    Ok(())
}

fn exists(key: Key) -> Statement {
    bind_key(Statement::new("SELECT id FROM records WHERE kind = $1 AND parent = $2 AND id = $3"), key)
}

/// Checks a requirement that depends on all other steps.
async fn check_requirement(
    connection: &mut impl Session,
    requirement: &Step,
) -> Result<Outcome, sqlx::Error> {
    match requirement {
        Step::RequireNone(filter) if connection.has_row(select_any(*filter)).await? => Ok(Outcome::Overtaken),
        Step::RequireWithin(bound) if is_out_of_bounds(connection, *bound).await? => Ok(Outcome::OutOfBounds),
        _ => Ok(Outcome::Done),
    }
}

async fn set_macs<S: Session>(connection: &mut S, row: &Row) -> Result<(), sqlx::Error> {
    let macs = row.columns.macs.iter().flatten();
    if macs.clone().next().is_some() {
        let list = S::DIALECT.list(macs.map(String::as_str));
        connection.execute(insert_macs(S::DIALECT, row.key, list)).await?;
    }
    Ok(())
}

/// Returns a statement that finds a record that is not deleted, and locks it until the transaction ends.
fn require(key: Key, dialect: Dialect, is_written: bool) -> Statement {
    bind_key(select_and_lock("deleted = 0", dialect, is_written), key)
}

/// Returns a statement that finds a record with a generation, and locks it until the transaction ends.
fn require_at(key: Key, generation: i64, dialect: Dialect, is_written: bool) -> Statement {
    bind_key(select_and_lock("record_generation = $4", dialect, is_written), key).bind_integer(generation)
}

/// Returns a statement that finds a host without a check-in since a time, and locks it until the transaction ends.
fn require_silent(host: Key, since: i64, dialect: Dialect, is_written: bool) -> Statement {
    let condition = "(checked_in_at IS NULL OR checked_in_at < $4)";
    bind_key(select_and_lock(condition, dialect, is_written), host).bind_integer(since)
}

/// The lock is shared, unless the change also writes the record: two changes with shared locks would wait for each
/// other.
fn select_and_lock(condition: &str, dialect: Dialect, is_written: bool) -> Statement {
    let lock = match (dialect, is_written) {
        // Only one connection writes.
        (Dialect::Sqlite, _) => "",
        (Dialect::Postgres, false) => " FOR SHARE",
        (Dialect::Postgres, true) => " FOR UPDATE",
    };
    Statement::composed(format!(
        "SELECT id FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND {condition}{lock}"
    ))
}

/// The expression for the counted size of a record: the lengths of its document and of its reports, which are
/// expressions too. See [`counted_size`](crate::store::counted_size).
macro_rules! counted_size {
    ($len:literal, $reports_len:expr) => {
        concat!("(", $len, " + ", $reports_len, " + 4095) / 4096 * 4096")
    };
}

/// The expression for the length of a record's stored reports.
macro_rules! stored_reports_len {
    () => {
        "CAST((SELECT COALESCE(SUM(size), 0) FROM reports WHERE infra_env_id = $2 AND host_id = $3) AS BIGINT)"
    };
}

/// The expression for the length of a record's reports, which the writer may know. The database evaluates the second
/// part only if it does not.
macro_rules! reports_len {
    () => {
        concat!("COALESCE(CAST($15 AS BIGINT), ", stored_reports_len!(), ")")
    };
}

/// Binds the searchable parts to `$4` up to `$11`, the document to `$12`, its length to `$13`, its schema version to
/// `$14`, and the length of its reports to `$15`.
fn bind_content(query: Statement, row: &Row) -> Statement {
    let columns = &row.columns;
    query
        .bind_optional(columns.cluster.map(|id| id.to_string()))
        .bind(text_of(columns.token_key))
        .bind_integer(columns.deleted.into())
        .bind(columns.status.as_str())
        .bind(columns.role.as_str())
        .bind(columns.stage.as_str())
        .bind_optional_integer(columns.checked_in_at)
        .bind_optional_integer(columns.clock)
        .bind(row.document.as_str())
        .bind_integer(len_of(&row.document))
        .bind_integer(row.schema_version)
        .bind_optional_integer(row.reports_len.map(|len| i64::try_from(len).unwrap_or(i64::MAX)))
}

fn insert(row: &Row, made_at: i64) -> Statement {
    let query = Statement::new(concat!(
        "INSERT INTO records (kind, parent, id, cluster_id, token_key, deleted, status, role, stage, checked_in_at, \
         clock, document, size, schema_version, record_generation, made_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, ",
        counted_size!("$13", reports_len!()),
        ", $14, $16, $17) ON CONFLICT DO NOTHING"
    ));
    bind_content(bind_key(query, row.key), row).bind_integer(row.generation).bind_integer(made_at)
}

/// Returns a statement that replaces a record. A check-in since the record was read stays stored: it does not change
/// the generation.
fn replace(row: &Row) -> Statement {
    let query = Statement::new(concat!(
        "UPDATE records SET cluster_id = $4, token_key = $5, deleted = $6, status = $7, role = $8, stage = $9, \
         checked_in_at = CASE WHEN checked_in_at > $10 THEN checked_in_at ELSE $10 END, \
         clock = CASE WHEN checked_in_at > $10 THEN clock ELSE $11 END, document = $12, size = ",
        counted_size!("$13", reports_len!()),
        ", schema_version = $14, record_generation = $16 \
         WHERE kind = $1 AND parent = $2 AND id = $3 AND record_generation = $16 - 1"
    ));
    bind_content(bind_key(query, row.key), row).bind_integer(row.generation)
}

/// Returns a statement that counts the size of a record again.
fn resize(key: Key) -> Statement {
    let query = Statement::new(concat!(
        "UPDATE records SET size = ",
        counted_size!("CAST(octet_length(document) AS BIGINT)", stored_reports_len!()),
        " WHERE kind = $1 AND parent = $2 AND id = $3"
    ));
    bind_key(query, key)
}

fn remove(key: Key, generation: i64) -> Statement {
    let query = Statement::new(
        "DELETE FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND record_generation = $4",
    );
    bind_key(query, key).bind_integer(generation)
}

fn remove_macs(host: Key) -> Statement {
    let query = Statement::new("DELETE FROM host_macs WHERE infra_env_id = $1 AND host_id = $2");
    query.bind(text_of(host.parent)).bind_id(host.id)
}

fn insert_macs(dialect: Dialect, host: Key, list: String) -> Statement {
    let list_query = dialect.select_list("$1");
    let sql = format!(
        "INSERT INTO host_macs (mac, infra_env_id, host_id) SELECT text, $2, $3 FROM ({list_query}) AS list"
    );
    Statement::composed(sql).bind(list).bind(text_of(host.parent)).bind_id(host.id)
}

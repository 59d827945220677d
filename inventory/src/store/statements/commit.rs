//! Statements that make a change, within a transaction of the caller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};

use super::effects::{CurrentRow, Effects};
use super::records::{is_out_of_bounds, select_any, select_locked_membership};
use super::writes::{Lock, lock_absent, look_up, write, write_memberships, write_totals};
use super::{check_ins, events};
use crate::clock::{Clock as _, SystemClock};
use crate::event::Event;
use crate::store::session::{Cells as _, Session, Statement};
use crate::store::{Changes, Key, Outcome, RecordChange, Row, Step, StoreError};

/// A change that is ready to be made.
#[derive(Debug, Default)]
pub(in crate::store) struct Prepared {
    /// The steps on single records, with their times, each of which is unique.
    steps: Vec<(i64, Step)>,
    /// The steps that are not on single records. They run after all others.
    others: Vec<Step>,
    events: Vec<(i64, Event)>,
    /// The changes of records, for the feed.
    record_changes: Vec<RecordChange>,
    /// Whether to test that the tables can be changed.
    is_test: bool,
}

/// Statements that need the right to read each table and to add rows to it, and that change nothing.
pub(in crate::store) const TEST_STATEMENTS: [&str; 7] = [
    "INSERT INTO records SELECT * FROM records WHERE 1 = 0",
    "INSERT INTO totals SELECT * FROM totals WHERE 1 = 0",
    "INSERT INTO memberships SELECT * FROM memberships WHERE 1 = 0",
    "INSERT INTO reports SELECT * FROM reports WHERE 1 = 0",
    "INSERT INTO host_macs SELECT * FROM host_macs WHERE 1 = 0",
    "INSERT INTO events SELECT * FROM events WHERE 1 = 0",
    "INSERT INTO leases SELECT * FROM leases WHERE 1 = 0",
];

impl Prepared {
    /// Sorts the steps so that concurrent changes are safe.
    ///
    /// All changes lock first the records that may not exist, and then rows, both in the order of their keys, so that
    /// no two of them wait for each other. Requirements without a key run last. A change that adds a record which
    /// [`Step::RequireNone`] excludes requires a record that this change locks. So it has either added the record
    /// before, or it waits for this change and is then overtaken.
    pub(in crate::store) fn new(changes: Changes) -> Result<Self, StoreError> {
        let mut times = unique_micros(changes.steps.len().saturating_add(changes.events.len()))..;
        let mut steps: Vec<_> =
            changes.steps.into_iter().zip(&mut times).map(|(step, time)| (time, step)).collect();
        let others = steps.extract_if(.., |(_, step)| step.key().is_none());
        let others = others.map(|(_, step)| step).collect();
        steps.sort_by_key(|(_, step)| step.key());
        for (_, step) in &steps {
            check(step)?;
        }
        let record_changes =
            steps.iter().flat_map(|(time, step)| RecordChange::from_step(step, *time)).collect();
        Ok(Self {
            steps,
            others,
            events: times.zip(changes.events).collect(),
            record_changes,
            ..Self::default()
        })
    }

    /// Returns a change that changes nothing, and fails if changes are impossible.
    pub(in crate::store) fn testing() -> Self {
        Self { is_test: true, ..Self::default() }
    }

    /// Returns the changes of records, for the feed.
    pub(in crate::store) fn record_changes(&self) -> &[RecordChange] {
        &self.record_changes
    }

    /// Returns the records whose rows the steps depend on, in the order of their keys.
    fn looked_up(&self) -> Vec<(Key, Lock)> {
        let mut keys: Vec<(Key, Lock)> = Vec::new();
        for steps in self.steps.chunk_by(|(_, one), (_, next)| one.key() == next.key()) {
            let mut of_record = steps.iter().map(|(_, step)| step);
            let Some(key) = of_record.clone().find_map(Step::key) else { continue };
            if is_insertion(of_record.clone()) {
                continue;
            }
            let is_read = |step: &Step| {
                matches!(step, Step::Require(_) | Step::RequireAt(..) | Step::RequireSilent(..))
            };
            keys.push((key, if of_record.all(is_read) { Lock::Shared } else { Lock::Exclusive }));
        }
        keys
    }

    /// Returns the records that may not exist, in the order of their keys.
    fn absent_keys(&self) -> Vec<Key> {
        let mut keys: Vec<_> = self
            .steps
            .iter()
            .filter_map(|(_, step)| match step {
                Step::Insert(row) => Some(row.key),
                Step::RequireAt(key, 0) => Some(*key),
                _ => None,
            })
            .collect();
        keys.dedup();
        keys
    }
}

/// Returns `true` if the steps only insert a record, with reports. The insertion finds out if the record exists.
fn is_insertion<'a>(steps: impl Iterator<Item = &'a Step>) -> bool {
    let mut others = steps.filter(|step| !matches!(step, Step::PutReport(..) | Step::RemoveReport(..)));
    matches!((others.next(), others.next()), (Some(Step::Insert(_)), None))
}

/// Returns an error for a document with a NUL, which JSON must escape. PostgreSQL refuses NUL in any text, and some
/// functions of SQLite end the text there.
fn check(step: &Step) -> Result<(), StoreError> {
    match step {
        Step::Insert(Row { key, document, .. })
        | Step::Replace(Row { key, document, .. })
        | Step::PutReport(key, _, document)
        | Step::RewriteReport(key, _, document)
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
    if !change.steps.is_empty() {
        lock_absent(connection, &change.absent_keys()).await?;
        let rows = look_up_all(connection, &change.looked_up()).await?;
        let Some(mut effects) = Effects::evaluate(&change.steps, &rows) else {
            return Ok(Outcome::Overtaken);
        };
        if !write(connection, &mut effects).await? {
            return Ok(Outcome::Overtaken);
        }
        write_totals(connection, &effects).await?;
        write_memberships(connection, &effects).await?;
    }
    for step in &change.others {
        let outcome = run(connection, step).await?;
        if outcome != Outcome::Done {
            return Ok(outcome);
        }
    }
    if !change.events.is_empty() {
        connection.execute(events::insert(S::DIALECT, &change.events)?).await?;
    }
    Ok(Outcome::Done)
}

/// Reads and locks the rows of records, in the order of their keys. Consecutive keys with the same lock are one
/// statement.
async fn look_up_all(
    connection: &mut impl Session,
    keys: &[(Key, Lock)],
) -> Result<BTreeMap<Key, CurrentRow>, sqlx::Error> {
    let mut rows = BTreeMap::new();
    for run in keys.chunk_by(|(_, one), (_, next)| one == next) {
        let Some((_, lock)) = run.first() else { continue };
        let keys: Vec<_> = run.iter().map(|(key, _)| *key).collect();
        rows.extend(look_up(connection, &keys, *lock).await?);
    }
    Ok(rows)
}

/// Locks records until the transaction ends, as a change that writes all of them does. Works in PostgreSQL only.
pub(in crate::store) async fn lock(
    connection: &mut impl Session,
    keys: &BTreeSet<Key>,
) -> Result<(), sqlx::Error> {
    let keys: Vec<_> = keys.iter().copied().collect();
    lock_absent(connection, &keys).await?;
    look_up(connection, &keys, Lock::Exclusive).await.map(drop)
}

/// Runs a step that is not on a single record.
async fn run<S: Session>(connection: &mut S, step: &Step) -> Result<Outcome, sqlx::Error> {
    match step {
        Step::RequireNone(filter) if connection.has_row(select_any(*filter)).await? => {
            return Ok(Outcome::Overtaken);
        }
        Step::RequireWithin(bound) if is_out_of_bounds(connection, *bound).await? => {
            return Ok(Outcome::OutOfBounds);
        }
        Step::RequireMembership(cluster, changes) => {
            let read = select_locked_membership(S::DIALECT, *cluster);
            let current = connection.fetch_first(read, |row| row.integer("changes")).await?;
            if current.unwrap_or(0) != *changes {
                return Ok(Outcome::Overtaken);
            }
        }
        Step::StoreCheckIns(check_ins) if !check_ins.is_empty() => {
            connection.execute(check_ins::store(S::DIALECT, check_ins)?).await?;
        }
        Step::LimitCheckIns(limit) => {
            connection.execute(check_ins::replace_after(S::DIALECT, limit)).await?;
        }
        Step::ForgetEvents(events) if !events.is_empty() => {
            connection.execute(events::forget(S::DIALECT, events)).await?;
        }
        _ => {}
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, SqliteConnection};
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use crate::event::Severity;
    use crate::store::session::statement_count;
    use crate::store::{Kind, ReportKind, SqlStore, Store as _};

    /// Makes a change on a connection, and returns the number of its statements.
    async fn count_statements(connection: &mut SqliteConnection, changes: Changes) -> usize {
        let change = Prepared::new(changes).unwrap();
        let before = statement_count();
        assert_eq!(apply(connection, &change).await.unwrap(), Outcome::Done);
        statement_count() - before
    }

    #[tokio::test]
    async fn change_of_500_hosts_is_a_few_statements() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        SqlStore::open_file(&path).await.unwrap().close().await;
        let mut connection = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
        let infra_env = Uuid::new_v4();
        let host = || Key { kind: Kind::Host, parent: Some(infra_env), id: Uuid::new_v4() };
        let mut hosts: Vec<_> = (0..500).map(|_| Row::new(host(), "{}".to_owned())).collect();
        for (number, row) in hosts.iter_mut().enumerate() {
            row.reports_len = Some(2);
            row.columns.macs =
                Some(BTreeSet::from([format!("52:54:00:00:{:02x}:{:02x}", number / 256, number % 256)]));
        }
        let put = |row: &Row| Step::PutReport(row.key, ReportKind::Inventory, "{}".to_owned());
        let event =
            |row: &Row| Event::new("changed", Severity::Info, row.key.id.to_string(), chrono::Utc::now());
        let events = || hosts.iter().map(event).collect();
        let inserted = Changes { steps: hosts.iter().cloned().map(Step::Insert).collect(), events: events() };
        // Rows, MAC addresses, totals and events.
        assert_eq!(count_statements(&mut connection, inserted).await, 4);
        let steps = hosts.iter().flat_map(|row| {
            let replaced = Row { generation: 2, ..row.clone() };
            [Step::Replace(replaced), put(row)]
        });
        let replaced = Changes { steps: steps.collect(), events: events() };
        // One that reads the rows; totals stay the same, and old MAC addresses and reports are written.
        assert_eq!(count_statements(&mut connection, replaced).await, 6);
        let removed =
            Changes { steps: hosts.iter().map(|row| Step::Remove(row.key, 2)).collect(), events: Vec::new() };
        // Rows are read, and deleted with MAC addresses, reports and totals.
        assert_eq!(count_statements(&mut connection, removed).await, 5);
        connection.close().await.unwrap();
    }
}

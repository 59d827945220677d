//! Applies one change to the database, inside a transaction of the caller.
//!
//! A change is applied in this order:
//!
//! 1. Lock and read the affected rows.
//! 2. Check the requirements on single records.
//! 3. Write records, reports, totals and memberships.
//! 4. Run the steps that address no single record.
//! 5. Insert the events.

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

/// A change whose steps are sorted for locking, ready for [`apply`].
#[derive(Debug, Default)]
pub(in crate::store) struct Prepared {
    /// The steps that address one record each, sorted by its key. Each step has a unique timestamp in microseconds.
    steps: Vec<(i64, Step)>,
    /// The steps that address no single record, such as [`Step::RequireNone`]. They run after all keyed steps.
    unkeyed_steps: Vec<Step>,
    events: Vec<(i64, Event)>,
    /// The changes to publish on the change feed after the commit.
    record_changes: Vec<RecordChange>,
    /// Whether [`apply`] first runs [`TEST_STATEMENTS`].
    is_test: bool,
}

/// Statements that need permission to read every table and to insert into it, but insert no rows.
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
    /// Sorts the steps so that concurrent changes neither deadlock nor invalidate each other's requirements.
    ///
    /// Every change takes its locks in the same order, so no two changes wait for each other. It first locks the keys
    /// of records that may not exist, and then the existing rows, each group in key order.
    ///
    /// Steps without a key run last, so [`Step::RequireNone`] sees the effects of all other steps. A concurrent change
    /// can insert a matching record only if it also requires a record that this change locks. So either the other
    /// change is already committed, or it waits for this change and then conflicts with it.
    pub(in crate::store) fn new(changes: Changes) -> Result<Self, StoreError> {
        let mut times = unique_micros(changes.steps.len().saturating_add(changes.events.len()))..;
        let mut steps: Vec<_> =
            changes.steps.into_iter().zip(&mut times).map(|(step, time)| (time, step)).collect();
        let unkeyed_steps = steps.extract_if(.., |(_, step)| step.key().is_none());
        let unkeyed_steps = unkeyed_steps.map(|(_, step)| step).collect();
        steps.sort_by_key(|(_, step)| step.key());
        for (_, step) in &steps {
            reject_nul(step)?;
        }
        let record_changes =
            steps.iter().flat_map(|(time, step)| RecordChange::from_step(step, *time)).collect();
        Ok(Self {
            steps,
            unkeyed_steps,
            events: times.zip(changes.events).collect(),
            record_changes,
            ..Self::default()
        })
    }

    /// Returns a change without effects. Applying it fails if the tables cannot be changed.
    pub(in crate::store) fn testing() -> Self {
        Self { is_test: true, ..Self::default() }
    }

    pub(in crate::store) fn record_changes(&self) -> &[RecordChange] {
        &self.record_changes
    }

    /// Returns the keys of the rows that the steps read, in key order, each with the lock to take.
    ///
    /// Records that are only inserted are left out: they have no row, and the insertion itself detects an existing one.
    fn keys_to_lock(&self) -> Vec<(Key, Lock)> {
        let mut keys: Vec<(Key, Lock)> = Vec::new();
        for steps in self.steps.chunk_by(|(_, one), (_, next)| one.key() == next.key()) {
            let mut record_steps = steps.iter().map(|(_, step)| step);
            let Some(key) = record_steps.clone().find_map(Step::key) else { continue };
            if is_insertion(record_steps.clone()) {
                continue;
            }
            let is_requirement = |step: &Step| {
                matches!(step, Step::Require(_) | Step::RequireAt(..) | Step::RequireSilent(..))
            };
            keys.push((key, if record_steps.all(is_requirement) { Lock::Shared } else { Lock::Exclusive }));
        }
        keys
    }

    /// Returns the keys of records that may not exist, in key order.
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

/// Returns `true` if the steps only insert a record and store or remove its reports.
fn is_insertion<'a>(steps: impl Iterator<Item = &'a Step>) -> bool {
    let mut others = steps.filter(|step| !matches!(step, Step::PutReport(..) | Step::RemoveReport(..)));
    matches!((others.next(), others.next()), (Some(Step::Insert(_)), None))
}

/// Returns an error if the document of a step contains NUL. JSON must escape NUL, PostgreSQL rejects it in any text,
/// and some SQLite functions treat it as the end of the text.
fn reject_nul(step: &Step) -> Result<(), StoreError> {
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

/// Reserves `count` consecutive timestamps, in microseconds, that are unique in this process. Returns the first one,
/// which is not before the current time.
pub(in crate::store) fn unique_micros(count: usize) -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    // Always the system clock: the numbers must increase even while a test stops the inventory's clock.
    let now = SystemClock.now().timestamp_micros();
    // Never saturates: that many steps do not fit into memory.
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let first = |last: i64| last.saturating_add(1).max(now);
    let reserve = |last| Some(first(last).saturating_add(count));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
    first(last.unwrap_or_else(|last| last))
}

/// Runs the steps of a change. Unless the outcome is [`Outcome::Done`], the caller must roll back the transaction.
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
        let rows = look_up_all(connection, &change.keys_to_lock()).await?;
        let Some(mut effects) = Effects::evaluate(&change.steps, &rows) else {
            return Ok(Outcome::Overtaken);
        };
        if !write(connection, &mut effects).await? {
            return Ok(Outcome::Overtaken);
        }
        write_totals(connection, &effects).await?;
        write_memberships(connection, &effects).await?;
    }
    for step in &change.unkeyed_steps {
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

/// Reads and locks rows in key order. Consecutive keys with the same lock share one statement.
async fn look_up_all(
    connection: &mut impl Session,
    keys: &[(Key, Lock)],
) -> Result<BTreeMap<Key, CurrentRow>, sqlx::Error> {
    let mut rows = BTreeMap::new();
    for batch in keys.chunk_by(|(_, one), (_, next)| one == next) {
        let Some((_, lock)) = batch.first() else { continue };
        let keys: Vec<_> = batch.iter().map(|(key, _)| *key).collect();
        rows.extend(look_up(connection, &keys, *lock).await?);
    }
    Ok(rows)
}

/// Locks records until the transaction ends, like a change that writes all of them. SQLite needs no such locks.
pub(in crate::store) async fn lock(
    connection: &mut impl Session,
    keys: &BTreeSet<Key>,
) -> Result<(), sqlx::Error> {
    let keys: Vec<_> = keys.iter().copied().collect();
    lock_absent(connection, &keys).await?;
    look_up(connection, &keys, Lock::Exclusive).await.map(drop)
}

/// Runs a step that addresses no single record.
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

    /// Applies a change and returns the number of SQL statements that it ran.
    async fn count_statements(connection: &mut SqliteConnection, changes: Changes) -> usize {
        let change = Prepared::new(changes).unwrap();
        let previous = statement_count();
        assert_eq!(apply(connection, &change).await.unwrap(), Outcome::Done);
        statement_count() - previous
    }

    #[tokio::test]
    async fn change_of_500_hosts_runs_few_statements() {
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
        let put_inventory = |row: &Row| Step::PutReport(row.key, ReportKind::Inventory, "{}".to_owned());
        let event =
            |row: &Row| Event::new("changed", Severity::Info, row.key.id.to_string(), chrono::Utc::now());
        let events = || hosts.iter().map(event).collect();
        let insertion =
            Changes { steps: hosts.iter().cloned().map(Step::Insert).collect(), events: events() };
        // One statement each for rows, MAC addresses, totals and events.
        assert_eq!(count_statements(&mut connection, insertion).await, 4);
        let steps = hosts.iter().flat_map(|row| {
            let new_row = Row { generation: 2, ..row.clone() };
            [Step::Replace(new_row), put_inventory(row)]
        });
        let replacement = Changes { steps: steps.collect(), events: events() };
        // Reads the rows, then writes rows, reports and events, and deletes and inserts MAC addresses. The totals stay
        // the same.
        assert_eq!(count_statements(&mut connection, replacement).await, 6);
        let removal =
            Changes { steps: hosts.iter().map(|row| Step::Remove(row.key, 2)).collect(), events: Vec::new() };
        // Reads the rows, then deletes rows, MAC addresses and reports, and updates the totals.
        assert_eq!(count_statements(&mut connection, removal).await, 5);
        connection.close().await.unwrap();
    }
}

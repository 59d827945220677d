//! Statements that carry out a change, within a transaction of the caller.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::Utc;
use sqlx::AnyConnection;

use super::rows::{any_of, named, out_of_bounds, text_of};
use super::{AnyQuery, Dialect, events};
use crate::inventory::event::Event;
use crate::inventory::store::{Changes, Key, Outcome, Row, Step, StoreError, counted_size};

/// A change that can be carried out.
#[derive(Debug)]
pub(super) struct Prepared {
    /// With the times at which they were asked for: no two things have the same.
    steps: Vec<(i64, Step)>,
    events: Vec<(i64, Event)>,
    /// The ids of events that go.
    forgotten: Vec<String>,
}

impl Prepared {
    /// Puts the steps in an order that is good under concurrency.
    ///
    /// All changes take the locks of rows in the order of their keys, so that no two of them wait for each other. What must
    /// not be there is looked for last: whoever adds such a record requires one that this change locks, so it either has
    /// been added by now, or waits and then finds that it is overtaken.
    pub(super) fn new(changes: Changes) -> Result<Self, StoreError> {
        let mut times = ticks(changes.steps.len().saturating_add(changes.events.len()))..;
        let mut steps: Vec<_> =
            changes.steps.into_iter().zip(&mut times).map(|(step, time)| (time, step)).collect();
        steps.sort_by_key(|(_, step)| (step.key().is_none(), step.key()));
        for (_, step) in &steps {
            check(step)?;
        }
        Ok(Self { steps, events: times.zip(changes.events).collect(), forgotten: Vec::new() })
    }

    /// Events go, and nothing else happens.
    pub(super) fn forgetting(forgotten: Vec<String>) -> Self {
        Self { steps: Vec::new(), events: Vec::new(), forgotten }
    }

    fn writes(&self, key: Key) -> bool {
        self.steps.iter().any(|(_, step)| !matches!(step, Step::Require(_)) && step.key() == Some(key))
    }
}

impl Step {
    /// The record that it is about, if it is about one.
    fn key(&self) -> Option<Key> {
        match self {
            Self::Insert(row) | Self::Replace(row) => Some(row.key),
            Self::Remove(key, _) | Self::Require(key) => Some(*key),
            Self::RequireNone(_) | Self::RequireWithin(_) => None,
        }
    }
}

/// JSON escapes NUL. PostgreSQL would refuse it in any text, SQLite would end the text there for some of its functions.
fn check(step: &Step) -> Result<(), StoreError> {
    match step {
        Step::Insert(row) | Step::Replace(row) if row.document.contains('\0') => {
            Err(StoreError::Nul { key: row.key })
        }
        _ => Ok(()),
    }
}

/// The first of so many microseconds that this process gives to nothing else, at or after the time on the clock.
fn ticks(count: usize) -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = Utc::now().timestamp_micros();
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let first = |last: i64| last.saturating_add(1).max(now);
    let taken = |last| Some(first(last).saturating_add(count));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
    first(last.unwrap_or_else(|last| last))
}

/// Carries out a change. Unless it is done, the caller has to roll back what was done so far.
pub(super) async fn apply(
    connection: &mut AnyConnection,
    dialect: Dialect,
    change: &Prepared,
) -> Result<Outcome, sqlx::Error> {
    for (asked_at, step) in &change.steps {
        let holds = match step {
            Step::Insert(row) => is_changed(insert(row, *asked_at), connection).await?,
            Step::Replace(row) => is_changed(replace(row), connection).await?,
            Step::Remove(key, generation) => is_changed(remove(*key, *generation), connection).await?,
            Step::Require(key) => {
                let query = require(*key, dialect, change.writes(*key));
                query.fetch_optional(&mut *connection).await?.is_some()
            }
            Step::RequireNone(filter) => any_of(*filter).fetch_optional(&mut *connection).await?.is_none(),
            Step::RequireWithin(bound) => {
                if out_of_bounds(*bound).fetch_optional(&mut *connection).await?.is_some() {
                    return Ok(Outcome::OutOfBounds);
                }
                true
            }
        };
        if !holds {
            return Ok(Outcome::Overtaken);
        }
    }
    for (asked_at, event) in &change.events {
        events::insert(event, *asked_at).execute(&mut *connection).await?;
    }
    if !change.forgotten.is_empty() {
        events::forget(dialect, &change.forgotten).execute(&mut *connection).await?;
    }
    Ok(Outcome::Done)
}

async fn is_changed(query: AnyQuery, connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    Ok(query.execute(connection).await?.rows_affected() == 1)
}

/// A statement that finds a record which is not deleted, and keeps it as it is until the transaction ends. Many may do
/// that to one record at once, unless they go on to change it: each would wait for the others.
fn require(key: Key, dialect: Dialect, is_written: bool) -> AnyQuery {
    macro_rules! locked {
        ($lock:literal) => {
            concat!(
                "SELECT id FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND deleted = 0",
                $lock
            )
        };
    }
    let sql = match (dialect, is_written) {
        // There is one writer.
        (Dialect::Sqlite, _) => locked!(""),
        (Dialect::Postgres, false) => locked!(" FOR SHARE"),
        (Dialect::Postgres, true) => locked!(" FOR UPDATE"),
    };
    named(sqlx::query(sql), key)
}

fn size_of(row: &Row) -> i64 {
    i64::try_from(counted_size(&row.document)).unwrap_or(i64::MAX)
}

fn insert(row: &Row, made_at: i64) -> AnyQuery {
    let query = sqlx::query(
        "INSERT INTO records (kind, parent, id, cluster_id, token_key, deleted, generation, made_at, document, size) \
         VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9) ON CONFLICT DO NOTHING",
    );
    named(query, row.key)
        .bind(row.cluster.map(|id| id.to_string()))
        .bind(text_of(row.token_key))
        .bind(i64::from(row.deleted))
        .bind(made_at)
        .bind(row.document.clone())
        .bind(size_of(row))
}

fn replace(row: &Row) -> AnyQuery {
    let query = sqlx::query(
        "UPDATE records SET cluster_id = $4, token_key = $5, deleted = $6, generation = $7, document = $8, size = $9 \
         WHERE kind = $1 AND parent = $2 AND id = $3 AND generation = $7 - 1",
    );
    named(query, row.key)
        .bind(row.cluster.map(|id| id.to_string()))
        .bind(text_of(row.token_key))
        .bind(i64::from(row.deleted))
        .bind(row.generation)
        .bind(row.document.clone())
        .bind(size_of(row))
}

fn remove(key: Key, generation: i64) -> AnyQuery {
    let query =
        sqlx::query("DELETE FROM records WHERE kind = $1 AND parent = $2 AND id = $3 AND generation = $4");
    named(query, key).bind(generation)
}

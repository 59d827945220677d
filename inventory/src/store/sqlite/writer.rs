//! The only writer of a SQLite file, which commits waiting changes together.
//!
//! SQLite allows one write transaction at a time, and each commit waits for the disk. So the writer commits all waiting
//! changes in one transaction. Each change has a savepoint, so it can fail or conflict and be rolled back alone.
//! Callers get their results only after the commit. A caller waits for a limited time, but the writer completes its
//! change even after that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, SqliteConnection, Transaction};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::OwnedFile;
use crate::store::failure::{PATIENCE, store_error};
use crate::store::statements::commit::{Prepared, apply};
use crate::store::{Feed, Outcome, StoreError};

/// Maximum number of changes in the queue. If it is full, further callers wait.
const MAX_WAITING: usize = 256;
/// Maximum number of changes in one transaction. All of them wait for the same commit.
const MAX_TOGETHER: usize = 64;

pub(super) const WRITING: &str = "writing a change";

/// The queue of changes to a file, and the task that commits them.
#[derive(Debug)]
pub(in crate::store) struct Writer {
    /// `None` after the writer has stopped accepting changes.
    queue: Mutex<Option<mpsc::Sender<QueuedChange>>>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    /// Start time of the running transaction, if any.
    running_since: RunningSince,
    /// Time limit for callers and for a transaction.
    patience: Duration,
}

type RunningSince = Arc<Mutex<Option<Instant>>>;

/// A change in the queue, with the channel for its result.
#[derive(Debug)]
struct QueuedChange {
    change: Prepared,
    result_sender: oneshot::Sender<Result<Outcome, StoreError>>,
}

impl Writer {
    /// Starts the writer with an open connection. If the connection fails, the writer opens a new one with `options`.
    pub(super) fn start(
        connection: SqliteConnection,
        options: SqliteConnectOptions,
        (file, feed): (Arc<OwnedFile>, Feed),
    ) -> Self {
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        let running_since = RunningSince::default();
        let task = WriterTask {
            connection: Some(connection),
            options,
            feed,
            running_since: Arc::clone(&running_since),
            _file: file,
        };
        let task = tokio::sync::Mutex::new(Some(tokio::spawn(task.run(waiting))));
        Self { queue: Mutex::new(Some(queue)), task, running_since, patience: PATIENCE }
    }

    fn queue(&self) -> Option<mpsc::Sender<QueuedChange>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns `true` if the running transaction exceeds the time limit, for example because the disk does not respond.
    pub(in crate::store) fn is_stuck(&self) -> bool {
        let running_since = *self.running_since.lock().unwrap_or_else(PoisonError::into_inner);
        running_since.is_some_and(|start| start.elapsed() >= self.patience)
    }

    /// Makes a change. The change may still be made after the caller stops waiting or reaches the time limit.
    pub(in crate::store) async fn commit(&self, change: Prepared) -> Result<Outcome, StoreError> {
        let committed = tokio::time::timeout(self.patience, self.enqueue(change)).await;
        committed.unwrap_or(Err(StoreError::Silent { doing: WRITING }))
    }

    async fn enqueue(&self, change: Prepared) -> Result<Outcome, StoreError> {
        let queue = self.queue().ok_or(StoreError::Closed)?;
        let (result_sender, result) = oneshot::channel();
        queue.send(QueuedChange { change, result_sender }).await.map_err(|_| StoreError::Closed)?;
        // The writer task ends when the last sender of the queue is dropped.
        drop(queue);
        result.await.map_err(|_| StoreError::Closed)?
    }

    /// Stops accepting changes, and waits until all accepted changes have been written.
    pub(in crate::store) async fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut task = self.task.lock().await;
        if let Some(Err(error)) = futures_util::future::OptionFuture::from(task.take()).await {
            tracing::error!(%error, "the database writer failed");
        }
    }
}

struct WriterTask {
    connection: Option<SqliteConnection>,
    options: SqliteConnectOptions,
    feed: Feed,
    running_since: RunningSince,
    /// The database file, which stays locked until the last change is written.
    _file: Arc<OwnedFile>,
}

impl WriterTask {
    async fn run(mut self, mut waiting: mpsc::Receiver<QueuedChange>) {
        let mut batch = Vec::with_capacity(MAX_TOGETHER);
        while waiting.recv_many(&mut batch, MAX_TOGETHER).await > 0 {
            self.set_running_since(Some(Instant::now()));
            let result = self.write(&batch).await;
            self.set_running_since(None);
            match result {
                Ok(outcomes) => {
                    self.publish_done(&batch, &outcomes);
                    for (waiting, outcome) in batch.drain(..).zip(outcomes) {
                        // The caller may have stopped waiting.
                        let _ =
                            waiting.result_sender.send(outcome.map_err(|error| store_error(WRITING, error)));
                    }
                }
                Err(error) => self.fail(&mut batch, error),
            }
        }
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::error!(%error, "could not close the database");
        }
    }

    /// Fails all changes of a batch with a connection error. The changes may or may not be on disk.
    fn fail(&mut self, batch: &mut Vec<QueuedChange>, error: sqlx::Error) {
        self.connection = None;
        let source = Arc::new(error);
        for waiting in batch.drain(..) {
            // The change is published because it may be on disk.
            self.feed.publish(waiting.change.record_changes());
            // The caller may have stopped waiting.
            let _ = waiting.result_sender.send(Err(store_error(WRITING, Arc::clone(&source))));
        }
    }

    fn set_running_since(&self, start: Option<Instant>) {
        *self.running_since.lock().unwrap_or_else(PoisonError::into_inner) = start;
    }

    /// Publishes the committed changes, including changes whose callers no longer wait.
    fn publish_done(&self, batch: &[QueuedChange], outcomes: &[Result<Outcome, sqlx::Error>]) {
        for (waiting, outcome) in batch.iter().zip(outcomes) {
            if matches!(outcome, Ok(Outcome::Done)) {
                self.feed.publish(waiting.change.record_changes());
            }
        }
    }

    /// Commits a batch of changes. The outer error fails all of them, and an inner error fails one change.
    async fn write(
        &mut self,
        batch: &[QueuedChange],
    ) -> Result<Vec<Result<Outcome, sqlx::Error>>, sqlx::Error> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.options.connect().await?),
        };
        // `IMMEDIATE` takes the write lock first. A transaction that begins with a read fails if another connection
        // writes before it does.
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        if let [only] = batch {
            // A single change needs no savepoint, which saves two statements.
            return Ok(vec![try_change(transaction, &only.change).await?]);
        }
        let mut outcomes = Vec::with_capacity(batch.len());
        for waiting in batch {
            let savepoint = transaction.begin().await?;
            outcomes.push(try_change(savepoint, &waiting.change).await?);
        }
        transaction.commit().await?;
        Ok(outcomes)
    }
}

/// Makes a change in a transaction or savepoint, and commits or rolls it back. The outer error is an error of the
/// connection, and the inner error affects only this change.
async fn try_change(
    mut transaction: Transaction<'_, Sqlite>,
    change: &Prepared,
) -> Result<Result<Outcome, sqlx::Error>, sqlx::Error> {
    match apply(&mut *transaction, change).await {
        Ok(Outcome::Done) => {
            transaction.commit().await?;
            Ok(Ok(Outcome::Done))
        }
        Ok(outcome) => {
            transaction.rollback().await?;
            Ok(Ok(outcome))
        }
        // After errors such as a full disk, SQLite may have rolled back the whole transaction, so the whole batch
        // fails.
        Err(error) if transaction.rollback().await.is_err() => Err(error),
        Err(error) => Ok(Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use crate::store::statements::records;
    use crate::store::{Changes, Key, Kind, Row, Step, sqlite};

    #[tokio::test]
    async fn stuck_writer_is_reported_and_completes_the_change() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        let mut parts = sqlite::open(&path, true, Feed::of_own_database()).await.unwrap();
        parts.writer.patience = Duration::from_millis(100);
        let mut blocker = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
        let transaction = blocker.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let key = Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() };
        let changes =
            Changes { steps: vec![Step::Insert(Row::new(key, "{}".to_owned()))], events: Vec::new() };

        assert!(!parts.writer.is_stuck());
        let error = parts.writer.commit(Prepared::new(changes).unwrap()).await.unwrap_err();
        assert!(matches!(error, StoreError::Silent { .. }), "{error}");
        while !parts.writer.is_stuck() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }

        transaction.rollback().await.unwrap();
        let mut reader = parts.pool.acquire().await.unwrap();
        while records::get(&mut *reader, key).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The writer needs a moment to record the end of the transaction.
        while parts.writer.is_stuck() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        blocker.close().await.unwrap();
        parts.writer.close().await;
    }
}

//! The one writer of a SQLite file.
//!
//! Only one transaction at a time can write to the file, and each waits for the disk. So the changes that wait are taken
//! together: each runs in a savepoint, which alone is rolled back when the change is overtaken or fails, and one commit
//! brings all of them to the disk. Nobody hears of a change before that.

use std::sync::{Arc, Mutex, PoisonError};

use sqlx::{AnyConnection, Connection};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::apply::{Prepared, apply};
use super::place::OwnedFile;
use super::{Dialect, connect, failed};
use crate::inventory::store::{Outcome, StoreError};

/// What waits beyond that waits with its caller.
const MOST_WAITING: usize = 256;
/// The first of a transaction waits for the last.
const MOST_TOGETHER: usize = 64;

const DOING: &str = "a change is written";

/// Takes changes for a file.
#[derive(Debug)]
pub(super) struct Writer {
    /// Gone when the writer takes nothing more.
    queue: Mutex<Option<mpsc::Sender<Waiting>>>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// A change, and who waits for it.
#[derive(Debug)]
struct Waiting {
    change: Prepared,
    answer: oneshot::Sender<Result<Outcome, StoreError>>,
}

impl Writer {
    /// Starts with a connection; `url` is for the next one, should this one fail.
    pub(super) fn start(connection: AnyConnection, url: String, file: Arc<OwnedFile>) -> Self {
        let (queue, waiting) = mpsc::channel(MOST_WAITING);
        let task = Task { connection: Some(connection), url, _file: file };
        let task = tokio::spawn(task.run(waiting));
        Self { queue: Mutex::new(Some(queue)), task: tokio::sync::Mutex::new(Some(task)) }
    }

    fn queue(&self) -> Option<mpsc::Sender<Waiting>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it still takes changes.
    pub(super) fn is_open(&self) -> bool {
        self.queue().is_some_and(|queue| !queue.is_closed())
    }

    pub(super) async fn commit(&self, change: Prepared) -> Result<Outcome, StoreError> {
        let queue = self.queue().ok_or(StoreError::Closed)?;
        let (answer, answered) = oneshot::channel();
        queue.send(Waiting { change, answer }).await.map_err(|_| StoreError::Closed)?;
        // The writer ends when nobody holds the queue.
        drop(queue);
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Takes nothing more, and waits until all that was taken is on the disk.
    pub(super) async fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut task = self.task.lock().await;
        if let Some(Err(error)) = futures_util::future::OptionFuture::from(task.take()).await {
            tracing::error!(%error, "the writer of the database failed");
        }
    }
}

struct Task {
    connection: Option<AnyConnection>,
    url: String,
    /// It is ours for as long as something is written.
    _file: Arc<OwnedFile>,
}

impl Task {
    async fn run(mut self, mut waiting: mpsc::Receiver<Waiting>) {
        let mut batch = Vec::with_capacity(MOST_TOGETHER);
        while waiting.recv_many(&mut batch, MOST_TOGETHER).await > 0 {
            match self.write(&batch).await {
                Ok(outcomes) => {
                    for (waiting, outcome) in batch.drain(..).zip(outcomes) {
                        // Who does not wait any more has nothing to hear.
                        let _ = waiting.answer.send(outcome.map_err(|error| failed(DOING, error)));
                    }
                }
                Err(error) => {
                    // What the connection is amidst of is not known.
                    self.connection = None;
                    let source = Arc::new(error);
                    for waiting in batch.drain(..) {
                        let _ = waiting.answer.send(Err(failed(DOING, Arc::clone(&source))));
                    }
                }
            }
        }
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::error!(%error, "the database cannot be closed");
        }
    }

    /// Brings changes to the disk together. An error is one of all of them; the inner ones are of one change alone.
    async fn write(&mut self, batch: &[Waiting]) -> Result<Vec<Result<Outcome, sqlx::Error>>, sqlx::Error> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(connect(&self.url, Dialect::Sqlite).await?),
        };
        // Who reads first and writes then may find that another wrote in between, and fails.
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for waiting in batch {
            let mut savepoint = transaction.begin().await?;
            let outcome = apply(&mut savepoint, Dialect::Sqlite, &waiting.change).await;
            match outcome {
                Ok(Outcome::Done) => savepoint.commit().await?,
                Ok(_) => savepoint.rollback().await?,
                // SQLite may have rolled all of it back, as on a full disk: then there is no savepoint.
                Err(error) => {
                    if savepoint.rollback().await.is_err() {
                        return Err(error);
                    }
                    outcomes.push(Err(error));
                    continue;
                }
            }
            outcomes.push(outcome);
        }
        transaction.commit().await?;
        Ok(outcomes)
    }
}

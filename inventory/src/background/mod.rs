//! Background tasks: work that no request waits for. One driver runs all tasks of a process.
//!
//! Each task is a file in `tasks`. It runs at intervals, when a record that it depends on changes, and again after a
//! failure. Some tasks must run on only one of the replicas that share a database: the leader.

mod attempt;
mod dirty;
mod driver;
mod leader;
mod task;
mod tasks;

pub use attempt::JobOutcome;
pub use tasks::SILENCE;

use futures_util::future::BoxFuture;

use crate::Inventory;

/// Runs all background tasks until `end` completes. Then starts no more runs, waits a few seconds for running tasks,
/// and releases the lease of the leader, so that another replica takes over immediately.
///
/// If the future is dropped, the tasks end as if the process were killed.
pub fn run(inventory: Inventory, end: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
    // The driver is compiled here, and not again for each type of `end`.
    run_until(inventory, Box::pin(end))
}

fn run_until(inventory: Inventory, end: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let changes = inventory.records().store().feed().subscribe();
        let tasks = tasks::all(&inventory);
        let driver = driver::Driver::new(tasks, Box::new(inventory.clone()), inventory.tasks());
        tokio::select! {
            () = driver.run(end) => {}
            () = driver.mark_changes(changes) => {}
        }
    })
}

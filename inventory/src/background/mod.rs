//! The work that no request waits for: one driver that runs all background tasks of a process.
//!
//! Each task is a file in `tasks`. It runs at intervals and when a record changes that it depends on, and is repeated
//! after a failure. Of the replicas with one database, the leader runs the tasks that only one of them must run.

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

/// Runs all background tasks until `end` completes. Then starts no further run, waits a few seconds for those in
/// progress, and gives up the lease of the leader, so that another replica takes over immediately.
///
/// If the future is dropped, the tasks end as if the process were killed.
pub fn run(inventory: Inventory, end: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
    // The driver is compiled here, not with each type of `end`.
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

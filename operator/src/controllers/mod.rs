//! The controllers. Each controller makes the objects of one kind and the records of the inventory consistent.

pub(crate) mod agent;
pub(crate) mod classification;
pub(crate) mod infra_env;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use tokio::task::JoinSet;

use crate::metrics::ControllerMetrics;
use crate::object::ObjectKey;
use crate::queue::{Next, Queue};

/// A controller for the objects of one kind.
pub(crate) trait Controller: Send + Sync + 'static {
    /// The name of the controller in logs and metrics.
    const NAME: &'static str;

    /// Reconciles one object. The object may no longer exist.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Next> + Send;
}

/// Reconciles the objects of a queue, several at the same time. Never returns. If the future is dropped, running
/// attempts are aborted.
pub(crate) async fn run<C: Controller>(
    controller: Arc<C>,
    queue: Queue<ObjectKey>,
    workers: usize,
    metrics: ControllerMetrics,
) {
    let mut tasks = JoinSet::new();
    for _ in 0..workers {
        let (controller, queue, metrics) = (Arc::clone(&controller), queue.clone(), metrics.clone());
        tasks.spawn(async move {
            loop {
                let claim = Claim::new(&queue).await;
                let begin = Instant::now();
                let next = attempt(&*controller, &claim.key).await;
                metrics.add(begin.elapsed(), next);
                claim.finish(next);
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// Reconciles an object. A panic counts as a failed attempt.
async fn attempt<C: Controller>(controller: &C, key: &ObjectKey) -> Next {
    AssertUnwindSafe(controller.reconcile(key)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(controller = C::NAME, object = %key, "reconciliation panicked, will retry");
        Next::BackOff
    })
}

/// The claim of a worker on an object that it reconciles. If the claim is dropped, because this replica is no longer
/// the leader, another worker can reconcile the object.
struct Claim<'a> {
    queue: &'a Queue<ObjectKey>,
    key: ObjectKey,
    next: Option<Next>,
}

impl<'a> Claim<'a> {
    /// Waits for a due object, and claims it.
    async fn new(queue: &'a Queue<ObjectKey>) -> Self {
        Self { key: queue.next().await, queue, next: None }
    }

    fn finish(mut self, next: Next) {
        self.next = Some(next);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        match self.next {
            Some(next) => self.queue.finish(self.key.clone(), next),
            None => self.queue.abandon(&self.key),
        }
    }
}

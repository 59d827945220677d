//! The controllers: each brings the objects of one kind and the records of the inventory into agreement.

pub(crate) mod agent;
pub(crate) mod classification;
pub(crate) mod infra_env;

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use crate::metrics::ControllerMetrics;
use crate::object::ObjectKey;
use crate::queue::{Next, Queue};

/// A controller of one kind.
pub(crate) trait Controller: Send + Sync + 'static {
    /// The name in logs and metrics.
    const NAME: &'static str;

    /// Reconciles one object, which may not exist any more.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Next> + Send;
}

/// Reconciles the objects of a queue, several at the same time. Never returns. If it is dropped, the attempts end.
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
                let key = queue.next().await;
                let begin = Instant::now();
                let next = attempt(&controller, &key).await;
                metrics.add(begin.elapsed(), next);
                queue.finish(key, next);
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// Reconciles an object. A panic is an attempt that failed.
async fn attempt<C: Controller>(controller: &Arc<C>, key: &ObjectKey) -> Next {
    let (controller, name) = (Arc::clone(controller), key.clone());
    let mut task = JoinSet::new();
    task.spawn(async move { controller.reconcile(&name).await });
    match task.join_next().await {
        Some(Ok(next)) => next,
        _ => {
            tracing::error!(controller = C::NAME, object = %key, "reconciliation panicked, will retry");
            Next::BackOff
        }
    }
}

//! Work that would hold up others.

use super::Refusal;

/// Does work that may take long away from the threads that serve requests.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            tracing::error!(%error, "work in the background ended early");
            Err(Refusal::internal("the service failed at the work for this request"))
        }
    }
}

//! The `.sha256` file of each image.

use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::plans::PlannedFile;
use super::server::ImageServer;
use super::serving::cannot_make_error;
use inventory::api::ApiError;
use inventory::in_background;

impl ImageServer {
    /// Answers with the SHA-256 digest of a plan, in the format of `sha256sum`. The digest is computed once.
    pub(super) async fn digest_response(&self, planned: &Arc<PlannedFile>) -> Result<Response, ApiError> {
        let digest = planned.sha256.get_or_try_init(async || {
            let _slot = self.1.acquire().await?;
            let (plan, base) = planned.content.plan_and_base();
            in_background(move |_| {
                let digest = plan.sha256().map_err(|error| cannot_make_error(&error))?;
                base.stamp().map_err(|error| cannot_make_error(&error))?;
                Ok(digest)
            })
            .await
        });
        let name = planned.content.file_name();
        let name =
            name.ok_or_else(|| ApiError::internal("cannot write a digest line: the file has no name"))?;
        let line = format!("{}  {name}\n", digest.await?);
        Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], line).into_response())
    }
}

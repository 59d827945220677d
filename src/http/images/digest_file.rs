//! The `.sha256` file of each image.

use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::plans::Planned;
use super::server::ImageServer;
use super::serving::cannot_make;
use crate::api_error::ApiError;
use crate::inventory::in_background;

impl ImageServer {
    /// Answers with the SHA-256 digest of a plan, in the format of `sha256sum`. The digest is computed once.
    pub(super) async fn digest_line(&self, planned: &Arc<Planned>) -> Result<Response, ApiError> {
        let digest = planned.sha256.get_or_try_init(async || {
            let _slot = self.1.next().await;
            let (plan, base) = planned.content.parts();
            in_background(move |_| {
                let digest = plan.sha256().map_err(|error| cannot_make(&error))?;
                base.stamp().map_err(|error| cannot_make(&error))?;
                Ok(digest)
            })
            .await
        });
        let name = planned.content.file_name().unwrap_or_default();
        let line = format!("{}  {name}\n", digest.await?);
        Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], line).into_response())
    }
}

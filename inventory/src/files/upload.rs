//! Uploads of files that are in progress, and their cancellation.

use std::error::Error;
use std::io;
use std::pin::pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use object_store::buffered::BufWriter;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;

use super::error::{Cause, FileError};
use super::path::FilePath;
use crate::bucket::without_response;

/// An upload in progress. Dropping it removes its parts, for example after the client has disconnected.
pub(super) struct PendingUpload {
    /// `None` after all content was written.
    writer: Option<BufWriter>,
    path: FilePath,
}

impl PendingUpload {
    pub(super) fn new(writer: BufWriter, path: FilePath) -> Self {
        Self { writer: Some(writer), path }
    }

    /// Writes content, and returns its length. `storage_error` converts a storage error.
    pub(super) async fn write<E>(
        &mut self,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
        most: u64,
        storage_error: impl FnOnce(object_store::Error) -> FileError,
    ) -> Result<u64, FileError>
    where
        E: Into<Cause>,
    {
        let Self { writer: Some(writer), path } = self else { return Ok(0) };
        let mut content = pin!(content);
        let mut received: u64 = 0;
        while let Some(bytes) = content.next().await {
            let broken_off =
                |error: E| FileError::BrokenOff { path: path.clone(), received, source: error.into() };
            let bytes = bytes.map_err(broken_off)?;
            received = u64::try_from(bytes.len()).map_or(u64::MAX, |len| received.saturating_add(len));
            if received > most {
                return Err(FileError::TooLong { path: path.clone(), most });
            }
            if let Err(error) = writer.put(bytes).await {
                return Err(storage_error(error));
            }
        }
        Ok(received)
    }

    /// Completes the upload, or removes its parts if that fails. The task continues even if the caller is dropped.
    pub(super) async fn complete(mut self) -> io::Result<()> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        let completed = tokio::spawn(async move { writer.shutdown().await });
        completed.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

impl Drop for PendingUpload {
    fn drop(&mut self) {
        let (Some(mut writer), Ok(runtime)) = (self.writer.take(), Handle::try_current()) else { return };
        let path = self.path.clone();
        runtime.spawn(async move {
            if let Err(error) = writer.abort().await {
                let error = without_response(error.into());
                let error = &*error as &dyn Error;
                tracing::warn!(%path, error, "could not remove the parts of an incomplete upload");
            }
        });
    }
}

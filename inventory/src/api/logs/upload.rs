//! Uploads of logs: the parameters and the form.

use axum::extract::multipart::{Multipart, MultipartError};
use axum::http::StatusCode;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};

use crate::api::auth::LogsSource;
use crate::api::{Query, ReservedMemory};
use crate::error::Error;
use crate::files::MAX_BUFFERED;
use crate::service::logs::{LogsSender, LogsUpload};

/// Reads the query parameter `logs_type`.
pub(super) fn logs_sender(query: &Query, source: &LogsSource) -> Result<LogsSender, Error> {
    const KINDS: [(&str, bool); 2] = [("host", true), ("controller", false)];
    let of_host = query.choice("logs_type", &KINDS)?.ok_or_else(|| Query::missing("logs_type"))?;
    match (of_host, source.host) {
        (false, _) => Ok(LogsSender::Controller),
        (true, Some(host)) => Ok(LogsSender::Host(host, source.infra_env)),
        (true, None) => Err(Error::invalid("host_id is required for the logs of a host")),
    }
}

/// Stores the field `upfile` of a form.
pub(super) async fn store_upfile(
    upload: LogsUpload<'_>,
    memory: ReservedMemory,
    mut form: Multipart,
) -> Result<(), Error> {
    while let Some(field) = form.next_field().await.map_err(|error| unreadable(&error))? {
        if field.name() == Some("upfile") {
            let content = field.map_err(|error| unreadable(&error));
            return upload.store(with_reserved_memory(memory, content)).await;
        }
    }
    Err(Error::malformed("upfile in formData is required"))
}

/// Reserves memory for the buffered part of a file while the file is streamed.
fn with_reserved_memory(
    mut memory: ReservedMemory,
    content: impl Stream<Item = Result<Bytes, Error>> + Send,
) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let mut received = 0_usize;
    content.map(move |bytes| {
        let bytes = bytes?;
        received = received.saturating_add(bytes.len());
        memory.extend_to(received.min(MAX_BUFFERED))?;
        Ok(bytes)
    })
}

fn unreadable(error: &MultipartError) -> Error {
    if error.status().is_server_error() {
        // axum reports a failed read of the body as a server error, although the client did not send the whole body.
        return Error::malformed(format!("the upload of logs was interrupted: {}", error.body_text()));
    }
    let text = error.body_text();
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Error::too_large(text).of_request();
    }
    Error::malformed(text)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::api::LargeBodies;
    use crate::error::ErrorKind;

    /// Returns the first error of an upload of `mebibytes` MiB with a memory limit of `room` bytes.
    async fn fault(room: usize, mebibytes: usize) -> Option<Error> {
        let pieces = (0..mebibytes).map(|_| Ok(Bytes::from_static(&[0; 1 << 20])));
        let content =
            with_reserved_memory(LargeBodies::with_max_bytes(room).empty_reservation(), stream::iter(pieces));
        content.try_for_each(|_| async { Ok(()) }).await.err()
    }

    #[tokio::test]
    async fn slow_log_uploads_have_a_memory_limit() {
        let refusal = fault(MAX_BUFFERED / 2, 100).await.unwrap();
        assert_eq!(refusal.kind(), ErrorKind::Unavailable);
        assert_eq!(fault(MAX_BUFFERED / 2, 12).await, None);
        assert_eq!(fault(MAX_BUFFERED, 100).await, None, "what was written takes no room");
    }
}

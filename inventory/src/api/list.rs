//! Long responses, written while the client reads them.
//!
//! Only the next records and the next chunk of JSON are in memory. If a list fails after its first chunk, the service
//! closes the connection, so that a client cannot mistake a part of a list for the whole list.
//!
//! A separate task creates each chunk. The body of a response is not polled while its client does not read. If the body
//! itself created a chunk, it would hold a database connection, or a position in the queue for one, until the client
//! reads.

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::api::{ApiError, json_body};
use crate::error::Error;
use crate::json::append_json;

/// Minimum size of a chunk, in bytes. Pieces of JSON are joined until they reach this size.
const CHUNK: usize = 64 << 10;

/// A JSON text in pieces.
pub(crate) type JsonPieces = BoxStream<'static, Result<Vec<u8>, Error>>;

/// Returns a text as one piece.
pub(crate) fn json_piece(text: impl Into<Vec<u8>>) -> JsonPieces {
    let text = text.into();
    stream::once(async { Ok(text) }).boxed()
}

/// Joins the items of an array with commas.
pub(crate) fn comma_separated(
    items: impl Stream<Item = Result<JsonPieces, Error>> + Send + 'static,
) -> JsonPieces {
    let items = items.enumerate().map(|(index, item)| {
        let comma: &[u8] = if index == 0 { b"" } else { b"," };
        item.map(|item| json_piece(comma).chain(item))
    });
    items.try_flatten().boxed()
}

/// Returns a response with a JSON array of the items.
///
/// # Errors
///
/// Returns an error if the items of the first chunk cannot be read.
pub(crate) async fn json_list<T: Serialize + Send + 'static>(
    items: impl Stream<Item = Result<T, Error>> + Send + 'static,
) -> Result<Response, ApiError> {
    // The items of a list are about equally long, so the length of one item is the capacity for the next item.
    let mut capacity = 0;
    let items = items.enumerate().map(move |(index, item)| {
        let mut text = Vec::with_capacity(capacity);
        if index > 0 {
            text.push(b',');
        }
        append_json(&mut text, &item?)?;
        capacity = text.len();
        Ok(text)
    });
    json_text(json_piece(b"[").chain(items).chain(json_piece(b"]")).boxed()).await
}

/// Returns a JSON array whose items consist of pieces.
pub(crate) fn json_array(
    items: impl Stream<Item = Result<JsonPieces, Error>> + Send + 'static,
) -> JsonPieces {
    json_piece(b"[").chain(comma_separated(items)).chain(json_piece(b"]")).boxed()
}

/// Returns a response with a JSON text. A short text has a `Content-Length`.
///
/// # Errors
///
/// Returns an error if the pieces of the first chunk cannot be created.
pub(crate) async fn json_text(pieces: JsonPieces) -> Result<Response, ApiError> {
    let mut text = JsonTextStream { pieces: Some(pieces.chain(json_piece(b"\n")).boxed()) };
    let first = text.next_chunk().await?;
    if text.pieces.is_none() {
        return Ok(json_body(Body::from(first)));
    }
    let rest = stream::try_unfold(text, |mut text| async move {
        // Dropping the set cancels its task, because a disconnected client needs no further chunk.
        let mut task = JoinSet::new();
        task.spawn(async move { (text.next_chunk().await, text) });
        let Some(result) = task.join_next().await else {
            return Err(Error::broken("a set of one task is empty"));
        };
        let (chunk, text) =
            result.map_err(|error| Error::broken(format!("the task that makes a chunk of JSON: {error}")))?;
        let chunk = chunk?;
        Ok((!chunk.is_empty()).then_some((chunk, text)))
    });
    Ok(json_body(Body::from_stream(stream::once(async { Ok(first) }).chain(rest))))
}

/// A JSON text while it is sent.
struct JsonTextStream {
    /// The remaining pieces. `None` at the end of the text.
    pieces: Option<JsonPieces>,
}

impl JsonTextStream {
    /// Returns the next chunk, which is empty at the end of the text.
    async fn next_chunk(&mut self) -> Result<Bytes, Error> {
        let mut chunk = Vec::new();
        while let Some(pieces) = &mut self.pieces
            && chunk.len() < CHUNK
        {
            match pieces.try_next().await? {
                Some(piece) if chunk.is_empty() => chunk = piece,
                Some(piece) => {
                    chunk.reserve(CHUNK.saturating_sub(chunk.len()).max(piece.len()));
                    chunk.extend_from_slice(&piece);
                }
                None => self.pieces = None,
            }
        }
        Ok(chunk.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use axum::body::{HttpBody, to_bytes};
    use futures_util::FutureExt;
    use tokio::sync::Semaphore;

    use super::*;

    async fn text(response: Response) -> String {
        String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().into()).unwrap()
    }

    #[tokio::test]
    async fn short_list_has_content_length() {
        for count in [0, 1, 2, 10_000, 100_000] {
            let items: Vec<u64> = (0..count).collect();
            let response = json_list(stream::iter(items.clone().into_iter().map(Ok))).await.unwrap();
            let len = response.body().size_hint().exact();
            let body = text(response).await;
            assert_eq!(body, format!("{}\n", serde_json::to_string(&items).unwrap()));
            assert_eq!(len, (count < 10_001).then_some(body.len() as u64));
        }
    }

    #[tokio::test]
    async fn list_is_read_only_as_the_client_reads() {
        let (seen, read) = std::sync::mpsc::channel();
        let items = stream::iter(0..100_u64).map(move |number| {
            seen.send(number).unwrap();
            Ok("x".repeat(CHUNK / 2))
        });
        let mut body = json_list(items).await.unwrap().into_body().into_data_stream();
        assert_eq!(read.try_iter().count(), 2);
        for _ in 0..2 {
            body.next().await.unwrap().unwrap();
        }
        assert_eq!(read.try_iter().count(), 2);
    }

    #[tokio::test]
    async fn list_holds_no_database_connection_if_its_client_stops_reading() {
        let connections = Arc::new(Semaphore::new(1));
        let of_list = Arc::clone(&connections);
        let items = stream::iter(0..100).then(move |_| {
            let connections = Arc::clone(&of_list);
            async move {
                let _connection = connections.acquire().await.unwrap();
                tokio::task::yield_now().await;
                Ok("x".repeat(CHUNK))
            }
        });
        let mut body = json_list(items).await.unwrap().into_body().into_data_stream();
        body.next().await.unwrap().unwrap();
        // The client polls the body until the next chunk is being created.
        assert!(body.next().now_or_never().is_none());
        let next = tokio::time::timeout(Duration::from_secs(60), connections.acquire()).await;
        assert!(next.is_ok_and(|acquired| acquired.is_ok()), "the connection is free again");
    }

    #[tokio::test]
    async fn failed_list_closes_the_connection() {
        let good = (0..100).map(|_| Ok("x".repeat(CHUNK / 10)));
        let items = good.chain([Err(Error::internal("gone")), Ok(String::new())]);
        let response = json_list(stream::iter(items)).await.unwrap();
        assert!(to_bytes(response.into_body(), usize::MAX).await.is_err());
        let first_failure = json_list(stream::iter([Err::<(), _>(Error::internal("gone"))])).await;
        assert_eq!(first_failure.unwrap_err().reason(), "gone");
    }
}

//! Long answers, written while the client reads them.
//!
//! Of a list, only the next records and the next piece of JSON are in memory. A list that fails after its first piece ends
//! the connection: a client never takes a part of a list for all of it.

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use serde::Serialize;

use crate::api_error::ApiError;
use crate::api_error::{json_body, to_json};

/// Pieces of JSON are joined until they have this many bytes.
const CHUNK: usize = 64 << 10;

/// A JSON text, piece by piece.
pub(crate) type Pieces = BoxStream<'static, Result<Vec<u8>, ApiError>>;

/// One piece.
pub(crate) fn piece(text: impl Into<Vec<u8>>) -> Pieces {
    let text = text.into();
    stream::once(async { Ok(text) }).boxed()
}

/// The items of an array, with commas between them.
pub(crate) fn separated(items: impl Stream<Item = Result<Pieces, ApiError>> + Send + 'static) -> Pieces {
    let items = items.enumerate().map(|(index, item)| {
        let comma: &[u8] = if index == 0 { b"" } else { b"," };
        item.map(|item| piece(comma).chain(item))
    });
    items.try_flatten().boxed()
}

/// Answers with an array of items.
///
/// # Errors
///
/// When the first items cannot be read.
pub(crate) async fn json_list<T: Serialize + Send + 'static>(
    items: impl Stream<Item = Result<T, ApiError>> + Send + 'static,
) -> Result<Response, ApiError> {
    let items = items.map(|item| to_json(&item?).map(piece));
    json_text(array(items)).await
}

/// An array of items that come in pieces themselves.
pub(crate) fn array(items: impl Stream<Item = Result<Pieces, ApiError>> + Send + 'static) -> Pieces {
    piece(b"[").chain(separated(items)).chain(piece(b"]")).boxed()
}

/// Answers with a JSON text. A short one has a `Content-Length`.
///
/// # Errors
///
/// When the first pieces cannot be made.
pub(crate) async fn json_text(pieces: Pieces) -> Result<Response, ApiError> {
    let mut text = Text { pieces: Some(pieces.chain(piece(b"\n")).boxed()) };
    let first = text.chunk().await?;
    if text.pieces.is_none() {
        return Ok(json_body(Body::from(first)));
    }
    let rest = stream::try_unfold(text, |mut text| async move {
        let chunk = text.chunk().await?;
        Ok::<_, ApiError>((!chunk.is_empty()).then_some((chunk, text)))
    });
    Ok(json_body(Body::from_stream(stream::once(async { Ok(first) }).chain(rest))))
}

/// A text that is being sent.
struct Text {
    /// What follows, unless that is nothing.
    pieces: Option<Pieces>,
}

impl Text {
    /// The next bytes; none at the end.
    async fn chunk(&mut self) -> Result<Bytes, ApiError> {
        let mut chunk = Vec::new();
        while let Some(pieces) = &mut self.pieces
            && chunk.len() < CHUNK
        {
            match pieces.try_next().await? {
                Some(piece) if chunk.is_empty() => chunk = piece,
                Some(piece) => chunk.extend_from_slice(&piece),
                None => self.pieces = None,
            }
        }
        Ok(chunk.into())
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{HttpBody, to_bytes};

    use super::*;

    async fn text(response: Response) -> String {
        String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().into()).unwrap()
    }

    #[tokio::test]
    async fn lists_are_as_long_as_they_say() {
        for count in [0, 1, 2, 10_000, 100_000] {
            let items: Vec<u64> = (0..count).collect();
            let response = json_list(stream::iter(items.clone().into_iter().map(Ok))).await.unwrap();
            let len = response.body().size_hint().exact();
            let found = text(response).await;
            assert_eq!(found, format!("{}\n", serde_json::to_string(&items).unwrap()));
            assert_eq!(len, (count < 10_001).then_some(found.len() as u64));
        }
    }

    #[tokio::test]
    async fn list_is_read_only_as_far_as_the_client_reads() {
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
    async fn list_that_fails_has_no_end() {
        let good = (0..100).map(|_| Ok("x".repeat(CHUNK / 10)));
        let items = good.chain([Err(ApiError::internal("gone")), Ok(String::new())]);
        let response = json_list(stream::iter(items)).await.unwrap();
        assert!(to_bytes(response.into_body(), usize::MAX).await.is_err());
        let at_once = json_list(stream::iter([Err::<(), _>(ApiError::internal("gone"))])).await;
        assert_eq!(at_once.unwrap_err().reason(), "gone");
    }
}

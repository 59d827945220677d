//! Request bodies: bytes in memory, or a stream of bytes.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};

/// An error of any type, used as the cause of another error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a request: bytes, or a stream of bytes.
///
/// # Examples
///
/// ```
/// use assisted::client::{Body, LogsUpload};
///
/// let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>("a"), Ok("b")]);
/// let logs = LogsUpload::new("logs.tar.gz", Body::from_stream(chunks));
/// ```
// The mutex makes the type `Sync`. Only `size_hint` and `is_end_stream` lock it.
pub struct Body(Mutex<UnsyncBoxBody<Bytes, BoxError>>);

impl Body {
    /// Wraps another body type.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Mutex::new(UnsyncBoxBody::new(body.map_err(Into::into))))
    }

    /// Returns a body that sends the chunks of a stream.
    pub fn from_stream<S, C, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Bytes>,
        E: Into<BoxError>,
    {
        let frame = |chunk: Result<C, E>| match chunk {
            Ok(bytes) => Ok(Frame::data(bytes.into())),
            Err(error) => Err(error.into()),
        };
        Self(Mutex::new(UnsyncBoxBody::new(StreamBody::new(stream.map(frame)))))
    }

    /// Returns an empty body.
    #[must_use]
    pub fn empty() -> Self {
        Self::from(Bytes::new())
    }

    fn lock(&self) -> MutexGuard<'_, UnsyncBoxBody<Bytes, BoxError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let body = self.get_mut().0.get_mut().unwrap_or_else(PoisonError::into_inner);
        Pin::new(body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().size_hint()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::new(Full::new(bytes))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Bytes::from(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::from(Bytes::from(text))
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Self {
        Self::from(Bytes::from_static(bytes))
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::from(text.as_bytes())
    }
}

#[cfg(feature = "reqwest")]
impl From<reqwest::Body> for Body {
    fn from(body: reqwest::Body) -> Self {
        Self::new(body)
    }
}

//! Multipart forms with one file (RFC 7578), which log uploads send.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use uuid::Uuid;

use super::body::{Body, BoxError};

/// A multipart form with one file, sent as a stream.
#[derive(Debug)]
pub(super) struct FormUpload {
    pub(super) content_type: String,
    pub(super) body: Body,
    pub(super) failure: UploadFailure,
}

impl FormUpload {
    /// Returns a form with a file of the given length. If `length` is `None`, uses the exact size of `data` if that
    /// size is known.
    pub(super) fn new(field: &str, file_name: &str, (data, length): (Body, Option<u64>)) -> Self {
        let boundary = Uuid::new_v4().simple().to_string();
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{}\"\r\n\r\n",
            quoted(file_name)
        );
        let end = format!("\r\n--{boundary}--\r\n");
        let failure = UploadFailure::default();
        let length = length.or_else(|| data.size_hint().exact());
        let body = FormBody {
            head: Some(head.into()),
            data: Some(data),
            data_left: length,
            end: Some(end.into()),
            failure: failure.clone(),
        };
        let content_type = format!("multipart/form-data; boundary={boundary}");
        Self { content_type, body: Body::new(body), failure }
    }
}

/// Escapes a file name in the way browsers do.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// A shared slot for the error of the data to upload. The body of the form stores the error when reading the data
/// fails.
#[derive(Clone, Debug, Default)]
pub(super) struct UploadFailure(Arc<OnceLock<SharedError>>);

impl UploadFailure {
    pub(super) fn take(self) -> Option<BoxError> {
        self.0.get().cloned().map(Into::into)
    }
}

/// A clonable error: the transport and the caller both receive it.
#[derive(Clone, Debug)]
struct SharedError(Arc<BoxError>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The body of a form: the head, the file's data, and the final boundary.
struct FormBody {
    head: Option<Bytes>,
    data: Option<Body>,
    /// Number of file bytes still to send, if the length is set.
    data_left: Option<u64>,
    end: Option<Bytes>,
    failure: UploadFailure,
}

impl FormBody {
    /// Subtracts sent bytes from `data_left`. Fails if the data is longer than its announced length.
    fn count(&mut self, bytes: &Bytes) -> Result<(), SharedError> {
        let Some(left) = self.data_left else { return Ok(()) };
        let length = u64::try_from(bytes.len()).ok();
        match length.and_then(|length| left.checked_sub(length)) {
            Some(left) => {
                self.data_left = Some(left);
                Ok(())
            }
            None => Err(self.fail("the data is longer than its length".into())),
        }
    }

    fn fail(&mut self, error: BoxError) -> SharedError {
        let shared = SharedError(Arc::new(error));
        // Keep the first error: later errors are its consequences.
        self.failure.0.get_or_init(|| shared.clone());
        (self.data, self.end) = (None, None);
        shared
    }
}

impl http_body::Body for FormBody {
    type Data = Bytes;
    type Error = SharedError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SharedError>>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(Frame::data(head))));
        }
        while let Some(data) = &mut self.data {
            match Pin::new(data).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(self.fail(error)))),
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers have no meaning in a form.
                    let Ok(bytes) = frame.into_data() else { continue };
                    return Poll::Ready(Some(self.count(&bytes).map(|()| Frame::data(bytes))));
                }
                Poll::Ready(None) if self.data_left.is_some_and(|left| left > 0) => {
                    return Poll::Ready(Some(Err(self.fail("the data is shorter than its length".into()))));
                }
                Poll::Ready(None) => self.data = None,
            }
        }
        Poll::Ready(self.end.take().map(|end| Ok(Frame::data(end))))
    }

    fn size_hint(&self) -> SizeHint {
        let parts = self.head.iter().chain(&self.end).map(Bytes::len).sum::<usize>();
        match (self.data_left, u64::try_from(parts)) {
            (Some(left), Ok(parts)) => SizeHint::with_exact(left.saturating_add(parts)),
            _ => SizeHint::default(),
        }
    }
}

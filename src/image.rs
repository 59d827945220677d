//! An image for embedders: read it as a stream, by ranges, or as a response body.

use std::fmt;
use std::io::{self, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use isogen::Plan;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};

use crate::base_files::BaseFile;
use crate::http::BodyMode;
use crate::http::content::PlanBody;
use crate::images::library::OpenBaseImage;

/// An image. Clones share their data and can be read concurrently.
///
/// # Examples
///
/// ```
/// # use isogen::{Plan, Segment, Source};
/// use kindling::Image;
/// use tokio::io::AsyncReadExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let source = std::sync::Arc::new(Source::from_bytes("base", &b"0123456789"[..]));
/// # let plan = Plan::from_source(source).followed_by([Segment::Zero(2)]);
/// let image = Image::from(plan);
/// assert_eq!(image.read(3..6).await?, "345");
/// let mut all = Vec::new();
/// image.reader().read_to_end(&mut all).await?;
/// assert_eq!(all.len() as u64, image.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Image {
    plan: Arc<Plan>,
    base: Arc<BaseFile>,
}

impl From<Plan> for Image {
    fn from(plan: Plan) -> Self {
        Arc::new(plan).into()
    }
}

impl From<Arc<Plan>> for Image {
    fn from(plan: Arc<Plan>) -> Self {
        let base = Arc::new(BaseFile::new(Arc::clone(plan.source())));
        Self { plan, base }
    }
}

impl Image {
    /// Returns the image of a plan over a base image of the library. Reads fail if the file changed after it was hashed.
    #[must_use]
    pub fn from_base_image(base: &OpenBaseImage, plan: impl Into<Arc<Plan>>) -> Self {
        Self { plan: plan.into(), base: Arc::clone(base.file()) }
    }

    /// Returns the plan of the image.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.plan.len()
    }

    /// Returns `true` if the image has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plan.is_empty()
    }

    /// Returns the bytes of a range. The part of the range after the end of the image is ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image cannot be read, or changed after it was opened.
    pub async fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let mut body = self.body(range)?;
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes.freeze())
    }

    /// Returns a range as a response body. The part of the range after the end of the image is ignored. The length of
    /// the body is known.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image changed after it was opened.
    pub fn body(&self, range: Range<u64>) -> io::Result<ImageBody> {
        let end = range.end.min(self.len());
        let range = range.start.min(end)..end;
        let parts = (Arc::clone(&self.plan), Arc::clone(&self.base));
        PlanBody::from_range(parts, range, BodyMode::Read).map(ImageBody)
    }

    /// Returns a seekable reader of all bytes.
    #[must_use]
    pub fn reader(&self) -> ImageReader {
        ImageReader { image: self.clone(), position: 0, reading: None, rest: Bytes::new() }
    }
}

/// A response body. Its bytes are produced on demand. Parts of the base image that are not in memory are read on
/// threads outside the async runtime.
pub struct ImageBody(PlanBody);

impl fmt::Debug for ImageBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageBody").field("left", &self.0.size_hint().exact()).finish()
    }
}

impl Body for ImageBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// A seekable stream of an image's bytes.
#[derive(Debug)]
pub struct ImageReader {
    image: Image,
    /// The position of the next byte that is read.
    position: u64,
    /// The body after `rest`. `None` before the first read and after a seek.
    reading: Option<ImageBody>,
    /// Bytes that were produced but not read yet.
    rest: Bytes,
}

impl AsyncRead for ImageReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.rest.is_empty() {
            let body = match &mut this.reading {
                Some(body) => body,
                None => this.reading.insert(this.image.body(this.position..this.image.len())?),
            };
            match ready!(Pin::new(body).poll_frame(context)) {
                None => return Poll::Ready(Ok(())),
                // Trailers have no bytes of the image.
                Some(frame) => this.rest = frame?.into_data().unwrap_or_default(),
            }
        }
        let bytes = this.rest.split_to(this.rest.len().min(buf.remaining()));
        buf.put_slice(&bytes);
        this.position = this.position.saturating_add(bytes.len() as u64);
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for ImageReader {
    fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        let this = self.get_mut();
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => this.image.len().checked_add_signed(by),
            SeekFrom::Current(by) => this.position.checked_add_signed(by),
        };
        let position =
            position.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "invalid seek position"))?;
        if position != this.position {
            (this.position, this.reading, this.rest) = (position, None, Bytes::new());
        }
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position))
    }
}

#[cfg(test)]
mod tests {
    use isogen::{Segment, Source};
    use tokio::io::{AsyncReadExt, AsyncSeekExt};

    use super::*;

    fn test_image() -> (Image, Vec<u8>) {
        let base: Vec<u8> = (0..3_000_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &base).unwrap();
        let source = Arc::new(Source::open(file.path()).unwrap());
        let plan = Plan::from_source(source)
            .followed_by([Segment::Bytes(Bytes::from_static(b"tail")), Segment::Zero(100_000)]);
        let bytes = plan.read_all(1 << 30).unwrap();
        (plan.into(), bytes)
    }

    #[tokio::test]
    async fn reader_and_ranges_return_the_same_bytes() {
        let (image, bytes) = test_image();
        let len = image.len();
        assert_eq!(len, bytes.len() as u64);
        let mut read = Vec::new();
        image.reader().read_to_end(&mut read).await.unwrap();
        assert!(read == bytes);
        for (start, end) in
            [(0, 1), (2_999_990, 3_000_010), (len - 1, len), (len, len + 5), (len + 5, len + 9), (5, 5)]
        {
            let usual = |at: u64| usize::try_from(at.min(len)).unwrap();
            assert_eq!(
                image.read(start..end).await.unwrap(),
                bytes[usual(start)..usual(end)],
                "{start}..{end}"
            );
        }
        assert_eq!(image.body(10..20).unwrap().size_hint().exact(), Some(10));
    }

    #[tokio::test]
    async fn reader_seeks_from_start_end_and_current() {
        let (image, bytes) = test_image();
        let mut reader = image.reader();
        let mut buf = [0; 10];
        for (to, position) in [
            (SeekFrom::Start(3_000_000), 3_000_000),
            (SeekFrom::Current(-20), 2_999_990),
            (SeekFrom::End(-10), bytes.len() - 10),
            (SeekFrom::Start(7), 7),
        ] {
            assert_eq!(reader.seek(to).await.unwrap(), position as u64);
            reader.read_exact(&mut buf).await.unwrap();
            assert_eq!(buf, bytes[position..position + 10]);
        }
        assert!(reader.seek(SeekFrom::Current(-1000)).await.is_err());
        reader.seek(SeekFrom::End(5)).await.unwrap();
        assert_eq!(reader.read(&mut buf).await.unwrap(), 0);
    }
}

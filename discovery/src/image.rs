//! Async access to the bytes of an image: as a stream, by range, or as a response body.
//!
//! The blocking threads of tokio read the bytes in frames, one frame ahead of the reader. If a source file changes
//! while it is read, reading fails, because the bytes could be a mix of two images.

use std::fmt;
use std::io::{self, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use isogen::{FileStamp, Plan};
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::{JoinHandle, spawn_blocking};

/// Maximum length of a frame, in bytes. Longer frames would occupy more memory for each slow reader.
const FRAME_LEN: u64 = 256 << 10;

/// A discovery image. Clones share their data and can be read concurrently.
///
/// # Examples
///
/// ```
/// # use isogen::{Plan, Segment, Source};
/// use discovery::Image;
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
pub struct Image(Arc<ImageParts>);

#[derive(Debug)]
struct ImageParts {
    plan: Arc<Plan>,
    /// The state of the base image's file when the image was created, or `None` if the source is not a file.
    stamp: io::Result<Option<FileStamp>>,
}

impl From<Plan> for Image {
    fn from(plan: Plan) -> Self {
        Arc::new(plan).into()
    }
}

impl From<Arc<Plan>> for Image {
    fn from(plan: Arc<Plan>) -> Self {
        let stamp = current_stamp(&plan);
        Self(Arc::new(ImageParts { plan, stamp }))
    }
}

impl Image {
    /// Returns the plan of the image.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.0.plan
    }

    /// Returns the length of the image in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.plan.len()
    }

    /// Returns `true` if the image has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.plan.is_empty()
    }

    /// Returns the bytes of a range. A range past the end of the image is cut off there.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image cannot be read, or was changed since the image was created.
    pub async fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let (image, range) = (self.clone(), self.clamp(range));
        spawn_blocking(move || image.read_blocking(range)).await?
    }

    /// Returns a seekable reader of the whole image.
    #[must_use]
    pub fn reader(&self) -> ImageReader {
        ImageReader { image: self.clone(), position: 0, frames: None, rest: Bytes::new() }
    }

    /// Cuts off a range at the end of the image.
    pub(crate) fn clamp(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.len());
        range.start.min(end)..end
    }

    pub(crate) fn frames(&self, range: Range<u64>) -> Frames {
        Frames { image: self.clone(), unread: self.clamp(range), reading: None }
    }

    fn read_blocking(&self, range: Range<u64>) -> io::Result<Bytes> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).map_err(io::Error::other)?;
        let mut bytes = BytesMut::zeroed(len);
        let filled = self.plan().read_at(&mut bytes, range.start)?;
        self.require_unchanged()?;
        if filled == len { Ok(bytes.freeze()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Returns an error if the base image file was changed since the image was created. The file may have been replaced
    /// or deleted, because the open descriptor still reads the same bytes.
    fn require_unchanged(&self) -> io::Result<()> {
        let copy = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
        let before = self.0.stamp.as_ref().map_err(copy)?;
        let now = current_stamp(self.plan())?;
        let is_same = match (before, now) {
            (Some(before), Some(now)) => *before == now || before.has_lost_last_name(&now),
            (before, now) => *before == now,
        };
        if is_same {
            return Ok(());
        }
        let name = self.plan().source().name();
        Err(io::Error::other(format!("{name} was changed while it was read")))
    }
}

fn current_stamp(plan: &Plan) -> io::Result<Option<FileStamp>> {
    plan.source().as_file().map_or(Ok(None), FileStamp::from_regular_file)
}

/// A range of an image, split into frames. While the reader uses one frame, the next one is read.
pub(crate) struct Frames {
    image: Image,
    /// The rest of the range, which no frame covers yet.
    unread: Range<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Frames {
    /// Returns the next frame, or `None` after the last one.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let Some(mut reading) = self.reading.take().or_else(|| self.begin()) else {
            return Poll::Ready(None);
        };
        match Pin::new(&mut reading).poll(context) {
            Poll::Pending => {
                self.reading = Some(reading);
                Poll::Pending
            }
            Poll::Ready(Ok(Ok(bytes))) => {
                self.reading = self.begin();
                Poll::Ready(Some(Ok(bytes)))
            }
            Poll::Ready(failed) => {
                self.unread = 0..0;
                Poll::Ready(Some(failed?))
            }
        }
    }

    /// Starts to read the next frame on a blocking thread.
    fn begin(&mut self) -> Option<JoinHandle<io::Result<Bytes>>> {
        let start = self.unread.start;
        let end = start.saturating_add(FRAME_LEN).min(self.unread.end);
        if start >= end {
            return None;
        }
        self.unread.start = end;
        let image = self.image.clone();
        Some(spawn_blocking(move || image.read_blocking(start..end)))
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").field("unread", &self.unread).finish_non_exhaustive()
    }
}

/// A seekable stream of an image's bytes.
#[derive(Debug)]
pub struct ImageReader {
    image: Image,
    /// The position of the next byte to return.
    position: u64,
    /// The frames after `rest`. `None` before the first read and after a seek.
    frames: Option<Frames>,
    /// Bytes of the current frame that the caller has not read yet.
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
            let frames = match &mut this.frames {
                Some(frames) => frames,
                None => this.frames.insert(this.image.frames(this.position..this.image.len())),
            };
            match ready!(frames.poll_next(context)) {
                None => return Poll::Ready(Ok(())),
                Some(frame) => this.rest = frame?,
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
            (this.position, this.frames, this.rest) = (position, None, Bytes::new());
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

    #[tokio::test]
    async fn changed_file_is_not_read() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&path, [7; 100]).unwrap();
        let image = Image::from(Plan::from_source(Arc::new(Source::open(&path).unwrap())));
        assert_eq!(image.read(0..3).await.unwrap(), [7; 3].as_slice());
        let other = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&other, [8; 100]).unwrap();
        let deleted = Image::from(Plan::from_source(Arc::new(Source::open(&other).unwrap())));
        std::fs::remove_file(&other).unwrap();
        assert_eq!(deleted.read(0..3).await.unwrap(), [8; 3].as_slice());
        std::fs::write(&path, [9; 90]).unwrap();
        assert!(image.read(0..3).await.is_err());
        let mut all = Vec::new();
        assert!(image.reader().read_to_end(&mut all).await.is_err());
    }

    #[cfg(feature = "http")]
    #[tokio::test]
    async fn body_has_a_known_length_and_the_same_bytes() {
        use http_body_util::BodyExt;

        let (image, bytes) = test_image();
        let body = image.body(2_999_990..3_000_010);
        assert_eq!(http_body::Body::size_hint(&body).exact(), Some(20));
        assert_eq!(body.collect().await.unwrap().to_bytes(), bytes[2_999_990..3_000_010]);
        let body = image.body(0..image.len() + 9);
        assert!(body.collect().await.unwrap().to_bytes() == bytes);
    }
}

//! Images as HTTP response bodies.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::image::{Frames, Image};
use crate::representation::BodyPiece;

/// A response body that reads the bytes of an image on demand.
#[derive(Debug)]
pub struct ImageBody {
    image: Option<Image>,
    pieces: VecDeque<BodyPiece>,
    frames: Option<Frames>,
    /// The number of bytes still to return. `None` for a body that must not announce a length.
    left: Option<u64>,
}

impl Image {
    /// Returns a range as a response body of known length. A range past the end of the image is cut off there.
    #[must_use]
    pub fn body(&self, range: Range<u64>) -> ImageBody {
        ImageBody::from_pieces(self, vec![BodyPiece::Range(self.clamp(range))])
    }
}

impl ImageBody {
    pub(crate) fn from_pieces(image: &Image, pieces: Vec<BodyPiece>) -> Self {
        let left = pieces.iter().map(BodyPiece::len).sum();
        Self { image: Some(image.clone()), pieces: pieces.into(), frames: None, left: Some(left) }
    }

    pub(crate) fn from_text(text: String) -> Self {
        let left = Some(text.len() as u64);
        Self { image: None, pieces: [BodyPiece::Text(text.into())].into(), frames: None, left }
    }

    pub(crate) fn empty() -> Self {
        Self { left: Some(0), ..Self::without_length() }
    }

    /// Returns an empty body for which a server must not send `Content-Length`.
    pub(crate) fn without_length() -> Self {
        Self { image: None, pieces: VecDeque::new(), frames: None, left: None }
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if let Some(frames) = &mut self.frames {
                match ready!(frames.poll_next(context)) {
                    Some(frame) => return Poll::Ready(Some(frame)),
                    None => self.frames = None,
                }
            }
            match (self.pieces.pop_front(), &self.image) {
                (Some(BodyPiece::Range(range)), Some(image)) => self.frames = Some(image.frames(range)),
                (Some(BodyPiece::Text(text)), _) => return Poll::Ready(Some(Ok(text))),
                (Some(BodyPiece::Range(_)) | None, _) => return Poll::Ready(None),
            }
        }
    }
}

impl Body for ImageBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(bytes) = ready!(self.poll_bytes(context)) else { return Poll::Ready(None) };
        match &bytes {
            Ok(bytes) => self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64)),
            Err(_) => (self.pieces, self.frames) = (VecDeque::new(), None),
        }
        Poll::Ready(Some(bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

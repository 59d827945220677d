//! The body of an answer about a representation.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::PlanBody;
use crate::http::zerocopy::{BaseFile, PAGES_LEN};

/// What an answer has in it.
pub(in crate::http) enum AnswerBody {
    /// Bytes of the representation.
    Plan(PlanBody),
    /// What is wrong with the request, or with the representation.
    Error(axum::body::Body),
    /// Nothing.
    Empty,
    /// Nothing, which is not to be told: a length would be that of the whole representation where it is not modified
    /// (RFC 9110, 8.6), and routers add one of 0 where a body tells it.
    Untold,
}

impl AnswerBody {
    /// The bytes of the representation that it is about, from the first to the last, before any of them are sent.
    pub(in crate::http) fn span(&self) -> Option<Range<u64>> {
        match self {
            Self::Plan(body) => body.span(),
            Self::Error(_) | Self::Empty | Self::Untold => None,
        }
    }

    /// Returns the base image whose pages the socket may send, if the body is long enough for pages.
    pub(in crate::http) fn base_file(&self) -> Option<Weak<BaseFile>> {
        match self {
            Self::Plan(body) if body.left() >= PAGES_LEN as u64 => Some(Arc::downgrade(body.base_file())),
            _ => None,
        }
    }

    /// The bytes of the representation that the last frame had.
    pub(in crate::http) fn frame(&self) -> Range<u64> {
        match self {
            Self::Plan(body) => body.frame(),
            Self::Error(_) | Self::Empty | Self::Untold => 0..0,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Plan(body) => Pin::new(body).poll_frame(context),
            Self::Error(body) => Pin::new(body).poll_frame(context).map_err(io::Error::other),
            Self::Empty | Self::Untold => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Plan(body) => body.is_end_stream(),
            Self::Error(body) => body.is_end_stream(),
            Self::Empty => true,
            Self::Untold => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Plan(body) => body.size_hint(),
            Self::Error(body) => body.size_hint(),
            Self::Empty => SizeHint::with_exact(0),
            Self::Untold => SizeHint::default(),
        }
    }
}

//! The body of a response with image content.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::PlanBody;
use crate::base_files::BaseFile;
use crate::http::zerocopy::PAGES_LEN;

pub(in crate::http) enum AnswerBody {
    /// One or more ranges of the representation.
    Plan(PlanBody),
    /// An error message.
    Error(axum::body::Body),
    /// No bytes.
    Empty,
    /// No bytes and no `Content-Length`. A 304 response may only have the length of the whole representation (RFC 9110,
    /// 8.6), but axum adds a length of 0 if the body reports that size. Also used for HEAD responses of unknown length.
    EmptyWithoutLength,
}

impl AnswerBody {
    /// Returns the part of the representation from the first to the last byte of the body. Call this before any byte is
    /// sent.
    pub(in crate::http) fn byte_span(&self) -> Option<Range<u64>> {
        match self {
            Self::Plan(body) => body.byte_span(),
            Self::Error(_) | Self::Empty | Self::EmptyWithoutLength => None,
        }
    }

    /// Returns the base image whose pages the socket may send. Returns `None` if the body is too short to be sent as
    /// pages.
    pub(in crate::http) fn base_file(&self) -> Option<Weak<BaseFile>> {
        match self {
            Self::Plan(body) if body.remaining_len() >= PAGES_LEN as u64 => {
                Some(Arc::downgrade(body.base_file()))
            }
            _ => None,
        }
    }

    /// Returns the position of the last returned frame in the representation.
    pub(in crate::http) fn last_frame(&self) -> Range<u64> {
        match self {
            Self::Plan(body) => body.last_frame(),
            Self::Error(_) | Self::Empty | Self::EmptyWithoutLength => 0..0,
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
            Self::Empty | Self::EmptyWithoutLength => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Plan(body) => body.is_end_stream(),
            Self::Error(body) => body.is_end_stream(),
            Self::Empty => true,
            Self::EmptyWithoutLength => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Plan(body) => body.size_hint(),
            Self::Error(body) => body.size_hint(),
            Self::Empty => SizeHint::with_exact(0),
            Self::EmptyWithoutLength => SizeHint::default(),
        }
    }
}

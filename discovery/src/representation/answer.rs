//! The answer to a request, without the bytes of the representation.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// The answer to a request, without the bytes of the representation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// The fields.
    pub fields: HeaderMap,
    /// What the body is made of.
    pub content: AnswerContent,
}

/// What the body of an answer is made of.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerContent {
    /// A range of the representation.
    Range(Range<u64>),
    /// Several ranges, with text between them.
    Multipart(Vec<BodyPiece>),
    /// No bytes, because the request is a HEAD, or because the representation is empty.
    Empty,
    /// No bytes, and no `Content-Length`: in a 304 answer, the length would have to be that of the whole representation
    /// (RFC 9110, 8.6).
    NotModified,
    /// An error text.
    Refusal(String),
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPiece {
    /// A range of the representation.
    Range(Range<u64>),
    /// Multipart text between ranges.
    Text(Bytes),
}

impl BodyPiece {
    /// Returns the range, if this piece is one.
    #[must_use]
    pub fn range(&self) -> Option<&Range<u64>> {
        match self {
            Self::Range(range) => Some(range),
            Self::Text(_) => None,
        }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::Text(text) => text.len() as u64,
        }
    }

    /// Returns `true` if the piece has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

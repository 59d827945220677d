//! The status, header fields and body ranges of a response, without the bytes of the representation.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// A response without the bytes of the representation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// The header fields, except `Date`.
    pub fields: HeaderMap,
    /// The content of the response body.
    pub content: AnswerContent,
}

/// The content of a response body.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerContent {
    /// A range of the representation.
    Range(Range<u64>),
    /// Several ranges, with multipart text between them.
    Multipart(Vec<BodyPiece>),
    /// No bytes: the request is a HEAD request, or the representation is empty.
    Empty,
    /// No bytes and no `Content-Length`. In a 304 response, `Content-Length` would have to be the length of the whole
    /// representation (RFC 9110, 8.6).
    NotModified,
    /// The text of an error response.
    Refusal(String),
}

/// One piece of a multipart body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPiece {
    /// A range of the representation, in bytes.
    Range(Range<u64>),
    /// The part headers and boundaries between ranges.
    Text(Bytes),
}

impl BodyPiece {
    /// Returns the range, or `None` if the piece is text.
    #[must_use]
    pub fn range(&self) -> Option<&Range<u64>> {
        match self {
            Self::Range(range) => Some(range),
            Self::Text(_) => None,
        }
    }

    /// Returns the length of the piece in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::Text(text) => text.len() as u64,
        }
    }

    /// Returns `true` if the piece is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

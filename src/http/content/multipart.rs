//! Answers with several ranges: `multipart/byteranges` (RFC 9110, 14.6).

use axum::body::Bytes;
use axum::http::HeaderValue;
use uuid::Uuid;

use super::body::Piece;
use super::range::ByteRange;

/// The body and media type of a multipart answer.
pub(super) struct Multipart {
    /// The body.
    pub(super) pieces: Vec<Piece>,
    /// The value of `Content-Type`, with the boundary.
    pub(super) media_type: Option<HeaderValue>,
}

impl Multipart {
    /// Lays out the parts for ranges of a representation of this media type and length.
    pub(super) fn new(ranges: &[ByteRange], media_type: &str, len: u64) -> Self {
        // A random boundary cannot be predicted, so no image contains it.
        let boundary = Uuid::new_v4().simple().to_string();
        let mut pieces = Vec::with_capacity(ranges.len() * 2 + 1);
        let mut end_of_last = "";
        for range in ranges {
            let head = format!(
                "{end_of_last}--{boundary}\r\nContent-Type: {media_type}\r\n\
                 Content-Range: bytes {range}/{len}\r\n\r\n"
            );
            pieces.push(Piece::Text(Bytes::from(head)));
            pieces.push(Piece::Range(range.bounds()));
            end_of_last = "\r\n";
        }
        pieces.push(Piece::Text(Bytes::from(format!("\r\n--{boundary}--\r\n"))));
        let media_type = HeaderValue::try_from(format!("multipart/byteranges; boundary={boundary}")).ok();
        Self { pieces, media_type }
    }
}

#[cfg(test)]
mod tests {
    use super::super::range::{RangeRequest, Selection};
    use super::*;

    #[test]
    fn parts_have_media_type_and_content_range() {
        let selection = RangeRequest::parse("bytes=5-6,0-0").unwrap().select(10);
        let Selection::Several(ranges) = selection else { panic!("{selection:?}") };
        let parts = Multipart::new(&ranges, "text/plain", 10);
        let media_type = parts.media_type.unwrap();
        let boundary = media_type.to_str().unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
        assert_eq!(boundary.len(), 32);
        let head = |range| {
            format!("--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\r\n")
        };
        assert_eq!(
            parts.pieces,
            [
                Piece::Text(head("5-6").into()),
                Piece::Range(5..7),
                Piece::Text(format!("\r\n{}", head("0-0")).into()),
                Piece::Range(0..1),
                Piece::Text(format!("\r\n--{boundary}--\r\n").into()),
            ]
        );
    }
}

//! Response bodies with several ranges: `multipart/byteranges` (RFC 9110, 14.6).

use bytes::Bytes;
use http::{HeaderValue, header};
use uuid::Uuid;

use super::answer::BodyPiece;
use super::header_error::HeaderError;
use super::range::ByteRange;

/// The body and the media type of a multipart response.
pub(super) struct MultipartBody {
    /// The part headers and ranges, in the order of the body.
    pub(super) pieces: Vec<BodyPiece>,
    /// The value of `Content-Type`, including the boundary.
    pub(super) media_type: HeaderValue,
}

impl MultipartBody {
    /// Lays out the parts for ranges of a representation with this media type and length.
    pub(super) fn new(ranges: &[ByteRange], media_type: &str, len: u64) -> Result<Self, HeaderError> {
        // A random boundary is unpredictable, so no image can be made to contain it.
        let boundary = Uuid::new_v4().simple().to_string();
        let mut pieces = Vec::with_capacity(ranges.len() * 2 + 1);
        let mut end_of_last = "";
        for range in ranges {
            let head = format!(
                "{end_of_last}--{boundary}\r\nContent-Type: {media_type}\r\n\
                 Content-Range: bytes {range}/{len}\r\n\r\n"
            );
            pieces.push(BodyPiece::Text(Bytes::from(head)));
            pieces.push(BodyPiece::Range(range.bounds()));
            end_of_last = "\r\n";
        }
        pieces.push(BodyPiece::Text(Bytes::from(format!("\r\n--{boundary}--\r\n"))));
        let media_type = format!("multipart/byteranges; boundary={boundary}");
        Ok(Self { pieces, media_type: HeaderError::parse(header::CONTENT_TYPE, &media_type)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::range::{RangeRequest, RangeSelection};
    use super::*;

    #[test]
    fn parts_have_media_type_and_content_range() {
        let selection = RangeRequest::parse("bytes=5-6,0-0").unwrap().select(10);
        let RangeSelection::Several(ranges) = selection else { panic!("{selection:?}") };
        let parts = MultipartBody::new(&ranges, "text/plain", 10).unwrap();
        let boundary =
            parts.media_type.to_str().unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
        assert_eq!(boundary.len(), 32);
        let head = |range| {
            format!("--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\r\n")
        };
        assert_eq!(
            parts.pieces,
            [
                BodyPiece::Text(head("5-6").into()),
                BodyPiece::Range(5..7),
                BodyPiece::Text(format!("\r\n{}", head("0-0")).into()),
                BodyPiece::Range(0..1),
                BodyPiece::Text(format!("\r\n--{boundary}--\r\n").into()),
            ]
        );
    }
}

//! The head of an answer, for both ways to send it.
//!
//! Most answers go through hyper, which needs a map of fields. Ranges on the fast path are written as text. Both come
//! from the same [`ResponseHead`].

use std::io::Write;

use http::header::{self, HeaderMap, HeaderName};
use http::{HeaderValue, StatusCode};

use super::header_error::HeaderError;
use super::range::ByteRange;

/// Clients may store the answer and must revalidate it. Shared caches may not store it: images contain secrets.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// All caches may store the answer and must revalidate it.
const PUBLIC: HeaderValue = HeaderValue::from_static("public, no-cache");
const BYTES: HeaderValue = HeaderValue::from_static("bytes");

/// Stored fields. With 2,000 images, one `HeaderMap` per image took 250 MiB, because the memory between them could not
/// be returned.
type StoredFields = Box<[(HeaderName, HeaderValue)]>;

/// A head for hyper.
pub(super) type StatusAndFields = (StatusCode, HeaderMap);

/// The fields that all answers about a representation have.
#[derive(Debug, Clone)]
pub(super) struct ResponseHead {
    /// The fields of every answer, including 304.
    identity: StoredFields,
    /// The additional fields of answers with bytes.
    description: StoredFields,
    /// The start of a 206 answer as text, with all these fields.
    partial: Box<[u8]>,
}

/// The fields of an answer with one range.
pub(super) struct RangeHeadFields {
    content_range: HeaderValue,
    len: u64,
}

impl ResponseHead {
    /// `last_modified` and `content_disposition` are optional fields.
    pub(super) fn new(
        etag: HeaderValue,
        last_modified: Option<HeaderValue>,
        (content_type, content_disposition): (HeaderValue, Option<HeaderValue>),
    ) -> Self {
        let identity = [
            (header::CACHE_CONTROL, Some(PRIVATE)),
            (header::ETAG, Some(etag)),
            (header::LAST_MODIFIED, last_modified),
        ];
        let description = [
            (header::ACCEPT_RANGES, Some(BYTES)),
            (header::CONTENT_DISPOSITION, content_disposition),
            (header::CONTENT_TYPE, Some(content_type)),
        ];
        let [identity, description] = [identity, description]
            .map(|fields| fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect());
        let partial = partial_content_head([&identity, &description]);
        Self { identity, description, partial }
    }

    /// Returns the same head for a representation without secrets.
    pub(super) fn with_public_caching(mut self) -> Self {
        for (_, value) in self.identity.iter_mut().filter(|(name, _)| name == header::CACHE_CONTROL) {
            *value = PUBLIC;
        }
        self.partial = partial_content_head([&self.identity, &self.description]);
        self
    }

    /// Returns the head of the answer 304 to a client that has the representation.
    #[inline]
    pub(super) fn not_modified(&self) -> StatusAndFields {
        (StatusCode::NOT_MODIFIED, to_header_map([&self.identity]))
    }

    /// Returns the head of an answer with the whole representation of `len` bytes.
    #[inline]
    pub(super) fn whole_fields(&self, len: u64) -> StatusAndFields {
        let mut fields = to_header_map([&self.identity, &self.description]);
        fields.insert(header::CONTENT_LENGTH, len.into());
        (StatusCode::OK, fields)
    }

    /// Returns the head of an answer with one range.
    #[inline]
    pub(super) fn range_fields(&self, range: RangeHeadFields) -> StatusAndFields {
        // Sends all fields even to a client that has them from an earlier answer: real clients use those of the last
        // answer.
        let mut fields = to_header_map([&self.identity, &self.description]);
        fields.insert(header::CONTENT_RANGE, range.content_range);
        fields.insert(header::CONTENT_LENGTH, range.len.into());
        (StatusCode::PARTIAL_CONTENT, fields)
    }

    /// Returns the head of an answer with several ranges, in a body of `len` bytes.
    #[inline]
    pub(super) fn multipart_fields(&self, content_type: HeaderValue, len: u64) -> StatusAndFields {
        let mut fields = to_header_map([&self.identity, &self.description]);
        fields.insert(header::CONTENT_TYPE, content_type);
        fields.insert(header::CONTENT_LENGTH, len.into());
        (StatusCode::PARTIAL_CONTENT, fields)
    }

    /// Writes the head of an answer with one range as text. `date` is the value of `Date`.
    #[inline]
    pub(super) fn write_range_head(&self, range: &RangeHeadFields, date: &HeaderValue, text: &mut Vec<u8>) {
        text.extend_from_slice(&self.partial);
        for part in [
            b"content-range: ",
            range.content_range.as_bytes(),
            b"\r\ncontent-length: ",
            itoa::Buffer::new().format(range.len).as_bytes(),
            b"\r\ndate: ",
            date.as_bytes(),
            b"\r\n\r\n",
        ] {
            text.extend_from_slice(part);
        }
    }
}

impl RangeHeadFields {
    /// Returns the fields of an answer with one range of a representation of `len` bytes. Returns `None` if no header
    /// can hold them, which is a fault of [`content_range`].
    #[inline]
    pub(super) fn new(range: ByteRange, len: u64) -> Option<Self> {
        Some(Self { content_range: content_range(range, len)?, len: range.len() })
    }
}

/// Adds the fields of a 416 answer: the length of the representation.
pub(super) fn put_unsatisfied_range(fields: &mut HeaderMap, len: u64) -> Result<(), HeaderError> {
    let unsatisfied = HeaderError::parse(header::CONTENT_RANGE, &format!("bytes */{len}"))?;
    fields.insert(header::CONTENT_RANGE, unsatisfied);
    fields.insert(header::ACCEPT_RANGES, BYTES);
    Ok(())
}

#[inline]
fn content_range(range: ByteRange, len: u64) -> Option<HeaderValue> {
    /// The length with three numbers of 20 digits.
    const MAX_LEN: usize = "bytes -/".len() + 3 * "18446744073709551615".len();
    let mut text = [0; MAX_LEN];
    let mut rest = text.as_mut_slice();
    let mut digits = itoa::Buffer::new();
    for (before, number) in [("bytes ", range.first()), ("-", range.last()), ("/", len)] {
        rest.write_all(before.as_bytes()).ok()?;
        rest.write_all(digits.format(number).as_bytes()).ok()?;
    }
    let unused = rest.len();
    HeaderValue::from_bytes(text.get(..MAX_LEN - unused)?).ok()
}

/// Returns the status line and the stored fields of an answer with one range.
fn partial_content_head(kept: [&StoredFields; 2]) -> Box<[u8]> {
    let mut lines = b"HTTP/1.1 206 Partial Content\r\n".to_vec();
    for (name, value) in kept.into_iter().flatten() {
        lines.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    lines.into()
}

/// Returns stored fields as a map, with room for two more.
#[inline]
fn to_header_map<const N: usize>(kept: [&StoredFields; N]) -> HeaderMap {
    let len: usize = kept.iter().map(|fields| fields.len()).sum();
    let mut map = HeaderMap::with_capacity(len + 2);
    for (name, value) in kept.into_iter().flatten() {
        map.insert(name, value.clone());
    }
    map
}

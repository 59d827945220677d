//! The status line and header fields of responses about a representation.
//!
//! Most responses go through hyper, which needs a map of fields. Range responses on the fast path are written as text.
//! One [`ResponseHead`] produces both forms, so that they are the same.

use std::io::Write;

use http::header::{self, HeaderMap, HeaderName};
use http::{HeaderValue, StatusCode};

use super::header_error::HeaderError;
use super::range::ByteRange;

/// The `Cache-Control` value for images with secrets: clients may store the response but must revalidate it, and shared
/// caches may not store it.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// The `Cache-Control` value for images without secrets: clients and shared caches may store the response, but must
/// revalidate it.
const PUBLIC: HeaderValue = HeaderValue::from_static("public, no-cache");
const BYTES: HeaderValue = HeaderValue::from_static("bytes");

/// Header fields in compact storage. One `HeaderMap` per image took 250 MiB with 2000 images, because the allocator
/// could not return the memory between them.
type StoredFields = Box<[(HeaderName, HeaderValue)]>;

/// The status and header fields of a response, in the form that hyper needs.
pub(super) type StatusAndFields = (StatusCode, HeaderMap);

/// The header fields common to all responses about a representation, prepared once.
#[derive(Debug, Clone)]
pub(super) struct ResponseHead {
    /// The fields of every response, including 304.
    identity: StoredFields,
    /// The additional fields of responses that have a body.
    description: StoredFields,
    /// The start of a 206 response as text: the status line, and the fields of `identity` and `description`.
    partial: Box<[u8]>,
}

/// The additional fields of a response with a single range.
pub(super) struct RangeHeadFields {
    content_range: HeaderValue,
    len: u64,
}

impl ResponseHead {
    /// Prepares the fields. `last_modified` and `content_disposition` may be absent.
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

    /// Allows shared caches to store the responses, for a representation without secrets.
    pub(super) fn with_public_caching(mut self) -> Self {
        for (_, value) in self.identity.iter_mut().filter(|(name, _)| name == header::CACHE_CONTROL) {
            *value = PUBLIC;
        }
        self.partial = partial_content_head([&self.identity, &self.description]);
        self
    }

    /// Returns the head of a 304 response.
    #[inline]
    pub(super) fn not_modified(&self) -> StatusAndFields {
        (StatusCode::NOT_MODIFIED, to_header_map([&self.identity]))
    }

    /// Returns the head of a response with the whole representation of `len` bytes.
    #[inline]
    pub(super) fn whole_fields(&self, len: u64) -> StatusAndFields {
        let mut fields = to_header_map([&self.identity, &self.description]);
        fields.insert(header::CONTENT_LENGTH, len.into());
        (StatusCode::OK, fields)
    }

    /// Returns the head of a response with a single range.
    #[inline]
    pub(super) fn range_fields(&self, range: RangeHeadFields) -> StatusAndFields {
        // Send all fields even if the client has them from an earlier response, because real clients use the fields of
        // the last response.
        let mut fields = to_header_map([&self.identity, &self.description]);
        fields.insert(header::CONTENT_RANGE, range.content_range);
        fields.insert(header::CONTENT_LENGTH, range.len.into());
        (StatusCode::PARTIAL_CONTENT, fields)
    }

    /// Returns the head of a response with several ranges, whose body is `len` bytes long.
    #[inline]
    pub(super) fn multipart_fields(&self, content_type: HeaderValue, len: u64) -> StatusAndFields {
        let mut fields = to_header_map([&self.identity, &self.description]);
        fields.insert(header::CONTENT_TYPE, content_type);
        fields.insert(header::CONTENT_LENGTH, len.into());
        (StatusCode::PARTIAL_CONTENT, fields)
    }

    /// Appends the head of a response with a single range to `text`. `date` is the value of `Date`.
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
    /// Returns the fields of a response with a single range of a representation of `len` bytes. `None` would mean a bug
    /// in [`content_range`].
    #[inline]
    pub(super) fn new(range: ByteRange, len: u64) -> Option<Self> {
        Some(Self { content_range: content_range(range, len)?, len: range.len() })
    }
}

/// Adds the `Content-Range` field of a 416 response, which contains the length of the representation, and
/// `Accept-Ranges`.
pub(super) fn put_unsatisfied_range(fields: &mut HeaderMap, len: u64) -> Result<(), HeaderError> {
    let unsatisfied = HeaderError::parse(header::CONTENT_RANGE, &format!("bytes */{len}"))?;
    fields.insert(header::CONTENT_RANGE, unsatisfied);
    fields.insert(header::ACCEPT_RANGES, BYTES);
    Ok(())
}

#[inline]
fn content_range(range: ByteRange, len: u64) -> Option<HeaderValue> {
    /// Maximum length of the value: the prefix, two separators and three numbers of 20 digits.
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

/// Returns the status line and the stored fields of a response with a single range.
fn partial_content_head(fields_lists: [&StoredFields; 2]) -> Box<[u8]> {
    let mut lines = b"HTTP/1.1 206 Partial Content\r\n".to_vec();
    for (name, value) in fields_lists.into_iter().flatten() {
        lines.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    lines.into()
}

/// Returns stored fields as a map with room for two more fields.
#[inline]
fn to_header_map<const N: usize>(fields_lists: [&StoredFields; N]) -> HeaderMap {
    let len: usize = fields_lists.iter().map(|fields| fields.len()).sum();
    let mut map = HeaderMap::with_capacity(len + 2);
    for (name, value) in fields_lists.into_iter().flatten() {
        map.insert(name, value.clone());
    }
    map
}

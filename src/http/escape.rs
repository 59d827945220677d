//! The set of characters to percent-encode in URLs (RFC 3986, 2.1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// All characters except the unreserved ones (RFC 3986, 2.3). Text encoded with this set can be part of any URL
/// component.
pub(crate) const NOT_UNRESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

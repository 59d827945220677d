//! Percent escapes (RFC 3986, 2.1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// All bytes but the unreserved ones (RFC 3986, 2.3), which may be in any part of a URL.
pub(crate) const NOT_UNRESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

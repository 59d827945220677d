//! The `Content-Disposition` header (RFC 6266).

use http::{HeaderValue, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::header_error::HeaderError;

/// All bytes except the unreserved characters (RFC 3986, 2.3).
const NOT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Maximum length of a file name, in characters. File systems have the same limit.
const MAX_NAME: usize = 255;

/// Returns the `Content-Disposition` value for a file name. Drops control characters. Adds a non-ASCII name twice: as
/// ASCII for old clients, and as UTF-8 in `filename*`.
pub(super) fn attachment(name: &str) -> Result<HeaderValue, HeaderError> {
    let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    let mut value = "attachment; filename=".to_owned();
    if !name.is_empty() && name.chars().all(is_token_char) {
        // Write the name without quotes, because some scripts extract it from the header and do not remove quotes.
        value.push_str(&name);
    } else {
        value.push('"');
        for c in name.chars() {
            match c {
                '"' | '\\' => value.extend(['\\', c]),
                c if c.is_ascii() => value.push(c),
                _ => value.push('_'),
            }
        }
        value.push('"');
    }
    if !name.is_ascii() {
        value.push_str("; filename*=UTF-8''");
        value.extend(utf8_percent_encode(&name, NOT_UNRESERVED));
    }
    HeaderError::parse(header::CONTENT_DISPOSITION, &value)
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_quoted_and_encoded() {
        for (name, expected) in [
            ("1b2c-discovery.iso", "attachment; filename=1b2c-discovery.iso"),
            ("my image.iso", "attachment; filename=\"my image.iso\""),
            ("a\"b\\c.iso", "attachment; filename=\"a\\\"b\\\\c.iso\""),
            ("a\r\nSet-Cookie: b", "attachment; filename=\"aSet-Cookie: b\""),
            ("übung.iso", "attachment; filename=\"_bung.iso\"; filename*=UTF-8''%C3%BCbung.iso"),
            ("", "attachment; filename=\"\""),
        ] {
            assert_eq!(attachment(name).unwrap(), expected);
        }
        assert!(attachment(&"ü".repeat(100_000)).unwrap().len() < 3000);
    }
}

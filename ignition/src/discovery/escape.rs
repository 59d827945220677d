//! Escapes values so that the reader of each file format receives them unchanged.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to escape in the query of a URL: all except the unreserved characters of RFC 3986.
const ESCAPED_IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Quotes a value as one word of a shell script.
pub(crate) fn shell_word(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Escapes a value as one argument of a command in a systemd unit, where `%` and `$` are special.
pub(crate) fn unit_argument(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@=,?&+~".contains(&byte);
    if !value.is_empty() && value.bytes().all(is_plain) {
        return value.to_owned();
    }
    format!("\"{}\"", with_backslashes(value, "\"\\").replace('%', "%%").replace('$', "$$"))
}

/// Returns a line of a systemd unit that sets a variable. In such a line, `%` is special and `$` is not.
pub(crate) fn unit_environment(name: &str, value: &str) -> String {
    format!("Environment=\"{name}={}\"\n", with_backslashes(value, "\"\\").replace('%', "%%"))
}

/// Returns a line of a file for `EnvironmentFile=`. The value is quoted like a double-quoted word in a shell.
pub(crate) fn environment_file_line(name: &str, value: &str) -> String {
    format!("{name}=\"{}\"\n", with_backslashes(value, "\"\\`$"))
}

fn with_backslashes(value: &str, special: &str) -> String {
    let escaped = |it: char| special.contains(it).then_some('\\').into_iter().chain([it]);
    value.chars().flat_map(escaped).collect()
}

/// Escapes a text as a value in the query of a URL.
pub(crate) fn query_value(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED_IN_QUERY).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_for_each_reader() {
        let value = r#"a'b"c\d%e$f`g h"#;
        assert_eq!(shell_word(value), r#"'a'\''b"c\d%e$f`g h'"#);
        assert_eq!(unit_argument(value), r#""a'b\"c\\d%%e$$f`g h""#);
        assert_eq!(unit_environment("A", value), "Environment=\"A=a'b\\\"c\\\\d%%e$f`g h\"\n");
        assert_eq!(environment_file_line("A", value), "A=\"a'b\\\"c\\\\d%e\\$f\\`g h\"\n");
        assert_eq!(unit_argument("https://a/b?c=d"), "https://a/b?c=d");
        assert_eq!(unit_argument(""), "\"\"");
        assert_eq!(query_value("a-_.~1 &=+/?\u{e4}"), "a-_.~1%20%26%3D%2B%2F%3F%C3%A4");
    }
}

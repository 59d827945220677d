//! Writing a value so that the reader of the file gets it back unchanged.

use crate::bytes::ByteSet;

/// What stands for itself in the data of a `data:` URL.
static DATA: ByteSet = ByteSet::alphanumeric_and(b"-_.~$&+:=@/,;!*'()");
/// What stands for itself in the query of a URL.
static QUERY: ByteSet = ByteSet::alphanumeric_and(b"-_.~");

/// A value as one word of a shell script.
pub(crate) fn shell(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// A value as one argument of a command in a systemd unit, where `%` and `$` have a meaning of their own.
pub(crate) fn argument(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@=,?&+~".contains(&byte);
    if !value.is_empty() && value.bytes().all(is_plain) {
        return value.to_owned();
    }
    format!("\"{}\"", backslashed(value, "\"\\").replace('%', "%%").replace('$', "$$"))
}

/// A line of a systemd unit that sets a variable. `%` has a meaning there, `$` has none.
pub(crate) fn environment(name: &str, value: &str) -> String {
    format!("Environment=\"{name}={}\"\n", backslashed(value, "\"\\").replace('%', "%%"))
}

/// A line of a file for `EnvironmentFile=`. Its rules are those of a double-quoted word in a shell.
pub(crate) fn environment_file(name: &str, value: &str) -> String {
    format!("{name}=\"{}\"\n", backslashed(value, "\"\\`$"))
}

fn backslashed(value: &str, special: &str) -> String {
    let escaped = |it: char| special.contains(it).then_some('\\').into_iter().chain([it]);
    value.chars().flat_map(escaped).collect()
}

/// A text as a `data:` URL: letters, digits and harmless punctuation stand for themselves.
pub(crate) fn data_url(text: &str) -> String {
    percent("data:,", text, &DATA)
}

/// A text as a value in the query of a URL.
pub(crate) fn query(text: &str) -> String {
    percent("", text, &QUERY)
}

fn percent(start: &str, text: &str, harmless: &ByteSet) -> String {
    let mut escaped = String::with_capacity(start.len() + text.len() + text.len() / 2);
    escaped.push_str(start);
    let mut rest = text;
    while let Some(at) = harmless.first_other(rest) {
        let (run, others) = rest.split_at(at);
        escaped.push_str(run);
        let mut others = others.chars();
        for byte in others.next().unwrap_or_default().encode_utf8(&mut [0; 4]).bytes() {
            escaped.push('%');
            escaped.extend([byte >> 4, byte & 0xF].map(hex_digit));
        }
        rest = others.as_str();
    }
    escaped.push_str(rest);
    escaped
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(nibble.into(), 16).unwrap_or_default().to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::resource;

    #[test]
    fn each_reader_has_its_own_marks() {
        let value = r#"a'b"c\d%e$f`g h"#;
        assert_eq!(shell(value), r#"'a'\''b"c\d%e$f`g h'"#);
        assert_eq!(argument(value), r#""a'b\"c\\d%%e$$f`g h""#);
        assert_eq!(environment("A", value), "Environment=\"A=a'b\\\"c\\\\d%%e$f`g h\"\n");
        assert_eq!(environment_file("A", value), "A=\"a'b\\\"c\\\\d%e\\$f\\`g h\"\n");
        assert_eq!(argument("https://a/b?c=d"), "https://a/b?c=d");
        assert_eq!(argument(""), "\"\"");
    }

    proptest! {
        #[test]
        fn data_urls_carry_any_text(text: String) {
            prop_assert_eq!(resource::contents(&data_url(&text), None).unwrap(), text.into_bytes());
        }
    }
}

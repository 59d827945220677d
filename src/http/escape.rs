//! Percent escapes (RFC 3986, 2.1).

/// The bytes that a text of a URL stands for. What is no escape stays as it is.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let escaped = match behind {
            [high, low, behind @ ..] if *first == b'%' => byte(*high, *low).map(|byte| (byte, behind)),
            _ => None,
        };
        let (byte, behind) = escaped.unwrap_or((*first, behind));
        bytes.push(byte);
        rest = behind;
    }
    bytes
}

fn byte(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_bytes_and_everything_else_is_itself() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("a%2Fb%c3%BC", "a/b\u{FC}".as_bytes()),
            ("%", b"%"),
            ("%4", b"%4"),
            ("%%41", b"%A"),
            ("%+1%zz%4", b"%+1%zz%4"),
            ("\u{FC}%41", "\u{FC}A".as_bytes()),
            ("%2541", b"%41"),
        ] {
            assert_eq!(unescaped(text), bytes, "{text}");
        }
    }
}

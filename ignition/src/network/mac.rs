//! MAC addresses, in upper or lower case.

use std::fmt;
use std::str::FromStr;

/// A MAC address. `Display` writes it in upper case with colons.
///
/// # Examples
///
/// ```
/// let mac: ignition::network::MacAddr = "52:54:00:aa:bb:01".parse()?;
/// assert_eq!(mac.to_string(), "52:54:00:AA:BB:01");
/// # Ok::<(), ignition::network::MacError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr([u8; 6]);

/// The error for a text that is not a MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a MAC address such as 52:54:00:AA:BB:01")]
pub struct MacError {
    text: String,
}

/// Maximum length in characters of an invalid address in an error.
const MAX_SHOWN_CHARS: usize = 40;

impl MacAddr {
    /// Returns whether an interface may have the address: it is neither a group address nor zero.
    pub(super) fn is_unicast(self) -> bool {
        let [first, ..] = self.0;
        first & 1 == 0 && self.0 != [0; 6]
    }
}

impl FromStr for MacAddr {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        parse_mac(text).ok_or_else(|| MacError { text: text.chars().take(MAX_SHOWN_CHARS).collect() })
    }
}

fn parse_mac(text: &str) -> Option<MacAddr> {
    let mut parts = text.split(':');
    let mut bytes = [0; 6];
    for byte in &mut bytes {
        let part = parts.next().filter(|it| it.len() == 2 && it.bytes().all(|c| c.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(MacAddr(bytes))
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02X}:{b:02X}:{c:02X}:{d:02X}:{e:02X}:{g:02X}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rejects_invalid_addresses() {
        let wrong = [
            "",
            "52:54:00:aa:bb",
            "52:54:00:aa:bb:01:02",
            "52-54-00-aa-bb-01",
            "52:54:00:aa:bb:+1",
            "5:4:0:a:b:1",
        ];
        for text in wrong.into_iter().chain(["525400aabb01", "ZZ:54:00:aa:bb:01", " 52:54:00:aa:bb:01"]) {
            let error = text.parse::<MacAddr>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
        assert!("x".repeat(1 << 20).parse::<MacAddr>().unwrap_err().to_string().len() < 120);
    }

    #[test]
    fn group_addresses_are_not_unicast() {
        let unicast = |text: &str| text.parse::<MacAddr>().unwrap().is_unicast();
        assert!(unicast("52:54:00:AA:BB:01"));
        assert!(
            !unicast("01:00:5e:00:00:01") && !unicast("ff:ff:ff:ff:ff:ff") && !unicast("00:00:00:00:00:00")
        );
    }

    proptest! {
        #[test]
        fn addresses_are_parsed_in_any_case(bytes: [u8; 6]) {
            let mac = MacAddr(bytes);
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
            prop_assert_eq!(mac.to_string().to_lowercase().parse(), Ok(mac));
        }
    }
}

//! MAC addresses.

use std::fmt;
use std::str::FromStr;

/// A MAC address. `Display` writes it in upper case with colons. Parsing accepts both cases.
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

/// Maximum length of an invalid address in an error, in characters.
const MAX_SHOWN_CHARS: usize = 40;

impl MacAddr {
    /// Converts a number back to the MAC address that a YAML 1.1 tool read as that number, because the text had no
    /// quotes.
    ///
    /// In YAML 1.1, groups of decimal digits with colons between them are a number in base 60, if the first digit is
    /// not 0 and each group after the first one is at most 59. An address with any other group is therefore not read as
    /// a number, and a number stands for at most one address. Returns `None` if the number stands for no address.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::network::MacAddr;
    ///
    /// let mac = MacAddr::from_base_60(41_135_040_001).unwrap();
    /// assert_eq!(mac.to_string(), "52:54:00:00:00:01");
    /// assert_eq!(MacAddr::from_base_60(525_400_000_001), None);
    /// ```
    #[must_use]
    pub fn from_base_60(number: u64) -> Option<Self> {
        let (mut bytes, mut rest) = ([0; 6], number);
        let [first, others @ ..] = &mut bytes;
        // Each group has the same digits as a byte of the address: decimal in the group, hexadecimal in the byte.
        let byte = |group: u64| u8::from_str_radix(&format!("{group:02}"), 16).ok();
        for other in others.iter_mut().rev() {
            *other = byte(rest % 60)?;
            rest /= 60;
        }
        *first = byte(rest).filter(|byte| *byte >= 0x10)?;
        Some(Self(bytes))
    }

    /// Returns the bytes of the address, in the order of the text.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Returns `true` if the address is neither a group address nor zero, so an interface may have it.
    pub(super) fn is_unicast(self) -> bool {
        let [first, ..] = self.0;
        first & 1 == 0 && self.0 != [0; 6]
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(octets: [u8; 6]) -> Self {
        Self(octets)
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

    /// Parses an integer with colons by the rules of YAML 1.1: `[1-9][0-9_]*(:[0-5]?[0-9])+`.
    fn yaml_1_1_integer(text: &str) -> Option<u64> {
        let (first, others) = text.split_once(':')?;
        let is_decimal = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
        if !is_decimal(first) || first.starts_with('0') {
            return None;
        }
        others.split(':').try_fold(first.parse().ok()?, |number: u64, group| {
            let group = Some(group).filter(|group| is_decimal(group) && group.len() <= 2)?;
            let group: u64 = group.parse().ok().filter(|group| *group < 60)?;
            number.checked_mul(60)?.checked_add(group)
        })
    }

    proptest! {
        /// No two addresses are the same number, and no other number stands for an address.
        #[test]
        fn from_base_60_inverts_the_numbers_of_yaml_1_1(
            bytes in prop::array::uniform6(prop_oneof![any::<u8>(), (0_u8..6, 0_u8..10).prop_map(|(a, b)| a * 16 + b)]),
            number in prop_oneof![any::<u64>(), 7_000_000_000_u64..80_000_000_000],
        ) {
            let mac = MacAddr(bytes);
            if let Some(number) = yaml_1_1_integer(&mac.to_string()) {
                prop_assert_eq!(MacAddr::from_base_60(number), Some(mac));
            }
            if let Some(mac) = MacAddr::from_base_60(number) {
                prop_assert_eq!(yaml_1_1_integer(&mac.to_string()), Some(number));
            }
        }
    }

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

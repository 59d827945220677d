//! The `Range` header (RFC 9110, 14.1 and 14.2).
//!
//! A [`RangeRequest`] is the parsed header, independent of a representation. A [`RangeSelection`] contains the bytes
//! that the header selects from a representation of a given length.

use std::cmp::Ordering;
use std::fmt;

use http::{HeaderMap, header};

/// Maximum number of ranges in a multipart response. A request for more ranges gets the whole representation. Each part
/// costs a few hundred bytes of memory, and some disk reads if the base image is not in memory.
pub(super) const MAX_RANGES: usize = 64;

/// The range unit, with the separator.
const UNIT: &[u8] = b"bytes=";

/// The byte ranges that a client requests, in the requested order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RangeRequest(Vec<RangeSpec>);

/// One range of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeSpec {
    /// From the first to the last byte, both inclusive.
    Between(u64, u64),
    /// From a byte to the end.
    From(u64),
    /// The given number of bytes at the end.
    Last(u64),
}

/// A range of bytes within a representation. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteRange {
    first: u64,
    last: u64,
}

/// The bytes that a `Range` header selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RangeSelection {
    /// The whole representation.
    Whole,
    /// One range.
    One(ByteRange),
    /// Several ranges, in the requested order.
    Several(Vec<ByteRange>),
    /// No requested range is within the representation.
    Unsatisfiable,
}

impl RangeRequest {
    /// Parses the `Range` header of a request. Returns `None` if the response must contain the whole representation. An
    /// invalid header and an unknown range unit are ignored, as RFC 9110 requires.
    pub(super) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::RANGE).iter();
        let value = values.next()?;
        // A repeated header counts as one value with commas (RFC 9110, 5.3). That value is invalid, because the unit in
        // the second header is not a valid range.
        if values.next().is_some() {
            return None;
        }
        Self::parse(value)
    }

    /// Parses the value of the header. Returns `None` if it is invalid or contains more than [`MAX_RANGES`] ranges.
    pub(super) fn parse(value: impl AsRef<[u8]>) -> Option<Self> {
        let (unit, set) = value.as_ref().split_at_checked(UNIT.len())?;
        if !unit.eq_ignore_ascii_case(UNIT) {
            return None;
        }
        let mut specs = Vec::with_capacity(1);
        // A list may contain empty elements (RFC 9110, 5.6.1.2).
        for element in set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if element.is_empty() {
                continue;
            }
            if specs.len() == MAX_RANGES {
                return None;
            }
            specs.push(RangeSpec::parse(element)?);
        }
        (!specs.is_empty()).then_some(Self(specs))
    }

    /// Selects bytes from a representation of `len` bytes.
    ///
    /// Drops ranges past the end if any other range is satisfiable. If the remaining ranges add up to more than `len`
    /// bytes, selects the whole representation. No client needs a byte twice, and a client that requests the whole
    /// representation a thousand times is probably an attacker.
    pub(super) fn select(&self, len: u64) -> RangeSelection {
        // An empty representation has no first byte, but a non-empty suffix range is satisfiable: it selects all of it
        // (RFC 9110, 14.1.2).
        if len == 0 && self.0.iter().any(|spec| matches!(spec, RangeSpec::Last(1..))) {
            return RangeSelection::Whole;
        }
        if let [spec] = self.0.as_slice() {
            return spec.select(len).map_or(RangeSelection::Unsatisfiable, RangeSelection::One);
        }
        let ranges: Vec<ByteRange> = self.0.iter().filter_map(|spec| spec.select(len)).collect();
        let bytes = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.len()));
        match ranges.as_slice() {
            [] => RangeSelection::Unsatisfiable,
            _ if bytes > len => RangeSelection::Whole,
            // A single remaining range is not sent as multipart (RFC 9110, 15.3.7.2).
            [range] => RangeSelection::One(*range),
            _ => RangeSelection::Several(ranges),
        }
    }
}

impl RangeSpec {
    /// Parses `first-`, `first-last` or `-length`, without blanks.
    fn parse(text: &[u8]) -> Option<Self> {
        let dash = text.iter().position(|byte| *byte == b'-')?;
        let (before, after) = (text.get(..dash)?, text.get(dash + 1..)?);
        let (first, last) = (parse_decimal(before)?, parse_decimal(after)?);
        match (before.is_empty(), after.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Self::Last(last)),
            (false, true) => Some(Self::From(first)),
            (false, false) => {
                // Numbers above `u64::MAX` saturate to the same value, so compare the digits.
                let are_in_order = match (first, last) {
                    (u64::MAX, u64::MAX) => compare_decimals(before, after) != Ordering::Greater,
                    (first, last) => first <= last,
                };
                are_in_order.then_some(Self::Between(first, last))
            }
        }
    }

    /// Selects bytes from a representation of `len` bytes. Returns `None` if the range is not satisfiable.
    fn select(self, len: u64) -> Option<ByteRange> {
        let end = len.checked_sub(1)?;
        let (first, last) = match self {
            Self::Between(first, last) => (first, last.min(end)),
            Self::From(first) => (first, end),
            Self::Last(0) => return None,
            Self::Last(count) => (len.saturating_sub(count), end),
        };
        (first <= end).then_some(ByteRange { first, last })
    }
}

/// Parses decimal digits. An empty string is 0. Returns `None` for any other character. A number that is too large
/// saturates, because no representation is that long.
fn parse_decimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        Some(number.saturating_mul(10).saturating_add(digit.into()))
    })
}

/// Compares two decimal numbers with any number of digits.
fn compare_decimals(a: &[u8], b: &[u8]) -> Ordering {
    let [a, b] = [a, b].map(|mut digits| {
        while let [b'0', rest @ ..] = digits {
            digits = rest;
        }
        digits
    });
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl ByteRange {
    /// Returns the offset of the first byte.
    pub(super) fn first(self) -> u64 {
        self.first
    }

    /// Returns the offset of the last byte, inclusive.
    pub(super) fn last(self) -> u64 {
        self.last
    }

    /// Returns the number of bytes, which is at least 1.
    pub(super) fn len(self) -> u64 {
        self.last - self.first + 1
    }

    /// Returns the range with an exclusive end.
    pub(super) fn bounds(self) -> std::ops::Range<u64> {
        self.first..self.last + 1
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selected_ranges(selection: RangeSelection) -> Vec<(u64, u64)> {
        let bounds = |range: ByteRange| (range.first(), range.last());
        match selection {
            RangeSelection::One(range) => vec![bounds(range)],
            RangeSelection::Several(ranges) => ranges.into_iter().map(bounds).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn select_text(value: &str, len: u64) -> RangeSelection {
        RangeRequest::parse(value).map_or(RangeSelection::Whole, |request| request.select(len))
    }

    #[test]
    fn satisfiable_ranges_are_selected_in_order() {
        for (value, expected) in [
            ("bytes=0-0", vec![(0, 0)]),
            ("bytes=0-499", vec![(0, 499)]),
            ("bytes=500-999", vec![(500, 999)]),
            ("bytes=500-99999", vec![(500, 999)]),
            ("bytes=500-", vec![(500, 999)]),
            ("bytes=-1", vec![(999, 999)]),
            ("bytes=-1000", vec![(0, 999)]),
            ("bytes=-99999", vec![(0, 999)]),
            ("BYTES=1-2", vec![(1, 2)]),
            ("bytes=0001-002", vec![(1, 2)]),
            ("bytes=500-600,601-999", vec![(500, 600), (601, 999)]),
            ("bytes=500-700,601-999", vec![(500, 700), (601, 999)]),
            ("bytes=-1 ,\t0-0", vec![(999, 999), (0, 0)]),
            ("bytes=,, 0-0,,", vec![(0, 0)]),
            ("bytes=0-0,5000-,-0", vec![(0, 0)]),
            ("bytes=0-0,0-0", vec![(0, 0), (0, 0)]),
            ("bytes=999-99999999999999999999999", vec![(999, 999)]),
            ("bytes=-99999999999999999999999", vec![(0, 999)]),
        ] {
            assert_eq!(selected_ranges(select_text(value, 1000)), expected, "{value}");
        }
    }

    #[test]
    fn rejects_invalid_range_headers() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=1",
            "bytes=2-1",
            "bytes=99999999999999999999999-99999999999999999999998",
            "bytes=100000000000000000000-20",
            "bytes=0-0,2-1",
            "bytes=0-0,x",
            "bytes=+1-2",
            "bytes=1-+2",
            "bytes=--1",
            "bytes=1--2",
            "bytes= 1 - 2",
            "bytes =0-1",
            " bytes=0-1",
            "bytes=0-1;2-3",
            "bytes=0x0-0x1",
            "octets=0-1",
            "items=0-1",
            "bytes:0-1",
        ] {
            assert_eq!(RangeRequest::parse(value), None, "{value}");
        }
    }

    #[test]
    fn ranges_past_the_end_are_unsatisfiable() {
        for value in
            ["bytes=1000-", "bytes=1000-1000", "bytes=-0", "bytes=1000-,-0", "bytes=99999999999999999999-"]
        {
            assert_eq!(select_text(value, 1000), RangeSelection::Unsatisfiable, "{value}");
        }
        for value in ["bytes=0-", "bytes=0-0", "bytes=-0", "bytes=0-1,2-"] {
            assert_eq!(select_text(value, 0), RangeSelection::Unsatisfiable, "{value}");
        }
        assert_eq!(select_text("bytes=-5", 0), RangeSelection::Whole);
        assert_eq!(select_text("bytes=0-1,-5", 0), RangeSelection::Whole);
        assert_eq!(selected_ranges(select_text("bytes=0-", u64::MAX)), [(0, u64::MAX - 1)]);
    }

    #[test]
    fn too_many_ranges_or_bytes_select_everything() {
        assert_eq!(select_text("bytes=0-,0-0", 1000), RangeSelection::Whole);
        assert_eq!(select_text("bytes=0-599,400-999", 1000), RangeSelection::Whole);
        assert_eq!(selected_ranges(select_text("bytes=500-999,0-499", 1000)).len(), 2);
        let many = |count: usize| format!("bytes={}", vec!["0-0"; count].join(","));
        assert_eq!(selected_ranges(select_text(&many(MAX_RANGES), 1000)).len(), MAX_RANGES);
        assert_eq!(select_text(&many(MAX_RANGES + 1), 1000), RangeSelection::Whole);
    }

    #[test]
    fn repeated_range_header_is_ignored() {
        let mut headers = HeaderMap::new();
        assert_eq!(RangeRequest::from_headers(&headers), None);
        headers.append(header::RANGE, "bytes=0-1".parse().unwrap());
        assert!(RangeRequest::from_headers(&headers).is_some());
        headers.append(header::RANGE, "bytes=2-3".parse().unwrap());
        assert_eq!(RangeRequest::from_headers(&headers), None);
    }

    /// Returns the bytes of a range, computed byte by byte from the definition in the RFC.
    fn bytes_by_definition(spec: RangeSpec, len: u64) -> Vec<u64> {
        (0..len)
            .filter(|byte| match spec {
                RangeSpec::Between(first, last) => first <= *byte && *byte <= last,
                RangeSpec::From(first) => first <= *byte,
                RangeSpec::Last(count) => len - *byte <= count,
            })
            .collect()
    }

    fn format_spec(spec: &RangeSpec) -> String {
        match spec {
            RangeSpec::Between(first, last) => format!("{first}-{last}"),
            RangeSpec::From(first) => format!("{first}-"),
            RangeSpec::Last(count) => format!("-{count}"),
        }
    }

    fn any_specs() -> impl Strategy<Value = Vec<RangeSpec>> {
        let spec = prop_oneof![
            (0..60_u64, 0..60_u64).prop_map(|(a, b)| RangeSpec::Between(a.min(b), a.max(b))),
            (0..60_u64).prop_map(RangeSpec::From),
            (0..60_u64).prop_map(RangeSpec::Last),
        ];
        proptest::collection::vec(spec, 1..6)
    }

    proptest! {
        #[test]
        fn parser_accepts_any_text_without_panic(value in "(bytes=)?[-0-9, x]{0,40}", len in any::<u64>()) {
            if let Some(request) = RangeRequest::parse(&value) {
                match request.select(len) {
                    RangeSelection::One(range) => prop_assert!(range.first() <= range.last() && range.last() < len),
                    RangeSelection::Several(ranges) => for range in ranges {
                        prop_assert!(range.first() <= range.last() && range.last() < len);
                    },
                    RangeSelection::Whole | RangeSelection::Unsatisfiable => {}
                }
            }
        }

        #[test]
        fn formatted_ranges_parse_back(specs in any_specs()) {
            let value = format!("bytes={}", specs.iter().map(format_spec).collect::<Vec<_>>().join(", "));
            prop_assert_eq!(RangeRequest::parse(&value), Some(RangeRequest(specs)));
        }

        #[test]
        fn selection_matches_the_rfc_definition(specs in any_specs(), len in 0..50_u64) {
            let naive: Vec<Vec<u64>> =
                specs.iter().map(|spec| bytes_by_definition(*spec, len)).filter(|bytes| !bytes.is_empty()).collect();
            let requested_len = naive.iter().flatten().count() as u64;
            let wants_end = specs.iter().any(|spec| matches!(spec, RangeSpec::Last(1..)));
            match RangeRequest(specs).select(len) {
                RangeSelection::Whole => prop_assert!(requested_len > len || len == 0 && wants_end),
                RangeSelection::Unsatisfiable => prop_assert!(naive.is_empty()),
                some => {
                    prop_assert!(requested_len <= len);
                    let selected: Vec<Vec<u64>> =
                        selected_ranges(some).into_iter().map(|(first, last)| (first..=last).collect()).collect();
                    prop_assert_eq!(selected, naive);
                }
            }
        }
    }
}

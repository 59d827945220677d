//! Which bytes a `Range` header asks for (RFC 9110, 14.1 and 14.2), and which of them there are.
//!
//! [`RangeRequest`] is what was asked; it says nothing about any representation. [`Selection`] is what that means for one
//! of a certain length.

use std::cmp::Ordering;
use std::fmt;

use axum::http::{HeaderMap, header};

/// The most ranges that are answered one by one. Who asks for more gets everything: a part costs some hundred bytes of
/// memory, and some disk accesses where the base is not in memory.
pub const MAX_RANGES: usize = 64;

/// What comes before ranges of bytes.
const UNIT: &[u8] = b"bytes=";

/// What a client asks for: ranges of bytes, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeRequest(Vec<RangeSpec>);

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeSpec {
    /// From the first byte to the last one, both included.
    Between(u64, u64),
    /// From this byte on.
    From(u64),
    /// The last so many bytes.
    Last(u64),
}

/// Bytes of a representation: never empty, and always inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    first: u64,
    last: u64,
}

/// What a request for ranges selects of a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of it.
    Whole,
    /// One range.
    One(ByteRange),
    /// Several, in the order in which they were asked for.
    Several(Vec<ByteRange>),
    /// Nothing that was asked for exists.
    Unsatisfiable,
}

impl RangeRequest {
    /// What a request asks for; `None` where that is everything. As the standard wants it, a header that cannot be
    /// understood is as good as none, and so is one of other units.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::RANGE).iter();
        let value = values.next()?;
        // Two headers are one with a comma in between, and the unit of the second one is no range.
        if values.next().is_some() {
            return None;
        }
        Self::parse(value)
    }

    /// Reads the value of a header. More than [`MAX_RANGES`] are as good as none.
    #[must_use]
    pub fn parse(value: impl AsRef<[u8]>) -> Option<Self> {
        let (unit, set) = value.as_ref().split_at_checked(UNIT.len())?;
        if !unit.eq_ignore_ascii_case(UNIT) {
            return None;
        }
        let mut specs = Vec::with_capacity(1);
        // Lists may have empty elements (RFC 9110, 5.6.1.2).
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

    /// What this means for a representation of `len` bytes.
    ///
    /// Ranges that do not exist are left out where others do. Where the rest has more bytes than the whole, the whole is
    /// selected: nobody needs a byte twice, and who asks for all of them a thousand times wants to hurt.
    #[must_use]
    pub fn select(&self, len: u64) -> Selection {
        // An empty representation has no byte that a range could begin with; its end is asked for all the same.
        if len == 0 && self.0.iter().any(|spec| matches!(spec, RangeSpec::Last(1..))) {
            return Selection::Whole;
        }
        if let [spec] = self.0.as_slice() {
            return spec.select(len).map_or(Selection::Unsatisfiable, Selection::One);
        }
        let ranges: Vec<ByteRange> = self.0.iter().filter_map(|spec| spec.select(len)).collect();
        let bytes = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.len()));
        match ranges.as_slice() {
            [] => Selection::Unsatisfiable,
            _ if bytes > len => Selection::Whole,
            // What is one range is not sent in parts (RFC 9110, 15.3.7.2).
            [range] => Selection::One(*range),
            _ => Selection::Several(ranges),
        }
    }
}

impl RangeSpec {
    /// Reads `first-`, `first-last` or `-length`, with no blanks in it.
    fn parse(text: &[u8]) -> Option<Self> {
        let dash = text.iter().position(|byte| *byte == b'-')?;
        let (before, after) = (text.get(..dash)?, text.get(dash + 1..)?);
        let (first, last) = (number(before)?, number(after)?);
        match (before.is_empty(), after.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Self::Last(last)),
            (false, true) => Some(Self::From(first)),
            (false, false) => {
                // Past the end of everything, one may be before the other all the same.
                let are_in_order = match (first, last) {
                    (u64::MAX, u64::MAX) => order(before, after) != Ordering::Greater,
                    (first, last) => first <= last,
                };
                are_in_order.then_some(Self::Between(first, last))
            }
        }
    }

    /// What this is of a representation of `len` bytes; `None` where nothing.
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

/// The number that digits stand for; `None` where something else is among them. What does not fit is past the end of
/// everything, as is the number given for it.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        Some(number.saturating_mul(10).saturating_add(digit.into()))
    })
}

/// Compares two numbers of any length.
fn order(a: &[u8], b: &[u8]) -> Ordering {
    let [a, b] = [a, b].map(|digits| {
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.get(zeros..).unwrap_or_default()
    });
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl ByteRange {
    /// The first byte.
    #[must_use]
    pub fn first(self) -> u64 {
        self.first
    }

    /// The last byte, which is one of them.
    #[must_use]
    pub fn last(self) -> u64 {
        self.last
    }

    /// The number of bytes: at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(self) -> u64 {
        self.last - self.first + 1
    }

    /// The same with the end as the first byte behind it.
    #[must_use]
    pub fn bounds(self) -> std::ops::Range<u64> {
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

    fn ranges(selection: Selection) -> Vec<(u64, u64)> {
        let bounds = |range: ByteRange| (range.first(), range.last());
        match selection {
            Selection::One(range) => vec![bounds(range)],
            Selection::Several(ranges) => ranges.into_iter().map(bounds).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn select(value: &str, len: u64) -> Selection {
        RangeRequest::parse(value).map_or(Selection::Whole, |request| request.select(len))
    }

    #[test]
    fn what_is_asked_for_is_selected() {
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
            assert_eq!(ranges(select(value, 1000)), expected, "{value}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_not_there() {
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
    fn what_does_not_exist_is_unsatisfiable() {
        for value in
            ["bytes=1000-", "bytes=1000-1000", "bytes=-0", "bytes=1000-,-0", "bytes=99999999999999999999-"]
        {
            assert_eq!(select(value, 1000), Selection::Unsatisfiable, "{value}");
        }
        for value in ["bytes=0-", "bytes=0-0", "bytes=-0", "bytes=0-1,2-"] {
            assert_eq!(select(value, 0), Selection::Unsatisfiable, "{value}");
        }
        assert_eq!(select("bytes=-5", 0), Selection::Whole);
        assert_eq!(select("bytes=0-1,-5", 0), Selection::Whole);
        assert_eq!(ranges(select("bytes=0-", u64::MAX)), [(0, u64::MAX - 1)]);
    }

    #[test]
    fn too_much_is_everything() {
        assert_eq!(select("bytes=0-,0-0", 1000), Selection::Whole);
        assert_eq!(select("bytes=0-599,400-999", 1000), Selection::Whole);
        assert_eq!(ranges(select("bytes=500-999,0-499", 1000)).len(), 2);
        let many = |count: usize| format!("bytes={}", vec!["0-0"; count].join(","));
        assert_eq!(ranges(select(&many(MAX_RANGES), 1000)).len(), MAX_RANGES);
        assert_eq!(select(&many(MAX_RANGES + 1), 1000), Selection::Whole);
    }

    #[test]
    fn several_headers_are_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(RangeRequest::of(&headers), None);
        headers.append(header::RANGE, "bytes=0-1".parse().unwrap());
        assert!(RangeRequest::of(&headers).is_some());
        headers.append(header::RANGE, "bytes=2-3".parse().unwrap());
        assert_eq!(RangeRequest::of(&headers), None);
    }

    /// A range as the standard explains it, byte by byte.
    fn naive(spec: RangeSpec, len: u64) -> Vec<u64> {
        (0..len)
            .filter(|byte| match spec {
                RangeSpec::Between(first, last) => first <= *byte && *byte <= last,
                RangeSpec::From(first) => first <= *byte,
                RangeSpec::Last(count) => len - *byte <= count,
            })
            .collect()
    }

    fn written(spec: &RangeSpec) -> String {
        match spec {
            RangeSpec::Between(first, last) => format!("{first}-{last}"),
            RangeSpec::From(first) => format!("{first}-"),
            RangeSpec::Last(count) => format!("-{count}"),
        }
    }

    fn specs() -> impl Strategy<Value = Vec<RangeSpec>> {
        let spec = prop_oneof![
            (0..60_u64, 0..60_u64).prop_map(|(a, b)| RangeSpec::Between(a.min(b), a.max(b))),
            (0..60_u64).prop_map(RangeSpec::From),
            (0..60_u64).prop_map(RangeSpec::Last),
        ];
        proptest::collection::vec(spec, 1..6)
    }

    proptest! {
        #[test]
        fn any_text_is_read(value in "(bytes=)?[-0-9, x]{0,40}", len in any::<u64>()) {
            if let Some(request) = RangeRequest::parse(&value) {
                match request.select(len) {
                    Selection::One(range) => prop_assert!(range.first() <= range.last() && range.last() < len),
                    Selection::Several(ranges) => for range in ranges {
                        prop_assert!(range.first() <= range.last() && range.last() < len);
                    },
                    Selection::Whole | Selection::Unsatisfiable => {}
                }
            }
        }

        #[test]
        fn what_is_written_is_read(specs in specs()) {
            let value = format!("bytes={}", specs.iter().map(written).collect::<Vec<_>>().join(", "));
            prop_assert_eq!(RangeRequest::parse(&value), Some(RangeRequest(specs)));
        }

        #[test]
        fn selections_are_those_of_the_standard(specs in specs(), len in 0..50_u64) {
            let naive: Vec<Vec<u64>> =
                specs.iter().map(|spec| naive(*spec, len)).filter(|bytes| !bytes.is_empty()).collect();
            let asked = naive.iter().flatten().count() as u64;
            let wants_end = specs.iter().any(|spec| matches!(spec, RangeSpec::Last(1..)));
            match RangeRequest(specs).select(len) {
                Selection::Whole => prop_assert!(asked > len || len == 0 && wants_end),
                Selection::Unsatisfiable => prop_assert!(naive.is_empty()),
                some => {
                    prop_assert!(asked <= len);
                    let found: Vec<Vec<u64>> =
                        ranges(some).into_iter().map(|(first, last)| (first..=last).collect()).collect();
                    prop_assert_eq!(found, naive);
                }
            }
        }
    }
}

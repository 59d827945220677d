//! Conditional requests (RFC 9110, section 13).

use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta, Utc};
use http::HeaderValue;
use http::header::{self, HeaderMap, HeaderName};

/// The HTTP date formats, without the weekday: the current format, and two obsolete ones that recipients must still
/// accept (RFC 9110, 5.6.7).
const DATE_FORMS: [&str; 3] = ["%d %b %Y %H:%M:%S GMT", "%d-%b-%y %H:%M:%S GMT", "%b %e %H:%M:%S %Y"];
/// Maximum time from now to a date with a two-digit year. A later date belongs to the previous century (RFC 9110,
/// 5.6.7).
const FAR_FUTURE: TimeDelta = TimeDelta::days(50 * 365);
/// Maximum number of entity tags to compare. The limit on the size of the request head would allow far more.
const MAX_TAGS: usize = 256;
const WEAK: &[u8] = b"W/";

/// The validators of a representation, and the time of the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validators<'a> {
    /// The strong entity tag, including its quotes.
    pub(super) etag: &'a str,
    /// The modification time in whole seconds, or `None` if it is unknown. Later than `now` if the clock was set back.
    pub(super) modified: Option<DateTime<Utc>>,
    /// The time of the request.
    pub(super) now: DateTime<Utc>,
}

/// The result of evaluating a request's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionOutcome {
    /// Send the normal response.
    Proceed,
    /// Respond with 304: the client already has this representation.
    NotModified,
    /// Respond with 412: a precondition failed.
    Failed,
}

impl Validators<'_> {
    /// Evaluates the conditions of a GET or HEAD request in the order of RFC 9110, 13.2.2.
    pub(super) fn evaluate(&self, headers: &HeaderMap) -> ConditionOutcome {
        let holds = match EntityTagList::from_headers(headers, header::IF_MATCH) {
            Some(tags) => tags.contains_strong(self.etag),
            None => self.is_unmodified_since(headers, header::IF_UNMODIFIED_SINCE).unwrap_or(true),
        };
        if !holds {
            return ConditionOutcome::Failed;
        }
        let is_known = match EntityTagList::from_headers(headers, header::IF_NONE_MATCH) {
            Some(tags) => tags.contains_weak(self.etag),
            None => self.is_unmodified_since(headers, header::IF_MODIFIED_SINCE).unwrap_or(false),
        };
        if is_known { ConditionOutcome::NotModified } else { ConditionOutcome::Proceed }
    }

    /// Returns `true` if the representation is unmodified since the date in a header. Returns `None` if the condition
    /// has no effect, because the header is absent or invalid or the modification time is unknown (RFC 9110, 13.1.3 and
    /// 13.1.4).
    fn is_unmodified_since(&self, headers: &HeaderMap, name: HeaderName) -> Option<bool> {
        let date = condition_date(headers, name, self.now)?;
        Some(self.modified? <= date)
    }

    /// Returns `true` if `If-Range` allows a range response: the header is absent or matches this representation (RFC
    /// 9110, 13.1.5). A date only matches after its second is over, because another change in the same second would get
    /// the same date.
    pub(super) fn allows_ranges(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(header::IF_RANGE).iter();
        let Some(value) = values.next() else {
            return true;
        };
        if values.next().is_some() {
            return false;
        }
        let Ok(value) = value.to_str() else {
            return false;
        };
        if value.starts_with('"') || value.starts_with("W/") {
            return value == self.etag;
        }
        let Some(modified) = self.modified else {
            return false;
        };
        let is_over = modified + TimeDelta::seconds(1) <= self.now;
        is_over && parse_date(value, self.now) == Some(modified)
    }
}

/// Returns `true` if a request has at least one conditional header.
pub(super) fn has_condition(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("if-"))
}

/// Returns `true` if `If-None-Match` lists this entity tag. The client then already has the representation.
#[must_use]
pub fn is_listed_in_if_none_match(headers: &HeaderMap, etag: &str) -> bool {
    EntityTagList::from_headers(headers, header::IF_NONE_MATCH).is_some_and(|tags| tags.contains_weak(etag))
}

/// The value of `If-Match` or `If-None-Match`.
enum EntityTagList<'a> {
    /// The wildcard `*`.
    Any,
    /// The listed entity tags. They may contain non-ASCII bytes (RFC 9110, 8.8.3).
    Some(Vec<&'a [u8]>),
}

impl<'a> EntityTagList<'a> {
    /// Parses `If-Match` or `If-None-Match`. Returns `None` if the header is absent.
    fn from_headers(headers: &'a HeaderMap, name: HeaderName) -> Option<Self> {
        let values = headers.get_all(name);
        let mut values = values.iter().peekable();
        values.peek()?;
        let mut tags = Vec::new();
        for value in values {
            if value.as_bytes() == b"*" {
                return Some(Self::Any);
            }
            parse_tags(value.as_bytes(), &mut tags);
        }
        Some(Self::Some(tags))
    }

    /// Returns `true` if the list contains `etag` by strong comparison, as for `If-Match`: a weak tag never matches.
    fn contains_strong(&self, etag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.contains(&etag.as_bytes()),
        }
    }

    /// Returns `true` if the list contains `etag` by weak comparison, as for `If-None-Match`: only the opaque parts
    /// must match.
    fn contains_weak(&self, etag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => {
                tags.iter().any(|tag| tag.strip_prefix(WEAK).unwrap_or(tag) == etag.as_bytes())
            }
        }
    }
}

/// Parses entity tags up to the first invalid one. Does not split the value at commas, because a tag may contain
/// commas.
fn parse_tags<'a>(text: &'a [u8], tags: &mut Vec<&'a [u8]>) {
    let mut rest = skip_separators(text);
    while tags.len() < MAX_TAGS {
        let opaque = rest.strip_prefix(WEAK).unwrap_or(rest);
        let opaque_len =
            opaque.strip_prefix(b"\"").and_then(|opaque| opaque.iter().position(|byte| *byte == b'"'));
        let Some(len) = opaque_len else {
            return;
        };
        // A tag consists of the weak prefix, if any, and the opaque part with its two quotes.
        let Some((tag, after)) = rest.split_at_checked(rest.len() - opaque.len() + len + 2) else {
            return;
        };
        tags.push(tag);
        rest = skip_separators(after);
    }
}

/// Skips blanks and commas at the start of a list.
fn skip_separators(mut list: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b',', rest @ ..] = list {
        list = rest;
    }
    list
}

/// Parses the date in a conditional header. Returns `None` if the header is absent, repeated or invalid.
fn condition_date(headers: &HeaderMap, name: HeaderName, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    parse_date(value.to_str().ok()?, now)
}

fn parse_date(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let (_, text) = text.split_once(' ')?;
    let read = |form| NaiveDateTime::parse_from_str(text, form).ok();
    let date = DATE_FORMS.into_iter().find_map(read)?.and_utc();
    // Only the format with dashes has a two-digit year.
    if text.contains('-') && date > now + FAR_FUTURE {
        return date.checked_sub_months(chrono::Months::new(1200));
    }
    Some(date)
}

/// Formats an HTTP date. Returns `None` if the year does not have four digits.
pub fn format_date(date: DateTime<Utc>) -> Option<HeaderValue> {
    if !(0..=9999).contains(&date.year()) {
        return None;
    }
    // The text is ASCII, so it is a valid header value.
    HeaderValue::try_from(date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ETAG: &str = "\"image\"";
    const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn parse_time(text: &str) -> DateTime<Utc> {
        parse_date(text, DateTime::UNIX_EPOCH + TimeDelta::days(20_000)).unwrap()
    }

    fn validators() -> Validators<'static> {
        Validators {
            etag: ETAG,
            modified: Some(parse_time(MODIFIED)),
            now: parse_time("Mon, 07 Nov 1994 00:00:00 GMT"),
        }
    }

    fn parse_headers(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in text.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn evaluate_headers(text: &str) -> ConditionOutcome {
        validators().evaluate(&parse_headers(text))
    }

    #[test]
    fn if_match_compares_strongly_and_if_none_match_weakly() {
        for (value, strongly, weakly) in [
            ("*", true, true),
            ("\"image\"", true, true),
            ("W/\"image\"", false, true),
            ("\"other\", \"image\"", true, true),
            ("\"other\",\"image\"", true, true),
            (",, \"other\" ,, W/\"image\"", false, true),
            ("\"a,b\", \"image\"", true, true),
            ("\"a, \\\"image\\\"\"", false, false),
            ("\"other\"", false, false),
            ("\"IMAGE\"", false, false),
            ("image", false, false),
            ("\"image", false, false),
            ("w/\"image\"", false, false),
            ("", false, false),
            ("*, \"image\"", false, false),
        ] {
            let expected = if strongly { ConditionOutcome::Proceed } else { ConditionOutcome::Failed };
            assert_eq!(evaluate_headers(&format!("if-match: {value}")), expected, "if-match: {value}");
            let expected = if weakly { ConditionOutcome::NotModified } else { ConditionOutcome::Proceed };
            assert_eq!(
                evaluate_headers(&format!("if-none-match: {value}")),
                expected,
                "if-none-match: {value}"
            );
        }
        assert_eq!(evaluate_headers("if-match: \"a\"\nif-match: \"image\""), ConditionOutcome::Proceed);
        assert_eq!(
            evaluate_headers("if-none-match: \"a\"\nif-none-match: \"image\""),
            ConditionOutcome::NotModified
        );
    }

    #[test]
    fn non_ascii_tags_do_not_hide_other_tags() {
        let list = HeaderValue::from_bytes(b"\"\xfcbung\", \"image\"").unwrap();
        for (name, expected) in [
            (header::IF_MATCH, ConditionOutcome::Proceed),
            (header::IF_NONE_MATCH, ConditionOutcome::NotModified),
        ] {
            let headers = HeaderMap::from_iter([(name.clone(), list.clone())]);
            assert_eq!(validators().evaluate(&headers), expected, "{name}");
        }
    }

    #[test]
    fn dates_have_no_effect_if_the_modification_time_is_unknown() {
        let validators = Validators { modified: None, ..validators() };
        for name in ["if-modified-since", "if-unmodified-since"] {
            for date in [BEFORE, AFTER] {
                let headers = parse_headers(&format!("{name}: {date}"));
                assert_eq!(validators.evaluate(&headers), ConditionOutcome::Proceed, "{name}: {date}");
            }
        }
        assert!(!validators.allows_ranges(&parse_headers(&format!("if-range: {MODIFIED}"))));
        assert!(validators.allows_ranges(&parse_headers(&format!("if-range: {ETAG}"))));
    }

    #[test]
    fn years_without_four_digits_have_no_http_date() {
        for year in [-1, 10_000] {
            let date = validators().now.with_year(year).unwrap();
            assert_eq!(format_date(date), None, "{year}");
        }
    }

    #[test]
    fn dates_compare_in_whole_seconds() {
        for (date, is_older) in [(BEFORE, false), (MODIFIED, true), (AFTER, true)] {
            let expected = if is_older { ConditionOutcome::NotModified } else { ConditionOutcome::Proceed };
            assert_eq!(evaluate_headers(&format!("if-modified-since: {date}")), expected, "{date}");
            let expected = if is_older { ConditionOutcome::Proceed } else { ConditionOutcome::Failed };
            assert_eq!(evaluate_headers(&format!("if-unmodified-since: {date}")), expected, "{date}");
        }
        for date in ["", "yesterday", "0", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37 CET"] {
            assert_eq!(
                evaluate_headers(&format!("if-modified-since: {date}")),
                ConditionOutcome::Proceed,
                "{date}"
            );
            assert_eq!(
                evaluate_headers(&format!("if-unmodified-since: {date}")),
                ConditionOutcome::Proceed,
                "{date}"
            );
        }
        let twice = format!("if-modified-since: {AFTER}\nif-modified-since: {AFTER}");
        assert_eq!(evaluate_headers(&twice), ConditionOutcome::Proceed);
    }

    #[test]
    fn tags_precede_dates_and_if_match_precedes_if_none_match() {
        for (text, expected) in [
            (format!("if-match: {ETAG}\nif-unmodified-since: {BEFORE}"), ConditionOutcome::Proceed),
            (format!("if-match: \"x\"\nif-unmodified-since: {AFTER}"), ConditionOutcome::Failed),
            (format!("if-none-match: \"x\"\nif-modified-since: {AFTER}"), ConditionOutcome::Proceed),
            (format!("if-none-match: {ETAG}\nif-modified-since: {BEFORE}"), ConditionOutcome::NotModified),
            (format!("if-match: \"x\"\nif-none-match: {ETAG}"), ConditionOutcome::Failed),
            (format!("if-match: {ETAG}\nif-none-match: {ETAG}"), ConditionOutcome::NotModified),
            (format!("if-unmodified-since: {BEFORE}\nif-modified-since: {AFTER}"), ConditionOutcome::Failed),
        ] {
            assert_eq!(evaluate_headers(&text), expected, "{text}");
        }
    }

    #[test]
    fn if_range_allows_ranges_of_the_same_representation() {
        for (value, passes) in [
            (ETAG, true),
            ("W/\"image\"", false),
            ("\"other\"", false),
            ("\"image\", \"other\"", false),
            ("*", false),
            (MODIFIED, true),
            ("Sunday, 06-Nov-94 08:49:37 GMT", true),
            ("Sun Nov  6 08:49:37 1994", true),
            (BEFORE, false),
            (AFTER, false),
            ("", false),
        ] {
            let headers = parse_headers(&format!("if-range: {value}"));
            assert_eq!(validators().allows_ranges(&headers), passes, "{value}");
        }
        assert!(validators().allows_ranges(&HeaderMap::new()));
        assert!(!validators().allows_ranges(&parse_headers(&format!("if-range: {ETAG}\nif-range: {ETAG}"))));
    }

    #[test]
    fn if_range_date_is_ignored_until_its_second_is_over() {
        let headers = parse_headers(&format!("if-range: {MODIFIED}"));
        let modified = parse_time(MODIFIED);
        for (millis, passes) in [(0, false), (999, false), (1000, true)] {
            let now = modified + TimeDelta::milliseconds(millis);
            let validators = Validators { now, ..validators() };
            assert_eq!(validators.allows_ranges(&headers), passes, "{millis}");
        }
    }

    #[test]
    fn two_digit_years_are_at_most_fifty_years_ahead() {
        let now = parse_time("Mon, 07 Nov 1994 00:00:00 GMT");
        let year = |text| format_date(parse_date(text, now).unwrap()).unwrap();
        assert_eq!(year("Sunday, 06-Nov-94 08:49:37 GMT"), MODIFIED);
        assert_eq!(year("Sunday, 06-Nov-60 08:49:37 GMT"), "Sun, 06 Nov 1960 08:49:37 GMT");
        assert_eq!(year("Monday, 06-Nov-34 08:49:37 GMT"), "Mon, 06 Nov 2034 08:49:37 GMT");
    }

    proptest! {
        #[test]
        fn arbitrary_conditions_are_evaluated_without_panic(value in "[ -~]{0,60}", list in "(W/)?[\", aW/*\\-]{0,30}") {
            let mut headers = HeaderMap::new();
            for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
                headers.append(name, list.parse().unwrap());
            }
            for name in [header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE, header::IF_RANGE] {
                headers.append(name, value.parse().unwrap());
            }
            validators().evaluate(&headers);
            validators().allows_ranges(&headers);
        }

        #[test]
        fn formatted_dates_parse_back(seconds in 0..4_000_000_000_i64) {
            let date = DateTime::from_timestamp(seconds, 0).unwrap();
            let text = format_date(date).unwrap();
            prop_assert_eq!(parse_date(text.to_str().unwrap(), date), Some(date));
        }
    }
}

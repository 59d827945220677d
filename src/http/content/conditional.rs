//! Whether what a client knows already lets it have an answer, and which (RFC 9110, 13).

use axum::http::HeaderValue;
use axum::http::header::{self, HeaderMap, HeaderName};
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

/// The forms of dates behind the day of the week, which tells nothing new: the one in use, and two that recipients still
/// have to read (RFC 9110, 5.6.7).
const DATE_FORMS: [&str; 3] = ["%d %b %Y %H:%M:%S GMT", "%d-%b-%y %H:%M:%S GMT", "%b %e %H:%M:%S %Y"];
/// How far in the future a year of two digits may be before it is one of the century before.
const FAR_FUTURE: TimeDelta = TimeDelta::days(50 * 365);
/// The most entity tags of a list that are looked at. The head of a request is bounded too, to far more.
const MAX_TAGS: usize = 256;

/// What a representation is compared by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validators<'a> {
    /// Its entity tag: strong, with the quotes.
    pub(super) etag: &'a str,
    /// When it changed, in whole seconds. Later than now where the clock was set back.
    pub(super) modified: DateTime<Utc>,
    /// When it is asked for.
    pub(super) now: DateTime<Utc>,
}

/// What the conditions of a request lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The request is answered.
    Proceed,
    /// The client has it already.
    NotModified,
    /// The client wants something else than there is.
    Failed,
}

impl Validators<'_> {
    /// Evaluates the conditions of a GET or HEAD, in the order of RFC 9110, 13.2.2.
    pub(super) fn evaluate(&self, headers: &HeaderMap) -> Outcome {
        let holds = match TagList::of(headers, header::IF_MATCH) {
            Some(tags) => tags.has_strongly(self.etag),
            None => {
                date(headers, header::IF_UNMODIFIED_SINCE, self.now).is_none_or(|date| self.modified <= date)
            }
        };
        if !holds {
            return Outcome::Failed;
        }
        let is_known = match TagList::of(headers, header::IF_NONE_MATCH) {
            Some(tags) => tags.has_weakly(self.etag),
            None => {
                date(headers, header::IF_MODIFIED_SINCE, self.now).is_some_and(|date| self.modified <= date)
            }
        };
        if is_known { Outcome::NotModified } else { Outcome::Proceed }
    }

    /// Whether ranges are sent: the client has a part of this very representation, or did not say what it has (RFC 9110,
    /// 13.1.5). A date counts once its second is over: until then there may be another change in the same one.
    pub(super) fn lets_ranges_pass(&self, headers: &HeaderMap) -> bool {
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
        let is_over = self.modified + TimeDelta::seconds(1) <= self.now;
        is_over && parse_date(value, self.now) == Some(self.modified)
    }
}

/// Whether a request makes any condition.
pub(super) fn is_there_any(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("if-"))
}

/// Whether a client says that it has what an entity tag stands for, and wants it only if it is another now.
pub(in crate::http) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    TagList::of(headers, header::IF_NONE_MATCH).is_some_and(|tags| tags.has_weakly(etag))
}

/// The entity tags of a condition.
enum TagList<'a> {
    /// Any.
    Any,
    /// Those that these headers name.
    Some(Vec<&'a str>),
}

impl<'a> TagList<'a> {
    /// What a condition names; `None` where it is not made.
    fn of(headers: &'a HeaderMap, name: HeaderName) -> Option<Self> {
        let values = headers.get_all(name);
        let mut values = values.iter().peekable();
        values.peek()?;
        let mut tags = Vec::new();
        for value in values {
            let text = value.to_str().unwrap_or_default();
            if text == "*" {
                return Some(Self::Any);
            }
            read_tags(text, &mut tags);
        }
        Some(Self::Some(tags))
    }

    /// Compares as `If-Match` does: weak tags are equal to none.
    fn has_strongly(&self, etag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.contains(&etag),
        }
    }

    /// Compares as `If-None-Match` does: what is weak is as good.
    fn has_weakly(&self, etag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.iter().any(|tag| tag.strip_prefix("W/").unwrap_or(tag) == etag),
        }
    }
}

/// Reads entity tags up to where there is none. Commas may be within them, so that they do not part them.
fn read_tags<'a>(text: &'a str, tags: &mut Vec<&'a str>) {
    let mut rest = text.trim_start_matches([' ', '\t', ',']);
    while tags.len() < MAX_TAGS {
        let opaque = rest.strip_prefix("W/").unwrap_or(rest);
        let Some(len) = opaque.strip_prefix('"').and_then(|opaque| opaque.find('"')) else {
            return;
        };
        // The prefix, both quotes, and what is between them.
        let Some((tag, behind)) = rest.split_at_checked(rest.len() - opaque.len() + len + 2) else {
            return;
        };
        tags.push(tag);
        rest = behind.trim_start_matches([' ', '\t', ',']);
    }
}

/// The date of a condition; `None` where there is none or it is none.
fn date(headers: &HeaderMap, name: HeaderName, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
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
    // Only the form with dashes has a year of two digits.
    if text.contains('-') && date > now + FAR_FUTURE {
        return date.checked_sub_months(chrono::Months::new(1200));
    }
    Some(date)
}

/// A date as headers have it.
pub(super) fn date_value(date: DateTime<Utc>) -> Option<HeaderValue> {
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

    fn time(text: &str) -> DateTime<Utc> {
        parse_date(text, DateTime::UNIX_EPOCH + TimeDelta::days(20_000)).unwrap()
    }

    fn validators() -> Validators<'static> {
        Validators { etag: ETAG, modified: time(MODIFIED), now: time("Mon, 07 Nov 1994 00:00:00 GMT") }
    }

    fn headers(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in text.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn outcome(text: &str) -> Outcome {
        validators().evaluate(&headers(text))
    }

    #[test]
    fn tags_are_compared_as_their_condition_wants_it() {
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
            let expected = if strongly { Outcome::Proceed } else { Outcome::Failed };
            assert_eq!(outcome(&format!("if-match: {value}")), expected, "if-match: {value}");
            let expected = if weakly { Outcome::NotModified } else { Outcome::Proceed };
            assert_eq!(outcome(&format!("if-none-match: {value}")), expected, "if-none-match: {value}");
        }
        assert_eq!(outcome("if-match: \"a\"\nif-match: \"image\""), Outcome::Proceed);
        assert_eq!(outcome("if-none-match: \"a\"\nif-none-match: \"image\""), Outcome::NotModified);
    }

    #[test]
    fn dates_are_compared_by_the_second() {
        for (date, is_older) in [(BEFORE, false), (MODIFIED, true), (AFTER, true)] {
            let expected = if is_older { Outcome::NotModified } else { Outcome::Proceed };
            assert_eq!(outcome(&format!("if-modified-since: {date}")), expected, "{date}");
            let expected = if is_older { Outcome::Proceed } else { Outcome::Failed };
            assert_eq!(outcome(&format!("if-unmodified-since: {date}")), expected, "{date}");
        }
        for date in ["", "yesterday", "0", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37 CET"] {
            assert_eq!(outcome(&format!("if-modified-since: {date}")), Outcome::Proceed, "{date}");
            assert_eq!(outcome(&format!("if-unmodified-since: {date}")), Outcome::Proceed, "{date}");
        }
        let twice = format!("if-modified-since: {AFTER}\nif-modified-since: {AFTER}");
        assert_eq!(outcome(&twice), Outcome::Proceed);
    }

    #[test]
    fn tags_come_before_dates_and_matches_before_others() {
        for (text, expected) in [
            (format!("if-match: {ETAG}\nif-unmodified-since: {BEFORE}"), Outcome::Proceed),
            (format!("if-match: \"x\"\nif-unmodified-since: {AFTER}"), Outcome::Failed),
            (format!("if-none-match: \"x\"\nif-modified-since: {AFTER}"), Outcome::Proceed),
            (format!("if-none-match: {ETAG}\nif-modified-since: {BEFORE}"), Outcome::NotModified),
            (format!("if-match: \"x\"\nif-none-match: {ETAG}"), Outcome::Failed),
            (format!("if-match: {ETAG}\nif-none-match: {ETAG}"), Outcome::NotModified),
            (format!("if-unmodified-since: {BEFORE}\nif-modified-since: {AFTER}"), Outcome::Failed),
        ] {
            assert_eq!(outcome(&text), expected, "{text}");
        }
    }

    #[test]
    fn ranges_are_sent_of_what_the_client_has() {
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
            let headers = headers(&format!("if-range: {value}"));
            assert_eq!(validators().lets_ranges_pass(&headers), passes, "{value}");
        }
        assert!(validators().lets_ranges_pass(&HeaderMap::new()));
        assert!(!validators().lets_ranges_pass(&headers(&format!("if-range: {ETAG}\nif-range: {ETAG}"))));
    }

    #[test]
    fn a_date_says_nothing_while_its_second_goes_on() {
        let headers = headers(&format!("if-range: {MODIFIED}"));
        let modified = time(MODIFIED);
        for (millis, passes) in [(0, false), (999, false), (1000, true)] {
            let now = modified + TimeDelta::milliseconds(millis);
            let validators = Validators { now, ..validators() };
            assert_eq!(validators.lets_ranges_pass(&headers), passes, "{millis}");
        }
    }

    #[test]
    fn years_of_two_digits_are_not_far_ahead() {
        let now = time("Mon, 07 Nov 1994 00:00:00 GMT");
        let year = |text| date_value(parse_date(text, now).unwrap()).unwrap();
        assert_eq!(year("Sunday, 06-Nov-94 08:49:37 GMT"), MODIFIED);
        assert_eq!(year("Sunday, 06-Nov-60 08:49:37 GMT"), "Sun, 06 Nov 1960 08:49:37 GMT");
        assert_eq!(year("Monday, 06-Nov-34 08:49:37 GMT"), "Mon, 06 Nov 2034 08:49:37 GMT");
    }

    proptest! {
        #[test]
        fn anything_is_read(value in "[ -~]{0,60}", list in "(W/)?[\", aW/*\\-]{0,30}") {
            let mut headers = HeaderMap::new();
            for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
                headers.append(name, list.parse().unwrap());
            }
            for name in [header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE, header::IF_RANGE] {
                headers.append(name, value.parse().unwrap());
            }
            validators().evaluate(&headers);
            validators().lets_ranges_pass(&headers);
        }

        #[test]
        fn dates_come_back(seconds in 0..4_000_000_000_i64) {
            let date = DateTime::from_timestamp(seconds, 0).unwrap();
            let text = date_value(date).unwrap();
            prop_assert_eq!(parse_date(text.to_str().unwrap(), date), Some(date));
        }
    }
}

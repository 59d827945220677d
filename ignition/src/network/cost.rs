//! What it would cost to read a YAML document, found out before it is read.
//!
//! Two things make a page of YAML cost gigabytes or minutes. Brackets within brackets: the reader looks at all that are open
//! for each word that it reads. Aliases: they repeat what an anchor names, and may be inside of what the next one repeats.
//! Both bounds may be too strict for a strange document, but are never too lax:
//!
//! * Where no bracket is open, what follows may be anything: the text of a block, a comment, a string. So each opening bracket
//!   may be a real one, and also may be text. Behind a real one the reader's rules are few and need no indentation, so they are
//!   followed, from every bracket at once: of all the places where the reader may be (in quotes, in a plain text, in a
//!   comment, between them), each is remembered with the most brackets that may be open there.
//! * A document without `&` has no anchors, and few asterisks cannot stand for much. For all others the reader itself goes
//!   through the document, following its aliases and keeping nothing, until it has met too much.

use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess as _, Visitor};

use super::generate::without_no_break_spaces;
use super::{NetworkError, isolation};

/// Most brackets and braces that may be open at once in a document.
///
/// The YAML reader takes time in the square of their nesting, minutes for a document full of them.
pub const MAX_BRACKETS: usize = 16 << 10;

/// How much the reader may look at open brackets: their number, for every character of the document.
const MAX_LOOKS: usize = 1 << 30;

/// As many brackets may be open all the time in a document of any length.
const MAX_USUAL_BRACKETS: usize = 64;

/// Largest size that YAML may have once its aliases are resolved, unless it has it without them.
///
/// Most of its values take some forty times as much in memory.
pub(super) const MAX_RESOLVED_LEN: usize = 16 << 20;

/// What a value counts as beside its text: about what it takes to write it down.
const VALUE_LEN: usize = 2;

/// What a byte of a document counts as at most: a value, and the longest text that a byte can be an escape for.
const MAX_BYTE_LEN: usize = 4;

/// Refuses YAML that would cost too much, whatever its length. With its aliases resolved it may have `max_len` bytes.
pub(super) fn check(text: &str, max_len: usize) -> Result<(), NetworkError> {
    let check = |text: &str| {
        check_brackets(text)?;
        check_aliases(text, max_len)
    };
    check(text)?;
    // The document may be read like this as well.
    without_no_break_spaces(text).map_or(Ok(()), |text| check(&text))
}

fn check_brackets(text: &str) -> Result<(), NetworkError> {
    let max_looks = MAX_LOOKS.saturating_add(text.len().saturating_mul(MAX_USUAL_BRACKETS));
    let count = text.bytes().filter(|byte| b"[{".contains(byte)).count();
    if count <= MAX_BRACKETS && count.saturating_mul(text.len()) <= max_looks {
        return Ok(());
    }
    let Nesting { deepest, looks } = Nesting::of(text);
    if deepest > MAX_BRACKETS || looks > max_looks {
        return Err(NetworkError::TooManyBrackets { found: deepest });
    }
    Ok(())
}

/// The most brackets that may be open in a document.
#[derive(Debug, Default, PartialEq, Eq)]
struct Nesting {
    /// At once.
    deepest: usize,
    /// Summed over all characters.
    looks: usize,
}

impl Nesting {
    fn of(text: &str) -> Self {
        let mut nesting = Self::default();
        let mut before = Levels::default();
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            let mut after = Levels::default();
            if matches!(char, '[' | '{') {
                after.reach(Place::Between, 1);
            }
            for (place, level) in before.reached() {
                after.step((place, level), char, chars.peek().copied());
            }
            let level = after.reached().map(|(_, level)| level).max().unwrap_or(0);
            nesting.deepest = nesting.deepest.max(level);
            nesting.looks = nesting.looks.saturating_add(level);
            before = after;
        }
        nesting
    }
}

/// Where the reader may be while brackets are open.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Where a value or a sign may begin.
    Between,
    /// In a text without quotes.
    Plain,
    /// In white space, behind which such a text may go on.
    Gap,
    /// In the name of an anchor or an alias.
    Name,
    Tag,
    Double,
    /// Behind a backslash in double quotes.
    Escape,
    Single,
    /// Behind a single quote, which ends the text unless there is another.
    Quote,
    Comment,
}

impl Place {
    const ALL: [Self; 10] = [
        Self::Between,
        Self::Plain,
        Self::Gap,
        Self::Name,
        Self::Tag,
        Self::Double,
        Self::Escape,
        Self::Single,
        Self::Quote,
        Self::Comment,
    ];
}

/// The most brackets that may be open with the reader at each place; none where it cannot be.
#[derive(Clone, Copy, Default)]
struct Levels([usize; Place::ALL.len()]);

impl Levels {
    fn reach(&mut self, place: Place, level: usize) {
        if let Some(known) = self.0.get_mut(place as usize) {
            *known = level.max(*known);
        }
    }

    fn reached(&self) -> impl Iterator<Item = (Place, usize)> {
        Place::ALL.into_iter().zip(self.0).filter(|(_, level)| *level > 0)
    }

    /// Goes on from one place over a character. What the reader refuses may be taken for anything.
    fn step(&mut self, (place, level): (Place, usize), char: char, next: Option<char>) {
        let place = match (place, char) {
            (Place::Double, '"') => Place::Between,
            (Place::Double, '\\') => Place::Escape,
            (Place::Double | Place::Escape, _) => Place::Double,
            (Place::Single, '\'') => Place::Quote,
            (Place::Single, _) | (Place::Quote, '\'') => Place::Single,
            (Place::Comment, _) if is_break(char) => Place::Between,
            (Place::Comment, _) | (Place::Gap, '#') => Place::Comment,
            (Place::Name, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-') => Place::Name,
            (Place::Tag, ',') => {
                // Between < and > it belongs to the tag.
                self.reach(Place::Tag, level);
                Place::Between
            }
            (Place::Tag, _) if is_space(char) => Place::Between,
            (Place::Tag, _) => Place::Tag,
            (Place::Plain | Place::Gap, _) if is_space(char) => Place::Gap,
            (Place::Plain | Place::Gap, ':') if next.is_some_and(is_space) => Place::Between,
            (Place::Plain | Place::Gap, ',' | '[' | '{' | ']' | '}')
            | (Place::Between | Place::Quote | Place::Name, _) => return self.begin(level, char, next),
            (Place::Plain | Place::Gap, _) => Place::Plain,
        };
        self.reach(place, level);
    }

    /// Goes on from where anything may begin.
    fn begin(&mut self, level: usize, char: char, next: Option<char>) {
        let (place, level) = match char {
            '[' | '{' => (Place::Between, level.saturating_add(1)),
            ']' | '}' => (Place::Between, level.saturating_sub(1)),
            ',' | ':' | '?' => (Place::Between, level),
            '-' if next.is_some_and(is_space) => (Place::Between, level),
            '#' => (Place::Comment, level),
            '"' => (Place::Double, level),
            '\'' => (Place::Single, level),
            '*' | '&' => (Place::Name, level),
            '!' => (Place::Tag, level),
            '\u{feff}' => {
                // It is passed over at the beginning of a line.
                self.reach(Place::Between, level);
                (Place::Plain, level)
            }
            _ if is_space(char) => (Place::Between, level),
            _ => (Place::Plain, level),
        };
        self.reach(place, level);
    }
}

fn is_break(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t') || is_break(char)
}

fn check_aliases(text: &str, max_len: usize) -> Result<(), NetworkError> {
    let count = text.bytes().filter(|byte| *byte == b'*').count();
    if count == 0 || !text.contains('&') || resolved_len(text.len(), count) <= max_len {
        return Ok(());
    }
    let own_len = text.len().saturating_mul(MAX_BYTE_LEN);
    let mut weight = Weight { left: Some(max_len.max(own_len)) };
    let weighed = isolation::run(|| weight.deserialize(serde_yaml_ng::Deserializer::from_str(text)));
    let weighed = weighed.map_err(|message| NetworkError::Panic { message })?;
    if weight.left.is_none() {
        return Err(NetworkError::TooManyAliases { max: max_len.max(own_len) });
    }
    // What cannot be weighed is not read either: other readers might skip what is wrong with it.
    weighed.map_err(NetworkError::Yaml)
}

/// The most that so many aliases can make of a document. They do worst in chains of three: each level repeats the one
/// below it three times.
fn resolved_len(len: usize, aliases: usize) -> usize {
    let levels = u32::try_from(aliases.div_ceil(3)).unwrap_or(u32::MAX);
    len.saturating_mul(3_usize.saturating_pow(levels))
}

/// Goes through all values of a document, those behind aliases as often as they are met.
struct Weight {
    /// How many bytes there may still be; nothing once there were too many.
    left: Option<usize>,
}

impl Weight {
    fn add<E: Error>(&mut self, len: usize) -> Result<(), E> {
        self.left = self.left.and_then(|left| left.checked_sub(len.saturating_add(VALUE_LEN)));
        self.left.map(drop).ok_or_else(|| E::custom("too large"))
    }
}

impl<'de> DeserializeSeed<'de> for &mut Weight {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Weight {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.add(0)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.add(0)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.add(0)
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<(), E> {
        self.add(0)
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<(), E> {
        self.add(0)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.add(0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.add(text.len())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.add(0)
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.add(0)
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.add(0)?;
        while items.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.add(0)?;
        while fields.next_key_seed(&mut *self)?.is_some() {
            fields.next_value_seed(&mut *self)?;
        }
        Ok(())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let ((), value) = tagged.variant_seed(&mut *self)?;
        value.newtype_variant_seed(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_yaml_ng::Value;

    use super::*;

    fn deepest(text: &str) -> usize {
        Nesting::of(text).deepest
    }

    #[test]
    fn brackets_are_counted_where_they_may_be_open() {
        for (text, expected) in [
            ("a: b", 0),
            ("[]", 1),
            ("[{a: [b, c]}, {d: e}]", 3),
            ("['[[', \"[[\\\"[[\", a'[[", 4),
            ("['it''s [', [a]]", 2),
            ("[a # [[\n, [b]]", 3),
            ("[a#[b]]", 2),
            ("[&a [*a, [b]]]", 3),
            ("[*a:\"[\", \"[[\"]", 3),
            ("[!<a,[b]> c, !d \"[\", [e]]", 2),
            ("[a\u{2028}#[[\u{2028}[\"[\"]]", 3),
            ("[a:\u{2028}\"[[\"]", 2),
            ("[\u{feff}\"[\u{feff}\"[", 3),
            ("a: 'b [ [ c'\nd: [e]\n", 3),
            ("a: |\n  {\"b\": [\"it's [\", {}]}\nc: [d]\n", 3),
        ] {
            assert_eq!(deepest(text), expected, "{text}");
        }
    }

    #[test]
    fn text_with_brackets_costs_little() {
        let panel =
            r#"{"title": "it's {{a}} [5m]", "targets": [{"expr": "rate(b{c=~\"[^d]+\"}[1m])"}, {}]},"#;
        let dashboard = format!("{{\"panels\": [{}]}}", panel.repeat(2500));
        let links = "* [a](b) don't, \"c\"\n".repeat(9000);
        for text in [dashboard, links] {
            let block = text.replace('\n', "\n    ");
            let text = format!("kind: ConfigMap\ndata:\n  a: |\n    {block}\n");
            let Nesting { deepest, looks } = Nesting::of(&text);
            assert!(deepest < 20 && looks < MAX_LOOKS, "{deepest} {looks}");
            check(&text, MAX_RESOLVED_LEN).unwrap();
        }
    }

    #[test]
    fn open_brackets_cost_too_much_in_a_long_document() {
        let text = |count: usize, len: usize| format!("{}{}", "[".repeat(count), "a,".repeat(len));
        check(&text(4000, 100_000), MAX_RESOLVED_LEN).unwrap();
        let error = check(&text(4000, 200_000), MAX_RESOLVED_LEN).unwrap_err();
        assert!(matches!(error, NetworkError::TooManyBrackets { found: 4000 }), "{error}");
    }

    #[test]
    fn aliases_count_as_what_they_stand_for() {
        let text = "- &a { b: [c, d] }\n- *a\n- !e [1, *a]\n- {*a : ~}\n- 'f'\n";
        let mut weight = Weight { left: Some(1000) };
        weight.deserialize(serde_yaml_ng::Deserializer::from_str(text)).unwrap();
        let (value, tagged) = (5 * VALUE_LEN + 3, 3 * VALUE_LEN + 1);
        let (mapping, text) = (2 * VALUE_LEN, VALUE_LEN + 1);
        assert_eq!(1000 - weight.left.unwrap(), VALUE_LEN + 4 * value + tagged + mapping + text);
    }

    #[test]
    fn bombs_are_refused_in_any_disguise() {
        const MAX_LEN: usize = 1 << 18;
        for disguise in [
            "[*b,*b,*b]",
            "[\u{a0}*b,\u{a0}*b,\u{a0}*b]",
            "[\u{2028}*b,\u{85}*b,\u{2029}*b]",
            "{? *b : 1, ? [*b] : 2, c: *b}",
            "\n - *b\n - *b\n - *b",
        ] {
            let level = |level: usize| {
                let below = match level.checked_sub(1) {
                    Some(below) => disguise.replace("*b", &format!("*a{below}")),
                    None => format!("[{}]", "1,".repeat(1000)),
                };
                format!("a{level}: &a{level} {below}\n")
            };
            let levels = |count: usize| (0..count).map(level).collect::<String>();
            check(&levels(2), MAX_LEN).unwrap();
            let error = check(&levels(7), MAX_LEN).unwrap_err();
            assert!(matches!(error, NetworkError::TooManyAliases { .. }), "{disguise}: {error}");
            check(&levels(70), MAX_LEN).unwrap_err();
            // Readers might skip this, and go on.
            let deep = format!("x: {}{}\n{}", "[".repeat(200), "]".repeat(200), levels(7));
            check(&deep, MAX_LEN).unwrap_err();
        }
        let wide = format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(1000), "*a,".repeat(1000));
        check(&wide, MAX_LEN).unwrap_err();
        let own = format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(100), "*a,".repeat(10));
        check(&own, MAX_LEN).unwrap();
        check("&a [*a, *a, &b [*a, *b, *b, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a]]", 100)
            .unwrap_err();
    }

    #[test]
    fn asterisks_in_text_are_none() {
        let jobs = "    * * * * * root /usr/bin/true && true\n".repeat(50);
        check(&format!("data:\n  crontab: |\n{jobs}"), MAX_RESOLVED_LEN).unwrap();
        check(&format!("data:\n  crontab: &a |\n{jobs}\n  other: *a\n"), MAX_RESOLVED_LEN).unwrap();
        let timer = "[Timer]\nOnCalendar=*-*-* *:00:00\n".repeat(11);
        let config = serde_json::json!({"systemd": {"units": [{"name": "a&b.timer", "contents": timer}]}});
        check(&format!("spec:\n  ignitionConfigOverride: '{config}'\n"), MAX_RESOLVED_LEN).unwrap();
        let plain: String = (0..40).map(|it| format!("- a{it} & *b* c: *d\n").replace(": *", " *")).collect();
        check(&plain, MAX_RESOLVED_LEN).unwrap();
    }

    /// How many lists are within one another.
    fn lists(value: &Value) -> usize {
        match value {
            Value::Sequence(items) => 1 + items.iter().map(lists).max().unwrap_or(0),
            Value::Mapping(fields) => {
                fields.iter().map(|(key, it)| lists(key).max(lists(it))).max().unwrap_or(0)
            }
            Value::Tagged(tagged) => lists(&tagged.value),
            _ => 0,
        }
    }

    /// Without `? `: behind it the reader passes over a closing bracket that its scanner has counted.
    const PIECES: [&str; 33] = [
        "[", "[", "[", "]", "]", ",", ", ", "\"", "\"", "'", "'", "''", "\\\"", "\\", "#", " #", "\n",
        "\n  ", "\t", " ", "a", "b c", ": ", ":", "-", "!t ", "!<a,[> ", "&a ", "*a", "\u{2028}", "\u{feff}",
        "\u{a0}", "|",
    ];
    const ENDS: [&str; 8] = ["", "]", "]]", "]]]", "]]]]", "\"]", "']", "\"]]]"];
    const STARTS: [&str; 7] = [
        "[",
        "a: [",
        "a: |\n  [ \" [ '\nb: [",
        "a: \"[ '\n [\"\nb: [",
        "a: b ' [ \"\nc: [",
        "# [ '\n[",
        "a: &a \"[\"\nb: [",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_reader_never_nests_deeper(
            start in prop::sample::select(&STARTS[..]),
            pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..14),
        ) {
            for end in ENDS {
                let text = format!("{start}{}{end}", pieces.concat());
                if let Ok(Ok(value)) = isolation::run(|| serde_yaml_ng::from_str::<Value>(&text)) {
                    prop_assert!(lists(&value) <= deepest(&text), "{:?}: {:?}", text, value);
                }
            }
        }
    }
}

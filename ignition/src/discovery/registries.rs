//! Checks a `registries.conf`, version 2, with the rules of podman's reader.
//!
//! Podman rejects the whole file because of one wrong value. The machine then pulls no images, and the error is only in
//! the machine's journal. The rules come from `containers-registries.conf(5)` and from the reader: the types of tables
//! and values, locations without a scheme, and the same settings for all entries of a registry. As in the reader, keys
//! are case-insensitive, and unknown keys are ignored.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::input::is_host_name;

/// A problem and its byte offset in the text.
#[derive(Debug)]
struct TomlProblem {
    at: Option<usize>,
    reason: String,
}

/// A problem with its line number and the text of the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RejectedLine<'a> {
    pub(super) line: &'a str,
    pub(super) reason: String,
}

/// Checks the text of a `registries.conf`, which must contain at least one registry.
pub(super) fn check_registries(text: &str) -> Result<(), RejectedLine<'_>> {
    check_file(text).map_err(|TomlProblem { at, reason }| {
        let Some((before, after)) = at.and_then(|at| text.split_at_checked(at)) else {
            return RejectedLine { line: text, reason };
        };
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find('\n').map_or(text.len(), |len| before.len() + len);
        let number = before.matches('\n').count() + 1;
        let line = text.get(start..end).unwrap_or_default().trim();
        RejectedLine { line, reason: format!("line {number}: {reason}") }
    })
}

fn check_file(text: &str) -> Result<(), TomlProblem> {
    let root = DeTable::parse(text).map_err(|error| TomlProblem {
        at: error.span().map(|span| span.start),
        reason: format!("is not valid TOML: {}", error.message().replace('\n', "; ")),
    })?;
    let root = TomlTable::new(root.get_ref(), None);
    if let Some(old) = root.get("registries") {
        return Err(problem_at(
            old,
            "registries belongs to version 1 of the format and cannot be combined with version 2",
        ));
    }
    root.check_settings()?;
    let registries = root.tables("registry")?;
    if registries.is_empty() {
        return Err(TomlProblem { at: None, reason: "has no [[registry]] table".to_owned() });
    }
    let mut settings_by_location = BTreeMap::new();
    for registry in registries {
        registry.check_registry(&mut settings_by_location)?;
    }
    Ok(())
}

/// The settings that must be the same in all entries with the same location.
type SharedSettings = [(&'static str, bool); 2];

struct TomlTable<'a> {
    fields: &'a DeTable<'a>,
    at: Option<usize>,
}

impl<'a> TomlTable<'a> {
    fn new(fields: &'a DeTable<'a>, at: Option<usize>) -> Self {
        Self { fields, at }
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        let in_any_case = || self.fields.iter().find(|(name, _)| name.get_ref().eq_ignore_ascii_case(key));
        self.fields.get(key).or_else(|| in_any_case().map(|(_, value)| value))
    }

    fn problem(&self, reason: impl Into<String>) -> TomlProblem {
        TomlProblem { at: self.at, reason: reason.into() }
    }

    /// Returns the value of a key, or `None` if the key is absent. Returns an error if the value has another type.
    fn get_typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Result<Option<(T, &'a Spanned<DeValue<'a>>)>, TomlProblem> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let wrong = || wrong_type(key, value, expected);
        read(value.get_ref()).map(|it| Some((it, value))).ok_or_else(wrong)
    }

    fn text(&self, key: &str) -> Result<Option<(&'a str, &'a Spanned<DeValue<'a>>)>, TomlProblem> {
        self.get_typed(key, "a string", DeValue::as_str)
    }

    fn flag(&self, key: &str) -> Result<bool, TomlProblem> {
        Ok(self.get_typed(key, "true or false", DeValue::as_bool)?.is_some_and(|(flag, _)| flag))
    }

    fn texts(&self, key: &str) -> Result<Vec<(&'a str, &'a Spanned<DeValue<'a>>)>, TomlProblem> {
        let Some((list, _)) = self.get_typed(key, "a list", DeValue::as_array)? else {
            return Ok(Vec::new());
        };
        let text = |item: &'a Spanned<DeValue<'a>>| {
            let entry = || wrong_type(&format!("an entry of {key}"), item, "a string");
            item.get_ref().as_str().map(|text| (text, item)).ok_or_else(entry)
        };
        list.iter().map(text).collect()
    }

    fn tables(&self, key: &str) -> Result<Vec<Self>, TomlProblem> {
        let Some((list, _)) = self.get_typed(key, "a list of tables", DeValue::as_array)? else {
            return Ok(Vec::new());
        };
        let table = |item: &'a Spanned<DeValue<'a>>| {
            let entry = || wrong_type(&format!("an entry of {key}"), item, "a table");
            let fields = item.get_ref().as_table().ok_or_else(entry)?;
            Ok(TomlTable::new(fields, Some(item.span().start)))
        };
        list.iter().map(table).collect()
    }

    /// Returns a location or prefix without trailing slashes. An empty value counts as absent.
    fn location(&self, key: &str) -> Result<Option<&'a str>, TomlProblem> {
        let Some((text, value)) = self.text(key)? else { return Ok(None) };
        let place = text.trim_end_matches('/');
        if ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(problem_at(value, format!("{key} must begin with a host, not with a URL scheme")));
        }
        if place.is_empty() && !text.is_empty() {
            return Err(problem_at(value, format!("{key} consists only of slashes")));
        }
        Ok(Some(place).filter(|place| !place.is_empty()))
    }

    /// Checks the settings for all registries.
    fn check_settings(&self) -> Result<(), TomlProblem> {
        for (host, value) in self.texts("unqualified-search-registries")? {
            if !is_registry_host(host.trim_end_matches('/')) {
                return Err(problem_at(
                    value,
                    format!("{host:?} is not a registry to search: expected HOST or HOST:PORT"),
                ));
            }
        }
        self.texts("credential-helpers")?;
        self.text("additional-layer-store-auth-helper")?;
        if let Some((mode, value)) = self.text("short-name-mode")? {
            require_one_of("short-name-mode", mode, value, &["enforcing", "permissive", "disabled"])?;
        }
        let aliases = self.get_typed("aliases", "a table", DeValue::as_table)?;
        for (alias, image) in aliases.into_iter().flat_map(|(aliases, _)| aliases) {
            if image.get_ref().as_str().is_none() {
                return Err(wrong_type(&format!("the alias {:?}", alias.get_ref()), image, "a string"));
            }
        }
        Ok(())
    }

    fn check_registry(
        &self,
        settings_by_location: &mut BTreeMap<&'a str, SharedSettings>,
    ) -> Result<(), TomlProblem> {
        let (prefix, location) = (self.location("prefix")?, self.location("location")?);
        match (prefix, location) {
            (None, None) => return Err(self.problem("the registry has neither location nor prefix")),
            (Some(prefix), None) if !prefix.starts_with("*.") => {
                return Err(self
                    .problem("the registry has no location, which is optional only with a prefix *.DOMAIN"));
            }
            _ => {}
        }
        let settings = [("insecure", self.flag("insecure")?), ("blocked", self.flag("blocked")?)];
        let first = *settings_by_location.entry(location.unwrap_or_default()).or_insert(settings);
        let differing = first.iter().zip(&settings).find(|(one, other)| one != other);
        if let (Some(((key, _), _)), Some(location)) = (differing, location) {
            return Err(self.problem(format!("registry {location} is listed twice with different {key}")));
        }
        let by_digest = self.flag("mirror-by-digest-only")?;
        if let Some((_, value)) = self.text("pull-from-mirror")?.filter(|(text, _)| !text.is_empty()) {
            return Err(problem_at(value, "pull-from-mirror is for mirrors, not for registries"));
        }
        self.tables("mirror")?.iter().try_for_each(|mirror| mirror.check_mirror(by_digest))
    }

    fn check_mirror(&self, by_digest: bool) -> Result<(), TomlProblem> {
        if self.location("location")?.is_none() {
            return Err(self.problem("the mirror has no location"));
        }
        self.flag("insecure")?;
        let Some((when, value)) = self.text("pull-from-mirror")?.filter(|(text, _)| !text.is_empty()) else {
            return Ok(());
        };
        if by_digest {
            return Err(problem_at(
                value,
                "pull-from-mirror cannot be combined with mirror-by-digest-only of the registry",
            ));
        }
        require_one_of("pull-from-mirror", when, value, &["all", "digest-only", "tag-only"])
    }
}

fn problem_at(value: &Spanned<DeValue<'_>>, reason: impl Into<String>) -> TomlProblem {
    TomlProblem { at: Some(value.span().start), reason: reason.into() }
}

fn wrong_type(what: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> TomlProblem {
    let actual = match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    problem_at(value, format!("{what} is {actual}, but has to be {expected}"))
}

fn require_one_of(
    key: &str,
    text: &str,
    value: &Spanned<DeValue<'_>>,
    choices: &[&str],
) -> Result<(), TomlProblem> {
    if text.is_empty() || choices.contains(&text) {
        return Ok(());
    }
    Err(problem_at(value, format!("{key} is {text:?}, but has to be one of {}", choices.join(", "))))
}

/// Returns `true` if the text is a host name or an IP address (IPv6 in brackets), with or without a port.
fn is_registry_host(text: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_address =
        |text: &str| text.strip_suffix(']').is_some_and(|it| it.parse::<std::net::Ipv6Addr>().is_ok());
    if let Some(rest) = text.strip_prefix('[') {
        return is_address(rest)
            || rest.rsplit_once(':').is_some_and(|(host, port)| is_address(host) && is_port(port));
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    is_host_name(host) && port.is_none_or(is_port)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the line number and the reason of an error.
    fn error_text(text: &str) -> String {
        let RejectedLine { line, reason } = check_registries(text).unwrap_err();
        format!("{line:?} {reason}")
    }

    /// Returns the error for a registry with a valid `location` and these additional lines.
    fn error_in_registry(lines: &str) -> String {
        error_text(&format!("[[registry]]\nlocation = \"quay.io\"\n{lines}"))
    }

    #[test]
    fn files_that_podman_accepts_are_valid() {
        let text = r#"
unqualified-search-registries = ["registry.access.redhat.com", 'docker.io:443', "[2001:db8::1]:5000", "[::1]", "a/"]
credential-helpers = ["containers-auth.json"]
short-name-mode = "enforcing"
colour = 1
[aliases]
fedora = "registry.fedoraproject.org/fedora"
[[registry]]
prefix = "*.example.com"
blocked = true
[[registry]]
Location = "quay.io/openshift-release-dev/"
prefix = ""
mirror-by-digest-only = true
mirror = [{location = "mirror.lab:5000/ocp", insecure = true}, {location = "two.lab", pull-from-mirror = ""}]
[[registry]]
location = "registry.redhat.io"
insecure = false
[[registry.mirror]]
location = "mirror.lab:5000/redhat"
pull-from-mirror = "tag-only"
[[registry]]
prefix = "registry.redhat.io/ubi8"
location = "registry.redhat.io"
"#;
        assert_eq!(check_registries(text), Ok(()));
        assert_eq!(check_registries(&text.replace('\n', "\r\n")), Ok(()));
    }

    #[test]
    fn rejects_other_formats_than_toml_of_version_2() {
        let none = "has no [[registry]] table";
        for text in ["", "# [[registry]]", "[aliases]\n", "registry = []"] {
            assert_eq!(error_text(text), format!("{text:?} {none}"));
        }
        let table = r#""[registry]" line 1: registry is a table, but has to be a list of tables"#;
        assert_eq!(error_text("[registry]\nlocation = 'a'"), table);
        assert!(
            error_text("# a\n[[registry.mirror]]\nlocation = 'a'").contains("line 2: registry is a table")
        );
        assert!(
            error_text("registry = ['a']")
                .contains("line 1: an entry of registry is a string, but has to be a table")
        );
        let old = "[registries.search]\nregistries = ['a']\n[[registry]]\nlocation = 'a'";
        assert!(error_text(old).contains("line 1: registries belongs to version 1"), "{}", error_text(old));
        let broken = error_text("[[registry]]\nlocation = quay.io\n");
        assert!(broken.starts_with(r#""location = quay.io" line 2: is not valid TOML: "#), "{broken}");
        let twice = error_in_registry("location = 'other'\n");
        assert!(
            twice.starts_with(r#""location = 'other'" line 3: is not valid TOML: duplicate key"#),
            "{twice}"
        );
    }

    #[test]
    fn rejects_settings_of_wrong_types() {
        let cases = [
            (
                "unqualified-search-registries = 'a'",
                "unqualified-search-registries is a string, but has to be a list",
            ),
            (
                "unqualified-search-registries = ['a', 1]",
                "an entry of unqualified-search-registries is an integer",
            ),
            ("unqualified-search-registries = ['a/b']", "\"a/b\" is not a registry to search"),
            ("unqualified-search-registries = ['https://a']", "is not a registry to search"),
            ("unqualified-search-registries = ['a:']", "is not a registry to search"),
            ("unqualified-search-registries = ['[::g]']", "is not a registry to search"),
            ("credential-helpers = true", "credential-helpers is true or false, but has to be a list"),
            ("short-name-mode = 'strict'", "has to be one of enforcing, permissive, disabled"),
            ("aliases = 2020-01-01", "aliases is a date, but has to be a table"),
            ("aliases = {a = 1.5}", "the alias \"a\" is a number, but has to be a string"),
        ];
        for (line, reason) in cases {
            let text = format!("# first\n{line}\n[[registry]]\nlocation = 'a'\n");
            let message = error_text(&text);
            assert!(
                message.starts_with(&format!("{line:?} line 2: ")) && message.contains(reason),
                "{message}"
            );
        }
    }

    #[test]
    fn rejects_invalid_registries() {
        let nowhere = r#""[[registry]]" line 2: the registry has neither location nor prefix"#;
        assert_eq!(error_text("\n[[registry]]\n[[registry.mirror]]\nlocation = 'a'"), nowhere);
        assert_eq!(error_text("\n[[registry]]\nlocation = ''"), nowhere);
        let prefix = error_text("[[registry]]\nprefix = 'quay.io'");
        assert!(
            prefix.contains("line 1: the registry has no location, which is optional only with a prefix"),
            "{prefix}"
        );
        let cases = [
            ("prefix = 'http://quay.io'", "line 3: prefix must begin with a host, not with a URL scheme"),
            ("prefix = '//'", "line 3: prefix consists only of slashes"),
            ("prefix = ['a']", "line 3: prefix is a list, but has to be a string"),
            ("insecure = 'true'", "line 3: insecure is a string, but has to be true or false"),
            ("blocked = 0", "line 3: blocked is an integer, but has to be true or false"),
            ("mirror-by-digest-only = 1", "line 3: mirror-by-digest-only is an integer"),
            ("pull-from-mirror = 'all'", "line 3: pull-from-mirror is for mirrors"),
            ("mirror = 'a'", "line 3: mirror is a string, but has to be a list of tables"),
            ("mirror = ['a']", "line 3: an entry of mirror is a string, but has to be a table"),
        ];
        for (line, reason) in cases {
            let message = error_in_registry(line);
            assert!(message.starts_with(&format!("{line:?} ")) && message.contains(reason), "{message}");
        }
        for key in ["insecure", "blocked"] {
            let message = error_in_registry(&format!("[[registry]]\nlocation = \"quay.io/\"\n{key} = true"));
            let expected = format!("line 3: registry quay.io is listed twice with different {key}");
            assert!(message.ends_with(&expected), "{message}");
        }
    }

    #[test]
    fn rejects_invalid_mirrors() {
        let in_mirror = |lines: &str| error_in_registry(&format!("[[registry.mirror]]\n{lines}"));
        assert_eq!(
            in_mirror("insecure = true"),
            r#""[[registry.mirror]]" line 3: the mirror has no location"#
        );
        let cases = [
            ("location = 'https://mirror.lab'", "line 4: location must begin with a host, not with"),
            ("location = 5", "line 4: location is an integer, but has to be a string"),
            ("location = 'a'\ninsecure = 'no'", "line 5: insecure is a string"),
            ("location = 'a'\npull-from-mirror = 'digest'", "has to be one of all, digest-only, tag-only"),
        ];
        for (lines, reason) in cases {
            let message = in_mirror(lines);
            assert!(message.contains(reason), "{message}");
        }
        let both =
            "mirror-by-digest-only = true\n[[registry.mirror]]\nlocation = 'a'\npull-from-mirror = 'all'";
        assert!(
            error_in_registry(both).contains("line 6: pull-from-mirror cannot be combined with"),
            "{}",
            error_in_registry(both)
        );
    }

    #[test]
    fn deep_and_long_texts_are_checked_in_bounded_time() {
        let deep = [
            format!("a{} = 1", ".a".repeat(100_000)),
            format!("[a{}]", ".a".repeat(100_000)),
            format!("a = {}", "[".repeat(200_000)),
            format!("a = {}", "{a = ".repeat(100_000)),
        ];
        for text in deep {
            let reason = check_registries(&text).unwrap_err().reason;
            assert!(reason.contains("is not valid TOML"), "{reason}");
        }
        let many: String = (0..20_000).map(|it| format!("[[registry]]\nlocation = 'a{it}'\n")).collect();
        assert_eq!(check_registries(&many), Ok(()));
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_rejected_with_a_line(
            text in "(\\[\\[registry\\]\\]\n|\\[\\[registry.mirror\\]\\]\n|location|prefix|mirror|=|'a'|\\{|\\}|\\[|\\]|\n|1|true|é){0,12}",
        ) {
            if let Err(RejectedLine { line, .. }) = check_registries(&text) {
                prop_assert!(text.contains(line));
            }
        }
    }
}

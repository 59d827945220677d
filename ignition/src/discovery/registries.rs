//! Podman's `registries.conf`, version 2: what its reader refuses, found before there is a machine.
//!
//! The reader fails as a whole: with one wrong value a machine pulls nothing, and tells so only in its journal. The rules
//! are those of `containers-registries.conf(5)` and of the reader: tables and types; places without a scheme; a registry
//! that is listed twice is so with the same settings. Keys are matched whatever their case, and unknown ones ignored, as
//! there.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::input::is_host_name;

/// What is wrong with a text, and the byte where.
#[derive(Debug)]
struct Fault {
    at: Option<usize>,
    reason: String,
}

/// What is wrong with a text, in which line of it, with the words of that line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused<'a> {
    pub(super) line: &'a str,
    pub(super) reason: String,
}

/// Reads a text that has at least one registry.
pub(super) fn check(text: &str) -> Result<(), Refused<'_>> {
    read(text).map_err(|Fault { at, reason }| {
        let Some((before, after)) = at.and_then(|at| text.split_at_checked(at)) else {
            return Refused { line: text, reason };
        };
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let end = after.find('\n').map_or(text.len(), |len| before.len() + len);
        let number = before.matches('\n').count() + 1;
        let line = text.get(start..end).unwrap_or_default().trim();
        Refused { line, reason: format!("line {number}: {reason}") }
    })
}

fn read(text: &str) -> Result<(), Fault> {
    let root = DeTable::parse(text).map_err(|error| Fault {
        at: error.span().map(|span| span.start),
        reason: format!("is not valid TOML: {}", error.message().replace('\n', "; ")),
    })?;
    let root = Table::new(root.get_ref(), None);
    if let Some(old) = root.get("registries") {
        return Err(fault(old, "registries is of version 1 of the format, which does not go with version 2"));
    }
    root.check_settings()?;
    let registries = root.tables("registry")?;
    if registries.is_empty() {
        return Err(Fault { at: None, reason: "has no [[registry]] table".to_owned() });
    }
    let mut known = BTreeMap::new();
    for registry in registries {
        registry.check_registry(&mut known)?;
    }
    Ok(())
}

/// What all entries of one location have to agree in.
type Settings = [(&'static str, bool); 2];

struct Table<'a> {
    fields: &'a DeTable<'a>,
    at: Option<usize>,
}

impl<'a> Table<'a> {
    fn new(fields: &'a DeTable<'a>, at: Option<usize>) -> Self {
        Self { fields, at }
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        let in_any_case = || self.fields.iter().find(|(name, _)| name.get_ref().eq_ignore_ascii_case(key));
        self.fields.get(key).or_else(|| in_any_case().map(|(_, value)| value))
    }

    fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault { at: self.at, reason: reason.into() }
    }

    /// A value of a type.
    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Result<Option<(T, &'a Spanned<DeValue<'a>>)>, Fault> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let wrong = || wrong_type(key, value, expected);
        read(value.get_ref()).map(|it| Some((it, value))).ok_or_else(wrong)
    }

    fn text(&self, key: &str) -> Result<Option<(&'a str, &'a Spanned<DeValue<'a>>)>, Fault> {
        self.typed(key, "a string", DeValue::as_str)
    }

    fn flag(&self, key: &str) -> Result<bool, Fault> {
        Ok(self.typed(key, "true or false", DeValue::as_bool)?.is_some_and(|(flag, _)| flag))
    }

    fn texts(&self, key: &str) -> Result<Vec<(&'a str, &'a Spanned<DeValue<'a>>)>, Fault> {
        let Some((list, _)) = self.typed(key, "a list", DeValue::as_array)? else { return Ok(Vec::new()) };
        let text = |item: &'a Spanned<DeValue<'a>>| {
            let entry = || wrong_type(&format!("an entry of {key}"), item, "a string");
            item.get_ref().as_str().map(|text| (text, item)).ok_or_else(entry)
        };
        list.iter().map(text).collect()
    }

    fn tables(&self, key: &str) -> Result<Vec<Self>, Fault> {
        let Some((list, _)) = self.typed(key, "a list of tables", DeValue::as_array)? else {
            return Ok(Vec::new());
        };
        let table = |item: &'a Spanned<DeValue<'a>>| {
            let entry = || wrong_type(&format!("an entry of {key}"), item, "a table");
            let fields = item.get_ref().as_table().ok_or_else(entry)?;
            Ok(Table::new(fields, Some(item.span().start)))
        };
        list.iter().map(table).collect()
    }

    /// Where something is, without the slashes at its end; an empty one is as good as none.
    fn place(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        let Some((text, value)) = self.text(key)? else { return Ok(None) };
        let place = text.trim_end_matches('/');
        if ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(fault(value, format!("{key} has the scheme of a URL, where a host begins")));
        }
        if place.is_empty() && !text.is_empty() {
            return Err(fault(value, format!("{key} is nothing but slashes")));
        }
        Ok(Some(place).filter(|place| !place.is_empty()))
    }

    /// What is not about one registry.
    fn check_settings(&self) -> Result<(), Fault> {
        for (host, value) in self.texts("unqualified-search-registries")? {
            if !is_registry_host(host.trim_end_matches('/')) {
                return Err(fault(
                    value,
                    format!("{host:?} is no registry to search: a host with or without a port"),
                ));
            }
        }
        self.texts("credential-helpers")?;
        self.text("additional-layer-store-auth-helper")?;
        if let Some((mode, value)) = self.text("short-name-mode")? {
            one_of("short-name-mode", mode, value, &["enforcing", "permissive", "disabled"])?;
        }
        let aliases = self.typed("aliases", "a table", DeValue::as_table)?;
        for (alias, image) in aliases.into_iter().flat_map(|(aliases, _)| aliases) {
            if image.get_ref().as_str().is_none() {
                return Err(wrong_type(&format!("the alias {:?}", alias.get_ref()), image, "a string"));
            }
        }
        Ok(())
    }

    fn check_registry(&self, known: &mut BTreeMap<&'a str, Settings>) -> Result<(), Fault> {
        let (prefix, location) = (self.place("prefix")?, self.place("location")?);
        match (prefix, location) {
            (None, None) => return Err(self.fault("the registry has neither location nor prefix")),
            (Some(prefix), None) if !prefix.starts_with("*.") => {
                return Err(
                    self.fault("the registry has no location, which only a prefix *.DOMAIN can do without")
                );
            }
            _ => {}
        }
        let settings = [("insecure", self.flag("insecure")?), ("blocked", self.flag("blocked")?)];
        let first = *known.entry(location.unwrap_or_default()).or_insert(settings);
        let differing = first.iter().zip(&settings).find(|(one, other)| one != other);
        if let (Some(((key, _), _)), Some(location)) = (differing, location) {
            return Err(
                self.fault(format!("the registry {location} is there before with another value of {key}"))
            );
        }
        let by_digest = self.flag("mirror-by-digest-only")?;
        if let Some((_, value)) = self.text("pull-from-mirror")?.filter(|(text, _)| !text.is_empty()) {
            return Err(fault(value, "pull-from-mirror is for mirrors, not for registries"));
        }
        self.tables("mirror")?.iter().try_for_each(|mirror| mirror.check_mirror(by_digest))
    }

    fn check_mirror(&self, by_digest: bool) -> Result<(), Fault> {
        if self.place("location")?.is_none() {
            return Err(self.fault("the mirror has no location"));
        }
        self.flag("insecure")?;
        let Some((when, value)) = self.text("pull-from-mirror")?.filter(|(text, _)| !text.is_empty()) else {
            return Ok(());
        };
        if by_digest {
            return Err(fault(
                value,
                "pull-from-mirror does not go with mirror-by-digest-only of the registry",
            ));
        }
        one_of("pull-from-mirror", when, value, &["all", "digest-only", "tag-only"])
    }
}

fn fault(value: &Spanned<DeValue<'_>>, reason: impl Into<String>) -> Fault {
    Fault { at: Some(value.span().start), reason: reason.into() }
}

fn wrong_type(what: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> Fault {
    let found = match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    fault(value, format!("{what} is {found}, but has to be {expected}"))
}

fn one_of(key: &str, text: &str, value: &Spanned<DeValue<'_>>, known: &[&str]) -> Result<(), Fault> {
    if text.is_empty() || known.contains(&text) {
        return Ok(());
    }
    Err(fault(value, format!("{key} is {text:?}, but has to be one of {}", known.join(", "))))
}

/// A name or an address, the newer kind in brackets, with or without a port.
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

    /// Line and reason.
    fn refused(text: &str) -> String {
        let Refused { line, reason } = check(text).unwrap_err();
        format!("{line:?} {reason}")
    }

    /// What would be refused if it stood in a registry: `registry` takes the place of lines after a good `location`.
    fn in_registry(lines: &str) -> String {
        refused(&format!("[[registry]]\nlocation = \"quay.io\"\n{lines}"))
    }

    #[test]
    fn what_podman_reads_passes() {
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
        assert_eq!(check(text), Ok(()));
        assert_eq!(check(&text.replace('\n', "\r\n")), Ok(()));
    }

    #[test]
    fn the_text_is_toml_of_version_2() {
        let none = "has no [[registry]] table";
        for text in ["", "# [[registry]]", "[aliases]\n", "registry = []"] {
            assert_eq!(refused(text), format!("{text:?} {none}"));
        }
        let table = r#""[registry]" line 1: registry is a table, but has to be a list of tables"#;
        assert_eq!(refused("[registry]\nlocation = 'a'"), table);
        assert!(refused("# a\n[[registry.mirror]]\nlocation = 'a'").contains("line 2: registry is a table"));
        assert!(
            refused("registry = ['a']")
                .contains("line 1: an entry of registry is a string, but has to be a table")
        );
        let old = "[registries.search]\nregistries = ['a']\n[[registry]]\nlocation = 'a'";
        assert!(refused(old).contains("line 1: registries is of version 1"), "{}", refused(old));
        let broken = refused("[[registry]]\nlocation = quay.io\n");
        assert!(broken.starts_with(r#""location = quay.io" line 2: is not valid TOML: "#), "{broken}");
        let twice = in_registry("location = 'other'\n");
        assert!(
            twice.starts_with(r#""location = 'other'" line 3: is not valid TOML: duplicate key"#),
            "{twice}"
        );
    }

    #[test]
    fn settings_have_their_types() {
        let cases = [
            (
                "unqualified-search-registries = 'a'",
                "unqualified-search-registries is a string, but has to be a list",
            ),
            (
                "unqualified-search-registries = ['a', 1]",
                "an entry of unqualified-search-registries is an integer",
            ),
            ("unqualified-search-registries = ['a/b']", "\"a/b\" is no registry to search"),
            ("unqualified-search-registries = ['https://a']", "is no registry to search"),
            ("unqualified-search-registries = ['a:']", "is no registry to search"),
            ("unqualified-search-registries = ['[::g]']", "is no registry to search"),
            ("credential-helpers = true", "credential-helpers is true or false, but has to be a list"),
            ("short-name-mode = 'strict'", "has to be one of enforcing, permissive, disabled"),
            ("aliases = 2020-01-01", "aliases is a date, but has to be a table"),
            ("aliases = {a = 1.5}", "the alias \"a\" is a number, but has to be a string"),
        ];
        for (line, reason) in cases {
            let text = format!("# first\n{line}\n[[registry]]\nlocation = 'a'\n");
            let found = refused(&text);
            assert!(found.starts_with(&format!("{line:?} line 2: ")) && found.contains(reason), "{found}");
        }
    }

    #[test]
    fn registries_have_places_and_types() {
        let nowhere = r#""[[registry]]" line 2: the registry has neither location nor prefix"#;
        assert_eq!(refused("\n[[registry]]\n[[registry.mirror]]\nlocation = 'a'"), nowhere);
        assert_eq!(refused("\n[[registry]]\nlocation = ''"), nowhere);
        let prefix = refused("[[registry]]\nprefix = 'quay.io'");
        assert!(
            prefix.contains("line 1: the registry has no location, which only a prefix *.DOMAIN"),
            "{prefix}"
        );
        let cases = [
            ("prefix = 'http://quay.io'", "line 3: prefix has the scheme of a URL"),
            ("prefix = '//'", "line 3: prefix is nothing but slashes"),
            ("prefix = ['a']", "line 3: prefix is a list, but has to be a string"),
            ("insecure = 'true'", "line 3: insecure is a string, but has to be true or false"),
            ("blocked = 0", "line 3: blocked is an integer, but has to be true or false"),
            ("mirror-by-digest-only = 1", "line 3: mirror-by-digest-only is an integer"),
            ("pull-from-mirror = 'all'", "line 3: pull-from-mirror is for mirrors"),
            ("mirror = 'a'", "line 3: mirror is a string, but has to be a list of tables"),
            ("mirror = ['a']", "line 3: an entry of mirror is a string, but has to be a table"),
        ];
        for (line, reason) in cases {
            let found = in_registry(line);
            assert!(found.starts_with(&format!("{line:?} ")) && found.contains(reason), "{found}");
        }
        for key in ["insecure", "blocked"] {
            let found = in_registry(&format!("[[registry]]\nlocation = \"quay.io/\"\n{key} = true"));
            let expected =
                format!("line 3: the registry quay.io is there before with another value of {key}");
            assert!(found.ends_with(&expected), "{found}");
        }
    }

    #[test]
    fn mirrors_have_places_and_types() {
        let in_mirror = |lines: &str| in_registry(&format!("[[registry.mirror]]\n{lines}"));
        assert_eq!(
            in_mirror("insecure = true"),
            r#""[[registry.mirror]]" line 3: the mirror has no location"#
        );
        let cases = [
            ("location = 'https://mirror.lab'", "line 4: location has the scheme of a URL"),
            ("location = 5", "line 4: location is an integer, but has to be a string"),
            ("location = 'a'\ninsecure = 'no'", "line 5: insecure is a string"),
            ("location = 'a'\npull-from-mirror = 'digest'", "has to be one of all, digest-only, tag-only"),
        ];
        for (lines, reason) in cases {
            let found = in_mirror(lines);
            assert!(found.contains(reason), "{found}");
        }
        let both =
            "mirror-by-digest-only = true\n[[registry.mirror]]\nlocation = 'a'\npull-from-mirror = 'all'";
        assert!(
            in_registry(both).contains("line 6: pull-from-mirror does not go with"),
            "{}",
            in_registry(both)
        );
    }

    #[test]
    fn deep_and_long_texts_come_to_an_end() {
        let deep = [
            format!("a{} = 1", ".a".repeat(100_000)),
            format!("[a{}]", ".a".repeat(100_000)),
            format!("a = {}", "[".repeat(200_000)),
            format!("a = {}", "{a = ".repeat(100_000)),
        ];
        for text in deep {
            let found = check(&text).unwrap_err().reason;
            assert!(found.contains("is not valid TOML"), "{found}");
        }
        let many: String = (0..20_000).map(|it| format!("[[registry]]\nlocation = 'a{it}'\n")).collect();
        assert_eq!(check(&many), Ok(()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_of_its_lines(
            text in "(\\[\\[registry\\]\\]\n|\\[\\[registry.mirror\\]\\]\n|location|prefix|mirror|=|'a'|\\{|\\}|\\[|\\]|\n|1|true|é){0,12}",
        ) {
            if let Err(Refused { line, .. }) = check(&text) {
                prop_assert!(text.contains(line));
            }
        }
    }
}

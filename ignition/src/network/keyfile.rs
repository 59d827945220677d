//! A generated keyfile, with a safe file name and contents in a fixed order.

use std::fmt;

use super::NetworkError;

/// Maximum length of a file name on the file systems of hosts, in bytes.
const MAX_NAME_LEN: usize = 255;

/// A `NetworkManager` keyfile, which describes one connection profile.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Keyfile {
    /// The file name without its directory, such as `eth1.nmconnection`.
    pub name: String,
    /// The text of the file. `Debug` does not print it, because it may contain secrets.
    pub contents: String,
}

impl fmt::Debug for Keyfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyfile")
            .field("name", &self.name)
            .field("contents_len", &self.contents.len())
            .finish()
    }
}

impl Keyfile {
    pub(super) fn from_generated(name: String, contents: String) -> Result<Self, NetworkError> {
        let unsafe_char = |c: char| c == '/' || c.is_control();
        if name.len() > MAX_NAME_LEN || name.contains(unsafe_char) {
            return Err(NetworkError::UnsafeName { name });
        }
        Ok(Self { name, contents: with_ordered_rules(&contents) })
    }
}

/// Sorts the routing rules in each section by priority, then by text, and assigns the existing numbers to the sorted
/// rules.
///
/// The generator stores rules in a hash set and numbers them at random. The numbers have no meaning for
/// `NetworkManager`.
fn with_ordered_rules(contents: &str) -> String {
    let mut lines: Vec<String> = contents.split('\n').map(str::to_owned).collect();
    for section in lines.split_mut(String::is_empty) {
        order_rules(section);
    }
    lines.join("\n")
}

fn order_rules(section: &mut [String]) {
    let mut slots: Vec<(u32, &mut String)> = Vec::new();
    let mut rules: Vec<String> = Vec::new();
    for line in section {
        let Some((number, rule)) = routing_rule(line) else { continue };
        let rule = rule.to_owned();
        slots.push((number, line));
        rules.push(rule);
    }
    slots.sort_by_key(|(number, _)| *number);
    rules.sort_by_cached_key(|rule| (rule_priority(rule), rule.clone()));
    for ((number, line), rule) in slots.into_iter().zip(rules) {
        *line = format!("routing-rule{number}={rule}");
    }
}

/// Splits `routing-rule3=priority 100 ...` into the number 3 and the rule.
fn routing_rule(line: &str) -> Option<(u32, &str)> {
    let (number, rule) = line.strip_prefix("routing-rule")?.split_once('=')?;
    Some((number.parse().ok()?, rule))
}

/// Returns the priority of a rule. Rules without a priority come last.
fn rule_priority(rule: &str) -> u32 {
    let number = rule.strip_prefix("priority ").and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_unsafe_names() {
        for name in ["../../etc/shadow", "a/b.nmconnection", "a\nb", "a\0b"] {
            let error = Keyfile::from_generated(name.to_owned(), String::new()).unwrap_err();
            assert!(error.to_string().contains("unsafe"), "{error}");
        }
        let long = "x".repeat(MAX_NAME_LEN);
        assert!(Keyfile::from_generated(long.clone(), String::new()).is_ok());
        assert!(Keyfile::from_generated(long + "x", String::new()).is_err());
    }

    #[test]
    fn rules_are_ordered_by_priority_within_their_section() {
        let before = "[ipv4]\nmethod=auto\nrouting-rule0=priority 900 from 10.0.0.0/8 table 2\n\
            routing-rule1=priority 1000 table 3\nrouting-rule10=priority 20 table 9\n\
            routing-rule2=priority 20 table 8\n\n[ipv6]\nrouting-rule0=priority 5 table 1\n";
        let after = "[ipv4]\nmethod=auto\nrouting-rule0=priority 20 table 8\n\
            routing-rule1=priority 20 table 9\nrouting-rule10=priority 1000 table 3\n\
            routing-rule2=priority 900 from 10.0.0.0/8 table 2\n\n[ipv6]\nrouting-rule0=priority 5 table 1\n";
        assert_eq!(with_ordered_rules(before), after);
        assert_eq!(with_ordered_rules(after), after);
    }

    #[test]
    fn debug_hides_contents() {
        let file = Keyfile::from_generated("a".into(), "password=x".into()).unwrap();
        assert_eq!(format!("{file:?}"), r#"Keyfile { name: "a", contents_len: 10 }"#);
    }
}

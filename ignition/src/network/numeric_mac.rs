//! Restores MAC addresses that a YAML 1.1 tool has converted to numbers.
//!
//! Such a tool reads `mac-address: 52:54:00:00:00:01` as a number in base 60, and writes it as a decimal number.

use std::collections::HashSet;

use serde_json::Value;

use super::generate::check_document_len;
use super::{MacAddr, yaml};

const KEY: &str = "mac-address";

/// Returns the document with MAC addresses instead of the numbers that [`MacAddr::from_base_60`] converts. The rest of
/// the text is unchanged. Returns `None` if no such number exists, if a number is not on the line of its key, or if a
/// number cannot be replaced without changing another value.
///
/// # Examples
///
/// ```
/// let document = "interfaces:\n- mac-address: 41135040001\n  name: eth0\n";
/// let restored = ignition::network::restore_macs(document).unwrap();
/// assert_eq!(restored, "interfaces:\n- mac-address: \"52:54:00:00:00:01\"\n  name: eth0\n");
/// ```
#[must_use]
pub fn restore_macs(document: &str) -> Option<String> {
    let is_candidate = |line: &str| numbers_in(line).next().is_some();
    if check_document_len(document.len()).is_err() || !document.lines().any(is_candidate) {
        return None;
    }
    let mut root = yaml::read_document(document).ok()?;
    let numbers = restore_values(&mut root, &yaml::LineIndex::read(document));
    let restored = replace_numbers(document, &numbers).filter(|_| !numbers.is_empty())?;
    // The text alone does not show whether a number belongs to an interface, so the result is parsed and compared.
    (yaml::read_document(&restored).ok()? == root).then_some(restored)
}

/// Replaces the numbers of interfaces with MAC addresses in the parsed document. Returns the numbers with the lines of
/// their keys.
fn restore_values(root: &mut Value, index: &yaml::LineIndex) -> HashSet<(usize, u64)> {
    let mut numbers = HashSet::new();
    let interfaces = root.get_mut("interfaces").and_then(Value::as_array_mut);
    for (at, interface) in interfaces.into_iter().flatten().enumerate() {
        let Some(value) = interface.get_mut(KEY) else { continue };
        let Some(number) = value.as_u64() else { continue };
        let Some(mac) = MacAddr::from_base_60(number) else { continue };
        numbers.extend(index.find(&format!("interfaces[{at}].{KEY}")).map(|line| (line, number)));
        *value = mac.to_string().into();
    }
    numbers
}

/// Replaces the numbers in the text, in one pass.
fn replace_numbers(document: &str, numbers: &HashSet<(usize, u64)>) -> Option<String> {
    let mut restored = String::with_capacity(document.len());
    for (line, text) in (1..).zip(document.split_inclusive('\n')) {
        let mut copied = 0;
        for (start, digits) in numbers_in(text) {
            let number = digits.parse().ok().filter(|number| numbers.contains(&(line, *number)));
            let Some(mac) = number.and_then(MacAddr::from_base_60) else { continue };
            restored.push_str(text.get(copied..start)?);
            restored.push_str(&format!("\"{mac}\""));
            copied = start.checked_add(digits.len())?;
        }
        restored.push_str(text.get(copied..)?);
    }
    Some(restored)
}

/// Returns the decimal numbers that follow the key in a line, with their positions.
fn numbers_in(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.match_indices(KEY).filter_map(|(at, _)| {
        let (before, after) = line.split_at_checked(at)?;
        let before = before.chars().next_back();
        if before.is_some_and(|it| it.is_alphanumeric() || "-_.".contains(it)) {
            return None;
        }
        let after = after.strip_prefix(KEY)?;
        let after =
            before.filter(|it| "\"'".contains(*it)).map_or(Some(after), |it| after.strip_prefix(it))?;
        let value = after.trim_start_matches(' ').strip_prefix(':')?.trim_start_matches(' ');
        let digits = value.split(|it: char| !it.is_ascii_digit()).next().filter(|it| !it.is_empty())?;
        Some((line.len().checked_sub(value.len())?, digits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_replaced_in_block_and_flow_style() {
        for (document, expected) in [
            (
                "interfaces:\r\n- name: a\r\n  mac-address: 41135040001 # 41135040001\r\n",
                "interfaces:\r\n- name: a\r\n  mac-address: \"52:54:00:00:00:01\" # 41135040001\r\n",
            ),
            (
                r#"{"interfaces": [{"description": "41135040001", "mac-address": 41135040001}, {"mac-address":41135040001}]}"#,
                r#"{"interfaces": [{"description": "41135040001", "mac-address": "52:54:00:00:00:01"}, {"mac-address":"52:54:00:00:00:01"}]}"#,
            ),
            (
                "interfaces: [&a {name: a, mac-address: 41135040001}, *a, {name: b, mac-address: 41135040002}]",
                "interfaces: [&a {name: a, mac-address: \"52:54:00:00:00:01\"}, *a, {name: b, mac-address: \"52:54:00:00:00:02\"}]",
            ),
        ] {
            assert_eq!(restore_macs(document).as_deref(), Some(expected));
        }
    }

    /// Asserts that only the number after the single `<` is replaced.
    #[track_caller]
    fn assert_replaced(document: &str) {
        let expected = document.replace("<41135040001", "\"52:54:00:00:00:01\"");
        assert_eq!(restore_macs(&document.replace('<', "")), Some(expected));
    }

    #[test]
    fn permanent_mac_address_is_unchanged() {
        assert_replaced("interfaces: [{permanent-mac-address: 41135040001, mac-address: <41135040001}]");
    }

    #[test]
    fn quoted_number_is_unchanged() {
        assert_replaced("interfaces: [{mac-address: '41135040001'}, {'mac-address': <41135040001}]");
    }

    #[test]
    fn quoted_text_with_the_key_is_unchanged() {
        assert_replaced(
            "interfaces: [{description: \"mac-address: 41135040001\", mac-address: <41135040001}]",
        );
    }

    #[test]
    fn document_is_unchanged_if_another_value_would_change() {
        for document in [
            "interfaces: [{description: 'a mac-address: 41135040001', mac-address: 41135040001}]",
            "{routes: {mac-address: 41135040001}, interfaces: [{mac-address: 41135040001}]}",
            "interfaces: [{mac-address: 41135040001}, {mac-address:\n 41135040001}]",
        ] {
            assert_eq!(restore_macs(document), None, "{document}");
        }
    }

    #[test]
    fn other_values_are_unchanged() {
        for document in [
            "",
            "interfaces: [{name: a, mac-address: 52:54:00:00:00:01}]",
            "interfaces: [{name: a, mac-address: '41135040001'}]",
            "interfaces: [{name: a, mac-address: 4113504}]",
            "interfaces: [{name: a, mac-address: 411350400010}]",
            "routes: [{mac-address: 41135040001}]",
            "interfaces: [{name: a, description: 'mac-address: 41135040001'}]",
            "mac-address: 41135040001: {",
        ] {
            assert_eq!(restore_macs(document), None, "{document}");
        }
    }
}

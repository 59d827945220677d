//! MAC addresses in documents that a YAML 1.1 tool read as numbers.
//!
//! Such a tool reads `mac-address: 52:54:00:00:00:01` as a number in base 60, and writes it as a decimal number.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::generate::check_document_len;
use super::{MacAddr, yaml};

const KEY: &str = "mac-address";

/// Returns a document in which the interfaces have their MAC addresses again instead of the numbers that
/// [`MacAddr::from_base_60`] reads. The rest of the text is unchanged. Returns `None` if there is nothing to replace.
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
    if !document.lines().any(is_candidate) || check_document_len(document.len()).is_err() {
        return None;
    }
    let root = yaml::read_document(document).ok()?;
    let index = yaml::LineIndex::read(document);
    let mut lines: Vec<Cow<str>> = document.split('\n').map(Cow::Borrowed).collect();
    let mut is_restored = false;
    for (at, interface) in yaml::list_at(&root, &["interfaces"]).iter().enumerate() {
        let Some(number) = interface.get(KEY).and_then(Value::as_u64) else { continue };
        let Some(mac) = MacAddr::from_base_60(number) else { continue };
        let line = index.find(&format!("interfaces[{at}].{KEY}")).and_then(|line| line.checked_sub(1));
        let Some(line) = line.and_then(|line| lines.get_mut(line)) else { continue };
        let range = numbers_in(line).find(|range| line.get(range.clone()) == Some(&*number.to_string()));
        if let Some(range) = range {
            line.to_mut().replace_range(range, &format!("\"{mac}\""));
            is_restored = true;
        }
    }
    is_restored.then(|| lines.join("\n"))
}

/// Returns the positions of the decimal numbers after the key in a line.
fn numbers_in(line: &str) -> impl Iterator<Item = Range<usize>> {
    line.match_indices(KEY).filter_map(|(at, _)| {
        let after = line.get(at..)?.strip_prefix(KEY)?;
        let value = after.trim_start_matches(['"', '\'', ':', ' ']);
        let digits = value.bytes().take_while(u8::is_ascii_digit).count();
        let start = line.len().checked_sub(value.len())?;
        (digits > 0).then(|| start..start.saturating_add(digits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_replaced_in_every_style() {
        for (document, expected) in [
            (
                "interfaces:\r\n- name: a\r\n  mac-address: 41135040001 # 41135040001\r\n",
                "interfaces:\r\n- name: a\r\n  mac-address: \"52:54:00:00:00:01\" # 41135040001\r\n",
            ),
            (
                r#"{"interfaces": [{"description": "41135040001", "mac-address": 41135040001}, {"mac-address":41135040001}]}"#,
                r#"{"interfaces": [{"description": "41135040001", "mac-address": "52:54:00:00:00:01"}, {"mac-address":"52:54:00:00:00:01"}]}"#,
            ),
        ] {
            assert_eq!(restore_macs(document).as_deref(), Some(expected));
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

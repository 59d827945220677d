//! Comparison of keyfiles. nmstate numbers routing rules at random, so keyfiles of the same document may differ in
//! these numbers and in the order of their lines.

/// Returns the sorted lines of a keyfile without the numbers of routing rules. Each line begins with its section,
/// because many keys occur in several sections.
#[must_use]
pub fn comparable_lines(contents: &str) -> Vec<String> {
    let mut section = "";
    let mut lines: Vec<String> = Vec::new();
    for line in contents.lines() {
        if line.starts_with('[') {
            section = line;
        }
        lines.push(format!("{section} {}", without_rule_number(line)));
    }
    lines.sort();
    lines
}

fn without_rule_number(line: &str) -> String {
    match line.strip_prefix("routing-rule").and_then(|rule| rule.split_once('=')) {
        Some((number, rule)) if number.parse::<u32>().is_ok() => format!("routing-rule={rule}"),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_line_in_another_section_differs() {
        let keyfile = |ipv4: &str, ipv6: &str| {
            comparable_lines(&format!("[ipv4]\nmethod={ipv4}\n\n[ipv6]\nmethod={ipv6}\n"))
        };
        assert_ne!(keyfile("auto", "disabled"), keyfile("disabled", "auto"));
    }

    #[test]
    fn routing_rule_numbers_do_not_matter() {
        let first = "[ipv4]\nrouting-rule0=priority 9\nrouting-rule1=priority 8\nmethod=auto\n";
        let second = "[ipv4]\nmethod=auto\nrouting-rule1=priority 9\nrouting-rule0=priority 8\n";
        assert_eq!(comparable_lines(first), comparable_lines(second));
        assert_ne!(comparable_lines(first), comparable_lines(&first.replace("priority 8", "priority 7")));
    }
}

//! Checks and normalizes lists of SSH public keys.

use std::sync::LazyLock;

use ignition::discovery::SshKeys;
use regex::Regex;

use super::error::InvalidValue;

#[expect(clippy::unwrap_used, reason = "the pattern is ours, and a test uses it")]
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(ssh-rsa AAAAB3NzaC1yc2|ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNT|",
        r"ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzOD|",
        r"ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1Mj|",
        r"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5|ssh-dss AAAAB3NzaC1kc3)[0-9A-Za-z+/]+[=]{0,3}( .*)?$"
    ))
    .unwrap()
});

/// Checks SSH public keys, one per line, and returns the text to store. Ignores empty lines, and blanks around keys.
///
/// # Errors
///
/// Returns an error if a key is malformed or has an unsupported type. The error contains the key.
pub fn check_ssh_keys(text: &str) -> Result<String, InvalidValue> {
    let text = text.trim();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !KEY.is_match(line) {
            return Err(InvalidValue::new(format!(
                "SSH key: {line} does not match any supported type: ssh-rsa, ssh-ed25519, ecdsa-*"
            )));
        }
        SshKeys::parse(line)
            .map_err(|error| InvalidValue::new(format!("Malformed SSH key: {line}: {}", error.reason)))?;
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj2tQSxYwQIcXsGZ6aHcKfoWiVBqVp3AmEFwqeFsTOO";

    #[test]
    fn trailing_newline_is_removed() {
        assert_eq!(check_ssh_keys(&format!("{KEY} me@example\n")).unwrap(), format!("{KEY} me@example"));
        assert_eq!(check_ssh_keys(&format!(" {KEY}\n\n{KEY}\n")).unwrap(), format!("{KEY}\n\n{KEY}"));
        assert_eq!(check_ssh_keys("").unwrap(), "");
    }

    #[test]
    fn rejects_invalid_ssh_keys() {
        let refusal = check_ssh_keys("ssh-foo AAAA").unwrap_err();
        assert!(
            refusal.to_string().starts_with("SSH key: ssh-foo AAAA does not match any supported type"),
            "{refusal}"
        );
        let cut = &KEY[..KEY.len() - 8];
        assert!(check_ssh_keys(cut).unwrap_err().to_string().starts_with("Malformed SSH key: "));
    }
}

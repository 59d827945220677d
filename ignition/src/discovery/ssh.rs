//! SSH keys for logins.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::input::InputError;

const FIELD: &str = "ssh_authorized_key";

/// The key types that the live system's SSH server accepts.
const KEY_TYPES: [&str; 8] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-dss",
];

/// The public SSH keys of the user `core`, without duplicates, in the order of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshKeys(Vec<String>);

impl SshKeys {
    /// Parses keys, one per line. White space around a key and empty lines are removed.
    ///
    /// # Errors
    ///
    /// Returns an error if a line is not a public key of a known type. Options before the key type, private keys and
    /// comment lines are rejected.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let mut keys = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            check_key(line).map_err(|reason| InputError::new(FIELD, line, reason))?;
            if !keys.iter().any(|key| key == line) {
                keys.push(line.to_owned());
            }
        }
        Ok(Self(keys))
    }

    pub(crate) fn as_slice(&self) -> &[String] {
        &self.0
    }
}

fn check_key(line: &str) -> Result<(), String> {
    if let Some(bad) = line.chars().find(|it| it.is_control() && *it != '\t') {
        return Err(format!("has the character {bad:?}"));
    }
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let kind = words.next().unwrap_or_default();
    if !KEY_TYPES.contains(&kind) {
        return Err(format!("does not begin with a key type; those are {}", KEY_TYPES.join(", ")));
    }
    let blob = BASE64.decode(words.next().unwrap_or_default());
    let blob = blob.map_err(|_| "has no base64 after the key type".to_owned())?;
    let fields = key_fields(&blob).ok_or("is truncated or has trailing bytes")?;
    match fields.as_slice() {
        [name, _, ..] if *name == kind.as_bytes() => Ok(()),
        _ => Err(format!("contains a key of a type other than {kind}")),
    }
}

/// Splits the binary form of a key into its fields. A four-byte length precedes each field.
fn key_fields(mut blob: &[u8]) -> Option<Vec<&[u8]>> {
    let mut fields = Vec::new();
    while !blob.is_empty() {
        let (len, rest) = blob.split_first_chunk()?;
        let (field, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        fields.push(field);
        blob = rest;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    #[test]
    fn keys_are_read_per_line_without_duplicates() {
        let text = format!("\n  {KEY} me@there \r\n\n{KEY}\n{KEY} me@there\n");
        assert_eq!(SshKeys::parse(&text).unwrap().as_slice(), [format!("{KEY} me@there"), KEY.to_owned()]);
        assert_eq!(SshKeys::parse("").unwrap(), SshKeys::default());
    }

    #[test]
    fn rejects_invalid_keys() {
        let other_type = KEY.replacen("ssh-ed25519", "ssh-rsa", 1);
        for (bad, reason) in [
            ("ssh-foo AAAA", "key type"),
            ("# comment", "key type"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "key type"),
            (&format!("command=\"x\" {KEY}"), "key type"),
            ("ssh-ed25519", "is truncated"),
            ("ssh-ed25519 !", "no base64"),
            ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAB", "is truncated"),
            ("ssh-ed25519 /////w==", "is truncated"),
            ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "a type other than"),
            (&other_type, "a type other than ssh-rsa"),
            (&format!("{KEY} a\u{1}b"), "character"),
        ] {
            let error = SshKeys::parse(&format!("{KEY}\n{bad}")).unwrap_err().to_string();
            assert!(error.starts_with("ssh_authorized_key \""), "{error}");
            let is_empty_blob = bad == "ssh-ed25519";
            assert!(
                error.contains(reason) || is_empty_blob && error.contains("a type other than"),
                "{error}"
            );
        }
    }
}

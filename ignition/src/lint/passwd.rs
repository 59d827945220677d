//! Rules for users: keys and passwords that do not allow a login.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::Linter;
use crate::report::ConfigRule;
use crate::validate::ConfigNode;

impl Linter {
    pub(super) fn lint_user(&mut self, node: &ConfigNode) {
        if node.non_empty_text("name").is_none() {
            self.warning(node.at("name"), ConfigRule::Account, "the user has no name");
        }
        match node.text("passwordHash") {
            Some("") => {
                self.warning(
                    node.at("passwordHash"),
                    ConfigRule::Account,
                    "an empty passwordHash locks the account",
                );
            }
            Some(hash) if !hash.starts_with(['$', '!', '*']) => {
                self.warning(
                    node.at("passwordHash"),
                    ConfigRule::Account,
                    "the value does not look like the hash of a password",
                );
            }
            _ => {}
        }
        if node.is_set_to("noCreateHome", true) && !node.values("sshAuthorizedKeys").is_empty() {
            // Ignition writes the keys as the user, and the user has no permission to create the home directory.
            self.warning(
                node.at("sshAuthorizedKeys"),
                ConfigRule::Account,
                "keys cannot be written for a user without a home",
            );
        }
        for (pointer, key) in node.texts("sshAuthorizedKeys") {
            if !is_ssh_key(key) {
                self.warning(pointer, ConfigRule::Account, "the value does not look like an SSH key");
            }
        }
    }
}

/// Returns `true` if a line contains a key type and then a key of that type. Options may precede them.
fn is_ssh_key(line: &str) -> bool {
    let parts: Vec<&str> = line.split_whitespace().collect();
    parts.windows(2).any(|pair| {
        let [kind, key] = pair else { return false };
        let matches_kind = BASE64.decode(key).ok().and_then(|key| {
            let (len, rest) = key.split_first_chunk()?;
            let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
            Some(rest.get(..len)? == kind.as_bytes())
        });
        matches_kind == Some(true)
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::check;

    /// For an empty password hash, Ignition 2.14 runs `usermod --password '*'`.
    #[test]
    fn empty_hash_locks_the_account() {
        let user = r#"{"name": "core", "passwordHash": ""}"#;
        let text = format!(r#"{{"ignition": {{"version": "3.0.0"}}, "passwd": {{"users": [{user}]}}}}"#);
        let messages: Vec<String> =
            check(text.as_bytes()).findings().iter().map(|it| it.message.clone()).collect();
        assert_eq!(messages, ["an empty passwordHash locks the account"]);
    }
}

//! Rules for users: keys and passwords that do not let anybody in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::Linter;
use crate::validate::Node;

impl Linter {
    pub(super) fn user(&mut self, node: &Node) {
        if node.filled("name").is_none() {
            self.warning(node.at("name"), "the user has no name");
        }
        match node.text("passwordHash") {
            Some("") => {
                self.warning(node.at("passwordHash"), "an empty hash is taken for *: no password lets in");
            }
            Some(hash) if !hash.starts_with(['$', '!', '*']) => {
                self.warning(node.at("passwordHash"), "this does not look like the hash of a password");
            }
            _ => {}
        }
        if node.is("noCreateHome", true) && !node.values("sshAuthorizedKeys").is_empty() {
            // Ignition writes them as the user, who may not make its home.
            self.warning(node.at("sshAuthorizedKeys"), "keys cannot be written for a user without a home");
        }
        for (pointer, key) in node.texts("sshAuthorizedKeys") {
            if !is_ssh_key(key) {
                self.warning(pointer, "this does not look like an SSH key");
            }
        }
    }
}

/// Whether some part of a line names a kind of key and the next is a key of that kind. Options may stand before it.
fn is_ssh_key(line: &str) -> bool {
    let parts: Vec<&str> = line.split_whitespace().collect();
    parts.windows(2).any(|pair| {
        let [kind, key] = pair else { return false };
        let named = BASE64.decode(key).ok().and_then(|key| {
            let (len, rest) = key.split_first_chunk()?;
            let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
            Some(rest.get(..len)? == kind.as_bytes())
        });
        named == Some(true)
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::check;

    /// Ignition 2.14 calls `usermod --password '*'` then.
    #[test]
    fn an_empty_hash_locks() {
        let user = r#"{"name": "core", "passwordHash": ""}"#;
        let text = format!(r#"{{"ignition": {{"version": "3.0.0"}}, "passwd": {{"users": [{user}]}}}}"#);
        let messages: Vec<String> =
            check(text.as_bytes()).findings().iter().map(|it| it.message.clone()).collect();
        assert_eq!(messages, ["an empty hash is taken for *: no password lets in"]);
    }
}

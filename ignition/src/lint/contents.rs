//! Rules for inline contents: do they unpack, are they what their hash says, do they hold a secret.

use sha2::{Digest, Sha256, Sha512};

use super::Linter;
use crate::resource::{self, ResourceError};
use crate::validate::{Node, url};

/// Most bytes of contents that are unpacked in one config. Whatever goes into an image is a fraction of it.
pub(super) const MAX_UNPACKED_LEN: usize = 64 << 20;

/// What every gzip stream begins with.
const GZIP_MAGIC: [u8; 3] = [0x1F, 0x8B, 8];

impl Linter {
    /// Looks at all contents of a file, and tells what secret they hold.
    pub(super) fn contents(&mut self, file: &Node) -> Option<&'static str> {
        let path = file.text("path").unwrap_or_default();
        let parts = file.nodes("contents").chain(file.nodes("append"));
        let mut found = None;
        for part in parts {
            let Some(bytes) = self.unpacked(&part) else { continue };
            self.hash(&part, &bytes);
            let is_archive = [".gz", ".tgz"].iter().any(|end| path.ends_with(end));
            let is_marked = part.filled("compression").is_some();
            if bytes.starts_with(&GZIP_MAGIC) && !is_marked && !is_archive {
                self.warning(
                    part.at("compression"),
                    "the contents are gzip, but compression is not \"gzip\"",
                );
            }
            found = found.or_else(|| secret(&bytes));
        }
        found
    }

    /// The bytes that Ignition would write. Where the validation has found an error already, nothing.
    fn unpacked(&mut self, part: &Node) -> Option<Vec<u8>> {
        let source = part.filled("source").filter(|source| source.starts_with("data:"))?;
        let bytes = url::decode(source).ok()?;
        if part.text("compression") != Some("gzip") {
            return Some(bytes);
        }
        if !bytes.starts_with(&GZIP_MAGIC) {
            self.error(part.at("compression"), "compression is \"gzip\", but the contents are not");
            return None;
        }
        match resource::gunzip(&bytes, self.budget) {
            Ok(bytes) => {
                self.budget = self.budget.saturating_sub(bytes.len());
                Some(bytes)
            }
            Err(ResourceError::TooLarge) => {
                self.info(part.at("source"), "the contents are too large to look into");
                None
            }
            Err(_) => {
                self.error(part.at("source"), "the gzip contents are damaged");
                None
            }
        }
    }

    fn hash(&mut self, part: &Node, bytes: &[u8]) {
        let Some(verification) = part.child("verification") else { return };
        let Some((function, expected)) = verification.text("hash").and_then(|hash| hash.split_once('-'))
        else {
            return;
        };
        let found = match function {
            "sha256" => hex(&Sha256::digest(bytes)),
            "sha512" => hex(&Sha512::digest(bytes)),
            _ => return,
        };
        if found.len() == expected.len() && !found.eq_ignore_ascii_case(expected) {
            self.error(verification.at("hash"), format!("the contents have the hash {function}-{found}"));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What secret is in contents, as far as it can be seen.
fn secret(bytes: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_key =
        |line: &str| line.starts_with("-----BEGIN ") && line.trim_end().ends_with("PRIVATE KEY-----");
    if text.contains("PRIVATE KEY-----") && text.lines().any(|line| is_key(line.trim_start())) {
        return Some("a private key");
    }
    text.contains("\"auths\"").then_some("registry credentials")
}

//! Rules for inline contents: compression, hashes and secrets.

use sha2::{Digest, Sha256, Sha512};

use super::Linter;
use crate::report::ConfigRule;
use crate::resource::{self, GunzipError};
use crate::validate::{ConfigNode, url};

/// Maximum number of bytes to decompress for one config. The contents in an image are a fraction of that.
pub(super) const MAX_DECOMPRESSED_LEN: usize = 64 << 20;

/// The first bytes of every gzip stream.
const GZIP_MAGIC: [u8; 3] = [0x1F, 0x8B, 8];

impl Linter {
    /// Checks all contents of a file. Returns the kind of secret in the contents, if any.
    pub(super) fn lint_contents(&mut self, file: &ConfigNode) -> Option<&'static str> {
        let path = file.text("path").unwrap_or_default();
        let parts = file.nodes("contents").chain(file.nodes("append"));
        let mut secret = None;
        for part in parts {
            let Some(bytes) = self.decompressed_contents(&part) else { continue };
            self.lint_hash(&part, &bytes);
            let is_archive = [".gz", ".tgz"].iter().any(|end| path.ends_with(end));
            let is_marked = part.non_empty_text("compression").is_some();
            if bytes.starts_with(&GZIP_MAGIC) && !is_marked && !is_archive {
                self.warning(
                    part.at("compression"),
                    ConfigRule::Contents,
                    "the contents are gzip, but compression is not \"gzip\"",
                );
            }
            secret = secret.or_else(|| secret_kind(&bytes));
        }
        secret
    }

    /// Returns the bytes that Ignition would write, or `None` if the contents are not inline or cannot be decoded.
    fn decompressed_contents(&mut self, part: &ConfigNode) -> Option<Vec<u8>> {
        let source = part.non_empty_text("source").filter(|source| source.starts_with("data:"))?;
        let bytes = url::decode_data_url(source).ok()?;
        if part.text("compression") != Some("gzip") {
            return Some(bytes);
        }
        if !bytes.starts_with(&GZIP_MAGIC) {
            self.error(
                part.at("compression"),
                ConfigRule::Contents,
                "compression is \"gzip\", but the contents are not",
            );
            return None;
        }
        match resource::gunzip(&bytes, self.budget) {
            Ok(bytes) => {
                self.budget = self.budget.saturating_sub(bytes.len());
                Some(bytes)
            }
            Err(GunzipError::TooLarge) => {
                self.info(part.at("source"), ConfigRule::Contents, "the contents are too large to check");
                None
            }
            Err(GunzipError::Damaged) => {
                self.error(part.at("source"), ConfigRule::Contents, "the gzip contents are damaged");
                None
            }
        }
    }

    fn lint_hash(&mut self, part: &ConfigNode, bytes: &[u8]) {
        let Some(verification) = part.child("verification") else { return };
        let Some((function, expected)) = verification.text("hash").and_then(|hash| hash.split_once('-'))
        else {
            return;
        };
        let actual = match function {
            "sha256" => hex(&Sha256::digest(bytes)),
            "sha512" => hex(&Sha512::digest(bytes)),
            _ => return,
        };
        if actual.len() == expected.len() && !actual.eq_ignore_ascii_case(expected) {
            self.error(
                verification.at("hash"),
                ConfigRule::Contents,
                format!("the contents have the hash {function}-{actual}"),
            );
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the kind of secret in the contents, or `None` if no secret is recognised.
fn secret_kind(bytes: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_key =
        |line: &str| line.starts_with("-----BEGIN ") && line.trim_end().ends_with("PRIVATE KEY-----");
    if text.contains("PRIVATE KEY-----") && text.lines().any(|line| is_key(line.trim_start())) {
        return Some("a private key");
    }
    text.contains("\"auths\"").then_some("registry credentials")
}

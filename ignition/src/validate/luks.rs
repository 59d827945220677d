//! Rules of encrypted volumes.

use super::url::{self, Scheme};
use super::{Checker, Node};
use crate::spec::Spec;

/// Longest label of a volume, in bytes.
const MAX_LABEL: usize = 47;

impl Checker {
    pub(super) fn luks(&mut self, node: &Node) {
        if node.text("name").is_some_and(|name| name.contains('/')) {
            self.error(node.at("name"), "the name of a volume must not have a slash");
        }
        if node.text("label").is_some_and(|label| label.len() > MAX_LABEL) {
            self.error(node.at("label"), format!("a label has at most {MAX_LABEL} bytes"));
        }
        self.device(node);
        let is_cex = node.child("cex").is_some_and(|cex| cex.is("enabled", true));
        let has_key = node.child("keyFile").is_some_and(|file| file.filled("source").is_some());
        if is_cex && (node.child("clevis").is_some() || has_key) {
            self.error(node.at("cex"), "a crypto card excludes Clevis and a key file");
        }
    }

    pub(super) fn clevis(&mut self, node: &Node) {
        let Some(custom) = node.child("custom") else { return };
        let threshold = node.integer("threshold").is_some_and(|threshold| threshold != 0);
        if is_used(&custom) && (node.has("tang") || node.is("tpm2", true) || threshold) {
            self.error(node.place, "a custom Clevis pin excludes tang, tpm2 and threshold");
        }
    }

    pub(super) fn custom(&mut self, node: &Node) {
        if !is_used(node) {
            return;
        }
        match node.filled("pin") {
            Some("tpm2" | "tang" | "sss") => {}
            Some(_) if self.spec >= Spec::V3_6 => {}
            Some(pin) => {
                self.error(node.at("pin"), format!("the pin {pin:?} is not known to spec {}", self.spec))
            }
            None => self.error(node.at("pin"), "a custom Clevis configuration needs a pin"),
        }
        if node.filled("config").is_none() {
            self.error(node.at("config"), "a custom Clevis configuration needs a config");
        }
    }

    pub(super) fn tang(&mut self, node: &Node) {
        let server = node.text("url").unwrap_or_default();
        if !matches!(url::scheme(server), Ok(Scheme::Http | Scheme::Https)) {
            self.error(node.at("url"), format!("{server:?} is not an http or https URL"));
        }
        if node.filled("thumbprint").is_none() {
            self.error(node.at("thumbprint"), "a Tang server needs a thumbprint");
        }
        let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if node.filled("advertisement").is_some_and(|text| !is_json(text)) {
            self.error(node.at("advertisement"), "the advertisement is not JSON");
        }
    }
}

/// Whether a custom Clevis configuration says anything.
fn is_used(custom: &Node) -> bool {
    custom.filled("pin").is_some() || custom.filled("config").is_some() || custom.is("needsNetwork", true)
}

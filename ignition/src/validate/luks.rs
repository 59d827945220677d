//! Rules for encrypted volumes.

use super::url::{self, Scheme};
use super::{Checker, ConfigNode};
use crate::report::ConfigRule;
use crate::spec::Spec;

/// Maximum length of a volume label in bytes.
const MAX_VOLUME_LABEL_LEN: usize = 47;

impl Checker {
    pub(super) fn check_luks(&mut self, node: &ConfigNode) {
        if node.text("name").is_some_and(|name| name.contains('/')) {
            self.error(
                node.at("name"),
                ConfigRule::InvalidValue,
                "the name of a volume must not have a slash",
            );
        }
        if node.text("label").is_some_and(|label| label.len() > MAX_VOLUME_LABEL_LEN) {
            self.error(
                node.at("label"),
                ConfigRule::InvalidValue,
                format!("a label has at most {MAX_VOLUME_LABEL_LEN} bytes"),
            );
        }
        self.check_device(node);
        let is_cex = node.child("cex").is_some_and(|cex| cex.is_set_to("enabled", true));
        let has_key = node.child("keyFile").is_some_and(|file| file.non_empty_text("source").is_some());
        if is_cex && (node.child("clevis").is_some() || has_key) {
            self.error(
                node.at("cex"),
                ConfigRule::Conflict,
                "cex cannot be combined with Clevis or a key file",
            );
        }
    }

    pub(super) fn check_clevis(&mut self, node: &ConfigNode) {
        let Some(custom) = node.child("custom") else { return };
        let threshold = node.integer("threshold").is_some_and(|threshold| threshold != 0);
        if has_settings(&custom) && (node.has_field("tang") || node.is_set_to("tpm2", true) || threshold) {
            self.error(
                node.pointer,
                ConfigRule::Conflict,
                "a custom Clevis pin cannot be combined with tang, tpm2 or threshold",
            );
        }
    }

    pub(super) fn check_custom(&mut self, node: &ConfigNode) {
        if !has_settings(node) {
            return;
        }
        match node.non_empty_text("pin") {
            Some("tpm2" | "tang" | "sss") => {}
            Some(_) if self.spec >= Spec::V3_6 => {}
            Some(pin) => self.error(
                node.at("pin"),
                ConfigRule::InvalidValue,
                format!("the pin {pin:?} is not known to spec {}", self.spec),
            ),
            None => self.error(
                node.at("pin"),
                ConfigRule::MissingValue,
                "a custom Clevis configuration needs a pin",
            ),
        }
        if node.non_empty_text("config").is_none() {
            self.error(
                node.at("config"),
                ConfigRule::MissingValue,
                "a custom Clevis configuration needs a config",
            );
        }
    }

    pub(super) fn check_tang(&mut self, node: &ConfigNode) {
        let server = node.text("url").unwrap_or_default();
        if !matches!(url::parse_scheme(server, self.spec), Ok(Scheme::Http | Scheme::Https)) {
            self.error(node.at("url"), ConfigRule::Url, format!("{server:?} is not an http or https URL"));
        }
        if node.non_empty_text("thumbprint").is_none() {
            self.error(node.at("thumbprint"), ConfigRule::MissingValue, "a Tang server needs a thumbprint");
        }
        let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if node.non_empty_text("advertisement").is_some_and(|text| !is_json(text)) {
            self.error(node.at("advertisement"), ConfigRule::InvalidValue, "the advertisement is not JSON");
        }
    }
}

/// Returns `true` if a custom Clevis configuration has any setting.
fn has_settings(custom: &ConfigNode) -> bool {
    custom.non_empty_text("pin").is_some()
        || custom.non_empty_text("config").is_some()
        || custom.is_set_to("needsNetwork", true)
}

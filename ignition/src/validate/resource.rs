//! Rules for external contents and for the proxies that Ignition uses to download them.

use super::url::{self, Scheme};
use super::{Checker, ConfigNode};
use crate::report::ConfigRule;
use crate::spec::Spec;

impl Checker {
    /// Requires that each reference in a list has a source. The references are configs to merge, or certificate
    /// authorities.
    pub(super) fn check_references(&mut self, node: &ConfigNode, list: &str) {
        for reference in node.nodes(list) {
            if reference.non_empty_text("source").is_none() {
                self.error(reference.pointer, ConfigRule::MissingValue, "a source is required");
            }
        }
    }

    pub(super) fn check_resource(&mut self, node: &ConfigNode) {
        if let Some(other) = node.non_empty_text("compression").filter(|it| *it != "gzip") {
            self.error(
                node.at("compression"),
                ConfigRule::InvalidValue,
                format!("the compression {other:?} is not \"gzip\""),
            );
        }
        let source = node.non_empty_text("source").map(|source| url::check_source(source, self.spec));
        if let Some(Err(problem)) = &source {
            self.error(node.at("source"), ConfigRule::Url, problem.to_string());
        }
        let is_http = matches!(source, Some(Ok(Scheme::Http | Scheme::Https)));
        if node.has_field("httpHeaders") && !is_http {
            self.error(
                node.at("httpHeaders"),
                ConfigRule::Conflict,
                "only sources with http or https take headers",
            );
        }
        let Some(verification) = node.child("verification") else { return };
        let Some(hash) = verification.text("hash") else { return };
        if !node.has_field("source") {
            self.error(verification.at("hash"), ConfigRule::MissingValue, "a hash without a source");
        }
        if let Some(problem) = hash_problem(hash, self.spec) {
            self.error(verification.at("hash"), ConfigRule::InvalidValue, problem);
        }
    }

    pub(super) fn check_header(&mut self, node: &ConfigNode) {
        if node.non_empty_text("name").is_none() {
            self.error(node.at("name"), ConfigRule::MissingValue, "a header needs a name");
        }
        if node.text("value") == Some("") {
            self.error(node.at("value"), ConfigRule::MissingValue, "the value of a header is empty");
        }
    }

    pub(super) fn check_proxy(&mut self, node: &ConfigNode) {
        for field in ["httpProxy", "httpsProxy"] {
            let Some(proxy) = node.text(field) else { continue };
            match url::parse_scheme(proxy, self.spec) {
                Ok(Scheme::Http) if field == "httpsProxy" => {
                    self.warning(
                        node.at(field),
                        ConfigRule::Url,
                        "requests over https go to the proxy over plain http",
                    );
                }
                Ok(Scheme::Http | Scheme::Https) => {}
                _ => self.error(
                    node.at(field),
                    ConfigRule::Url,
                    format!("{proxy:?} is not an http or https URL"),
                ),
            }
        }
    }
}

/// Checks only the form of a hash: the name of the hash function and the number of digits.
fn hash_problem(hash: &str, spec: Spec) -> Option<String> {
    let Some((function, sum)) = hash.split_once('-') else {
        return Some(format!("the hash {hash:?} does not look like sha512-<digits>"));
    };
    let digits = match function {
        "sha512" => 128,
        "sha256" if spec >= Spec::V3_1 => 64,
        _ => return Some(format!("the hash function {function:?} is not known to spec {spec}")),
    };
    (sum.len() != digits).then(|| format!("the hash has {} digits, {function} has {digits}", sum.len()))
}

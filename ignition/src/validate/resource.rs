//! Rules of contents from elsewhere, and of the proxies on the way.

use super::url::{self, Scheme};
use super::{Checker, Node};
use crate::spec::Spec;

impl Checker {
    /// Configs to merge and authorities are nothing without a source.
    pub(super) fn references(&mut self, node: &Node, list: &str) {
        for reference in node.nodes(list) {
            if reference.filled("source").is_none() {
                self.error(reference.place, "a source is required");
            }
        }
    }

    pub(super) fn resource(&mut self, node: &Node) {
        match node.text("compression") {
            None | Some("" | "gzip") => {}
            Some(other) => {
                self.error(node.at("compression"), format!("the compression {other:?} is not \"gzip\""));
            }
        }
        let scheme = node.filled("source").and_then(|source| match url::check(source, self.spec) {
            Ok(scheme) => Some(scheme),
            Err(problem) => {
                self.error(node.at("source"), problem.to_string());
                None
            }
        });
        let is_http = matches!(scheme, Some(Scheme::Http | Scheme::Https));
        if node.has("httpHeaders") && !is_http {
            self.error(node.at("httpHeaders"), "only sources with http or https take headers");
        }
        let Some(verification) = node.child("verification") else { return };
        let Some(hash) = verification.text("hash") else { return };
        if !node.has("source") {
            self.error(verification.at("hash"), "a hash without a source");
        }
        if let Some(problem) = hash_problem(hash, self.spec) {
            self.error(verification.at("hash"), problem);
        }
    }

    pub(super) fn header(&mut self, node: &Node) {
        if node.filled("name").is_none() {
            self.error(node.at("name"), "a header needs a name");
        }
        if node.text("value") == Some("") {
            self.error(node.at("value"), "the value of a header is empty");
        }
    }

    pub(super) fn proxy(&mut self, node: &Node) {
        for field in ["httpProxy", "httpsProxy"] {
            let Some(proxy) = node.text(field) else { continue };
            match url::scheme(proxy) {
                Ok(Scheme::Http) if field == "httpsProxy" => {
                    self.warning(node.at(field), "requests over https go to the proxy over plain http");
                }
                Ok(Scheme::Http | Scheme::Https) => {}
                _ => self.error(node.at(field), format!("{proxy:?} is not an http or https URL")),
            }
        }
    }
}

/// Only the form is checked: the name of the function and the number of digits.
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

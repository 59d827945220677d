//! The merge cases in `tests/merge/*.json`.
//!
//! A file contains a list of cases: `parent`, `child` and the expected result. Each of them is a config without its
//! version. The version is `spec` (3.3.0 by default), or `parentSpec` and `childSpec`. A case has `parentValid`,
//! `childValid` and `valid` if an input or the result is not a valid config, and `engine` if the real engine would
//! fetch something.

#![allow(dead_code, reason = "no test program needs all of it")]

use std::fs;
use std::path::PathBuf;

use ignition::config::Config;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default = "default_spec")]
    spec: String,
    parent_spec: Option<String>,
    child_spec: Option<String>,
    parent: Value,
    child: Value,
    expected: Value,
    #[serde(default = "yes")]
    pub(crate) parent_valid: bool,
    #[serde(default = "yes")]
    pub(crate) child_valid: bool,
    #[serde(default = "yes")]
    pub(crate) valid: bool,
    #[serde(default = "yes")]
    pub(crate) engine: bool,
}

fn default_spec() -> String {
    "3.3.0".to_owned()
}

fn yes() -> bool {
    true
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/merge");
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let read = |path: &PathBuf| -> Vec<Self> {
            serde_json::from_slice(&fs::read(path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        files.iter().flat_map(read).collect()
    }

    pub(crate) fn parent(&self) -> Config {
        read(&self.parent, self.parent_spec.as_ref().unwrap_or(&self.spec))
    }

    pub(crate) fn child(&self) -> Config {
        read(&self.child, self.child_spec.as_ref().unwrap_or(&self.spec))
    }

    pub(crate) fn expected(&self) -> Config {
        read(&self.expected, &self.spec)
    }
}

/// Reads a config and adds its version.
pub(crate) fn read(config: &Value, spec: &str) -> Config {
    let mut config = config.clone();
    config.as_object_mut().unwrap().entry("ignition").or_insert_with(|| json!({}))["version"] = spec.into();
    let parsed = Config::parse(config.to_string().as_bytes()).unwrap();
    assert!(parsed.warnings.is_empty(), "{}", parsed.warnings.to_text("case"));
    parsed.config
}

//! Rules for units and drop-ins.

use std::collections::HashMap;

use super::unit::parse;
use super::{Checker, ConfigNode};
use crate::report::ConfigRule;

/// The valid suffixes of unit names.
const UNIT_SUFFIXES: [&str; 12] = [
    "service",
    "socket",
    "device",
    "mount",
    "automount",
    "swap",
    "target",
    "path",
    "timer",
    "snapshot",
    "slice",
    "scope",
];

impl Checker {
    pub(super) fn check_unit(&mut self, node: &ConfigNode) {
        let name = node.text("name").unwrap_or_default();
        if !name.rsplit_once('.').is_some_and(|(_, extension)| UNIT_SUFFIXES.contains(&extension)) {
            self.error(
                node.at("name"),
                ConfigRule::Unit,
                format!("{name:?} does not end in the type of a unit"),
            );
        }
        self.check_contents(node);
    }

    pub(super) fn check_dropin(&mut self, node: &ConfigNode) {
        let name = node.text("name").unwrap_or_default();
        if !name.ends_with(".conf") {
            self.error(
                node.at("name"),
                ConfigRule::Unit,
                format!("the drop-in {name:?} does not end in .conf"),
            );
        }
        self.check_contents(node);
    }

    fn check_contents(&mut self, node: &ConfigNode) {
        if let Err(error) = parse(node.text("contents").unwrap_or_default()) {
            self.error(node.at("contents"), ConfigRule::Unit, error.to_string());
        }
    }

    /// Warns about enabled units without an `[Install]` section in the unit or in its template.
    pub(super) fn check_systemd(&mut self, node: &ConfigNode) {
        let units: Vec<ConfigNode> = node.nodes("units").collect();
        let texts =
            units.iter().filter_map(|unit| Some((unit.text("name")?, unit.non_empty_text("contents")?)));
        let texts: HashMap<&str, &str> = texts.collect();
        for unit in units.iter().filter(|unit| unit.is_set_to("enabled", true)) {
            let name = unit.text("name").unwrap_or_default();
            let template = template_name(name);
            let template = template.as_deref().and_then(|it| Some((texts.get(it)?, it)));
            let (text, problem) = match (texts.get(name), template) {
                (Some(text), _) => (text, "has no [Install] section".to_owned()),
                (None, Some((text, it))) => (text, format!("its template {it:?} has no [Install] section")),
                (None, None) => continue,
            };
            if parse(text).is_ok_and(|file| !file.has_section("Install")) {
                self.warning(
                    unit.at("contents"),
                    ConfigRule::Unit,
                    format!("{name:?} is enabled, but {problem}"),
                );
            }
        }
    }
}

/// Returns the name of the template of an instance: `a@.service` for `a@b.service`.
pub(crate) fn template_name(name: &str) -> Option<String> {
    let (prefix, instance) = name.split_once('@')?;
    let (instance, extension) = instance.rsplit_once('.')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{extension}"))
}

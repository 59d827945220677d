//! Rules for units, for example about units that no other unit starts.

use std::collections::HashSet;

use super::Linter;
use crate::report::ConfigRule;
use crate::validate::ConfigNode;
use crate::validate::systemd::template_name;
use crate::validate::unit::{UnitFile, parse};

/// Unit options that start other units.
const START_OPTIONS: [&str; 9] =
    ["Wants", "Requires", "Requisite", "BindsTo", "Upholds", "OnSuccess", "OnFailure", "Also", "Sockets"];
/// Unit types that trigger another unit, and the section whose options name that unit.
const TRIGGER_TYPES: [(&str, &str); 4] =
    [("timer", "Timer"), ("socket", "Socket"), ("path", "Path"), ("automount", "Automount")];

impl Linter {
    pub(super) fn lint_systemd(&mut self, node: &ConfigNode) {
        let units: Vec<ConfigNode> = node.nodes("units").collect();
        let started = started_units(&units);
        for unit in &units {
            self.lint_unit(unit, &started);
        }
    }

    fn lint_unit(&mut self, unit: &ConfigNode, started: &HashSet<String>) {
        let name = unit.text("name").unwrap_or_default();
        let says_nothing =
            ["contents", "dropins", "enabled", "mask"].iter().all(|field| !unit.has_field(field));
        if says_nothing {
            return self.warning(
                unit.pointer,
                ConfigRule::NoEffect,
                format!("the entry of {name:?} sets nothing"),
            );
        }
        if unit.is_set_to("mask", true) {
            if unit.is_set_to("enabled", true) {
                self.warning(
                    unit.at("enabled"),
                    ConfigRule::Unit,
                    format!("{name:?} is masked, so it never starts"),
                );
            }
            return;
        }
        if unit.text("contents") == Some("") {
            self.warning(
                unit.at("contents"),
                ConfigRule::Unit,
                format!("the contents of {name:?} are empty"),
            );
        }
        let Some(Ok(file)) = unit.non_empty_text("contents").map(parse) else { return };
        let is_template = name.contains("@.");
        if file.has_section("Install") {
            if !unit.has_field("enabled") && !is_template {
                self.warning(
                    unit.pointer,
                    ConfigRule::Unit,
                    format!("{name:?} has an [Install] section, but is not enabled"),
                );
            }
        } else if !unit.is_set_to("enabled", true) && !is_template && !started.contains(name) {
            self.info(unit.pointer, ConfigRule::Unit, format!("nothing in the config starts {name:?}"));
        }
    }
}

/// Returns the units that other units of the config start.
fn started_units(units: &[ConfigNode]) -> HashSet<String> {
    let mut started = HashSet::new();
    for unit in units {
        let name = unit.text("name").unwrap_or_default();
        let dropins = unit.nodes("dropins").filter_map(|it| it.non_empty_text("contents"));
        let texts = unit.non_empty_text("contents").into_iter().chain(dropins);
        for file in texts.filter_map(|text| parse(text).ok()) {
            add_started_units(name, &file, &mut started);
        }
    }
    let templates: Vec<String> = started.iter().filter_map(|name| template_name(name)).collect();
    started.extend(templates);
    started
}

fn add_started_units(name: &str, file: &UnitFile, started: &mut HashSet<String>) {
    for section in ["Unit", "Install", "Service"] {
        let values = START_OPTIONS.iter().flat_map(|option| file.values(section, option));
        started.extend(values.flat_map(str::split_whitespace).map(str::to_owned));
    }
    let Some((stem, kind)) = name.rsplit_once('.') else { return };
    for (_, section) in TRIGGER_TYPES.iter().filter(|(trigger, _)| *trigger == kind) {
        let units = file.values(section, "Unit").chain(file.values(section, "Service"));
        started.extend(units.map(str::to_owned));
        let other = if kind == "automount" { "mount" } else { "service" };
        started.insert(format!("{stem}.{other}"));
    }
}

//! Rules for units: those that nothing starts.

use std::collections::HashSet;

use super::Linter;
use crate::validate::Node;
use crate::validate::systemd::template;
use crate::validate::unit::{UnitFile, parse};

/// Options by which a unit starts others.
const STARTERS: [&str; 9] =
    ["Wants", "Requires", "Requisite", "BindsTo", "Upholds", "OnSuccess", "OnFailure", "Also", "Sockets"];
/// Units that start a service of the same name, or the one that they name.
const TRIGGERS: [(&str, &str); 4] =
    [("timer", "Timer"), ("socket", "Socket"), ("path", "Path"), ("automount", "Automount")];

impl Linter {
    pub(super) fn systemd(&mut self, node: &Node) {
        let units: Vec<Node> = node.nodes("units").collect();
        let started = started(&units);
        for unit in &units {
            self.unit(unit, &started);
        }
    }

    fn unit(&mut self, unit: &Node, started: &HashSet<String>) {
        let name = unit.text("name").unwrap_or_default();
        let says_nothing = ["contents", "dropins", "enabled", "mask"].iter().all(|field| !unit.has(field));
        if says_nothing {
            return self.warning(unit.place, format!("nothing is said about {name:?}"));
        }
        if unit.is("mask", true) {
            if unit.is("enabled", true) {
                self.warning(unit.at("enabled"), format!("{name:?} is masked, so it never starts"));
            }
            return;
        }
        if unit.text("contents") == Some("") {
            self.warning(unit.at("contents"), format!("the contents of {name:?} are empty"));
        }
        let Some(Ok(file)) = unit.filled("contents").map(parse) else { return };
        let is_template = name.contains("@.");
        if file.has_section("Install") {
            if !unit.has("enabled") && !is_template {
                self.warning(unit.place, format!("{name:?} has an [Install] section, but is not enabled"));
            }
        } else if !unit.is("enabled", true) && !is_template && !started.contains(name) {
            self.info(unit.place, format!("nothing in the config starts {name:?}"));
        }
    }
}

/// The units that other units of the config start.
fn started(units: &[Node]) -> HashSet<String> {
    let mut started = HashSet::new();
    for unit in units {
        let name = unit.text("name").unwrap_or_default();
        let dropins = unit.nodes("dropins").filter_map(|it| it.filled("contents"));
        let texts = unit.filled("contents").into_iter().chain(dropins);
        for file in texts.filter_map(|text| parse(text).ok()) {
            starts(name, &file, &mut started);
        }
    }
    let templates: Vec<String> = started.iter().filter_map(|name| template(name)).collect();
    started.extend(templates);
    started
}

fn starts(name: &str, file: &UnitFile, started: &mut HashSet<String>) {
    for section in ["Unit", "Install", "Service"] {
        let values = STARTERS.iter().flat_map(|option| file.values(section, option));
        started.extend(values.flat_map(str::split_whitespace).map(str::to_owned));
    }
    let Some((stem, kind)) = name.rsplit_once('.') else { return };
    for (_, section) in TRIGGERS.iter().filter(|(trigger, _)| *trigger == kind) {
        let named = file.values(section, "Unit").chain(file.values(section, "Service"));
        started.extend(named.map(str::to_owned));
        let other = if kind == "automount" { "mount" } else { "service" };
        started.insert(format!("{stem}.{other}"));
    }
}

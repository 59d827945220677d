//! Rules of units and drop-ins.

use std::collections::HashMap;

use super::unit::{UnitFile, parse};
use super::{Checker, Node};

/// What the name of a unit ends in.
const EXTENSIONS: [&str; 12] = [
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
    pub(super) fn unit(&mut self, node: &Node) {
        let name = node.text("name").unwrap_or_default();
        if !name.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension)) {
            self.error(node.at("name"), format!("{name:?} does not end in the type of a unit"));
        }
        self.contents(node);
    }

    pub(super) fn dropin(&mut self, node: &Node) {
        let name = node.text("name").unwrap_or_default();
        if !name.ends_with(".conf") {
            self.error(node.at("name"), format!("the drop-in {name:?} does not end in .conf"));
        }
        self.contents(node);
    }

    fn contents(&mut self, node: &Node) {
        if let Err(error) = parse(node.text("contents").unwrap_or_default()) {
            self.error(node.at("contents"), error.to_string());
        }
    }

    /// Enabling takes an `[Install]` section, in the unit or in the template that it is an instance of.
    pub(super) fn systemd(&mut self, node: &Node) {
        let units: Vec<Node> = node.nodes("units").collect();
        let texts = units.iter().filter_map(|unit| Some((unit.text("name")?, unit.filled("contents")?)));
        let texts: HashMap<&str, &str> = texts.collect();
        for unit in units.iter().filter(|unit| unit.is("enabled", true)) {
            let name = unit.text("name").unwrap_or_default();
            let (file, message) =
                match (texts.get(name), template(name).and_then(|it| Some((texts.get(it.as_str())?, it)))) {
                    (Some(text), _) => {
                        (parse(text), format!("{name:?} is enabled, but has no [Install] section"))
                    }
                    (None, Some((text, template))) => (
                        parse(text),
                        format!(
                            "{name:?} is enabled, but its template {template:?} has no [Install] section"
                        ),
                    ),
                    (None, None) => continue,
                };
            if file.is_ok_and(|file: UnitFile| !file.has_section("Install")) {
                self.warning(unit.at("contents"), message);
            }
        }
    }
}

/// The template of an instance: `a@.service` of `a@b.service`.
pub(crate) fn template(name: &str) -> Option<String> {
    let (prefix, instance) = name.split_once('@')?;
    let (instance, extension) = instance.rsplit_once('.')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{extension}"))
}

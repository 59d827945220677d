//! `kindling crd`: prints the CustomResourceDefinitions that the controllers need.

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use operator::crds;

use super::output::print_bytes;

/// Names of the kinds, for the help text and for shell completions.
const KINDS: [&str; 4] = ["AgentClassification", "Agent", "InfraEnv", "NMStateConfig"];

#[derive(Debug, Args)]
pub(super) struct Crd {
    /// Kinds to print [default: all]
    #[arg(value_name = "KIND", ignore_case = true, value_parser = PossibleValuesParser::new(KINDS))]
    kinds: Vec<String>,
}

impl Crd {
    /// Prints each definition as a YAML document.
    pub(super) fn run(&self) -> Result<()> {
        let mut definitions = crds::all()?;
        if !self.kinds.is_empty() {
            definitions.retain(|definition| {
                self.kinds.iter().any(|kind| kind.eq_ignore_ascii_case(&definition.spec.names.kind))
            });
        }
        print_bytes(crds::documents(&definitions)?.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectable_kinds_match_the_definitions() {
        let definitions = crds::all().unwrap();
        let kinds: Vec<_> =
            definitions.iter().map(|definition| definition.spec.names.kind.as_str()).collect();
        assert_eq!(kinds, KINDS);
    }
}

//! `kindling ignition show`: prints a config and its summary.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ignition::config::{Config, ParsedConfig};
use ignition::summary::ConfigSummary;
use serde::Serialize;

use crate::cli::input::NamedText;
use crate::cli::output::{print_bytes, print_json};

#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Ignition config; - is stdin
    #[arg(value_name = "CONFIG", default_value = "-")]
    config: String,
}

/// The JSON output.
#[derive(Serialize)]
struct ConfigView<'a> {
    summary: ConfigSummary,
    config: &'a Config,
}

impl Show {
    pub(super) fn run(self) -> Result<ExitCode> {
        let text = NamedText::read(&self.config)?;
        let parsed = Config::parse(&text.bytes)?;
        let summary = ConfigSummary::from(&parsed);
        if self.json {
            print_json(&ConfigView { summary, config: &parsed.config })?;
        } else {
            print_bytes(to_text(&text.name, &summary, &parsed)?.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Formats the summary, an empty line and the config. Escapes control characters in the names of the summary. JSON text
/// contains no control characters except line breaks.
fn to_text(file: &str, summary: &ConfigSummary, parsed: &ParsedConfig) -> Result<String> {
    let mut out = String::new();
    let ConfigSummary { version, merges, files, directories, links, units, users, removed_users, .. } =
        summary;
    writeln!(out, "{file}: spec {version}")?;
    writeln!(out, "Merges:  {merges}")?;
    writeln!(out, "Storage: {files} files, {directories} directories, {links} links")?;
    writeln!(out, "Units:   {}", format_names(units))?;
    writeln!(out, "Users:   {}", format_names(users))?;
    if !removed_users.is_empty() {
        writeln!(out, "Removed: {}", format_names(removed_users))?;
    }
    write!(out, "{}", parsed.warnings.to_text(file).replace(|it: char| it.is_control() && it != '\n', "?"))?;
    write!(out, "\n{}", parsed.config.to_pretty())?;
    Ok(out)
}

fn format_names(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(" ").escape_debug().to_string() }
}

//! `kindling ignition show`: a config for people.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ignition::document::{Document, Parsed};
use ignition::summary::Summary;
use serde::Serialize;

use crate::cli::input::Text;
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

/// A config with what it does.
#[derive(Serialize)]
struct Shown<'a> {
    summary: Summary,
    config: &'a Document,
}

impl Show {
    pub(super) fn run(self) -> Result<ExitCode> {
        let text = Text::read(&self.config)?;
        let parsed = Document::parse(&text.bytes)?;
        let summary = Summary::from(&parsed);
        if self.json {
            print_json(&Shown { summary, config: &parsed.document })?;
        } else {
            print_bytes(to_text(&text.name, &summary, &parsed)?.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The summary, an empty line, the config. JSON has no control characters but line breaks; names may have some.
fn to_text(file: &str, summary: &Summary, parsed: &Parsed) -> Result<String> {
    let mut out = String::new();
    let Summary { version, merges, files, directories, links, units, users, removed_users, .. } = summary;
    writeln!(out, "{file}: spec {version}")?;
    writeln!(out, "Merges:  {merges}")?;
    writeln!(out, "Storage: {files} files, {directories} directories, {links} links")?;
    writeln!(out, "Units:   {}", names(units))?;
    writeln!(out, "Users:   {}", names(users))?;
    if !removed_users.is_empty() {
        writeln!(out, "Removed: {}", names(removed_users))?;
    }
    write!(out, "{}", parsed.warnings.to_text(file).replace(|it: char| it.is_control() && it != '\n', "?"))?;
    write!(out, "\n{}", parsed.document.to_pretty())?;
    Ok(out)
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(" ").escape_debug().to_string() }
}

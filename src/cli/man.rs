//! `kindling man`: manual pages, generated from the definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command};

use super::directories::check_writable_directory;
use super::examples;
use super::output::print_bytes;

#[derive(Debug, Args)]
pub(super) struct Man {
    /// Directory for one page per command, such as /usr/share/man/man1 [default: print the page of the program]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Man {
    /// Writes the pages of all commands, or prints the page of the program. `command` must not contain values from the
    /// environment.
    pub(super) fn run(&self, mut command: Command) -> Result<()> {
        command.build();
        let Some(directory) = &self.directory else { return print_bytes(&render_page(&command)?) };
        check_writable_directory("DIR", directory)?;
        fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
        write_pages(&command, directory)
    }
}

/// Writes the pages of a command and of its visible subcommands.
fn write_pages(command: &Command, directory: &Path) -> Result<()> {
    let path = directory.join(format!("{}.1", page_name(command)));
    fs::write(&path, render_page(command)?).with_context(|| format!("writing {}", path.display()))?;
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| write_pages(command, directory))
}

/// Returns the name of a page: all words of the command, joined by hyphens.
fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn render_page(command: &Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let title = page_name(command);
    let manual = concat!("Kindling ", env!("CARGO_PKG_VERSION"));
    let body = command.clone().after_help(None::<&str>).after_long_help(None::<&str>);
    let man = clap_mangen::Man::new(body).title(title).section("1").source(manual).manual("Kindling");
    // Omit the date, so that the pages do not differ between builds or runs.
    man.date("").render(&mut page).context("writing a manual page")?;
    let notes = command.get_after_long_help().or_else(|| command.get_after_help());
    let notes = notes.map(ToString::to_string).unwrap_or_default();
    page.extend(render_notes(&notes).into_bytes());
    Ok(page)
}

/// Renders the exit codes and examples at the end of a help text.
fn render_notes(notes: &str) -> String {
    let (exit_codes, examples) = notes.split_once(examples::HEADING).unwrap_or((notes, ""));
    let mut page = String::new();
    if !exit_codes.trim().is_empty() {
        page += &format!(".SH \"EXIT STATUS\"\n{}\n", escape(exit_codes.trim()));
    }
    if !examples.is_empty() {
        page += &format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", escape(examples.trim_matches('\n')));
    }
    page
}

/// Escapes text for roff, which treats lines that begin with a period or an apostrophe as commands.
fn escape(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
        if line.starts_with('.') { format!("\\&{line}") } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_characters() {
        let notes = "Exit code: 0 it works.\n\nExamples:\n  kindling a -b \'c\' \\\n      .d";
        let expected = ".SH \"EXIT STATUS\"\nExit code: 0 it works.\n.SH EXAMPLES\n.nf\n  kindling a \\-b \\(aqc\\(aq \\e\n      .d\n.fi\n";
        assert_eq!(render_notes(notes), expected);
        assert_eq!(render_notes(""), "");
        assert_eq!(escape(".x"), "\\&.x");
    }
}

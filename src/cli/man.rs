//! `kindling man`: the manual pages, out of the same definitions as the help texts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command};

use super::output::print_bytes;

#[derive(Debug, Args)]
pub(super) struct Man {
    /// Directory for a page of each command, such as /usr/share/man/man1; without it, the page of the program is printed
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Man {
    /// Writes pages of a command line of which nothing was set by the environment.
    pub(super) fn run(&self, mut command: Command) -> Result<()> {
        command.build();
        let Some(directory) = &self.directory else { return print_bytes(&page(&command)?) };
        fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        write(&command, directory)
    }
}

/// Writes the page of a command and of all below it that are not hidden.
fn write(command: &Command, directory: &Path) -> Result<()> {
    let path = directory.join(format!("{}.1", name(command)));
    fs::write(&path, page(command)?).with_context(|| format!("writing {}", path.display()))?;
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| write(command, directory))
}

/// What pages are called: all words of the command.
fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let title = name(command);
    let manual = concat!("Kindling ", env!("CARGO_PKG_VERSION"));
    let man =
        clap_mangen::Man::new(command.clone()).title(title).section("1").source(manual).manual("Kindling");
    // The time of the build or of the run is of no use to readers, and would make each page another one.
    man.date("").render(&mut page).context("writing a manual page")?;
    Ok(page)
}

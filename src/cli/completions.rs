//! `kindling completions`: prints completion scripts for shells.

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::output::print_bytes;

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// Shell that the script is for
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the script. `command` must not contain values from the environment.
    pub(super) fn run(&self, mut command: Command) -> Result<()> {
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        generate(self.shell, &mut command, name, &mut script);
        print_bytes(&script)
    }
}

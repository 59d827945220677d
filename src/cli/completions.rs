//! `kindling completions`: what shells complete the command line with.

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::output::print_bytes;

const HELP: &str = "\
bash: kindling completions bash > /etc/bash_completion.d/kindling
zsh:  kindling completions zsh > /usr/share/zsh/site-functions/_kindling
fish: kindling completions fish > ~/.config/fish/completions/kindling.fish";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Completions {
    /// Shell that the script is for
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the script for a command line of which nothing was set by the environment.
    pub(super) fn run(&self, mut command: Command) -> Result<()> {
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        generate(self.shell, &mut command, name, &mut script);
        print_bytes(&script)
    }
}

//! The `kindling` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    kindling::cli::run(std::env::args_os())
}

//! What the service writes about itself.

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::cli::progress::Screen;

#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub(super) struct Log {
    /// What is logged, to the standard error: error, warn, info, debug, trace, or directives such as info,sqlx=debug;
    /// the variable LOGLEVEL is read as well
    #[arg(long, env = "LOG_LEVEL", value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: String,
    /// How
    #[arg(long, env = "LOG_FORMAT", value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A line for people
    Text,
    /// A line of JSON
    Json,
}

impl Log {
    /// Begins it. What is shown beside it goes to the same screen.
    pub(super) fn begin(&self) -> Screen {
        let screen = match self.log_format {
            Format::Text => Screen::for_people(),
            Format::Json => Screen::for_programs(),
        };
        let writer = screen.clone();
        // Read before, when the options were.
        let filter = EnvFilter::try_new(&self.log_level).unwrap_or_else(|_| EnvFilter::new("info"));
        let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_env_filter(filter);
        match self.log_format {
            Format::Text => log.with_ansi(false).init(),
            Format::Json => log.json().init(),
        }
        screen
    }
}

/// The directives of a level. Above `info`, a level is about us: what libraries say there is for who asks for it by name.
fn level(text: &str) -> Result<String, String> {
    let directives = match text.to_ascii_lowercase().as_str() {
        "panic" | "fatal" | "error" => "error".to_owned(),
        "warn" | "warning" => "warn".to_owned(),
        "info" => "info".to_owned(),
        level @ ("debug" | "trace") => format!("info,kindling={level}"),
        _ if text.contains('=') => text.to_owned(),
        _ => return Err("expected error, warn, info, debug, trace, or directives".to_owned()),
    };
    match EnvFilter::try_new(&directives) {
        Ok(_) => Ok(directives),
        Err(error) => Err(format!("expected a level or directives: {error}")),
    }
}

//! The options for the log.

use std::str::FromStr;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::cli::progress::StderrScreen;

#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub(super) struct LogOptions {
    /// Level of the log on stderr: error, warn, info, debug or trace
    ///
    /// Directives such as info,sqlx=debug set the level of a module. LOGLEVEL is read as well.
    #[arg(long, env = "LOG_LEVEL", value_name = "LEVEL", default_value = "info", value_parser = parse_level)]
    log_level: String,
    /// Format of the log
    #[arg(long, env = "LOG_FORMAT", value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// Lines of text
    Text,
    /// Lines of JSON
    Json,
}

impl LogOptions {
    /// Initialises the log. Returns the stderr screen that log lines and progress bars share.
    pub(super) fn init(&self) -> Result<StderrScreen> {
        let screen = match self.log_format {
            LogFormat::Text => StderrScreen::with_bars(),
            LogFormat::Json => StderrScreen::without_bars(),
        };
        let writer = screen.clone();
        let filter = EnvFilter::try_new(&self.log_level);
        let filter = filter.with_context(|| format!("invalid log level {:?}", self.log_level))?;
        let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_env_filter(filter);
        match self.log_format {
            LogFormat::Text => log.with_ansi(false).init(),
            LogFormat::Json => log.json().init(),
        }
        Ok(screen)
    }
}

/// Returns the log directives for a level. The levels `debug` and `trace` apply only to Kindling, so that libraries do
/// not fill the log. A text with directives is returned unchanged.
fn parse_level(text: &str) -> Result<String, String> {
    let directives = match text.to_ascii_lowercase().as_str() {
        "panic" | "fatal" | "error" => "error".to_owned(),
        "warn" | "warning" => "warn".to_owned(),
        "info" => "info".to_owned(),
        level @ ("debug" | "trace") => format!("info,kindling={level}"),
        _ if text.contains('=') => text.to_owned(),
        _ => return Err("expected error, warn, info, debug, trace, or directives".to_owned()),
    };
    require_levels(&directives)?;
    match EnvFilter::try_new(&directives) {
        Ok(_) => Ok(directives),
        Err(error) => Err(format!("expected a level or directives: {error}")),
    }
}

/// Returns an error if a directive has no level. The filter would accept a misspelt level as the name of a module, and
/// enable the level `trace` for that module.
fn require_levels(directives: &str) -> Result<(), String> {
    for directive in directives.split(',') {
        let level = match directive.rsplit_once('=') {
            Some(("", _)) => "",
            Some((_, level)) => level,
            None => directive,
        };
        if level.trim().is_empty() || LevelFilter::from_str(level.trim()).is_err() {
            return Err(format!(
                "{directive:?} is neither a level nor MODULE=LEVEL; levels are error, warn, info, debug, trace, off"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_applies_to_kindling_and_directives_to_any_module() {
        for (text, directives) in [
            ("WARNING", "warn"),
            ("fatal", "error"),
            ("trace", "info,kindling=trace"),
            ("info,sqlx=debug", "info,sqlx=debug"),
            ("kindling::http=off,warn", "kindling::http=off,warn"),
            ("info,[request{method=GET}]=trace", "info,[request{method=GET}]=trace"),
        ] {
            assert_eq!(parse_level(text).unwrap(), directives, "{text}");
        }
    }

    #[test]
    fn rejects_invalid_levels() {
        for text in [
            "",
            "loud",
            "info,",
            "info sqlx",
            "kindling=loud",
            "kindling=",
            "=debug",
            "inof,kindling=debug",
            "kindling=debug,",
            "kindling=debug,,info",
            "[request=debug",
            "info,[request{method=GET}]",
        ] {
            assert!(parse_level(text).is_err(), "{text:?}");
        }
    }
}

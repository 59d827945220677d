//! The settings file of `kindling serve`. Variables override it, and the command line overrides variables.
//!
//! The file is in TOML. The keys are the names of options. The values are strings, numbers, booleans, or lists for
//! options that accept several values.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, Command};
use inventory::nearest_name;
use toml::{Table, Value};

/// The command that has a settings file.
const COMMAND: &str = super::serve::NAME;
/// The option that names the file.
const OPTION: &str = "config";
/// Maximum length of the file. A file with all options is a few kilobytes long.
const MAX_LEN: u64 = 1 << 20;

/// Makes the values in the settings file the defaults of the command's options. Does nothing without a settings file.
pub(super) fn apply_as_defaults(command: Command, arguments: &[OsString]) -> Result<Command, clap::Error> {
    let Some(path) = settings_file_path(&command, arguments) else { return Ok(command) };
    let mut table = read_table(&path).map_err(|why| file_error(&path, &why))?;
    let mut wrong = None;
    let command = command.mut_subcommand(COMMAND, |serve| {
        serve.mut_args(|option| {
            let Some(value) = option.get_long().and_then(|name| table.remove(name)) else { return option };
            match argument_texts(&value) {
                Some(texts) if option.get_long() != Some(OPTION) => option.default_values(texts),
                _ => {
                    wrong = option.get_long().map(str::to_owned);
                    option
                }
            }
        })
    });
    if let Some(name) = wrong {
        return Err(file_error(&path, &format!("`{name}`: unsupported value type")));
    }
    match table.keys().next() {
        Some(name) => Err(file_error(&path, &unknown_key_message(name, &command))),
        None => Ok(command),
    }
}

fn unknown_key_message(name: &str, command: &Command) -> String {
    let serve = command.find_subcommand(COMMAND).into_iter();
    let options = serve.flat_map(Command::get_arguments).filter_map(Arg::get_long);
    let nearest = nearest_name(name, options);
    let question = nearest.map(|option| format!("; did you mean `{option}`?")).unwrap_or_default();
    format!("`{name}` is not an option of `kindling serve`{question}")
}

/// Returns the path of the settings file if the file sets the option.
pub(super) fn file_that_sets(command: &Command, arguments: &[OsString], option: &Arg) -> Option<PathBuf> {
    let path = settings_file_path(command, arguments)?;
    let table = read_table(&path).ok()?;
    table.contains_key(option.get_long()?).then_some(path)
}

/// Returns the path of the settings file from the arguments or the environment. Ignores errors in other arguments.
fn settings_file_path(command: &Command, arguments: &[OsString]) -> Option<PathBuf> {
    if arguments.get(1).is_none_or(|name| name != COMMAND) {
        return None;
    }
    let matches = command.clone().ignore_errors(true).try_get_matches_from(arguments).ok()?;
    matches.subcommand_matches(COMMAND)?.try_get_one(OPTION).ok()?.cloned()
}

fn read_table(path: &Path) -> Result<Table, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if metadata.len() > MAX_LEN {
        return Err(format!("file is too large: {} bytes (limit {MAX_LEN})", metadata.len()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.parse().map_err(|error| toml_error(&text, &error))
}

/// Describes a syntax error. Omits the text of the line, which may contain a password.
fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map(|span| span.start).and_then(|start| text.get(..start));
    let place = start.map(|before| {
        let (line, last) = (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap_or_default());
        format!(" at line {line}, column {}", last.chars().count() + 1)
    });
    format!("not valid TOML{}: {}", place.unwrap_or_default(), error.message())
}

/// Converts a TOML value to the texts that the command line would contain.
fn argument_texts(value: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(is_set) => Some(is_set.to_string()),
        _ => None,
    };
    match value {
        Value::Array(values) => values.iter().map(text).collect(),
        value => text(value).map(|text| vec![text]),
    }
}

fn file_error(path: &Path, why: &str) -> clap::Error {
    clap::Error::raw(
        ErrorKind::ValueValidation,
        format!("settings file {}: {}\n", path.display(), why.trim_end()),
    )
}

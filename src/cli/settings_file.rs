//! Options of `kindling serve` in a file: they count less than variables, and those less than what the command line says.
//!
//! The file is TOML. Its keys are the names of the options; values are texts, numbers, `true` or `false`, and lists where an
//! option takes several.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, Command};
use toml::{Table, Value};

use super::environment;

/// The command whose options these are.
const COMMAND: &str = "serve";
/// The option that names the file.
const OPTION: &str = "--config";
/// The variable that does.
const VARIABLE: &str = "KINDLING_CONFIG";
/// A file of all options has some kilobytes.
const MAX_LEN: u64 = 1 << 20;

/// Gives the options of the command what a file says, if one is named.
pub(super) fn resolve(command: Command, arguments: &[OsString]) -> Result<Command, clap::Error> {
    let Some(path) = named(arguments) else { return Ok(command) };
    let mut table = read(&path).map_err(|why| failed(&path, &why))?;
    let mut wrong = None;
    let command = command.mut_subcommand(COMMAND, |serve| {
        serve.mut_args(|option| {
            let Some(value) = option.get_long().and_then(|name| table.remove(name)) else { return option };
            match texts(&value) {
                Some(texts) if option.get_long() != Some("config") => option.default_values(texts),
                _ => {
                    wrong = option.get_long().map(str::to_owned);
                    option
                }
            }
        })
    });
    if let Some(name) = wrong {
        return Err(failed(&path, &format!("`{name}` has a value that no option has")));
    }
    match table.keys().next() {
        Some(name) => Err(failed(&path, &format!("`{name}` is no option of `kindling serve`"))),
        None => Ok(command),
    }
}

/// Whether a file says what an option is, and which.
pub(super) fn source(arguments: &[OsString], option: &Arg) -> Option<PathBuf> {
    let path = named(arguments)?;
    let table = read(&path).ok()?;
    table.contains_key(option.get_long()?).then_some(path)
}

/// The file that the arguments name, or the environment.
fn named(arguments: &[OsString]) -> Option<PathBuf> {
    if arguments.get(1).map(OsString::as_os_str) != Some(OsStr::new(COMMAND)) {
        return None;
    }
    let mut rest = arguments.iter().skip(2).take_while(|argument| *argument != "--");
    while let Some(argument) = rest.next() {
        if argument == OPTION {
            return rest.next().map(PathBuf::from);
        }
        if let Some(path) = argument.to_str().and_then(|text| text.strip_prefix("--config=")) {
            return Some(path.into());
        }
    }
    environment::variable(VARIABLE).map(PathBuf::from)
}

fn read(path: &Path) -> Result<Table, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if metadata.len() > MAX_LEN {
        return Err(format!("it has {} bytes, and no more than {MAX_LEN} are read", metadata.len()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.parse().map_err(|error: toml::de::Error| error.to_string())
}

/// What an option would have on the command line.
fn texts(value: &Value) -> Option<Vec<String>> {
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

fn failed(path: &Path, why: &str) -> clap::Error {
    clap::Error::raw(
        ErrorKind::ValueValidation,
        format!("the settings of {}: {}\n", path.display(), why.trim_end()),
    )
}

//! The environment variables that set options.
//!
//! Variables have the names that the Assisted Installer uses. A variable may have the prefix `MYAPP_`. If both forms
//! are set, the one with the prefix takes precedence. An empty variable counts as not set, because deployment templates
//! leave many variables empty. The exceptions are the variables of `serve` that control access, encryption or
//! integrity: for them, an empty value is an error.

use std::env;
use std::ffi::{OsStr, OsString};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};

use super::{serve, settings_file};

/// The optional prefix of the Assisted Installer's variables.
pub(super) const PREFIX: &str = "MYAPP_";

/// Variables and their alternative names.
pub(super) const OTHER_NAMES: [(&str, &str); 4] = [
    ("ASSISTED_SERVICE_API_TRUSTED_CA_FILE", "HTTPS_CA_FILE"),
    ("KINDLING_IMAGES_DIR", "DATA_DIR"),
    ("LOG_LEVEL", "LOGLEVEL"),
    ("OS_IMAGES", "RHCOS_VERSIONS"),
];

/// Returns the value of a variable, with or without the prefix. An empty variable counts as not set.
pub(super) fn variable(name: &str) -> Option<OsString> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    set(&format!("{PREFIX}{name}")).or_else(|| set(name))
}

/// Returns the form of a variable's name (prefixed, plain or alternative) that is set to `value`.
pub(super) fn variable_with_value(name: &str, value: Option<&OsStr>) -> Option<String> {
    let others = OTHER_NAMES.iter().filter(|(canonical, _)| *canonical == name).map(|(_, other)| *other);
    let names =
        [name].into_iter().chain(others).flat_map(|name| [format!("{PREFIX}{name}"), name.to_owned()]);
    let value = value?;
    names.into_iter().find(|name| env::var_os(name).is_some_and(|current| current == value))
}

/// Selects, for each option of a command and of its subcommands, the form of its variable that clap reads.
pub(super) fn set_variables(command: Command) -> Command {
    let is_serve = command.get_name() == serve::NAME;
    command.mut_args(|option| set_option_variable(option, is_serve)).mut_subcommands(set_variables)
}

fn set_option_variable(option: Arg, is_serve: bool) -> Arg {
    let Some(name) = option.get_env().and_then(OsStr::to_str).map(str::to_owned) else { return option };
    let may_be_empty = !(is_serve && serve::is_protected(&name));
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !(may_be_empty && value.is_empty()));
    let option = option.hide_env_values(true);
    let others = OTHER_NAMES.iter().filter(|(canonical, _)| *canonical == name).map(|(_, other)| *other);
    for name in [name.as_str()].into_iter().chain(others) {
        let prefixed = format!("{PREFIX}{name}");
        if is_set(&prefixed) {
            return option.env(prefixed);
        }
        if is_set(name) {
            return option.env(name.to_owned());
        }
    }
    match env::var_os(&name) {
        Some(_) => option.env(None::<&'static str>),
        None => option,
    }
}

/// Adds the source of an invalid value to an error, if the value is from a variable or the settings file.
pub(super) fn explain_error(
    mut error: clap::Error,
    command: &Command,
    arguments: &[OsString],
) -> clap::Error {
    let Some(ContextValue::String(usage)) = error.get(ContextKind::InvalidArg) else { return error };
    let subcommand = arguments.get(1).and_then(|name| command.find_subcommand(name)).unwrap_or(command);
    let Some(option) = find_option(subcommand, usage) else { return error };
    let Some(name) = option.get_env().and_then(OsStr::to_str) else { return error };
    let Some(long) = option.get_long().map(|name| format!("--{name}")) else { return error };
    let is_given = |argument: &OsString| argument.to_str().is_some_and(|text| text.starts_with(&long));
    if let Some(value) = env::var_os(name)
        && !arguments.iter().any(is_given)
    {
        let tip = match value.is_empty() {
            true => format!("the variable {name} is set but empty; unset it, or set a value"),
            false => format!("the value comes from the variable {name}"),
        };
        let tip = StyledStr::from(tip);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    } else if let Some(path) = settings_file::file_that_sets(command, arguments, &option)
        && !arguments.iter().any(is_given)
    {
        let tip = StyledStr::from(format!("the value comes from {}", path.display()));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// Returns the option with a usage text such as `--url <URL>`.
fn find_option(command: &Command, usage: &str) -> Option<Arg> {
    let name = usage.strip_prefix("--")?.split([' ', '=', '[']).next()?;
    let own = command.get_arguments().find(|option| option.get_long() == Some(name)).cloned();
    own.or_else(|| command.get_subcommands().find_map(|command| find_option(command, usage)))
}

//! Options that are variables of the environment as well.
//!
//! Variables have the names that the Assisted Installer gives them. Each may also be set with a prefix, which then counts
//! more; one that is set to nothing counts as not set, since templates of deployments leave many so.

use std::env;
use std::ffi::{OsStr, OsString};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};

use super::settings_file;

/// What variables that are meant for the Assisted Installer alone begin with.
const PREFIX: &str = "MYAPP_";

/// Variables that have had other names.
const OTHER_NAMES: [(&str, &str); 4] = [
    ("ASSISTED_SERVICE_API_TRUSTED_CA_FILE", "HTTPS_CA_FILE"),
    ("KINDLING_IMAGES_DIR", "DATA_DIR"),
    ("LOG_LEVEL", "LOGLEVEL"),
    ("OS_IMAGES", "RHCOS_VERSIONS"),
];

/// The value of a variable.
pub(super) fn variable(name: &str) -> Option<OsString> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    set(&format!("{PREFIX}{name}")).or_else(|| set(name))
}

/// The variable, under any of its names, that has this value.
pub(super) fn variable_with(name: &str, value: Option<&OsStr>) -> Option<String> {
    let others = OTHER_NAMES.iter().filter(|(known, _)| *known == name).map(|(_, other)| *other);
    let names =
        [name].into_iter().chain(others).flat_map(|name| [format!("{PREFIX}{name}"), name.to_owned()]);
    let value = value?;
    names.into_iter().find(|name| env::var_os(name).is_some_and(|found| found == value))
}

/// Gives the options of a command, and of all below it, the variables that are set.
pub(super) fn resolve(command: Command) -> Command {
    command.mut_args(resolve_option).mut_subcommands(resolve)
}

fn resolve_option(option: Arg) -> Arg {
    let Some(name) = option.get_env().and_then(OsStr::to_str).map(str::to_owned) else { return option };
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let option = option.hide_env_values(true);
    let others = OTHER_NAMES.iter().filter(|(known, _)| *known == name).map(|(_, other)| *other);
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

/// Adds to the error of a value which variable the value comes from, if it comes from one.
pub(super) fn explain(mut error: clap::Error, command: &Command, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(usage)) = error.get(ContextKind::InvalidArg) else { return error };
    let called = arguments.get(1).and_then(|name| command.find_subcommand(name)).unwrap_or(command);
    let Some(option) = find(called, usage) else { return error };
    let Some(name) = option.get_env().and_then(OsStr::to_str) else { return error };
    let long = format!("--{}", option.get_long().unwrap_or_default());
    let is_given = |argument: &OsString| argument.to_str().is_some_and(|text| text.starts_with(&long));
    if env::var_os(name).is_some() && !arguments.iter().any(is_given) {
        let tip = StyledStr::from(format!("the value is that of the variable {name}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    } else if let Some(path) = settings_file::source(arguments, &option)
        && !arguments.iter().any(is_given)
    {
        let tip = StyledStr::from(format!("the value is that of {}", path.display()));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The option that an error means, by its usage.
fn find(command: &Command, usage: &str) -> Option<Arg> {
    let name = usage.strip_prefix("--")?.split([' ', '=', '[']).next()?;
    let own = command.get_arguments().find(|option| option.get_long() == Some(name)).cloned();
    own.or_else(|| command.get_subcommands().find_map(|command| find(command, usage)))
}

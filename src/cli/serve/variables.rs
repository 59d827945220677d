//! Checks the environment of `serve` for misspelt variables, which would have no effect.
//!
//! A misspelt variable leaves its option at the default value. If the option controls access, encryption or integrity,
//! the service would run with less protection than intended. Therefore such a variable is an error, and any other one a
//! warning.

use std::env;
use std::ffi::OsStr;

use anyhow::{Result, bail};
use clap::Args as _;

use super::Serve;
use crate::cli::auth::{PRIVATE, PUBLIC};
use crate::cli::environment::{OTHER_NAMES, PREFIX};

/// The prefix of variables that only Kindling uses.
const OWN_PREFIX: &str = "KINDLING_";

/// The variables that control access, encryption or integrity. They must not be empty or misspelt.
const PROTECTED: [&str; 31] = [
    "ALLOWED_DOMAINS",
    "ASSISTED_SERVICE_API_TRUSTED_CA_FILE",
    "ASSISTED_SERVICE_HOST",
    "ASSISTED_SERVICE_SCHEME",
    "AUTH_TYPE",
    "DB_SSLMODE",
    "DB_SSLROOTCERT",
    PRIVATE,
    PUBLIC,
    "HTTPS_CA_FILE",
    "HTTPS_CERT_FILE",
    "HTTPS_KEY_FILE",
    "INSECURE_SKIP_VERIFY",
    "KINDLING_ADDED_IMAGE_SERVERS",
    "KINDLING_ALLOWED_HOSTS",
    "KINDLING_ALLOW_OPEN_ACCESS",
    // The settings file can set the options of the other protected variables.
    "KINDLING_CONFIG",
    // The URL controls the encryption of connections.
    "KINDLING_DATABASE_URL",
    "KINDLING_EC_PRIVATE_KEY_FILE",
    "KINDLING_EC_PUBLIC_KEY_FILE",
    // An external inventory authorizes downloads.
    "KINDLING_INVENTORY_URL",
    "KINDLING_KUBE_NAMESPACES",
    "KINDLING_KUBE_WEBHOOKS_CA_FILE",
    "KINDLING_KUBE_WEBHOOKS_CERT_FILE",
    "KINDLING_KUBE_WEBHOOKS_KEY_FILE",
    "KINDLING_LISTEN_TLS",
    "OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE",
    "SERVICE_CA_CERT_PATH",
    "SKIP_CERT_VERIFICATION",
    "TLS_CIPHER_SUITES",
    "TLS_MIN_VERSION",
];

/// The variables of other commands and of the project's tests and CI, which a server may inherit.
const OF_OTHERS: [&str; 19] = [
    "KINDLING_ALL_IMAGES",
    "KINDLING_BOOT_FOREIGN",
    "KINDLING_BOOT_KERNEL",
    "KINDLING_BOOT_MATRIX",
    "KINDLING_BOOT_TRACES",
    "KINDLING_CLIENTS",
    "KINDLING_HUB",
    "KINDLING_INSTALLER_FIXTURES",
    "KINDLING_INSTALLER_SUITE",
    "KINDLING_KILLS",
    "KINDLING_LIBRARY_TASK",
    "KINDLING_REQUIRE_TOOLS",
    "KINDLING_TEST_POSTGRES",
    "KINDLING_TEST_POSTGRES_CA",
    "KINDLING_TEST_S3",
    "KINDLING_TEST_TASK",
    "KINDLING_TOKEN",
    "KINDLING_TOOLS",
    "KINDLING_URL",
];

/// Returns `true` if the option of this variable controls access, encryption or integrity.
pub(in crate::cli) fn is_protected(name: &str) -> bool {
    PROTECTED.contains(&name)
}

/// Logs a warning for each variable that is probably misspelt.
///
/// # Errors
///
/// Returns an error if a protected variable is probably misspelt, or if the variable of a key is empty.
pub(super) fn check_environment() -> Result<()> {
    let variables = KnownVariables::of_serve();
    let mut errors = Vec::new();
    for (name, value) in env::vars_os() {
        let name = name.to_string_lossy();
        match variables.classify(&name) {
            // Options reject empty values themselves, but the text of a key has no option.
            VariableUse::Known if is_empty_key(&name, &value) => {
                errors.push(format!("the variable {name} is set but empty; unset it, or set a key"));
            }
            VariableUse::Known | VariableUse::Other => {}
            VariableUse::Misspelt { meant } => {
                tracing::warn!("the variable {name} has no effect; did you mean {meant}?");
            }
            VariableUse::Dangerous { meant } => errors.push(format!(
                "the variable {name} has no effect; use {meant}, or unset it: a wrong name of this setting could turn \
                 off protection"
            )),
        }
    }
    if errors.is_empty() { Ok(()) } else { bail!("{}", errors.join("\n")) }
}

fn is_empty_key(name: &str, value: &OsStr) -> bool {
    [PRIVATE, PUBLIC].contains(&name.strip_prefix(PREFIX).unwrap_or(name)) && value.is_empty()
}

/// The names of all variables that `serve` reads.
struct KnownVariables(Vec<String>);

/// The classification of a variable by its name.
#[derive(Debug, PartialEq, Eq)]
enum VariableUse<'a> {
    /// Read by this program.
    Known,
    /// For another program.
    Other,
    /// Read by no program, with a name that is similar to `meant`.
    Misspelt { meant: &'a str },
    /// Read by no program, with a name that is similar to the protected variable `meant`.
    Dangerous { meant: &'a str },
}

impl KnownVariables {
    fn of_serve() -> Self {
        let command = Serve::augment_args(clap::Command::new(super::NAME));
        let options = command.get_arguments().filter_map(clap::Arg::get_env);
        let options = options.filter_map(OsStr::to_str).map(str::to_owned);
        let others = OTHER_NAMES.iter().map(|(_, name)| *name).chain([PRIVATE, PUBLIC]);
        Self(options.chain(others.map(str::to_owned)).collect())
    }

    fn classify(&self, name: &str) -> VariableUse<'_> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        if self.0.iter().any(|candidate| candidate == name) {
            return VariableUse::Known;
        }
        let is_own = name.starts_with(OWN_PREFIX);
        if is_own && (OF_OTHERS.contains(&name) || is_service_link(name)) {
            return VariableUse::Other;
        }
        let nearest = |is_candidate: fn(&str) -> bool| {
            let candidates = self.0.iter().map(String::as_str).filter(|candidate| is_candidate(candidate));
            // Of two names at the same distance, prefer a name with the prefix `KINDLING_`.
            let nearest = candidates
                .min_by_key(|candidate| (distance(name, candidate), !candidate.starts_with(OWN_PREFIX)));
            nearest.map(|candidate| (distance(name, candidate), candidate))
        };
        match (nearest(is_protected), nearest(|_| true)) {
            (Some((..=1, meant)), _) if is_own => VariableUse::Dangerous { meant },
            (Some((..=1, meant)), _) => VariableUse::Misspelt { meant },
            (_, Some((_, meant))) if is_own => VariableUse::Misspelt { meant },
            _ => VariableUse::Other,
        }
    }
}

/// Returns the edit distance between two names. Ignores a prefix `KINDLING_` of `name` if `other` does not have it.
fn distance(name: &str, other: &str) -> usize {
    let name = match other.starts_with(OWN_PREFIX) {
        true => name,
        false => name.strip_prefix(OWN_PREFIX).unwrap_or(name),
    };
    strsim::osa_distance(name, other)
}

/// Returns `true` if Kubernetes sets this variable in pods because of a Service named `kindling`.
fn is_service_link(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(OWN_PREFIX) else { return false };
    if matches!(rest, "PORT" | "SERVICE_HOST" | "SERVICE_PORT") || rest.starts_with("SERVICE_PORT_") {
        return true;
    }
    let Some((port, protocol)) = rest.strip_prefix("PORT_").and_then(|rest| rest.split_once('_')) else {
        return false;
    };
    let protocol =
        ["_PROTO", "_PORT", "_ADDR"].iter().find_map(|end| protocol.strip_suffix(end)).unwrap_or(protocol);
    port.parse::<u16>().is_ok() && ["TCP", "UDP", "SCTP"].contains(&protocol)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn protected_variables_are_variables_of_serve() {
        let variables = KnownVariables::of_serve();
        for name in PROTECTED {
            assert_eq!(variables.classify(name), VariableUse::Known, "{name}");
        }
    }

    #[test]
    fn variable_similar_to_a_protected_one_is_dangerous() {
        let variables = KnownVariables::of_serve();
        for (name, meant) in [
            ("KINDLING_AUTH_TYPE", "AUTH_TYPE"),
            ("MYAPP_KINDLING_AUTH_TYPE", "AUTH_TYPE"),
            ("KINDLING_AUTHTYPE", "AUTH_TYPE"),
            ("KINDLING_DB_SSLMODE", "DB_SSLMODE"),
            ("KINDLING_HTTPS_KEY_FILE", "HTTPS_KEY_FILE"),
            ("KINDLING_EC_PRIVATE_KEY_PEM", "EC_PRIVATE_KEY_PEM"),
            ("KINDLING_ALLOWED_HOST", "KINDLING_ALLOWED_HOSTS"),
            ("KINDLING_ALLWOED_HOSTS", "KINDLING_ALLOWED_HOSTS"),
            ("KINDLING_ALLOWED_DOMAINS", "ALLOWED_DOMAINS"),
            ("KINDLING_CONFG", "KINDLING_CONFIG"),
            ("KINDLING_LISTEN_TSL", "KINDLING_LISTEN_TLS"),
        ] {
            assert_eq!(variables.classify(name), VariableUse::Dangerous { meant }, "{name}");
        }
    }

    #[test]
    fn other_unknown_variables_are_misspelt() {
        let variables = KnownVariables::of_serve();
        for (name, meant) in [
            ("KINDLING_DATADIR", "KINDLING_DATA_DIR"),
            ("KINDLING_OS_IMAGES", "OS_IMAGES"),
            ("KINDLING_LISTEN_PORT", "LISTEN_PORT"),
            ("KINDLING_LISTENER", "KINDLING_LISTEN"),
            // Other programs may read variables without the prefix `KINDLING_`, so such variables are never dangerous.
            ("DB_SSL_MODE", "DB_SSLMODE"),
            ("AUTHTYPE", "AUTH_TYPE"),
        ] {
            assert_eq!(variables.classify(name), VariableUse::Misspelt { meant }, "{name}");
        }
        for name in ["PATH", "DATABASE_URL", "SSL_CERT_FILE", "HTTPS_PROXY", "MYAPP_NAME"] {
            assert_eq!(variables.classify(name), VariableUse::Other, "{name}");
        }
    }

    #[test]
    fn variables_of_a_kubernetes_service_are_ignored() {
        let variables = KnownVariables::of_serve();
        for name in [
            "KINDLING_PORT",
            "KINDLING_SERVICE_HOST",
            "KINDLING_SERVICE_PORT",
            "KINDLING_SERVICE_PORT_HTTP",
            "KINDLING_PORT_8090_TCP",
            "KINDLING_PORT_8090_TCP_PROTO",
            "KINDLING_PORT_8090_TCP_PORT",
            "KINDLING_PORT_8090_TCP_ADDR",
            "KINDLING_PORT_69_UDP",
            "KINDLING_PORT_69_UDP_ADDR",
        ] {
            assert_eq!(variables.classify(name), VariableUse::Other, "{name}");
        }
        for name in ["KINDLING_PORTS", "KINDLING_PORT_HTTP_TCP", "KINDLING_PORT_8090", "KINDLING_SERVICE_URL"]
        {
            assert!(matches!(variables.classify(name), VariableUse::Misspelt { .. }), "{name}");
        }
    }

    fn collect_names(path: &Path, names: &mut BTreeSet<String>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                collect_names(&entry.unwrap().path(), names);
            }
        } else if let Ok(text) = fs::read_to_string(path) {
            let is_part = |byte: char| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == '_';
            let words = text.split(|character: char| !is_part(character));
            names.extend(words.filter(|word| word.starts_with(OWN_PREFIX)).map(str::to_owned));
        }
    }

    /// Does not search the folders with tests of this check, which contain misspelt variables on purpose.
    #[test]
    fn variables_of_tests_and_packages_are_known() {
        let variables = KnownVariables::of_serve();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut names = BTreeSet::new();
        for folder in [
            ".ci",
            "benches",
            "fixtures/src",
            "fixtures/tests",
            "packaging",
            "tests/boot",
            "tests/clients",
            "tests/doctor",
            "tests/external",
            "tests/http",
            "tests/images",
            "tests/installer_oracle",
            "tests/inventory",
            "tests/library",
            "tests/page",
            "tests/support",
        ] {
            collect_names(&root.join(folder), &mut names);
        }
        assert!(names.len() > 20, "{names:?}");
        for name in names.iter().filter(|name| !name.ends_with('_')) {
            let class = variables.classify(name);
            assert!(matches!(class, VariableUse::Known | VariableUse::Other), "{name}: {class:?}");
        }
    }
}

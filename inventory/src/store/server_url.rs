//! Checks the parameters in the URL of a PostgreSQL server.
//!
//! The driver ignores unknown parameters and logs their values. A misspelt `sslmode` would turn off encryption, and a
//! misspelt `password` would appear in the log. The driver also ignores an invalid `PGSSLMODE`. So the store refuses
//! unknown parameters and invalid values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env;

use percent_encoding::percent_decode_str;

use crate::nearest_name;

/// A parameter that the driver supports, with its libpq name and its aliases.
struct UrlParameter {
    name: &'static str,
    others: &'static [&'static str],
}

const fn parameter(name: &'static str, others: &'static [&'static str]) -> UrlParameter {
    UrlParameter { name, others }
}

const PARAMETERS: [UrlParameter; 12] = [
    parameter(SSLMODE, &["ssl-mode"]),
    parameter(SSLROOTCERT, &["ssl-root-cert", "ssl-ca"]),
    parameter("sslcert", &["ssl-cert"]),
    parameter("sslkey", &["ssl-key"]),
    parameter("statement-cache-capacity", &[]),
    parameter("host", &[]),
    parameter("hostaddr", &[]),
    parameter("port", &[]),
    parameter("dbname", &[]),
    parameter("user", &[]),
    parameter("password", &[]),
    parameter("application_name", &[]),
];
/// Parameters that may be repeated: `options` and `options[NAME]`.
const OPTIONS: &str = "options";

const SSLMODE: &str = "sslmode";
const SSLROOTCERT: &str = "sslrootcert";
/// The valid values of `sslmode`.
const MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
/// The values of `sslmode` with which `sslrootcert` has an effect.
const VERIFYING: [&str; 2] = ["verify-ca", "verify-full"];

/// Checks the URL of a server, and the libpq environment variables that complete it.
///
/// # Errors
///
/// Returns the reason if the URL is refused. The reason contains no value from the URL, because an unescaped `?` or `&`
/// may be part of a password. For the same reason, it contains only parameter names that are similar to a supported
/// name.
pub(super) fn check(url: &str) -> Result<(), String> {
    if url.contains('#') {
        return Err("it contains `#`, which ends a URL; write %23 in a password".to_owned());
    }
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut parameters = read_parameters(query)?;
    for (name, variable) in [(SSLMODE, "PGSSLMODE"), (SSLROOTCERT, "PGSSLROOTCERT")] {
        if !parameters.contains_key(name)
            && let Some(value) = env::var_os(variable)
        {
            parameters.insert(name, (variable, value.to_string_lossy().into_owned().into()));
        }
    }
    check_encryption(&parameters)
}

/// The parameter values, keyed by libpq name. Each value has its source for messages: the name of a parameter or of an
/// environment variable.
type Parameters<'a> = BTreeMap<&'static str, (&'static str, Cow<'a, str>)>;

fn read_parameters(query: &str) -> Result<Parameters<'_>, String> {
    let mut parameters = Parameters::new();
    for (index, pair) in query.split('&').enumerate().filter(|(_, pair)| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name == OPTIONS || name.strip_prefix(OPTIONS).is_some_and(|rest| rest.starts_with('[')) {
            continue;
        }
        let is_known = |supported: &&UrlParameter| supported.name == name || supported.others.contains(&name);
        let supported = PARAMETERS.iter().find(is_known).ok_or_else(|| unknown_parameter(index, name))?;
        let value = percent_decode_str(value).decode_utf8_lossy();
        if parameters.insert(supported.name, (supported.name, value)).is_some() {
            return Err(format!("the parameter `{}` is set twice", supported.name));
        }
    }
    Ok(parameters)
}

/// Describes an unknown parameter. Includes its name only if a supported parameter has a similar name.
fn unknown_parameter(index: usize, name: &str) -> String {
    match nearest_name(name, PARAMETERS.iter().map(|supported| supported.name)) {
        Some(supported) => format!("unknown parameter `{name}`; did you mean `{supported}`?"),
        _ => {
            let supported: Vec<_> =
                PARAMETERS.iter().map(|supported| supported.name).chain([OPTIONS]).collect();
            let (number, supported) = (index.saturating_add(1), supported.join(", "));
            format!(
                "its parameter {number} is unknown; known parameters are {supported}; write %3F and %26 in a password"
            )
        }
    }
}

fn check_encryption(parameters: &Parameters<'_>) -> Result<(), String> {
    let mode = parameters.get(SSLMODE);
    if let Some((source, value)) = mode
        && !MODES.contains(&value.as_ref())
    {
        return Err(format!("{source} must be one of {}", MODES.join(", ")));
    }
    let mode = mode.map_or("prefer", |(_, mode)| mode.as_ref());
    match parameters.get(SSLROOTCERT) {
        Some((source, file)) if file.is_empty() => Err(format!("{source} is empty")),
        // The driver ignores `sslrootcert` with the other modes, although libpq would verify the server certificate
        // with `require`.
        Some((source @ SSLROOTCERT, _)) if !VERIFYING.contains(&mode) => {
            Err(format!("{source} has an effect only with sslmode=verify-ca or sslmode=verify-full"))
        }
        None if mode == "verify-ca" => {
            Err("sslmode=verify-ca accepts any server with a public certificate; set sslrootcert, or use \
             sslmode=verify-full"
                .to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parameters_are_accepted() {
        for query in [
            "",
            "?",
            "?sslmode=require",
            "?ssl-mode=verify-full&ssl-ca=ca.pem",
            "?sslmode=verify-ca&sslrootcert=ca%26.pem&sslcert=a&sslkey=b",
            "?host=/run/postgresql&port=5433&dbname=x&user=y&password=z&application_name=k",
            "?options=-c%20a=b&options=-c%20c=d&options[search_path]=x&statement-cache-capacity=0",
        ] {
            assert_eq!(check(&format!("postgres://me:secret@db/x{query}")), Ok(()), "{query}");
        }
    }

    #[test]
    fn rejects_unknown_empty_and_contradictory_parameters() {
        for (query, reason) in [
            ("ssl_mode=require", "unknown parameter `ssl_mode`; did you mean `sslmode`?"),
            ("sslmod=require", "unknown parameter `sslmod`; did you mean `sslmode`?"),
            ("SSLMODE=require", "unknown parameter `SSLMODE`; did you mean `sslmode`?"),
            (
                "sslmode=requir",
                "sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full",
            ),
            ("sslmode=Require", "sslmode must be one of"),
            ("sslmode=", "sslmode must be one of"),
            ("sslmode", "sslmode must be one of"),
            ("sslmode=require&ssl-mode=disable", "the parameter `sslmode` is set twice"),
            ("sslmode=verify-full&sslrootcert=", "sslrootcert is empty"),
            ("sslrootcert=ca.pem", "sslrootcert has an effect only with sslmode=verify-ca"),
            ("sslmode=require&sslrootcert=ca.pem", "sslrootcert has an effect only with sslmode=verify-ca"),
            ("sslmode=verify-ca", "sslmode=verify-ca accepts any server"),
            ("connect_timeout=10", "parameter 1 is unknown"),
            ("user=a&target_session_attrs=any", "parameter 2 is unknown"),
        ] {
            let error = check(&format!("postgres://me:secret@db/x?{query}")).unwrap_err();
            assert!(error.contains(reason), "{query}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn messages_contain_no_values() {
        for (url, shown) in [
            ("postgres://db/x?passwrd=hidden", "did you mean `password`?"),
            ("postgres://db/x?pasword=hidden&passwort=hidden", "did you mean `password`?"),
            ("postgres://db/x?token=hidden", "parameter 1 is unknown"),
            ("postgres://db/x?hidden", "parameter 1 is unknown"),
            ("postgres://me:a?hidden@db/x", "write %3F and %26 in a password"),
            ("postgres://db/x?password=a&hidden", "write %3F and %26 in a password"),
            ("postgres://me:a#hidden@db/x?sslmode=require", "write %23 in a password"),
            ("postgres://db/x?sslmode=hidden", "must be one of"),
        ] {
            let error = check(url).unwrap_err();
            assert!(error.contains(shown) && !error.contains("hidden"), "{url}: {error}");
        }
    }
}

//! The location of a database: a SQLite file or a PostgreSQL server.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::{StoreError, server_url};

/// The location of a database, as parsed from its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DatabaseLocation {
    /// A SQLite database file.
    File {
        /// The decoded path in the URL.
        path: PathBuf,
        /// Whether to create the file if it does not exist.
        create: bool,
    },
    /// The URL of a PostgreSQL database, with its password.
    Server(String),
}

impl DatabaseLocation {
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        match scheme {
            "postgres" | "postgresql" => {
                server_url::check(url).map_err(|reason| StoreError::Url { reason })?;
                Ok(Self::Server(url.to_owned()))
            }
            "sqlite" => parse_file_location(rest.strip_prefix("//").unwrap_or(rest)),
            _ => Err(StoreError::UnknownScheme { given: scheme_only(scheme) }),
        }
    }
}

/// Returns the scheme for error messages, or a placeholder if it may be part of a password.
fn scheme_only(scheme: &str) -> String {
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if is_scheme && !scheme.is_empty() { format!("{scheme}:") } else { "something else".to_owned() }
}

fn parse_file_location(rest: &str) -> Result<DatabaseLocation, StoreError> {
    let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    if path == ":memory:" || parameters.split('&').any(|parameter| parameter == "mode=memory") {
        return Err(StoreError::Memory);
    }
    let create = match parameters {
        "" | "mode=rwc" => true,
        "mode=rw" => false,
        _ => return Err(StoreError::FileUrl),
    };
    let path = decode_path(path).filter(|path| !path.as_os_str().is_empty()).ok_or(StoreError::FileUrl)?;
    Ok(DatabaseLocation::File { path, create })
}

/// Decodes the percent-encoded path of a URL. Returns `None` if an escape is invalid or decodes to NUL.
fn decode_path(text: &str) -> Option<PathBuf> {
    // Invalid escapes are rejected here, because the decoder would leave them unchanged and the path would name another
    // file.
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    (!bytes.contains(&0)).then(|| std::ffi::OsString::from_vec(bytes).into())
}

/// Returns the scheme, host, port and path of a server URL for messages.
pub(super) fn without_password(url: &str) -> String {
    public_part(url).unwrap_or_else(|| "at this URL".to_owned())
}

/// Returns the parts of a URL that contain no password. Returns `None` if a part has invalid characters, because it may
/// belong to a password.
fn public_part(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    // The query is split off first, because it may also contain `@`, which ends the password in the address.
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = address.split_at(address.find('/').unwrap_or(address.len()));
    let (_, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let is_address = host.starts_with('[') && host.ends_with(']') || !host.contains(':');
    let is_host = is_address && host.bytes().all(|byte| is_unreserved(byte) || b"[]:%".contains(&byte));
    let is_path = path.bytes().all(|byte| is_unreserved(byte) || b"/%".contains(&byte));
    let is_query = query.is_empty() || query.split('&').all(|parameter| parameter.contains('='));
    (is_host && is_path && is_query && port.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| format!("{scheme}://{authority}{path}"))
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

    use super::*;

    fn refused(url: &str) -> String {
        DatabaseLocation::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn file_url_is_valid_with_and_without_slashes() {
        let file = |path: &str, create| DatabaseLocation::File { path: path.into(), create };
        assert_eq!(DatabaseLocation::parse("sqlite:kindling.db").unwrap(), file("kindling.db", true));
        assert_eq!(DatabaseLocation::parse("sqlite://a/b.db?mode=rwc").unwrap(), file("a/b.db", true));
        assert_eq!(
            DatabaseLocation::parse("sqlite:///a%20b%3f.db?mode=rw").unwrap(),
            file("/a b?.db", false)
        );
    }

    #[test]
    fn every_byte_of_a_path_survives_a_url() {
        let bytes: Vec<u8> = (1..=u8::MAX).collect();
        let url = format!("sqlite:{}", percent_encode(&bytes, NON_ALPHANUMERIC));
        let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
        assert_eq!(DatabaseLocation::parse(&url).unwrap(), DatabaseLocation::File { path, create: true });
    }

    #[test]
    fn rejects_invalid_escapes_in_a_path() {
        for path in ["%", "a%", "%4", "%g0", "%0g", "%%41", "%41%", "%4%41", "% 1", "%+1", "%é", "a%00"] {
            assert_eq!(decode_path(path), None, "{path}");
        }
        assert_eq!(decode_path("%41%e9%2F").unwrap().as_os_str().as_bytes(), b"A\xe9/");
    }

    #[test]
    fn rejects_memory_databases_and_unknown_parameters() {
        for url in [
            "sqlite::memory:",
            "sqlite://:memory:",
            "sqlite:x?mode=memory",
            "sqlite:x?cache=shared&mode=memory",
        ] {
            assert!(refused(url).contains("memory"), "{url}");
        }
        for url in
            ["sqlite:", "sqlite://?mode=rwc", "sqlite:x?mode=ro", "sqlite:%zz", "sqlite:%0", "sqlite:a%00b"]
        {
            assert!(refused(url).contains("mode=rwc"), "{url}");
        }
    }

    #[test]
    fn rejects_other_schemes_without_showing_passwords() {
        for url in ["mysql://me:hidden@db/x", "hidden", "me hidden:x@y", "://me:hidden@db"] {
            let message = refused(url);
            assert!(message.contains("`sqlite:`") && message.contains("`postgres:`"), "{message}");
            assert!(!message.contains("hidden"), "{message}");
        }
        assert!(refused("mysql://me@db").contains("mysql:"));
    }

    #[test]
    fn url_for_messages_has_no_password() {
        assert_eq!(without_password("postgres://me:a@b@db:5432/x?password=c"), "postgres://db:5432/x");
        for (url, shown) in [
            ("postgres://127.0.0.1/db?user=x&password=abc@hidden", "postgres://127.0.0.1/db"),
            ("postgres://me:hid?den@db/x", "at this URL"),
            ("postgres://me:1?hidden@db/x", "at this URL"),
            ("postgres://me:hid/den@db/x", "at this URL"),
            ("postgres://me:1/hidden@db/x", "at this URL"),
            ("postgres://me:hid#den@db/x", "postgres://db/x"),
            ("postgres://hidden:a:b", "at this URL"),
            ("postgres://db#hidden", "at this URL"),
            ("postgres://db/x#hidden", "at this URL"),
            ("postgres:hidden", "at this URL"),
            ("postgres://me@[::1]:5432/x", "postgres://[::1]:5432/x"),
            ("postgres://[::1]", "postgres://[::1]"),
            ("postgres://%2Frun%2Fpostgresql/x?password=hidden", "postgres://%2Frun%2Fpostgresql/x"),
            ("postgres:///x?host=/run&password=hidden", "postgres:///x"),
        ] {
            assert_eq!(without_password(url), shown, "{url}");
        }
    }
}

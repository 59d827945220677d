//! Where a database is: a file of ours, or a server.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::inventory::store::StoreError;

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A file of SQLite.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether it is made if there is none.
        create: bool,
    },
    /// A database of a PostgreSQL server, by URL.
    Server(String),
}

impl Place {
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        match scheme {
            "postgres" | "postgresql" => Ok(Self::Server(url.to_owned())),
            "sqlite" => file(rest.strip_prefix("//").unwrap_or(rest)),
            _ => Err(StoreError::UnknownScheme { given: scheme_only(scheme) }),
        }
    }
}

/// What may be told of a URL of which nothing is known: that which cannot be a password.
fn scheme_only(scheme: &str) -> String {
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if is_scheme && !scheme.is_empty() { format!("{scheme}:") } else { "something else".to_owned() }
}

fn file(rest: &str) -> Result<Place, StoreError> {
    let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    if path == ":memory:" || parameters.split('&').any(|parameter| parameter == "mode=memory") {
        return Err(StoreError::Memory);
    }
    let create = match parameters {
        "" | "mode=rwc" => true,
        "mode=rw" => false,
        _ => return Err(StoreError::Parameters { given: parameters.to_owned() }),
    };
    let path = decoded(path).filter(|path| !path.as_os_str().is_empty());
    let path = path.ok_or_else(|| StoreError::Parameters { given: rest.to_owned() })?;
    Ok(Place::File { path, create })
}

/// A path out of a URL.
fn decoded(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(u8::try_from(digit()? << 4 | digit()?).ok()?);
    }
    (!bytes.contains(&0)).then(|| std::ffi::OsString::from_vec(bytes).into())
}

/// The URL of a server with another mode of TLS, if one is given: of several, the last one counts.
pub(super) fn with_sslmode(url: &str, mode: Option<&str>) -> String {
    let Some(mode) = mode else { return url.to_owned() };
    let (url, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}sslmode={mode}{fragment}")
}

/// The URL of a server as it may stand in a message: its scheme, host, port and path.
pub(super) fn without_password(url: &str) -> String {
    public_part(url).unwrap_or_else(|| "at this URL".to_owned())
}

/// Nothing of a URL that is not as URLs are: any part of it may be one of a password.
fn public_part(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    // A user or password ends where the host begins, which is before the path; a query may have one too.
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let (_, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let is_address = host.starts_with('[') && host.ends_with(']') || !host.contains(':');
    let is_host = is_address && host.bytes().all(|byte| is_plain(byte) || b"[]:%".contains(&byte));
    let is_path = path.bytes().all(|byte| is_plain(byte) || b"/%".contains(&byte));
    let is_query = query.is_empty() || query.split('&').all(|parameter| parameter.contains('='));
    (is_host && is_path && is_query && port.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| format!("{scheme}://{authority}{path}"))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// A database file that nobody else has: no other process, and no other store of this one.
#[derive(Debug)]
pub(super) struct OwnedFile {
    path: PathBuf,
    lock: File,
}

impl OwnedFile {
    /// Takes a file, and makes it if that is wanted.
    ///
    /// It holds pull secrets, so that only its owner may read it. SQLite gives the files beside it the same mode.
    pub(super) fn take(path: &Path, create: bool) -> Result<Self, StoreError> {
        let failed = |source| StoreError::File { path: path.to_owned(), source };
        if create {
            make(path).map_err(failed)?;
        }
        // Whoever comes over a symbolic link has to meet the same lock.
        let path = fs::canonicalize(path).map_err(failed)?;
        let lock = beside(&path, "-lock");
        let options = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock);
        let lock = options.map_err(|source| StoreError::File { path: lock, source })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(StoreError::File { path, source }),
        }
        for file in [path.clone(), beside(&path, "-wal"), beside(&path, "-shm")] {
            match keep_from_others(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::File { path: file, source: error });
                }
                _ => {}
            }
        }
        Ok(Self { path, lock })
    }

    /// The URL of the file, every byte of which that has a meaning in URLs is escaped.
    pub(super) fn url(&self) -> String {
        let mut url = "sqlite://".to_owned();
        for &byte in self.path.as_os_str().as_bytes() {
            match char::from(byte) {
                char @ ('/' | '.' | '-' | '_') => url.push(char),
                char if char.is_ascii_alphanumeric() => url.push(char),
                _ => url.push_str(&format!("%{byte:02X}")),
            }
        }
        url
    }

    /// Lets others have it.
    pub(super) fn release(&self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(path = %self.path.display(), %error, "the lock of the database cannot be released");
        }
    }
}

impl fmt::Display for OwnedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// An empty file is an empty database to SQLite.
fn make(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(path) {
        // The name has to outlast a loss of power as its content does.
        Ok(_) => File::open(directory)?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn keep_from_others(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(mode & 0o700)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Place::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn files_are_named_with_and_without_slashes() {
        let file = |path: &str, create| Place::File { path: path.into(), create };
        assert_eq!(Place::parse("sqlite:kindling.db").unwrap(), file("kindling.db", true));
        assert_eq!(Place::parse("sqlite://a/b.db?mode=rwc").unwrap(), file("a/b.db", true));
        assert_eq!(Place::parse("sqlite:///a%20b%3f.db?mode=rw").unwrap(), file("/a b?.db", false));
    }

    #[test]
    fn what_keeps_nothing_is_refused() {
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
    fn other_schemes_are_refused_without_their_passwords() {
        for url in ["mysql://me:hidden@db/x", "hidden", "me hidden:x@y", "://me:hidden@db"] {
            let message = refused(url);
            assert!(message.contains("`sqlite:`") && message.contains("`postgres:`"), "{message}");
            assert!(!message.contains("hidden"), "{message}");
        }
        assert!(refused("mysql://me@db").contains("mysql:"));
    }

    #[test]
    fn a_message_has_no_password() {
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

    #[test]
    fn mode_of_tls_is_replaced() {
        for (url, expected) in [
            ("postgres://db/x", "postgres://db/x?sslmode=disable"),
            ("postgres://db/x?sslmode=allow#y", "postgres://db/x?sslmode=allow&sslmode=disable#y"),
        ] {
            assert_eq!(with_sslmode(url, Some("disable")), expected);
            assert_eq!(with_sslmode(url, None), url);
        }
    }

    #[test]
    fn a_file_is_ours_alone_under_any_name() {
        let directory = tempfile::TempDir::new().unwrap();
        let (path, link) = (directory.path().join("a #?%41.db"), directory.path().join("link"));
        let owned = OwnedFile::take(&path, true).unwrap();
        assert_eq!(Place::parse(&owned.url()).unwrap(), Place::File { path: path.clone(), create: true });
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(OwnedFile::take(&link, true), Err(StoreError::InUse { .. })));
        owned.release();
        OwnedFile::take(&link, false).unwrap();
    }

    #[test]
    fn a_file_that_others_may_read_is_closed_to_them() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let _owned = OwnedFile::take(&path, true).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

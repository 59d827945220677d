//! Paths of files in the store.

use std::fmt;

/// Maximum length of a file name. All file systems support this length.
const MAX_NAME: usize = 200;
/// Maximum length of a path. The rest of an S3 key's maximum length is left for the prefix.
const MAX_PATH: usize = 800;

/// The path of a file or folder. Its names have no special meaning in file systems and need no escapes in URLs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

impl FilePath {
    /// Joins names into a path. The error is the invalid name, or the path if it is empty or too long.
    pub(super) fn join<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, String> {
        let mut path = String::new();
        for name in names {
            let name = name.as_ref();
            if !is_name(name) {
                return Err(name.to_owned());
            }
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
        }
        if path.is_empty() || path.len() > MAX_PATH {
            return Err(path);
        }
        Ok(Self(path))
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last name of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    pub(super) fn to_object(&self) -> object_store::path::Path {
        object_store::path::Path::from(self.as_str())
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn is_name(name: &str) -> bool {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.bytes().all(is_harmless)
}

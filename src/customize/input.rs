//! A user's file, already read.

use std::fmt;
use std::path::Path;

use super::Error;

/// A file that an option named, with its contents.
#[derive(Clone, PartialEq, Eq)]
pub struct InputFile {
    path: String,
    name: String,
    contents: Vec<u8>,
}

impl InputFile {
    /// Takes the path as the user wrote it and what was read from there.
    ///
    /// # Errors
    ///
    /// When the path ends in `..` or is empty, so that it holds no file name.
    pub fn new(path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Result<Self, Error> {
        let path = path.into();
        let Some(name) = Path::new(&path).file_name() else {
            return Err(Error::MissingFileName { path });
        };
        let name = name.to_string_lossy().into_owned();
        Ok(Self { path, name, contents: contents.into() })
    }

    /// The path as the user wrote it, for messages.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The last part of the path; generated files are named after it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes of the file.
    #[must_use]
    pub fn contents(&self) -> &[u8] {
        &self.contents
    }
}

/// Shows the path and the length: configs and keyfiles hold secrets.
impl fmt::Debug for InputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputFile")
            .field("path", &self.path)
            .field("contents_len", &self.contents.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_last_part_of_the_path() {
        for (path, name) in [("a", "a"), ("/x/y.ign", "y.ign"), ("./d/", "d"), ("/dev/fd/63", "63")] {
            assert_eq!(InputFile::new(path, b"").unwrap().name(), name);
        }
    }

    #[test]
    fn a_path_without_a_name_is_refused() {
        for path in ["", "/", "a/.."] {
            let error = InputFile::new(path, b"").unwrap_err();
            assert_eq!(error.to_string(), format!("missing filename in {path:?}"));
        }
    }

    #[test]
    fn contents_stay_out_of_debug() {
        let file = InputFile::new("/a/b", b"secret").unwrap();
        assert_eq!(format!("{file:?}"), r#"InputFile { path: "/a/b", contents_len: 6 }"#);
    }
}

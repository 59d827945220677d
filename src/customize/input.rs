//! The input files of a customisation, which the caller has read.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use super::CustomizeError;

/// The path and the contents of a file in an option.
#[derive(Clone, PartialEq, Eq)]
pub struct InputFile {
    path: String,
    name: String,
    contents: Vec<u8>,
}

impl InputFile {
    /// Creates an input file. `path` is the path as the user wrote it.
    ///
    /// # Errors
    ///
    /// Returns an error if the path has no file name: it is empty, `/`, or ends in `..`.
    pub fn new(path: impl Into<String>, contents: impl Into<Vec<u8>>) -> Result<Self, CustomizeError> {
        let path = path.into();
        let Some(name) = Path::new(&path).file_name().and_then(OsStr::to_str).map(str::to_owned) else {
            return Err(CustomizeError::MissingFileName { path });
        };
        Ok(Self { path, name, contents: contents.into() })
    }

    /// Returns the path as the user wrote it, for messages.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the last component of the path. Generated files are named after it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the contents of the file, which may be secret.
    #[must_use]
    pub fn contents(&self) -> &[u8] {
        &self.contents
    }
}

/// Omits the contents, because configs and keyfiles contain secrets.
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
    fn name_is_last_component_of_path() {
        for (path, name) in [("a", "a"), ("/x/y.ign", "y.ign"), ("./d/", "d"), ("/dev/fd/63", "63")] {
            assert_eq!(InputFile::new(path, b"").unwrap().name(), name);
        }
    }

    #[test]
    fn rejects_path_without_file_name() {
        for path in ["", "/", "a/.."] {
            let error = InputFile::new(path, b"").unwrap_err();
            assert_eq!(error.to_string(), format!("missing filename in {path:?}"));
        }
    }

    #[test]
    fn debug_output_omits_contents() {
        let file = InputFile::new("/a/b", b"secret").unwrap();
        assert_eq!(format!("{file:?}"), r#"InputFile { path: "/a/b", contents_len: 6 }"#);
    }
}

//! Reads manifest files and the objects in them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignition::network::yaml;
use serde_json::Value;

use super::object::Object;
use super::{Manifests, OtherFile};
use crate::SourceLocation;

/// Maximum length of a file, in bytes: enough for a hundred thousand hosts.
const MAX_FILE_LEN: u64 = 64 << 20;
/// Maximum number of files in a directory.
const MAX_FILES: usize = 10_000;
/// Maximum depth of nested directories.
const MAX_DEPTH: usize = 8;
/// Maximum number of objects in all files.
const MAX_OBJECTS: usize = 200_000;

/// The byte order mark, which some editors write at the start of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The path of the mirror configuration in the directory layout of the agent-based installer.
const REGISTRIES: &str = "mirror/registries.conf";
const REGISTRIES_AUTHORITY: &str = "mirror/ca-bundle.crt";

/// Reasons why manifests cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file or the directory cannot be read.
    #[error("reading {}", path.display())]
    Io {
        /// The path of the file or directory.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The path is not a regular file or directory but, for example, a pipe, a socket or a device.
    #[error("{}: not a regular file", path.display())]
    NoFile {
        /// The path passed to [`Manifests::read`], or a path in that directory.
        path: PathBuf,
    },
    /// A limit on files or objects is exceeded.
    #[error("{}: {reason}", path.display())]
    TooMuch {
        /// The file or directory that exceeds the limit.
        path: PathBuf,
        /// A description of the exceeded limit.
        reason: String,
    },
    /// A file is neither valid YAML nor valid JSON.
    #[error("{place} {reason}")]
    Malformed {
        /// The location of the syntax error.
        place: SourceLocation,
        /// The message of the parser.
        reason: String,
    },
}

impl Manifests {
    /// Reads all manifests in a directory and its subdirectories: files with names ending in `.yaml`, `.yml` or
    /// `.json`. `directory` may also be the path of a single file.
    ///
    /// # Errors
    ///
    /// Returns an error if a file or directory cannot be read, if a limit is exceeded, or if a file is neither YAML nor
    /// JSON.
    pub fn read(directory: impl AsRef<Path>) -> Result<Self, ReadError> {
        let directory = directory.as_ref();
        let mut paths = Vec::new();
        collect(directory, 0, &mut paths)?;
        paths.sort();
        let mut manifests = Self { directory: Some(directory.to_owned()), ..Self::default() };
        for path in paths {
            let text = read_file(&path)?;
            manifests.add(&path.display().to_string(), &text)?;
        }
        manifests.registries = read_other_file(&directory.join(REGISTRIES))?;
        manifests.registries_authority = read_other_file(&directory.join(REGISTRIES_AUTHORITY))?;
        Ok(manifests)
    }

    /// Adds the objects in a text. Skips a document that is not a Kubernetes object, with a finding.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither YAML nor JSON.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), ReadError> {
        let name: Arc<str> = file.into();
        for (skipped, document) in documents(text) {
            let value = parse(&name, skipped, document)?;
            if value.is_null() {
                continue;
            }
            let objects = Object::from_document(&name, (skipped, document), value, &mut self.findings);
            self.add_objects(file, objects)?;
        }
        Ok(())
    }

    /// Adds a parsed object, for example from a Kubernetes API, or the items of a `List`. Findings refer to it as
    /// `source`, or by its kind, namespace and name if `source` is empty. Skips a value that is not a Kubernetes
    /// object, with a finding.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many objects.
    ///
    /// # Examples
    ///
    /// ```
    /// use discovery::Draft;
    /// use discovery::manifests::Manifests;
    /// use serde_json::json;
    ///
    /// let mut manifests = Manifests::default();
    /// manifests.add_object("", json!({
    ///     "kind": "InfraEnv",
    ///     "metadata": {"namespace": "site", "name": "rack-1"},
    ///     "spec": {"pullSecretRef": {"name": "pull-secret"}},
    /// }))?;
    /// let (_, findings) = manifests.draft(None, Draft::default())?;
    /// assert_eq!(
    ///     findings.to_string(),
    ///     "InfraEnv site/rack-1: spec.pullSecretRef: error: no Secret named \"pull-secret\" in the manifests"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_object(&mut self, source: &str, value: Value) -> Result<(), ReadError> {
        let description;
        let source = if source.is_empty() {
            description = describe(&value);
            &description
        } else {
            source
        };
        let objects = Object::from_value(source, value, &mut self.findings);
        self.add_objects(source, objects)
    }

    fn add_objects(&mut self, source: &str, objects: Vec<Object>) -> Result<(), ReadError> {
        self.objects.extend(objects);
        if self.objects.len() > MAX_OBJECTS {
            let reason = format!("more than {MAX_OBJECTS} manifests");
            return Err(ReadError::TooMuch { path: source.into(), reason });
        }
        Ok(())
    }
}

/// Returns the kind, namespace and name of an object, for messages.
fn describe(value: &Value) -> String {
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = [text("/metadata/namespace"), text("/metadata/name")].join("/");
    let description = format!("{} {}", text("/kind"), name.trim_matches('/'));
    if description.trim().is_empty() { "object".to_owned() } else { description.trim().to_owned() }
}

/// Collects the paths of all manifest files in a directory.
fn collect(path: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    if depth == 0 && path.metadata().map_err(failed)?.is_file() {
        paths.push(path.to_owned());
        return Ok(());
    }
    let too_much = |reason: String| ReadError::TooMuch { path: path.to_owned(), reason };
    if depth > MAX_DEPTH {
        return Err(too_much(format!("more than {MAX_DEPTH} nested directories")));
    }
    for entry in path.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // Skip hidden files and directories, which editors and version control create.
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        let extension = path.extension().and_then(|it| it.to_str());
        if path.is_dir() {
            collect(&path, depth + 1, paths)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            paths.push(path);
        }
        if paths.len() > MAX_FILES {
            return Err(too_much(format!("more than {MAX_FILES} manifests")));
        }
    }
    Ok(())
}

fn read_file(path: &Path) -> Result<String, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    // Opening a pipe would block until a process writes to it.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(ReadError::NoFile { path: path.to_owned() });
    }
    let file = File::open(path).map_err(failed)?;
    let mut text = String::new();
    let len = file.take(MAX_FILE_LEN + 1).read_to_string(&mut text).map_err(failed)?;
    if u64::try_from(len).is_ok_and(|len| len <= MAX_FILE_LEN) {
        return Ok(text);
    }
    Err(ReadError::TooMuch { path: path.to_owned(), reason: format!("larger than {MAX_FILE_LEN} bytes") })
}

fn read_other_file(path: &Path) -> Result<Option<OtherFile>, ReadError> {
    match read_file(path) {
        Ok(text) => Ok(Some(OtherFile { file: path.display().to_string().into(), text })),
        Err(ReadError::Io { source, .. })
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the documents of a text, each with the number of lines before it. A document may begin with directives and
/// with a byte order mark, which is removed (YAML 1.2, 5.2).
pub(super) fn documents(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_mark = |line: &str, mark: &str| {
        line.strip_prefix(mark).is_some_and(|it| it.trim_end().is_empty() || it.starts_with([' ', '\t']))
    };
    let mut starts = vec![(0, 0)];
    let mut at = 0;
    // `is_before`: the current document has only directives and comments so far. `has_directives`: it has at least one
    // directive.
    let (mut is_before, mut has_directives) = (true, false);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let begins = line.trim_start_matches(BYTE_ORDER_MARK);
        if is_mark(begins, "---") {
            if number > 0 && !(is_before && has_directives) {
                starts.push((number, at));
            }
            (is_before, has_directives) = (false, false);
        } else if is_mark(begins, "...") {
            starts.push((number + 1, at + line.len()));
            (is_before, has_directives) = (true, false);
        } else if is_before && begins.starts_with('%') {
            has_directives = true;
        } else if !begins.trim().is_empty() && !begins.trim_start().starts_with('#') {
            is_before = false;
        }
        at += line.len();
    }
    let ends: Vec<usize> = starts.iter().skip(1).map(|(_, at)| *at).chain([text.len()]).collect();
    starts.into_iter().zip(ends).map(|((line, at), end)| {
        (line, text.get(at..end).unwrap_or_default().trim_start_matches(BYTE_ORDER_MARK))
    })
}

pub(super) fn parse(file: &Arc<str>, skipped: usize, document: &str) -> Result<Value, ReadError> {
    let malformed = |line: Option<usize>, reason: String| ReadError::Malformed {
        place: SourceLocation {
            file: file.to_string(),
            line: line.map(|line| line + skipped),
            path: String::new(),
        },
        reason,
    };
    if document.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(document)
    {
        return Ok(value);
    }
    yaml::read(document)
        .map_err(|error| malformed(Some(error.line()), format!("is not valid YAML: {}", error.problem())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Manifests, ReadError> {
        let mut manifests = Manifests::default();
        manifests.add("a.yaml", text).map(|()| manifests)
    }

    #[test]
    fn documents_have_their_line_numbers() {
        let split: Vec<_> = documents("a: 1\n---\nb: 2\n--- # c\nc: 3\n").collect();
        assert_eq!(split, [(0, "a: 1\n"), (1, "---\nb: 2\n"), (3, "--- # c\nc: 3\n")]);
        assert_eq!(documents("---\na: 1\n").collect::<Vec<_>>(), [(0, "---\na: 1\n")]);
        assert_eq!(documents("a: |\n  x\n  ---\n").count(), 1);
    }

    #[test]
    fn directives_and_byte_order_marks_belong_to_the_next_document() {
        let split = |text| documents(text).collect::<Vec<_>>();
        assert_eq!(split("%YAML 1.2\n---\na: 1\n"), [(0, "%YAML 1.2\n---\na: 1\n")]);
        assert_eq!(split("\u{feff}---\na: 1\n"), [(0, "---\na: 1\n")]);
        assert_eq!(split("\u{feff}{}\n\u{feff}---\na: 1\n"), [(0, "{}\n"), (1, "---\na: 1\n")]);
        assert_eq!(
            split("a: 1\n...\n# b\n%TAG ! x\n---\nb: 2\n"),
            [(0, "a: 1\n...\n"), (2, "# b\n%TAG ! x\n---\nb: 2\n")]
        );
        assert_eq!(split("# a\n---\n%b: 1\n---\n"), [(0, "# a\n"), (1, "---\n%b: 1\n"), (3, "---\n")]);
    }

    #[test]
    fn objects_are_read_from_yaml_json_and_lists() {
        let text =
            "kind: A\nmetadata: {name: a}\n---\n# nothing\n---\nkind: List\nitems:\n- kind: B\n- {kind: C}\n";
        let kinds: Vec<String> =
            read(text).unwrap().objects().iter().map(|it| it.kind().to_owned()).collect();
        assert_eq!(kinds, ["A", "B", "C"]);
        assert_eq!(read(r#"{"kind": "A", "spec": {}}"#).unwrap().objects().len(), 1);
    }

    #[test]
    fn rejects_invalid_yaml_with_its_line() {
        for (text, message) in [
            ("kind: A\n---\nkind: B\nspec: {\n", "a.yaml:4: is not valid YAML: "),
            ("kind: A\nspec: {\n---\nkind: B\n", "a.yaml:2: is not valid YAML: "),
            ("kind: A #\r# b\u{85}\n---\nkind: B #\r\u{2028}\nspec: {\n", "a.yaml:4: is not valid YAML: "),
            ("kind: A\nspec: {? [a] : b}\n", "a.yaml:2: is not valid YAML: a mapping key is a collection"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text:?}: {error}");
        }
    }

    /// YAML parsers break a line at a lone carriage return, but editors do not. Line numbers must match the editor.
    #[test]
    fn lone_carriage_returns_do_not_change_line_numbers() {
        let text = "kind: A\n---\nkind: InfraEnv #\r# x\nmetadata: {\r\rname:\r7}\n";
        assert_eq!(
            read(text).unwrap().findings.to_string(),
            "a.yaml:4: metadata.name: error: has to be a string"
        );
    }

    #[test]
    fn documents_without_a_kind_are_skipped_with_a_warning() {
        for (text, message) in [
            ("kind: A\n---\n- 1\n", "a.yaml:2: warning: is not an object, ignored"),
            ("kind: A\n---\nspec: {}\n", "a.yaml:2: warning: has no kind, ignored"),
            (
                "kind: List\nitems:\n- 3\n- kind: A\n",
                "a.yaml:1: items[0]: warning: is not an object, ignored",
            ),
        ] {
            let manifests = read(text).unwrap();
            assert_eq!(manifests.findings.to_string(), message);
            assert_eq!(manifests.objects_of_kind("A").count(), 1, "{text}");
        }
    }

    /// A manifest that contains every field the reader uses.
    const SITE: &str = include_str!("../../../tests/offline/manifests/bonded/infraenv.yaml");
    const HOSTS: &str = include_str!("../../../tests/offline/manifests/bonded/nmstate.yaml");

    /// Reads texts, and checks that the location of every finding exists.
    fn look(texts: &[&str]) {
        let mut manifests = Manifests::default();
        for text in texts {
            if let Err(error) = manifests.add("a.yaml", text) {
                assert!(error.to_string().starts_with("a.yaml"), "{error}");
            }
        }
        let read = manifests.draft(None, crate::Draft::default());
        let (draft, mut findings) = read.unwrap_or_else(|findings| (crate::Draft::default(), findings));
        findings.append(draft.check(&ignition::network::KeyfileCache::default()));
        let lines = texts.iter().map(|text| text.lines().count()).max().unwrap_or_default();
        for finding in findings.as_slice() {
            assert!(finding.place.line.is_none_or(|line| line <= lines.max(1)), "{finding}");
            assert!(!finding.to_string().contains('\n'), "{finding}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_rejected(text in "[a-z:{}\\[\\]&*!|>\\-# \n\r\u{2028}\"',]{0,200}") {
            look(&[&text]);
            look(&[&format!("kind: InfraEnv\nspec:\n  {text}"), HOSTS]);
        }

        #[test]
        fn any_changed_manifest_is_read_or_rejected(
            at in 0..1usize << 16, len in 0..40usize, with in "[a-z0-9:{}\\[\\]\\- \n\r\"]{0,20}", is_host in proptest::bool::ANY,
        ) {
            let mut texts = [SITE.to_owned(), HOSTS.to_owned()];
            let text = &mut texts[usize::from(is_host)];
            let at = at % text.len();
            let end = (at + len).min(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(end) {
                text.replace_range(at..end, &with);
            }
            look(&[&texts[0], &texts[1]]);
        }
    }
}

//! Reading of input files and stdin, and the paths for extracted archive members.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::builder::{OsStringValueParser, TypedValueParser};
use isogen::Source;

use crate::customize::InputFile;

/// Maximum length of a config, keyfile or script. The Ignition area of an image is 256 KiB long.
const MAX_INPUT_LEN: u64 = 64 << 20;

/// Reads a whole file, or stdin if `path` is `None`.
pub(super) fn read_input(path: Option<&str>) -> Result<Vec<u8>> {
    match path {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("opening {path}"))?;
            read_limited(file, path)
        }
        None => read_limited(io::stdin().lock(), "stdin"),
    }
}

/// Reads a whole file, or stdin if `path` is `None`. Also returns the name of the input, for messages.
pub(super) fn read_named_input(path: Option<&str>) -> Result<(&str, Vec<u8>)> {
    Ok((path.unwrap_or("stdin"), read_input(path)?))
}

/// The argument that means stdin.
const STDIN: &str = "-";

/// The content of an input, and the name of the input for messages.
pub(super) struct NamedText {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl NamedText {
    pub(super) fn read(path: &str) -> Result<Self> {
        let (name, path) = if path == STDIN { ("stdin", None) } else { (path, Some(path)) };
        Ok(Self { name: name.to_owned(), bytes: read_input(path)? })
    }

    /// Reads a file or stdin. Passes the first 64 KiB of stdin to `is_refused`. If it returns `true`, returns `None`
    /// without reading the rest.
    pub(super) fn read_unless(path: &str, is_refused: impl Fn(&[u8]) -> bool) -> Result<Option<Self>> {
        const START_LEN: u64 = 64 << 10;
        if path != STDIN {
            return Self::read(path).map(Some);
        }
        let mut stdin = io::stdin().lock();
        let mut start = Vec::new();
        stdin.by_ref().take(START_LEN).read_to_end(&mut start).context("reading stdin")?;
        if is_refused(&start) {
            return Ok(None);
        }
        let bytes = read_limited(io::Cursor::new(start).chain(stdin), "stdin")?;
        Ok(Some(Self { name: "stdin".to_owned(), bytes }))
    }

    /// Reads files in order. Returns an error if stdin is listed more than once.
    pub(super) fn read_all(paths: &[String]) -> Result<Vec<Self>> {
        anyhow::ensure!(
            paths.iter().filter(|path| *path == STDIN).count() <= 1,
            "stdin can be read only once"
        );
        paths.iter().map(|path| Self::read(path)).collect()
    }
}

fn read_limited(input: impl Read, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MAX_INPUT_LEN + 1).read_to_end(&mut bytes).with_context(|| format!("reading {name}"))?;
    anyhow::ensure!(bytes.len() as u64 <= MAX_INPUT_LEN, "{name} has more than {MAX_INPUT_LEN} bytes");
    Ok(bytes)
}

/// Reads files and keeps their names, which the image contains.
pub(super) fn read_files(paths: &[String]) -> Result<Vec<InputFile>> {
    paths.iter().map(|path| Ok(InputFile::new(path.as_str(), read_input(Some(path))?)?)).collect()
}

/// Opens an initrd as a stream. `-` and `None` mean stdin.
pub(super) fn open_stream(path: Option<&str>) -> Result<(Box<dyn Read>, String)> {
    match path {
        None | Some("-") => Ok((Box::new(io::stdin().lock()), "stdin".to_owned())),
        Some(path) => {
            let file = File::open(path).with_context(|| format!("opening {path}"))?;
            Ok((Box::new(file), path.to_owned()))
        }
    }
}

/// Opens a file for reads at any offset. Copies the content of a pipe to an unnamed temporary file.
pub(super) fn open_source(path: &str) -> Result<Source> {
    let mut file = File::open(path).with_context(|| format!("opening {path}"))?;
    let kind = file.metadata().with_context(|| format!("reading {path}"))?.file_type();
    if kind.is_file() || kind.is_dir() || kind.is_block_device() {
        return Ok(Source::from_file(file, path)?);
    }
    let mut spool = tempfile::tempfile().context("creating a temporary file")?;
    io::copy(&mut file, &mut spool).with_context(|| format!("reading {path}"))?;
    Ok(Source::from_file(spool, path)?)
}

/// Returns the path of an archive member below a directory. Returns an error if the path would be outside of the
/// directory, because archives are untrusted.
pub(super) fn path_below(directory: &Path, member: &str) -> Result<PathBuf> {
    let inside = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(member).components().all(inside) {
        bail!("member {member:?} contains path traversal");
    }
    Ok(directory.join(member))
}

/// Returns a parser for the path of a directory or an image. Like `coreos-installer`, the parser accepts an empty path.
/// An empty directory is the current directory; an empty file name results in an error when the file is opened.
pub(super) fn any_path_parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

//! The output of commands: in-place edits, new files, stdout and stderr.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use isogen::{BaseImage, Edits, Error, KargsError, Plan, Source};

use super::created_files::require_absent;

/// The common arguments of commands that edit an image: the image and the destination of the result.
#[derive(Debug, Args)]
pub(super) struct EditOptions {
    /// Write ISO to a new output file
    #[arg(short, long, value_name = "path")]
    output: Option<String>,
    /// Re-lay out the image if a change does not fit
    ///
    /// Without it, a change must fit into the embed areas of the image. With it, changes of any size are possible, but
    /// the result must be a new file or stdout.
    #[arg(long)]
    grow: bool,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

/// An image opened for editing, and the destination of the result.
pub(super) struct EditSession {
    pub(super) image: BaseImage,
    target: EditTarget,
    grow: bool,
}

enum EditTarget {
    InPlace(File),
    File(String),
    Stdout,
}

impl EditOptions {
    /// Opens the image for reading, or also for writing and locked if the result replaces it.
    pub(super) fn open_image(&self) -> Result<EditSession> {
        let iso = self.input.as_str();
        let (source, target) = match self.output.as_deref() {
            Some("-") => {
                refuse_terminal()?;
                (Source::open(iso)?, EditTarget::Stdout)
            }
            Some(path) => (Source::open(iso)?, EditTarget::File(path.to_owned())),
            None => {
                let options = OpenOptions::new().read(true).write(true).open(iso);
                let file = options.with_context(|| format!("opening {iso}"))?;
                lock_image(&file, iso)?;
                let reader = file.try_clone().with_context(|| format!("opening {iso}"))?;
                (Source::from_file(reader, iso)?, EditTarget::InPlace(file))
            }
        };
        Ok(EditSession { image: BaseImage::from_source(source)?, target, grow: self.grow })
    }
}

/// Locks an image against concurrent in-place edits. The lock is held as long as the file is open.
fn lock_image(file: &File, name: &str) -> Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => bail!("{name} is being edited by another process"),
        // Some file systems do not support locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

impl EditSession {
    /// Returns the name of the image, for messages.
    pub(super) fn image_name(&self) -> &str {
        self.image.source().name()
    }

    /// Writes the edited image to the destination.
    pub(super) fn write_edited(self, edits: &Edits) -> Result<()> {
        let plan = match self.grow {
            true => self.image.plan(edits)?,
            false => self.image.plan_in_place(edits).map_err(error_with_advice)?,
        };
        match self.target {
            EditTarget::InPlace(file) => {
                match plan.write_in_place(&file, self.image.require_ignition_area()?.extent) {
                    Err(error @ Error::NotInPlace { .. }) => bail!("{error}; name a new file with -o"),
                    result => result?,
                }
            }
            EditTarget::File(path) => {
                require_absent("--output", path.as_ref())?;
                plan.write_file(path)?;
            }
            EditTarget::Stdout => write_stdout(&plan)?,
        }
        Ok(())
    }
}

/// Suggests `--grow` if the error is that a change does not fit.
fn error_with_advice(error: Error) -> anyhow::Error {
    match error {
        Error::ArchiveTooLarge { .. } | Error::Kargs { reason: KargsError::TooLarge { .. }, .. } => {
            anyhow!("{error} (see --grow)")
        }
        other => other.into(),
    }
}

/// Returns an error if stdout is a terminal, because binary data would garble it.
pub(super) fn refuse_terminal() -> Result<()> {
    if io::stdout().is_terminal() {
        bail!("Refusing to write binary data to terminal");
    }
    Ok(())
}

/// Writes a plan to stdout.
pub(super) fn write_stdout(plan: &Plan) -> Result<()> {
    plan.send_to(&mut io::stdout().lock()).map_err(stdout_error)
}

/// Replaces the content of a file, or writes to stdout if `path` is `None`.
pub(super) fn write_bytes(path: Option<&str>, bytes: &[u8]) -> Result<()> {
    match path {
        Some("") => bail!("writing \"\": the file name is empty"),
        Some(path) => std::fs::write(path, bytes).with_context(|| format!("writing {path}")),
        None => {
            refuse_terminal()?;
            print_bytes(bytes)
        }
    }
}

/// Writes bytes to stdout, such as text or embedded content.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(stdout_error)
}

/// Adds context to an error of a write to stdout. A closed stdout gets the context [`StdoutClosed`].
pub(super) fn stdout_error(error: io::Error) -> anyhow::Error {
    let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
    let error = anyhow::Error::new(error);
    if is_closed { error.context(StdoutClosed) } else { error.context("writing to stdout") }
}

/// The context of a write error if the reader has closed stdout. The error ends the command, but is not a failure.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("stdout is closed")]
pub(super) struct StdoutClosed;

/// Prints text to stderr. A closed stderr is not a failure.
pub(super) fn print_message(text: impl fmt::Display) {
    let _ = write!(io::stderr(), "{text}");
}

/// Prints the path of a written file. A closed stdout is not a failure.
pub(super) fn print_path(path: &Path) -> Result<()> {
    match writeln!(io::stdout(), "{}", path.display()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(stdout_error(error)),
        _ => Ok(()),
    }
}

/// Text output, written line by line with `writeln!`. Escapes the control characters that content from images and other
/// files may contain, so that they neither control the terminal nor start a new line.
#[derive(Debug, Default)]
pub(super) struct EscapedLines(String);

impl EscapedLines {
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

pub(super) fn escape_controls(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_control() {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

impl fmt::Write for EscapedLines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(&escape_controls(text));
        Ok(())
    }

    /// Called by `writeln!` with a whole line. Escapes all control characters except the final line feed.
    fn write_fmt(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
        let line = line.to_string();
        let (line, end) = line.strip_suffix('\n').map_or((line.as_str(), ""), |line| (line, "\n"));
        self.write_str(line)?;
        self.0.push_str(end);
        Ok(())
    }
}

pub(super) fn print_line(line: impl std::fmt::Display) -> Result<()> {
    print_bytes(format!("{line}\n").as_bytes())
}

/// Prints a value as indented JSON.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print_line(serde_json::to_string_pretty(value).context("writing JSON")?)
}

/// A JSON list. Each item is printed on its own line when it arrives.
#[derive(Debug, Default)]
pub(super) struct JsonListOutput {
    has_items: bool,
    failure: Option<anyhow::Error>,
}

impl JsonListOutput {
    /// Prints an item. Returns `Break` if stdout cannot be written.
    pub(super) fn push(&mut self, item: &serde_json::Value) -> ControlFlow<()> {
        let start = if self.has_items { ",\n" } else { "[\n" };
        match print_bytes(format!("{start}{item}").as_bytes()) {
            Ok(()) => {
                self.has_items = true;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Prints the end of the list, unless the source of the items failed with an error in `result`.
    pub(super) fn finish(self, result: Result<()>) -> Result<()> {
        match (result, self.failure) {
            (_, Some(failure)) => Err(failure),
            (Err(error), None) if self.has_items => Err(error.context(IncompleteOutput)),
            (Err(error), None) => Err(error),
            (Ok(()), None) => print_line(if self.has_items { "\n]" } else { "[]" }),
        }
    }
}

/// The context of an error that occurred after a part of a JSON list was printed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the printed list is incomplete")]
pub(super) struct IncompleteOutput;

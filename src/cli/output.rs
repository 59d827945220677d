//! Output of commands: over the image, to a new file, or to stdout.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use isogen::{BaseImage, Edits, Error, KargsError, Plan, Source};

use super::created_files::require_absent;

/// What image-editing commands share: the image, and where the result goes.
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
    /// Opens the image, and checks that the result can be written.
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

/// Prevents concurrent in-place edits of one image. The lock is held until the process ends.
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

    /// Writes the edited image.
    pub(super) fn write_edited(self, edits: &Edits) -> Result<()> {
        let plan = match self.grow {
            true => self.image.plan(edits)?,
            false => self.image.plan_in_place(edits).map_err(error_with_advice)?,
        };
        match self.target {
            EditTarget::InPlace(file) => {
                match plan.write_in_place(&file, self.image.require_ignition_area()?.extent) {
                    Err(error @ Error::NotInPlace { .. }) => bail!("{error}; name a new file with -o"),
                    written => written?,
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

/// Adds the option that helps if a change does not fit.
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

/// Writes bytes to a file, replacing its content, or to stdout.
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

/// Prints text or embedded content.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(stdout_error)
}

/// Adds context to an error of stdout.
pub(super) fn stdout_error(error: io::Error) -> anyhow::Error {
    let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
    let error = anyhow::Error::new(error);
    if is_closed { error.context(StdoutClosed) } else { error.context("writing to stdout") }
}

/// The context of an error of stdout that its reader has closed. Such an error ends a command, but is not a failure.
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

/// Text output, written line by line with `writeln!`. Content from images and other files may contain control
/// characters: they are escaped, so that they neither reach the terminal nor start a line.
#[derive(Debug, Default)]
pub(super) struct EscapedLines(String);

impl EscapedLines {
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// Escapes control characters.
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

    /// `writeln!` calls this with a whole line. Only its final line feed is not escaped.
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

/// A JSON list that is printed while its items arrive, one per line.
#[derive(Debug, Default)]
pub(super) struct JsonListOutput {
    is_begun: bool,
    failure: Option<anyhow::Error>,
}

impl JsonListOutput {
    /// Prints an item. Breaks if stdout cannot be written.
    pub(super) fn push(&mut self, item: &serde_json::Value) -> ControlFlow<()> {
        let start = if self.is_begun { ",\n" } else { "[\n" };
        match print_bytes(format!("{start}{item}").as_bytes()) {
            Ok(()) => {
                self.is_begun = true;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Prints the end of the list. `result` is the result of the source of items.
    pub(super) fn finish(self, result: Result<()>) -> Result<()> {
        match (result, self.failure) {
            (_, Some(failure)) => Err(failure),
            (Err(error), None) if self.is_begun => Err(error.context(IncompleteOutput)),
            (Err(error), None) => Err(error),
            (Ok(()), None) => print_line(if self.is_begun { "\n]" } else { "[]" }),
        }
    }
}

/// The context of an error after a part of the output was printed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the printed list is incomplete")]
pub(super) struct IncompleteOutput;

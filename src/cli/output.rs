//! Where commands write: over the image, to a new file, or to the standard output.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use isogen::{BaseImage, Edits, Error, KargsError, Plan, Source};

/// What image-editing commands share: the image, and where the result goes.
#[derive(Debug, Args)]
pub(super) struct EditOptions {
    /// Write ISO to a new output file
    #[arg(short, long, value_name = "path")]
    output: Option<String>,
    /// Lay the image out anew where a change does not fit
    ///
    /// Without it, a change has to fit into the areas that the image provides. With it, files of any size do; the
    /// result has to be a new file or stdout.
    #[arg(long)]
    grow: bool,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

/// An image opened for editing, and where the result goes.
pub(super) struct Editing {
    /// The image.
    pub(super) image: BaseImage,
    target: Target,
    grow: bool,
}

enum Target {
    InPlace(File),
    File(String),
    Stdout,
}

impl EditOptions {
    /// Opens the image and makes sure that the result can be written.
    pub(super) fn open(&self) -> Result<Editing> {
        let iso = self.input.as_str();
        let (source, target) = match self.output.as_deref() {
            Some("-") => {
                refuse_terminal()?;
                (Source::open(iso)?, Target::Stdout)
            }
            Some(path) => (Source::open(iso)?, Target::File(path.to_owned())),
            None => {
                let options = OpenOptions::new().read(true).write(true).open(iso);
                let file = options.with_context(|| format!("opening {iso}"))?;
                lock(&file, iso)?;
                let reader = file.try_clone().with_context(|| format!("opening {iso}"))?;
                (Source::from_file(reader, iso)?, Target::InPlace(file))
            }
        };
        Ok(Editing { image: BaseImage::from_source(source)?, target, grow: self.grow })
    }
}

/// Keeps two edits in place of one image apart, until the process ends.
fn lock(file: &File, name: &str) -> Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => bail!("{name} is being edited by another process"),
        // Some file systems have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

impl Editing {
    /// The name of the image, for messages.
    pub(super) fn name(&self) -> &str {
        self.image.source().name()
    }

    /// Writes the image with changes.
    pub(super) fn write(self, edits: &Edits) -> Result<()> {
        let plan = match self.grow {
            true => self.image.plan(edits)?,
            false => self.image.plan_in_place(edits).map_err(with_advice)?,
        };
        match self.target {
            Target::InPlace(file) => {
                match plan.write_in_place(&file, self.image.require_ignition_area()?.extent) {
                    Err(error @ Error::NotInPlace { .. }) => bail!("{error}: name a new file with -o"),
                    written => written?,
                }
            }
            Target::File(path) => plan.write_file(path)?,
            Target::Stdout => write_stdout(&plan)?,
        }
        Ok(())
    }
}

/// Says what makes room where a change has none.
fn with_advice(error: Error) -> anyhow::Error {
    match error {
        Error::ArchiveTooLarge { .. } | Error::Kargs { reason: KargsError::TooLarge { .. }, .. } => {
            anyhow!("{error} (see --grow)")
        }
        other => other.into(),
    }
}

/// Fails where the standard output is a terminal, which binary data would upset.
pub(super) fn refuse_terminal() -> Result<()> {
    if io::stdout().is_terminal() {
        bail!("Refusing to write binary data to terminal");
    }
    Ok(())
}

/// Writes a plan to the standard output.
pub(super) fn write_stdout(plan: &Plan) -> Result<()> {
    plan.send_to(&mut io::stdout().lock()).context("writing to stdout")
}

/// Writes bytes to a file, in place of what it held, or to the standard output.
pub(super) fn write_bytes(path: Option<&str>, bytes: &[u8]) -> Result<()> {
    match path {
        Some("") => bail!("writing \"\": the name of the file is empty"),
        Some(path) => std::fs::write(path, bytes).with_context(|| format!("writing {path}")),
        None => {
            refuse_terminal()?;
            print_bytes(bytes)
        }
    }
}

/// Prints text, or what somebody has embedded as such.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("writing to stdout")
}

/// Prints the path of a file that was written. That nobody reads it is no failure.
pub(super) fn print_path(path: &Path) -> Result<()> {
    match writeln!(io::stdout(), "{}", path.display()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("writing to stdout"),
        _ => Ok(()),
    }
}

/// Text for people, made by `writeln!`, a line at a time. What comes from images and other files may hold control characters:
/// they are shown and not sent to the terminal, and make no lines of their own.
#[derive(Debug, Default)]
pub(super) struct Lines(String);

impl Lines {
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl fmt::Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if character.is_control() {
                self.0.extend(character.escape_default());
            } else {
                self.0.push(character);
            }
        }
        Ok(())
    }

    /// What `writeln!` calls: all parts of a line at once, and the line feed that ends it.
    fn write_fmt(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
        let line = line.to_string();
        let (line, end) = line.strip_suffix('\n').map_or((line.as_str(), ""), |line| (line, "\n"));
        self.write_str(line)?;
        self.0.push_str(end);
        Ok(())
    }
}

/// Prints a line.
pub(super) fn print_line(line: impl std::fmt::Display) -> Result<()> {
    print_bytes(format!("{line}\n").as_bytes())
}

/// Prints a value as JSON, as people can read it.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print_line(serde_json::to_string_pretty(value).context("writing JSON")?)
}

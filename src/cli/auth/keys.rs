//! `kindling auth keys`: makes the key pair that signs and verifies tokens.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::Args;
use serde_json::{Map, Value};
use tempfile::NamedTempFile;

use super::{PRIVATE, PUBLIC};
use crate::cli::created_files::require_absent;
use crate::cli::directories::check_writable_directory;
use crate::cli::output::{print_json, print_line, print_path};
use inventory::auth::KeyTexts;

/// The files of a key pair, with their modes.
const PRIVATE_FILE: (&str, u32) = ("ec-private-key.pem", 0o600);
const PUBLIC_FILE: (&str, u32) = ("ec-public-key.pem", 0o644);

/// Make a key pair for `serve --auth-type local`
///
/// The private key signs tokens; any process that can read it may do everything. Existing files are never overwritten.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("where").required(true).multiple(true))]
pub(in crate::cli) struct Keys {
    /// Directory to write ec-private-key.pem and ec-public-key.pem to
    #[arg(long, value_name = "DIR", group = "where")]
    out: Option<PathBuf>,
    /// Print EC_PRIVATE_KEY_PEM and EC_PUBLIC_KEY_PEM as lines of an environment file, with the keys in base64
    #[arg(long, group = "where")]
    env: bool,
    /// Print JSON: the paths of the files, and with --env the variables
    #[arg(long)]
    json: bool,
}

impl Keys {
    pub(super) fn run(self) -> Result<()> {
        let texts = KeyTexts::generate()?;
        if let Some(directory) = &self.out {
            write_pair(directory, &texts)?;
        }
        let files = self
            .out
            .as_ref()
            .map(|directory| (directory.join(PRIVATE_FILE.0), directory.join(PUBLIC_FILE.0)));
        let variables =
            self.env.then(|| (BASE64.encode(texts.private.reveal()), BASE64.encode(&texts.public)));
        if self.json {
            return print_keys_as_json(files, variables);
        }
        match (files, variables) {
            (_, Some((private, public))) => {
                print_line(format_args!("{PRIVATE}={private}"))?;
                print_line(format_args!("{PUBLIC}={public}"))
            }
            (Some((private, public)), None) => {
                print_path(&private)?;
                print_path(&public)
            }
            (None, None) => Ok(()),
        }
    }
}

fn print_keys_as_json(files: Option<(PathBuf, PathBuf)>, variables: Option<(String, String)>) -> Result<()> {
    let mut keys = Map::<String, Value>::new();
    if let Some((private, public)) = files {
        keys.insert("private_key_file".to_owned(), private.display().to_string().into());
        keys.insert("public_key_file".to_owned(), public.display().to_string().into());
    }
    if let Some((private, public)) = variables {
        keys.insert(PRIVATE.to_owned(), private.into());
        keys.insert(PUBLIC.to_owned(), public.into());
    }
    print_json(&keys)
}

/// Writes both files. If one cannot be written, neither remains.
fn write_pair(directory: &Path, texts: &KeyTexts) -> Result<()> {
    check_writable_directory("--out", directory)?;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    for (name, _) in [PRIVATE_FILE, PUBLIC_FILE] {
        require_absent("--out", &directory.join(name))?;
    }
    let private = write_key_file(directory, PRIVATE_FILE, texts.private.reveal())?;
    if let Err(error) = write_key_file(directory, PUBLIC_FILE, &texts.public) {
        // This run created the private key, which is useless without the public key.
        let _ = std::fs::remove_file(private);
        return Err(error);
    }
    Ok(())
}

/// Writes a file that gets its name only when it is complete.
fn write_key_file(directory: &Path, (name, mode): (&str, u32), text: &str) -> Result<PathBuf> {
    let path = directory.join(name);
    let writing = || format!("writing {}", path.display());
    let mut file = NamedTempFile::new_in(directory).with_context(writing)?;
    file.as_file().set_permissions(Permissions::from_mode(mode)).with_context(writing)?;
    file.write_all(text.as_bytes()).with_context(writing)?;
    file.as_file().sync_all().with_context(writing)?;
    file.persist_noclobber(&path).map_err(|error| error.error).with_context(writing)?;
    Ok(path)
}

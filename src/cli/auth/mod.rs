//! `kindling auth`: the keys and tokens of the policy `local`.

mod keys;
mod token;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use super::environment::variable;
use crate::inventory::auth::LocalKeys;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a key pair
    Keys(keys::Keys),
    /// Make a token
    Token(token::Token),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Keys(command) => command.run(),
            Self::Token(command) => command.run(),
        }
    }
}

/// The variable that holds the private key where no file does. There is no option for it: all users see those.
const PRIVATE: &str = "EC_PRIVATE_KEY_PEM";
/// The one of the public key.
const PUBLIC: &str = "EC_PUBLIC_KEY_PEM";
/// The largest key file that is read.
const MAX_FILE: u64 = 64 << 10;

/// Where the key pair is.
#[derive(Debug, Args)]
pub(super) struct KeyOptions {
    /// File with the private key that signs tokens, in PEM; without it, the variable EC_PRIVATE_KEY_PEM holds the key, as PEM
    /// or as base64 of PEM
    #[arg(long, env = "KINDLING_EC_PRIVATE_KEY_FILE", value_name = "FILE")]
    ec_private_key_file: Option<PathBuf>,
    /// File with the public key that belongs to it; without it, the variable EC_PUBLIC_KEY_PEM may hold the key
    #[arg(long, env = "KINDLING_EC_PUBLIC_KEY_FILE", value_name = "FILE")]
    ec_public_key_file: Option<PathBuf>,
}

impl KeyOptions {
    /// Reads the key pair.
    pub(super) fn read(&self) -> Result<LocalKeys> {
        let Some((private, private_at)) = one(self.ec_private_key_file.as_deref(), PRIVATE)? else {
            bail!(
                "no private key is given: set {PRIVATE}, or name a file with --ec-private-key-file; `kindling auth keys` \
                 makes a key pair"
            );
        };
        let public = one(self.ec_public_key_file.as_deref(), PUBLIC)?;
        let keys = LocalKeys::parse(&private, public.as_ref().map(|(text, _)| text.as_str()));
        keys.with_context(|| match &public {
            Some((_, public_at)) => format!("the keys in {private_at} and {public_at} cannot be used"),
            None => format!("the key in {private_at} cannot be used"),
        })
    }
}

/// A key, and where it comes from.
fn one(file: Option<&Path>, name: &str) -> Result<Option<(String, String)>> {
    if let Some(path) = file {
        return Ok(Some((read_text(path, MAX_FILE)?, path.display().to_string())));
    }
    match variable(name).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some((text, name.to_owned()))),
        Some(Err(_)) => bail!("{name} holds bytes that are no text"),
    }
}

/// Reads a file that somebody names, as far as such a file goes.
pub(super) fn read_text(path: &Path, most: u64) -> Result<String> {
    let reading = || format!("reading {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(reading)?;
    file.take(most.saturating_add(1)).read_to_string(&mut text).with_context(reading)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > most {
        bail!("{} has more than {most} bytes", path.display());
    }
    Ok(text)
}

//! `kindling auth`: makes the keys and tokens of the authentication policy `local`.

mod keys;
mod token;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use super::environment::variable;
use inventory::auth::LocalKeys;

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

/// Environment variable with the private key, read if no option names a key file. No option takes the key itself,
/// because all users of the machine can see command lines.
pub(super) const PRIVATE: &str = "EC_PRIVATE_KEY_PEM";
/// Environment variable with the public key, read if no option names a key file.
pub(super) const PUBLIC: &str = "EC_PUBLIC_KEY_PEM";
/// Maximum length of a key file.
const MAX_FILE: u64 = 64 << 10;

/// Options that locate the key pair.
#[derive(Debug, Args)]
pub(super) struct KeyOptions {
    /// File with the private key that signs tokens, in PEM
    ///
    /// Without it, the key is read from EC_PRIVATE_KEY_PEM, as PEM or as base64-encoded PEM.
    #[arg(long, env = "KINDLING_EC_PRIVATE_KEY_FILE", value_name = "FILE")]
    ec_private_key_file: Option<PathBuf>,
    /// File with the public key, in PEM. Without it, the key is read from EC_PUBLIC_KEY_PEM, if set
    #[arg(long, env = "KINDLING_EC_PUBLIC_KEY_FILE", value_name = "FILE")]
    ec_public_key_file: Option<PathBuf>,
}

impl KeyOptions {
    /// Returns the option or variable that configures a key, for messages. If both keys are configured, returns the
    /// one for the private key. Returns `None` if no key is configured.
    pub(super) fn source(&self) -> Option<&'static str> {
        let sources = [
            (self.ec_private_key_file.is_some(), "--ec-private-key-file (KINDLING_EC_PRIVATE_KEY_FILE)"),
            (variable(PRIVATE).is_some(), PRIVATE),
            (self.ec_public_key_file.is_some(), "--ec-public-key-file (KINDLING_EC_PUBLIC_KEY_FILE)"),
            (variable(PUBLIC).is_some(), PUBLIC),
        ];
        sources.into_iter().find_map(|(is_set, source)| is_set.then_some(source))
    }

    /// Returns the file with the private key, if an option names it.
    pub(super) fn private_key_file(&self) -> Option<&Path> {
        self.ec_private_key_file.as_deref()
    }

    pub(super) fn read_keys(&self) -> Result<LocalKeys> {
        let Some((private, private_at)) = read_key(self.ec_private_key_file.as_deref(), PRIVATE)? else {
            bail!(
                "no private key: set {PRIVATE} or --ec-private-key-file; `kindling auth keys` makes a key pair"
            );
        };
        let public = read_key(self.ec_public_key_file.as_deref(), PUBLIC)?;
        let keys = LocalKeys::parse(&private, public.as_ref().map(|(text, _)| text.as_str()));
        keys.with_context(|| match &public {
            Some((_, public_at)) => format!("cannot use the keys in {private_at} and {public_at}"),
            None => format!("cannot use the key in {private_at}"),
        })
    }
}

/// Reads a key from `file`, or else from the variable `name`. Also returns the path or the variable, for messages.
fn read_key(file: Option<&Path>, name: &str) -> Result<Option<(String, String)>> {
    if let Some(path) = file {
        return Ok(Some((read_text(path, MAX_FILE)?, path.display().to_string())));
    }
    match variable(name).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some((text, name.to_owned()))),
        Some(Err(_)) => bail!("{name} is not valid UTF-8"),
    }
}

/// Reads a text file of at most `max_len` bytes.
pub(super) fn read_text(path: &Path, max_len: u64) -> Result<String> {
    let reading = || format!("reading {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(reading)?;
    file.take(max_len.saturating_add(1)).read_to_string(&mut text).with_context(reading)?;
    if text.len() as u64 > max_len {
        bail!("{} has more than {max_len} bytes", path.display());
    }
    Ok(text)
}

//! What may be chosen on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::bare::Way;
use crate::work::{self, Size, Work};

/// Kindling beside nginx, or beside another server, over HTTP: a per-cluster image against the same bytes in a file.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench-http", args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) mode: Option<Mode>,

    /// The `kindling` to run; without it target/release/kindling, which is built if there is none
    #[arg(long, value_name = "PATH")]
    pub(crate) kindling: Option<PathBuf>,

    /// The `nginx` to run
    #[arg(long, value_name = "PATH", default_value = "nginx")]
    pub(crate) nginx: PathBuf,

    /// Rounds of each measurement, after one that warms up
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Length of each measurement of rates, in seconds; answers that are under way are waited for
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,

    /// Length of the root file system of the image, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..=4095))]
    image_mib: u16,

    /// Only work whose short name has this in it, as `http-ranges` or `stream-4`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,

    /// One short round of everything with a small image, which shows that it runs and judges nothing
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure ranges with `kindling serve --fast-path off` in the same rounds too
    #[arg(long)]
    pub(crate) without_fast_path: bool,

    /// A file on another server, which takes the place of nginx
    #[arg(long)]
    pub(crate) url: Option<String>,

    /// What to call that server
    #[arg(long, default_value = "rival", requires = "url")]
    pub(crate) name: String,

    /// The process of that server, for its processor time and memory
    #[arg(long, requires = "url")]
    pub(crate) pid: Option<u32>,

    /// File with certificates, in PEM, of which that server has one
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,

    /// Folder for temporary files: four times the image. One in memory keeps the disk out of the figures
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Write all raw figures to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Measure nothing; take the figures from a file of --json
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) from: Option<PathBuf>,

    /// Write tables and plots into the page performance.md of this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,

    /// Measure nothing; tell on which lines two files of --json are on different sides of 1
    #[arg(long, value_names = ["A", "B"], num_args = 2, exclusive = true)]
    pub(crate) compare: Vec<PathBuf>,
}

/// What else it can do.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Mode {
    /// How cost grows: Kindling alone, with more and more hosts, infra-envs, live images, bytes and connections
    Scale(ScaleOptions),
    /// A server of one file that does nothing else, to measure others by
    Bare {
        /// What it answers with
        file: PathBuf,
        /// How bytes get to the kernel
        way: Way,
    },
}

/// What may be chosen for measurements of growth.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScaleOptions {
    /// The `kindling` to run; without it target/release/kindling, which is built if there is none
    #[arg(long, value_name = "PATH")]
    pub(crate) kindling: Option<PathBuf>,

    /// How often everything is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,

    /// Length of each measurement of rates, in seconds
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,

    /// Only what has this in its short name: hosts, infra-envs, live-images, image-length or connections
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,

    /// One short round with small numbers, which shows that it runs and judges nothing
    #[arg(long)]
    pub(crate) quick: bool,

    /// Folder for temporary files: 4 GiB, and it has to keep holes of files as holes
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Write all raw figures to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Measure nothing; take the figures from a file of --json
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) from: Option<PathBuf>,

    /// Write tables and plots into the page scale.md of this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

impl ScaleOptions {
    pub(crate) fn rounds(&self) -> u64 {
        if self.quick { 1 } else { u64::from(self.rounds) }
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 0.1 } else { self.seconds })
    }

    pub(crate) fn size(&self) -> Size {
        if self.quick { Size::Small } else { Size::Full }
    }

    /// As [`Options::command_line`].
    pub(crate) fn command_line(&self) -> String {
        let mut command = "cargo run --release -p bench-http -- scale".to_owned();
        if self.quick {
            command.push_str(" --quick");
        } else {
            command.push_str(&format!(" --rounds {} --seconds {}", self.rounds, self.seconds));
        }
        if let Some(only) = &self.only {
            command.push_str(&format!(" --only {only}"));
        }
        command
    }
}

impl Options {
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 1 } else { usize::from(self.rounds) }
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 0.1 } else { self.seconds })
    }

    pub(crate) fn rootfs_len(&self) -> u64 {
        let mib = if self.quick { 32 } else { u64::from(self.image_mib) };
        mib << 20
    }

    /// What is to be done.
    pub(crate) fn works(&self) -> Vec<Work> {
        work::chosen(self.only.as_deref(), if self.quick { Size::Small } else { Size::Full })
    }

    /// The command that makes such a run elsewhere: without names of files, which are nobody else's.
    pub(crate) fn command_line(&self) -> String {
        let mut command = "cargo run --release -p bench-http --".to_owned();
        if self.quick {
            command.push_str(" --quick");
        } else {
            command.push_str(&format!(" --rounds {} --seconds {}", self.rounds, self.seconds));
            if self.image_mib != 1024 {
                command.push_str(&format!(" --image-mib {}", self.image_mib));
            }
        }
        if let Some(only) = &self.only {
            command.push_str(&format!(" --only {only}"));
        }
        if self.without_fast_path {
            command.push_str(" --without-fast-path");
        }
        if self.url.is_some() {
            command.push_str(&format!(" --url URL --name {}", self.name));
        }
        command
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if (0.01..=600.0).contains(&seconds) { Ok(seconds) } else { Err("not in 0.01 to 600".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn options_fit_together() {
        Options::command().debug_assert();
        let parse = |words: &[&str]| Options::try_parse_from(["bench-http"].iter().chain(words));
        assert!(parse(&["--compare", "a", "b"]).is_ok());
        assert!(parse(&["scale", "--quick", "--only", "hosts", "--json", "a"]).is_ok());
        assert!(parse(&["bare", "a", "sendfile"]).is_ok());
        for words in [
            &["--compare", "a"][..],
            &["--compare", "a", "b", "--quick"],
            &["--pid", "1"],
            &["--quick", "scale"],
            &["scale", "--compare", "a", "b"],
            &["scale", "--rounds", "0"],
            &["bare", "a"],
            &["bare", "a", "splice"],
            &["--rounds", "0"],
            &["--seconds", "NaN"],
            &["--seconds", "-1"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_command_names_what_matters() {
        let command = |words: &[&str]| Options::parse_from(["bench-http"].iter().chain(words)).command_line();
        assert_eq!(command(&[]), "cargo run --release -p bench-http -- --rounds 9 --seconds 2");
        assert_eq!(
            command(&["--kindling", "/a/b", "--seconds", "0.5", "--only", "tls"]),
            "cargo run --release -p bench-http -- --rounds 9 --seconds 0.5 --only tls"
        );
        assert_eq!(
            command(&["--quick", "--without-fast-path"]),
            "cargo run --release -p bench-http -- --quick --without-fast-path"
        );
        let scale =
            |words: &[&str]| match Options::parse_from(["bench-http", "scale"].iter().chain(words)).mode {
                Some(Mode::Scale(scale)) => scale.command_line(),
                _ => String::new(),
            };
        assert_eq!(
            scale(&["--only", "hosts", "--folder", "/a"]),
            "cargo run --release -p bench-http -- scale --rounds 3 --seconds 2 --only hosts"
        );
        assert_eq!(scale(&["--quick"]), "cargo run --release -p bench-http -- scale --quick");
    }
}

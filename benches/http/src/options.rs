//! Command-line options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::bare::SendMethod;
use crate::work::{self, Size, Work};

/// Compare Kindling with nginx or another server over HTTP: a per-infra-env image against the same bytes in a file
#[derive(Debug, Clone, Parser)]
#[command(name = "bench-http", args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) mode: Option<Mode>,

    /// The `kindling` binary to measure [default: target/dist/kindling, built if missing]
    #[arg(long, value_name = "PATH")]
    pub(crate) kindling: Option<PathBuf>,

    /// The `nginx` binary to measure
    #[arg(long, value_name = "PATH", default_value = "nginx")]
    pub(crate) nginx: PathBuf,

    /// Rounds of each measurement, after one warm-up round
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Length of each measurement of rates in seconds; pending responses are finished
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,

    /// Length of the root file system of the image in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..=4095))]
    image_mib: u16,

    /// Only run work whose short name contains this text, such as `http-ranges` or `stream-4`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,

    /// Run one short round of everything with a small image, to check that the bench works
    #[arg(long)]
    pub(crate) quick: bool,

    /// Also measure ranges with `kindling serve --fast-path off` in the same rounds
    #[arg(long)]
    pub(crate) without_fast_path: bool,

    /// URL of a file on another server, measured instead of nginx
    #[arg(long)]
    pub(crate) url: Option<String>,

    /// Name of that server in the tables
    #[arg(long, default_value = "rival", requires = "url")]
    pub(crate) name: String,

    /// Process id of that server, for its CPU time and memory
    #[arg(long, requires = "url")]
    pub(crate) pid: Option<u32>,

    /// PEM file with certificates to trust for that server
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,

    /// Folder for temporary files, four times the size of the image; use one in memory to exclude the disk
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Write all raw measurements to this JSON file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Measure nothing; print the tables of a file that --json wrote
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) from: Option<PathBuf>,

    /// Write a summary into the page performance.md of this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,

    /// Measure nothing; compare two files that --json wrote, and show the ratios that are on different sides of 1
    #[arg(long, value_names = ["A", "B"], num_args = 2, exclusive = true)]
    pub(crate) compare: Vec<PathBuf>,
}

/// The other commands.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Mode {
    /// How cost grows: Kindling alone, with more and more hosts, infra-envs, base images, bytes and connections
    Scale(ScaleOptions),
    /// Cost of many hosts: images, lists, memory and a start while 10,000 agents check in; fails if a bound is missed
    Agents(AgentsOptions),
    /// Run a minimal server of one file, as a lower bound for others
    Bare {
        /// The file to serve
        file: PathBuf,
        /// How bytes are handed to the kernel
        way: SendMethod,
    },
}

/// Options of growth measurements.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScaleOptions {
    /// The `kindling` binary to measure [default: target/dist/kindling, built if missing]
    #[arg(long, value_name = "PATH")]
    pub(crate) kindling: Option<PathBuf>,

    /// Rounds of each measurement
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,

    /// Length of each measurement of rates in seconds
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,

    /// Only what has this in its short name: hosts, infra-envs, base-images, image-length or connections
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,

    /// Run one short round with small sizes, to check that the bench works
    #[arg(long)]
    pub(crate) quick: bool,

    /// Folder for temporary files, 4 GiB; its file system must support sparse files
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Write all raw measurements to this JSON file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Measure nothing; print the tables of a file that --json wrote
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) from: Option<PathBuf>,

    /// Write the tables into scale.md in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

/// Options of measurements with many hosts.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentsOptions {
    /// The `kindling` binary to measure [default: target/dist/kindling, built if missing]
    #[arg(long, value_name = "PATH")]
    pub(crate) kindling: Option<PathBuf>,

    /// Rounds of each measurement, after one warm-up round
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,

    /// Length of each measurement of rates and requests in seconds
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,

    /// Only what has this in its short name, such as ranges, check-ins, report or list
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,

    /// Run one short round with few hosts, to check that the bench works and all responses are right
    #[arg(long)]
    pub(crate) quick: bool,

    /// Folder for temporary files, 4 GiB
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// URL of a PostgreSQL server, on which databases are created and dropped with psql [default: SQLite files]
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,

    /// Write all raw measurements to this JSON file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl AgentsOptions {
    pub(crate) fn rounds(&self) -> u64 {
        if self.quick { 1 } else { u64::from(self.rounds) }
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 0.5 } else { self.seconds })
    }

    pub(crate) fn size(&self) -> Size {
        if self.quick { Size::Small } else { Size::Full }
    }

    /// Returns the command that repeats such a run elsewhere, like [`Options::command_line`].
    pub(crate) fn command_line(&self) -> String {
        let mut command = "cargo run --profile dist -p bench-http -- agents".to_owned();
        if self.quick {
            command.push_str(" --quick");
        } else {
            command.push_str(&format!(" --rounds {} --seconds {}", self.rounds, self.seconds));
        }
        if let Some(only) = &self.only {
            command.push_str(&format!(" --only {only}"));
        }
        if self.database.is_some() {
            command.push_str(" --database URL");
        }
        command
    }
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

    /// Returns the command that repeats such a run elsewhere, like [`Options::command_line`].
    pub(crate) fn command_line(&self) -> String {
        let mut command = "cargo run --profile dist -p bench-http -- scale".to_owned();
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

    pub(crate) fn works(&self) -> Vec<Work> {
        work::chosen(self.only.as_deref(), if self.quick { Size::Small } else { Size::Full })
    }

    /// Returns the command that repeats such a run elsewhere, without local file names.
    pub(crate) fn command_line(&self) -> String {
        let mut command = "cargo run --profile dist -p bench-http --".to_owned();
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
    if (0.01..=600.0).contains(&seconds) { Ok(seconds) } else { Err("not between 0.01 and 600".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn contradictory_options_are_refused() {
        Options::command().debug_assert();
        let parse = |words: &[&str]| Options::try_parse_from(["bench-http"].iter().chain(words));
        assert!(parse(&["--compare", "a", "b"]).is_ok());
        assert!(parse(&["scale", "--quick", "--only", "hosts", "--json", "a"]).is_ok());
        assert!(parse(&["bare", "a", "sendfile"]).is_ok());
        assert!(
            parse(&["agents", "--quick", "--only", "list", "--database", "postgres://a", "--json", "a"])
                .is_ok()
        );
        for words in [
            &["--compare", "a"][..],
            &["--compare", "a", "b", "--quick"],
            &["--pid", "1"],
            &["--quick", "scale"],
            &["scale", "--compare", "a", "b"],
            &["scale", "--rounds", "0"],
            &["agents", "--seconds", "0"],
            &["agents", "--nginx", "a"],
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
    fn command_line_lists_only_options_that_change_the_result() {
        let command = |words: &[&str]| Options::parse_from(["bench-http"].iter().chain(words)).command_line();
        assert_eq!(command(&[]), "cargo run --profile dist -p bench-http -- --rounds 9 --seconds 2");
        assert_eq!(
            command(&["--kindling", "/a/b", "--seconds", "0.5", "--only", "tls"]),
            "cargo run --profile dist -p bench-http -- --rounds 9 --seconds 0.5 --only tls"
        );
        assert_eq!(
            command(&["--quick", "--without-fast-path"]),
            "cargo run --profile dist -p bench-http -- --quick --without-fast-path"
        );
        let scale =
            |words: &[&str]| match Options::parse_from(["bench-http", "scale"].iter().chain(words)).mode {
                Some(Mode::Scale(scale)) => scale.command_line(),
                _ => String::new(),
            };
        assert_eq!(
            scale(&["--only", "hosts", "--folder", "/a"]),
            "cargo run --profile dist -p bench-http -- scale --rounds 3 --seconds 2 --only hosts"
        );
        assert_eq!(scale(&["--quick"]), "cargo run --profile dist -p bench-http -- scale --quick");
        let agents =
            |words: &[&str]| match Options::parse_from(["bench-http", "agents"].iter().chain(words)).mode {
                Some(Mode::Agents(agents)) => agents.command_line(),
                _ => String::new(),
            };
        assert_eq!(
            agents(&["--only", "list", "--kindling", "/a", "--database", "postgres://a:secret@b"]),
            "cargo run --profile dist -p bench-http -- agents --rounds 5 --seconds 10 --only list --database URL"
        );
    }
}

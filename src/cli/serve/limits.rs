//! What clients may take of the service.

use std::time::Duration;

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::duration;
use crate::http::Limits;

/// File descriptors that are used for other things than connections: the database, files, and what is fetched.
const OTHER_FILES: u64 = 256;

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitOptions {
    /// How many connections there may be at a time; further ones wait
    #[arg(long, env = "KINDLING_MAX_CONNECTIONS", value_name = "COUNT", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(64..))]
    max_connections: u32,
    /// How many of them one client address may have, as long as so many are free; half of them without it. Further ones are
    /// answered with 503, and closed at once where there is TLS
    #[arg(long, env = "KINDLING_MAX_CLIENT_CONNECTIONS", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    max_client_connections: Option<u32>,
    /// How many requests for images are answered at a time, up to the first byte of the image; further ones wait
    #[arg(long, env = "MAX_CONCURRENT_REQUESTS", value_name = "COUNT", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrent_requests: u32,
    /// How long the head of a request may take to come
    #[arg(long, env = "KINDLING_HEAD_TIMEOUT", value_name = "DURATION", default_value = "30s", value_parser = some_time)]
    head_timeout: Duration,
    /// How long a connection may wait for its next request
    #[arg(long, env = "KINDLING_IDLE_TIMEOUT", value_name = "DURATION", default_value = "5m", value_parser = some_time)]
    idle_timeout: Duration,
    /// How long a TLS handshake may take
    #[arg(long, env = "KINDLING_HANDSHAKE_TIMEOUT", value_name = "DURATION", default_value = "20s", value_parser = some_time)]
    handshake_timeout: Duration,
    /// How long a client may take nothing at all of what it asked for, or send nothing of what it announced
    #[arg(long, env = "KINDLING_STALL_TIMEOUT", value_name = "DURATION", default_value = "10m", value_parser = some_time)]
    stall_timeout: Duration,
    /// How long downloads may go on after SIGTERM
    #[arg(long, env = "KINDLING_DRAIN_TIME", value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    drain_time: Duration,
}

/// A duration that is one.
fn some_time(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("expected a duration that is not 0".to_owned()),
        duration => Ok(duration),
    }
}

impl LimitOptions {
    pub(super) fn limits(&self) -> Limits {
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let of_client = self.max_client_connections.unwrap_or(self.max_connections / 2);
        Limits {
            connections: count(self.max_connections),
            connections_of_client: count(of_client),
            head_time: self.head_timeout,
            idle_time: self.idle_timeout,
            handshake_time: self.handshake_timeout,
            stall_time: self.stall_timeout,
            grace: self.drain_time,
            ..Limits::default()
        }
    }

    pub(super) fn concurrent_requests(&self) -> usize {
        usize::try_from(self.max_concurrent_requests).unwrap_or(usize::MAX)
    }

    /// Lets this process have as many files open as it needs for its connections. Most systems give 1024 to who does not
    /// ask.
    pub(super) fn allow_files(&self) {
        let wanted = u64::from(self.max_connections).saturating_add(OTHER_FILES);
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        if current.is_none_or(|current| current >= wanted) {
            return;
        }
        let most = maximum.map_or(wanted, |maximum| maximum.min(wanted));
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        } else if most < wanted {
            tracing::warn!(most, wanted, "there may be fewer files open than connections need");
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        limits: LimitOptions,
    }

    #[test]
    fn options_have_the_defaults_of_the_server() {
        let limits = Command::try_parse_from(["test"]).unwrap().limits;
        assert_eq!(limits.concurrent_requests(), crate::http::images::MAX_REQUESTS);
        assert_eq!(format!("{:?}", limits.limits()), format!("{:?}", Limits::default()));
        let limits = Command::try_parse_from(["test", "--max-connections", "100"]).unwrap().limits.limits();
        assert_eq!((limits.connections, limits.connections_of_client), (100, 50));
        Command::try_parse_from(["test", "--idle-timeout", "0"]).unwrap_err();
    }
}

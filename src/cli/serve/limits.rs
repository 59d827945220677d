//! The options for limits and timeouts.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::duration;
use crate::http::ServerLimits;
use crate::http::images::{BASE_IMAGE_WAIT, ImageServer, MAX_REQUESTS};

/// Number of threads for the database, files and downloads. In addition, there are two threads for each CPU: one for
/// connections and one for other tasks.
const OTHER_THREADS: usize = 4;
/// Number of file descriptors for the database, files and downloads, in addition to the connections.
const OTHER_FILES: u64 = 256;

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitOptions {
    /// Maximum number of connections; further connections wait
    #[arg(long, env = "KINDLING_MAX_CONNECTIONS", value_name = "COUNT", default_value = ServerLimits::default().connections.to_string(), value_parser = clap::value_parser!(u32).range(64..))]
    max_connections: u32,
    /// Maximum number of connections from one client address, lower while few connections are free [default: half of
    /// --max-connections]. Further connections get a 503 response, or are closed immediately on TLS listeners
    #[arg(long, env = "KINDLING_MAX_CLIENT_CONNECTIONS", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    max_client_connections: Option<u32>,
    /// Maximum number of image requests in progress, up to the first byte of the image; further requests wait
    #[arg(long, env = "MAX_CONCURRENT_REQUESTS", value_name = "COUNT", default_value = MAX_REQUESTS.to_string(), value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrent_requests: u32,
    /// How long a request waits for a base image that is being downloaded, before it gets a 503 response with
    /// Retry-After
    #[arg(long, env = "KINDLING_BASE_IMAGE_WAIT", value_name = "DURATION", default_value = duration::format_duration(BASE_IMAGE_WAIT), value_parser = duration::parse_duration)]
    base_image_wait: Duration,
    /// How long a request head may take to arrive
    #[arg(long, env = "KINDLING_HEAD_TIMEOUT", value_name = "DURATION", default_value = duration::format_duration(ServerLimits::default().head_time), value_parser = parse_positive_duration)]
    head_timeout: Duration,
    /// How long a connection may wait for its next request
    #[arg(long, env = "KINDLING_IDLE_TIMEOUT", value_name = "DURATION", default_value = duration::format_duration(ServerLimits::default().idle_time), value_parser = parse_positive_duration)]
    idle_timeout: Duration,
    /// How long a TLS handshake may take
    #[arg(long, env = "KINDLING_HANDSHAKE_TIMEOUT", value_name = "DURATION", default_value = duration::format_duration(ServerLimits::default().handshake_time), value_parser = parse_positive_duration)]
    handshake_timeout: Duration,
    /// How long a client may pause while it reads a response or sends a request body
    #[arg(long, env = "KINDLING_STALL_TIMEOUT", value_name = "DURATION", default_value = duration::format_duration(ServerLimits::default().stall_time), value_parser = parse_positive_duration)]
    stall_timeout: Duration,
    /// How long downloads may continue after SIGTERM
    #[arg(long, env = "KINDLING_DRAIN_TIME", value_name = "DURATION", default_value = duration::format_duration(ServerLimits::default().grace), value_parser = duration::parse_duration)]
    drain_time: Duration,
}

/// Parses a duration that is not zero.
fn parse_positive_duration(text: &str) -> Result<Duration, String> {
    match duration::parse_duration(text)? {
        Duration::ZERO => Err("expected a duration greater than 0".to_owned()),
        duration => Ok(duration),
    }
}

impl LimitOptions {
    pub(super) fn server_limits(&self) -> ServerLimits {
        // A limit above `usize::MAX` has no effect, so saturate.
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let connections = count(self.max_connections);
        ServerLimits {
            connections,
            connections_of_client: self
                .max_client_connections
                .map_or(ServerLimits::default_client_share(connections), count),
            head_time: self.head_timeout,
            idle_time: self.idle_timeout,
            handshake_time: self.handshake_timeout,
            stall_time: self.stall_timeout,
            grace: self.drain_time,
            ..ServerLimits::default()
        }
    }

    /// Applies the limits of image requests.
    pub(super) fn configure_images(&self, images: ImageServer) -> ImageServer {
        let requests = usize::try_from(self.max_concurrent_requests).unwrap_or(usize::MAX);
        images.with_request_slots(requests).with_base_image_wait(self.base_image_wait)
    }

    /// Raises this process's limit of open files, because most systems set 1024, which is too low for the connections.
    pub(super) fn raise_open_file_limit(&self) {
        let required = u64::from(self.max_connections).saturating_add(OTHER_FILES);
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        if current.is_none_or(|current| current >= required) {
            return;
        }
        let most = maximum.map_or(required, |maximum| maximum.min(required));
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }) {
            tracing::warn!(%error, "cannot raise the limit of open files");
        } else if most < required {
            tracing::warn!(most, wanted = required, "limit of open files is lower than connections need");
        }
    }
}

/// Checks that this process can start the threads that it needs. If a thread could not be started later, the async
/// runtime would wait for it forever.
///
/// # Errors
///
/// Returns an error if the system refuses a thread.
pub(super) fn require_threads() -> Result<()> {
    let count =
        available_parallelism().map_or(1, NonZero::get).saturating_mul(2).saturating_add(OTHER_THREADS);
    // All threads wait for this lock, so that they exist at the same time.
    let gate = Mutex::new(());
    let started = thread::scope(|scope| {
        let _closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..count {
            thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()))?;
        }
        std::io::Result::Ok(())
    });
    started.with_context(|| {
        format!(
            "cannot start {count} threads; raise the limit of processes (ulimit -u, TasksMax= of systemd, pids.max of \
             the cgroup)"
        )
    })
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
    fn client_may_have_half_of_the_connections() {
        let limits =
            Command::try_parse_from(["test", "--max-connections", "100"]).unwrap().limits.server_limits();
        assert_eq!((limits.connections, limits.connections_of_client), (100, 50));
    }

    #[test]
    fn rejects_a_timeout_of_zero() {
        Command::try_parse_from(["test", "--idle-timeout", "0"]).unwrap_err();
    }
}

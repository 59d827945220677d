//! Logs downloads of image files, with their size, duration and rate.
//!
//! BMCs read an image in thousands of ranges, and the boot trace reports these. So only a response with the whole file,
//! or with a long part up to its end, counts as a download.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use inventory::id::InfraEnvId;

use crate::http::content::AnswerBody;
use crate::http::listener::ClientAddress;

/// Minimum length of a response that counts as a resumed download. It must reach the end of the file.
const MIN_REST: u64 = 1 << 20;

/// A file that a client downloads.
#[derive(Clone, Copy, Debug)]
pub(super) struct DownloadedFile {
    pub(super) client: ClientAddress,
    /// The infra-env, if the URL selects one.
    pub(super) infra_env: Option<InfraEnvId>,
    pub(super) name: &'static str,
    pub(super) len: u64,
}

/// A download in progress. Dropping it logs the end.
#[derive(Debug)]
pub(super) struct DownloadLog {
    file: DownloadedFile,
    status: StatusCode,
    expected: u64,
    sent: u64,
    start: Instant,
}

impl DownloadLog {
    /// Starts the record of a response. Returns `None` if the response does not count as a download.
    pub(super) fn begin(
        file: DownloadedFile,
        (status, body): (StatusCode, &AnswerBody),
        start: Instant,
    ) -> Option<Self> {
        let span = body.byte_span()?;
        let expected = span.end.saturating_sub(span.start);
        let is_download = span.end == file.len && (span.start == 0 || expected >= MIN_REST);
        is_download.then_some(Self { file, status, expected, sent: 0, start })
    }

    /// Adds `len` bytes passed to the connection.
    pub(super) fn record_sent(&mut self, len: u64) {
        self.sent = self.sent.saturating_add(len);
    }
}

impl Drop for DownloadLog {
    fn drop(&mut self) {
        let DownloadedFile { client, infra_env, name, .. } = self.file;
        let (bytes, status, took) = (self.sent, self.status.as_u16(), self.start.elapsed());
        macro_rules! log_end {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    %client,
                    file = name,
                    infra_env = infra_env.map(tracing::field::display),
                    status,
                    bytes,
                    of = self.expected,
                    seconds = %format_args!("{:.3}", took.as_secs_f64()),
                    mib_per_second = %format_args!("{:.1}", mib_per_second(bytes, took)),
                    $message
                )
            };
        }
        if bytes >= self.expected {
            log_end!(info, "download finished");
        } else if self.status == StatusCode::PARTIAL_CONTENT {
            // Log this only at `debug`, because some clients request all bytes up to the end, and disconnect when they
            // have received the bytes that they need.
            log_end!(debug, "download broke off");
        } else {
            log_end!(info, "download broke off");
        }
    }
}

fn mib_per_second(bytes: u64, took: Duration) -> f64 {
    const MIB: f64 = 1024.0 * 1024.0;
    /// Minimum duration in seconds: the resolution of the clock. It keeps the rate of a short download finite.
    const SHORTEST: f64 = 1e-6;
    bytes as f64 / MIB / took.as_secs_f64().max(SHORTEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_finite() {
        assert!((mib_per_second(10 << 20, Duration::from_secs(2)) - 5.0).abs() < 1e-9);
        assert!(mib_per_second(1 << 40, Duration::ZERO).is_finite());
    }
}

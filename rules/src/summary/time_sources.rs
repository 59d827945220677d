//! The time servers of a host, from the agent's reply to `ntp-synchronizer`.

use assisted::List;
use assisted::reply::NtpSource;

use super::compact::compact;
use super::excess::{ExcessLog, ExcessPart, ListLimit};
use super::limits::{MAX_TEXT, MAX_TIME_SOURCES, MAX_TIME_STATE};

const TIME_SOURCES: ListLimit = ListLimit::new(ExcessPart::TimeSources, MAX_TIME_SOURCES);

compact! {
    /// A time server of a host, and its state.
    #[derive(Eq)]
    TimeSource {
        /// Name or address of the server.
        name: Box<str>,
        /// State of the synchronization, such as `synced`.
        state: Box<str>,
    }
}

/// Converts the reply of the agent into a summary.
pub(super) fn read_time_sources(log: &mut ExcessLog, report: &List<NtpSource<'_>>) -> Vec<TimeSource> {
    log.list(TIME_SOURCES, report.iter(), |log, source| TimeSource {
        name: log.text(&source.source_name, MAX_TEXT),
        state: log.text(&source.source_state, MAX_TIME_STATE),
    })
}

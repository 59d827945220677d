//! Connectivity to the Tang servers, from the agent's reply to `tang-connectivity-check`.

use assisted::reply::TangReport;

use super::compact::compact;
use super::excess::ExcessLog;
use super::limits::MAX_ERROR_TEXT;

compact! {
    /// The connectivity of a host to its Tang servers.
    #[derive(Eq)]
    TangServers {
        /// Whether the host reached all servers.
        is_success: bool,
        /// Error message of a failed check.
        error: Box<str>,
    }
}

/// Converts the report, or the error output of a failed step, into a summary.
pub(super) fn read_tang(log: &mut ExcessLog, result: Result<&TangReport<'_>, &str>) -> TangServers {
    match result {
        Ok(report) => TangServers { is_success: report.is_success, error: "".into() },
        Err(error) => TangServers { is_success: false, error: log.text(error, MAX_ERROR_TEXT) },
    }
}

//! Connectivity to the Tang servers, from the reply to `tang-connectivity-check`.

use assisted::reply::TangReport;

use super::compact::compact;
use super::excess::ExcessLog;
use super::limits::MAX_ERROR_TEXT;

compact! {
    /// Connectivity to the Tang servers.
    #[derive(Eq)]
    TangServers {
        /// Whether all servers answered.
        is_success: bool,
        /// Text of a failure.
        error: Box<str>,
    }
}

/// Returns the connectivity in a report, or in the error output of the step.
pub(super) fn read_tang(log: &mut ExcessLog, result: Result<&TangReport<'_>, &str>) -> TangServers {
    match result {
        Ok(report) => TangServers { is_success: report.is_success, error: "".into() },
        Err(error) => TangServers { is_success: false, error: log.text(error, MAX_ERROR_TEXT) },
    }
}

//! Downloads of logs: the parameters and the response.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::api::{ApiError, Query, header_value};
use crate::id::HostId;
use crate::service::logs::{LogsDownload, RequestedLogs};

#[derive(Clone, Copy, Debug)]
enum LogsType {
    Host,
    Controller,
    All,
}

/// Reads the query parameter `logs_type`.
pub(super) fn requested_logs(query: &Query, host: Option<HostId>) -> Result<RequestedLogs, ApiError> {
    const KINDS: [(&str, LogsType); 3] =
        [("host", LogsType::Host), ("controller", LogsType::Controller), ("all", LogsType::All)];
    match (query.choice("logs_type", &KINDS)?, host) {
        (Some(LogsType::Controller), _) => Ok(RequestedLogs::Controller),
        (None | Some(LogsType::Host), Some(host)) => Ok(RequestedLogs::Host(host)),
        (Some(LogsType::Host), None) => Err(ApiError::bad("host_id is required for the logs of a host")),
        (None, None) | (Some(LogsType::All), _) => Ok(RequestedLogs::All),
    }
}

pub(super) fn attachment(download: LogsDownload) -> Result<Response, ApiError> {
    let disposition = header_value(&format!("attachment; filename=\"{}\"", download.name))?;
    let mut response = Response::new(Body::from_stream(download.content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, disposition);
    if let Some(len) = download.len {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(len));
    }
    Ok(response)
}

//! Calls the external service with the caller's credentials. If a call fails, creates the error for the caller.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use ignition::discovery::kernel_arguments::KernelArguments;
use isogen::PackedArchive;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url, redirect};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio_rustls::rustls::ClientConfig;

use super::image_kind::ImageKind;
use super::outage::{CallError, OutageState, unreachable_error};
use super::settings::ExternalSettings;
use crate::http::images::inputs::ImageCredentials;
use crate::trust;
use inventory::api::ApiError;
use inventory::catalogue::CpuArchitecture;
use inventory::id::InfraEnvId;
use inventory::{Secret, Settings};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a call that only checks whether the service responds.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// Maximum size of a response. The config of a full image for a thousand hosts is a tenth of this.
const MAX_ANSWER: usize = 64 << 20;
/// Maximum number of redirects. All must stay within the same origin.
const MAX_REDIRECTS: usize = 3;
const IMAGE_TOKEN: HeaderName = HeaderName::from_static("image-token");

/// An error that prevents all calls to the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// The certificate file cannot be used.
    #[error("cannot use the certificates in {}", path.display())]
    Certificates {
        /// The file with additional certificates in PEM format.
        path: PathBuf,
        /// Why the file cannot be read or parsed.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No HTTP client can be created.
    #[error("cannot set up requests to the external inventory")]
    Client {
        /// The error of the HTTP client library.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// The image and the caller's credentials.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallSubject<'a> {
    pub(super) id: InfraEnvId,
    pub(super) kind: ImageKind,
    pub(super) access: &'a ImageCredentials,
}

/// The condition of a request: the service sends the config only if it has changed.
#[derive(Clone, Debug, Default)]
pub(super) struct CallCondition {
    pub(super) none_match: Option<String>,
    pub(super) modified_since: Option<DateTime<Utc>>,
}

/// A response with a config, or without one if it is unchanged.
#[derive(Clone, Debug)]
pub(super) struct ConfigAnswer {
    /// `None` if the config is unchanged.
    pub(super) body: Option<Bytes>,
    /// The entity tag, if it is a strong one.
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<DateTime<Utc>>,
    /// When the call was made, by the clock of the service. It may be slightly too early.
    pub(super) called_at: Option<DateTime<Utc>>,
}

/// An HTTP client for the service.
#[derive(Debug)]
pub(super) struct ServiceClient {
    client: Client,
    /// The URL of the service, without a path.
    root: String,
    base: String,
    outage: OutageState,
    /// When the last check of the service began. Locked during a check.
    checked_at: tokio::sync::Mutex<Option<Instant>>,
}

impl ServiceClient {
    pub(super) fn new(settings: &ExternalSettings) -> Result<Self, ExternalError> {
        let builder = Client::builder()
            .user_agent(concat!("kindling/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::custom(follow_redirect))
            // The URL of a call may contain the caller's key, so do not send it as `Referer`.
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(settings.patience);
        let builder = match &settings.ca_file {
            None => builder,
            Some(path) => builder.tls_backend_preconfigured(tls_config_trusting(path)?),
        };
        let client = builder.build().map_err(|error| ExternalError::Client { source: error.into() })?;
        let base = settings.url.as_str().trim_end_matches('/');
        Ok(Self {
            client,
            root: base.to_owned(),
            base: format!("{base}{}/v2/infra-envs", Settings::API),
            outage: OutageState::new(settings.retry),
            checked_at: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn outage(&self) -> &OutageState {
        &self.outage
    }

    /// Checks whether the service responds, if there is an outage and the next call is allowed.
    pub(super) async fn probe(&self) {
        if self.outage.take_retry() {
            self.check().await;
        }
    }

    /// Checks whether the service responds to any request. Called after a failed call, because the failure may concern
    /// one infra-env only. Concurrent callers share one check.
    pub(super) async fn check(&self) {
        let arrived = Instant::now();
        let mut checked_at = self.checked_at.lock().await;
        if checked_at.is_some_and(|at| at >= arrived) {
            return;
        }
        *checked_at = Some(Instant::now());
        let probe = self.client.get(format!("{}/ready", self.root)).timeout(PROBE_PATIENCE);
        match probe.send().await {
            Ok(_) => self.outage.end(),
            Err(_) => self.outage.begin(),
        }
    }

    /// Returns the response with the Ignition config. The config is present only if it does not match the condition.
    pub(super) async fn config(
        &self,
        subject: &CallSubject<'_>,
        condition: &CallCondition,
    ) -> Result<ConfigAnswer, CallError> {
        let mut query = Vec::from_iter(subject.kind.iso_type().map(|kind| ("discovery_iso_type", kind)));
        query.push(("file_name", "discovery.ign"));
        let start = Instant::now();
        let response = self.get(subject, "/downloads/files", (&query, condition.headers())).await?;
        let headers = response.headers();
        // Subtract the whole round trip from `Date`, so that the result is never later than the call.
        let elapsed = TimeDelta::from_std(start.elapsed()).unwrap_or(TimeDelta::MAX);
        let called_at = header_date(headers, &header::DATE).and_then(|date| date.checked_sub_signed(elapsed));
        // A 304 response to `If-Modified-Since` need not repeat `Last-Modified`. The time of the request then still
        // applies.
        let is_not_modified = response.status() == StatusCode::NOT_MODIFIED;
        let unchanged_since = condition.modified_since.filter(|_| is_not_modified);
        let last_modified = header_date(headers, &header::LAST_MODIFIED).or(unchanged_since);
        let etag =
            header_text(headers, &header::ETAG).filter(|etag| etag.starts_with('"')).map(str::to_owned);
        let body = match response.status() {
            StatusCode::OK => Some(read_body(response).await?),
            StatusCode::NOT_MODIFIED if condition.is_conditional() => None,
            status => return Err(status_error(status)),
        };
        Ok(ConfigAnswer { body, etag, last_modified, called_at })
    }

    /// Returns the archive with network files for early boot. Empty if the service has none.
    pub(super) async fn early_boot_archive(
        &self,
        subject: &CallSubject<'_>,
    ) -> Result<PackedArchive, CallError> {
        let response = self.get(subject, "/downloads/minimal-initrd", (&[], HeaderMap::new())).await?;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(PackedArchive::default()),
            status if status.is_success() => read_body(response).await.map(PackedArchive::from_encoded),
            status => Err(status_error(status)),
        }
    }

    pub(super) async fn infra_env(&self, subject: &CallSubject<'_>) -> Result<RemoteInfraEnv, CallError> {
        let response = self.get(subject, "", (&[], HeaderMap::new())).await?;
        if response.status() != StatusCode::OK {
            return Err(status_error(response.status()));
        }
        let body = read_body(response).await?;
        serde_json::from_slice(&body)
            .map_err(|_| invalid_answer_error("the infra-env is not valid JSON").into())
    }

    pub(super) async fn ipxe_script(&self, subject: &CallSubject<'_>) -> Result<String, CallError> {
        let query = [("file_name", "ipxe-script")];
        let response = self.get(subject, "/downloads/files", (&query, HeaderMap::new())).await?;
        if response.status() != StatusCode::OK {
            return Err(status_error(response.status()));
        }
        let body = read_body(response).await?;
        let script = std::str::from_utf8(&body).ok().filter(|script| script.starts_with("#!ipxe"));
        script.map(str::to_owned).ok_or_else(|| invalid_answer_error("not an iPXE script").into())
    }

    async fn get(
        &self,
        subject: &CallSubject<'_>,
        path: &str,
        (query, mut headers): (&[(&str, &str)], HeaderMap),
    ) -> Result<Response, CallError> {
        self.outage.require_due()?;
        let whole = format!("{}/{}{path}", self.base, subject.id);
        let mut url =
            Url::parse(&whole).map_err(|_| ApiError::internal("the external inventory has no valid URL"))?;
        let path = url.path().to_owned();
        let key = match subject.access {
            ImageCredentials::ApiKey(token) => Some(("api_key", token.reveal())),
            _ => None,
        };
        // Sort the parameters by name, like the Assisted Image Service.
        let query: Vec<_> = key.into_iter().chain(query.iter().copied()).collect();
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        match subject.access {
            ImageCredentials::ImageToken(token) => insert_token(&mut headers, IMAGE_TOKEN, token)?,
            ImageCredentials::Authorization(token) => {
                insert_token(&mut headers, header::AUTHORIZATION, token)?
            }
            ImageCredentials::Nothing | ImageCredentials::ApiKey(_) => {}
        }
        let start = Instant::now();
        let response = self.client.get(url).headers(headers).send().await;
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                if error.is_connect() {
                    self.outage.begin();
                } else {
                    self.check().await;
                }
                return Err(failed_call_error(&path, error));
            }
        };
        self.outage.end();
        let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::debug!(path, status = response.status().as_u16(), micros, "external inventory responded");
        Ok(response)
    }
}

/// The fields of an infra-env that images depend on.
#[derive(Debug, Deserialize)]
pub(super) struct RemoteInfraEnv {
    kernel_arguments: Option<String>,
    openshift_version: Option<String>,
    cpu_architecture: Option<String>,
}

impl RemoteInfraEnv {
    pub(super) fn kernel_arguments(&self) -> Result<KernelArguments, ApiError> {
        let text = self.kernel_arguments.as_deref().unwrap_or_default();
        KernelArguments::parse(text).map_err(|error| invalid_answer_error(&error.to_string()))
    }

    pub(super) fn base_image_version(&self) -> Result<(String, CpuArchitecture), ApiError> {
        let version = self.openshift_version.clone().filter(|version| !version.is_empty());
        let architecture = self.cpu_architecture.as_deref().unwrap_or("x86_64");
        version.zip(CpuArchitecture::from_name(architecture)).ok_or_else(|| {
            invalid_answer_error("infra-env without a version or with an unknown CPU architecture")
        })
    }
}

impl CallCondition {
    fn is_conditional(&self) -> bool {
        self.none_match.is_some() || self.modified_since.is_some()
    }

    fn headers(&self) -> HeaderMap {
        let since = self.modified_since.map(|since| since.format("%a, %d %b %Y %H:%M:%S GMT").to_string());
        let mut headers = HeaderMap::new();
        for (name, text) in
            [(header::IF_NONE_MATCH, self.none_match.as_ref()), (header::IF_MODIFIED_SINCE, since.as_ref())]
        {
            // The values come from headers of the service, so they are valid header values. If a value were invalid,
            // the request would omit it, and the response would contain the whole config.
            if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }
}

/// Follows redirects only within the same origin (scheme, host and port). Other servers must not receive the caller's
/// credentials.
fn follow_redirect(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let Some(from) = attempt.previous().last() else { return attempt.stop() };
    if from.origin() == attempt.url().origin() && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn tls_config_trusting(path: &Path) -> Result<ClientConfig, ExternalError> {
    let pem = fs::read(path).map_err(Into::into);
    let config = pem.and_then(|pem| trust::client_config(&pem));
    config.map_err(|source| ExternalError::Certificates { path: path.to_owned(), source })
}

fn insert_token(headers: &mut HeaderMap, name: HeaderName, token: &Secret) -> Result<(), ApiError> {
    let unfit = |_| ApiError::infra_error(StatusCode::UNAUTHORIZED, "token contains invalid characters");
    let mut value = HeaderValue::from_str(token.reveal()).map_err(unfit)?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// Reads the body of a response. Returns an error if the body is too long.
async fn read_body(mut response: Response) -> Result<Bytes, CallError> {
    let path = response.url().path().to_owned();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed_call_error(&path, error))? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(invalid_answer_error(&format!("larger than {MAX_ANSWER} bytes")).into());
        }
        body.extend_from_slice(&chunk);
    }
    // The boxed slice has no spare capacity, which could be as large as the body.
    Ok(body.into_boxed_slice().into())
}

/// Returns an error if the body is not a config, for example if it is an error page of a proxy.
pub(super) fn require_config(body: &[u8]) -> Result<(), ApiError> {
    let is_object = body.trim_ascii_start().starts_with(b"{");
    if is_object && serde_json::from_slice::<IgnoredAny>(body).is_ok() {
        return Ok(());
    }
    Err(invalid_answer_error("the config is not a JSON object"))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn header_date(headers: &HeaderMap, name: &HeaderName) -> Option<DateTime<Utc>> {
    let date = DateTime::parse_from_rfc2822(header_text(headers, name)?).ok()?;
    Some(date.with_timezone(&Utc))
}

/// Returns the error for an unexpected status. A 4xx or 5xx status is passed on to the caller. Any other status becomes
/// 502, so that it cannot look like an image.
fn status_error(status: StatusCode) -> CallError {
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        return invalid_answer_error(
            "a redirect to another scheme, host or port, or too many redirects; use the final URL of the inventory",
        )
        .into();
    }
    if !status.is_client_error() && !status.is_server_error() {
        return invalid_answer_error(&format!("unexpected status {status}")).into();
    }
    let error = ApiError::new(status, format!("the external inventory returned {status}"));
    match status {
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            CallError::Unavailable(error)
        }
        _ => CallError::Refused(error),
    }
}

/// Returns the error for a failed call. The path and the cause are only logged.
fn failed_call_error(path: &str, error: reqwest::Error) -> CallError {
    let is_late = error.is_timeout();
    let error = error.without_url();
    tracing::warn!(path, error = &error as &dyn Error, "request to the external inventory failed");
    unreachable_error(if is_late {
        "the external inventory did not respond in time; try again"
    } else {
        "cannot reach the external inventory; try again"
    })
}

/// Returns the error for a response that an Assisted Service would not send.
pub(super) fn invalid_answer_error(what: &str) -> ApiError {
    tracing::warn!(response = what, "invalid response from the external inventory");
    ApiError::new(
        StatusCode::BAD_GATEWAY,
        "invalid response from the external inventory; see the service's log",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_error_statuses_are_relayed() {
        for status in [400, 401, 403, 404, 409, 500, 503] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(ApiError::from(status_error(status)).status(), status);
        }
        for status in [100, 202, 204, 206, 302, 304] {
            let error = ApiError::from(status_error(StatusCode::from_u16(status).unwrap()));
            assert_eq!(error.status(), StatusCode::BAD_GATEWAY);
        }
    }

    #[test]
    fn rejects_bodies_that_are_not_a_config() {
        require_config(b" {\"ignition\": {}}\n").unwrap();
        for body in ["", "<html>", "[]", "{", "{} {}", "\"{}\"", "\u{1f}\u{8b}"] {
            require_config(body.as_bytes()).unwrap_err();
        }
    }

    #[test]
    fn http_dates_are_parsed_and_sent_back() {
        let mut headers = HeaderMap::new();
        headers.insert(header::DATE, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
        let date = header_date(&headers, &header::DATE).unwrap();
        assert_eq!(date.timestamp(), 784_111_777);
        let condition = CallCondition { none_match: None, modified_since: Some(date) };
        assert_eq!(condition.headers()[header::IF_MODIFIED_SINCE], headers[header::DATE]);
        headers.insert(header::DATE, HeaderValue::from_static("yesterday"));
        assert_eq!(header_date(&headers, &header::DATE), None);
    }

    #[test]
    fn rejects_unusable_certificate_files() {
        let directory = tempfile::TempDir::new().unwrap();
        let empty = directory.path().join("empty.pem");
        fs::write(&empty, "").unwrap();
        for path in [empty, directory.path().join("missing.pem")] {
            let error = tls_config_trusting(&path).unwrap_err();
            assert!(matches!(&error, ExternalError::Certificates { path: of, .. } if *of == path), "{error}");
        }
    }
}

//! The URLs of an infra-env's images and files.

use assisted::Secret;
use discovery::ImageRevision;
use ignition::discovery::HttpUrl;

use super::record::InfraEnvRecord;
use crate::Settings;
use crate::id::{ClusterId, HostId};

/// Returns the URL of one revision of an infra-env's image, or of the current image. The firmware of servers requires
/// that the URL is short, has no query, and ends in `.iso`.
pub(crate) fn image(record: &InfraEnvRecord, revision: Option<ImageRevision>, settings: &Settings) -> String {
    let place = match record.url_token.reveal() {
        "" => format!("byid/{}", record.id),
        token => format!("byapikey/{token}"),
    };
    let (version, architecture) = (&record.image.os_image, record.cpu_architecture);
    let file = record.image.image_type.file_name();
    let revision = revision.map(|revision| format!("{revision}/")).unwrap_or_default();
    let path = format!("{place}/{version}/{architecture}/{revision}{file}");
    join_url(&settings.image_service_base_url, &path)
}

/// Returns the token in the URL of an infra-env's image, or `None` if the URL contains no token.
#[must_use]
pub fn token_of_image_url(url: &str) -> Option<Secret> {
    let (_, rest) = url.split_once("/byapikey/")?;
    let (token, _) = rest.split_once('/')?;
    Some(Secret::new(token.to_owned()))
}

/// Returns the URL of a file of an infra-env. The query parameters are sorted by name.
pub(crate) fn file(
    record: &InfraEnvRecord,
    file_name: &str,
    ipxe_script_type: Option<&str>,
    settings: &Settings,
) -> String {
    let mut query = format!("{}file_name={file_name}", api_key(record));
    if let Some(kind) = ipxe_script_type {
        query.push_str(&format!("&ipxe_script_type={kind}"));
    }
    service(&format!("infra-envs/{}/downloads/files?{query}", record.id), settings)
}

pub(crate) fn events(record: &InfraEnvRecord, settings: &Settings) -> String {
    service(&format!("events?{}infra_env_id={}", api_key(record), record.id), settings)
}

pub(crate) fn host_events(record: &InfraEnvRecord, host: HostId, settings: &Settings) -> String {
    service(&format!("events?{}host_id={host}", api_key(record)), settings)
}

/// Returns the URL of the logs that a host has uploaded for a cluster.
pub(crate) fn host_logs(cluster: ClusterId, host: HostId, settings: &Settings) -> String {
    service(&format!("clusters/{cluster}/logs?host_id={host}&logs_type=host"), settings)
}

/// Returns the URL of an API path.
fn service(path: &str, settings: &Settings) -> String {
    let path = format!("{}/v2/{path}", Settings::API.trim_start_matches('/'));
    join_url(&settings.service_base_url, &path)
}

/// Returns the query parameter with the infra-env's token, or an empty text if it has no token.
fn api_key(record: &InfraEnvRecord) -> String {
    match record.url_token.reveal() {
        "" => String::new(),
        token => format!("api_key={token}&"),
    }
}

fn join_url(base: &HttpUrl, path: &str) -> String {
    format!("{}/{path}", base.as_str().trim_end_matches('/'))
}

//! Where the images and files of an infra-env are.

use ignition::discovery::HttpUrl;

use super::record::InfraEnvRecord;
use crate::inventory::Settings;

/// The URL of an infra-env's image: short, without a query, and ending in `.iso`, as the firmware of servers wants it.
pub(super) fn image(record: &InfraEnvRecord, settings: &Settings) -> String {
    let place = match record.url_token.reveal() {
        "" => format!("byid/{}", record.id),
        token => format!("byapikey/{token}"),
    };
    let (version, architecture) = (&record.image.os_image, record.cpu_architecture);
    let file = record.image.image_type.file_name();
    joined(&settings.image_service_base_url, &format!("{place}/{version}/{architecture}/{file}"))
}

/// The URL of a file of an infra-env. Parameters stand in the order of their names.
pub(super) fn file(
    record: &InfraEnvRecord,
    file_name: &str,
    ipxe_script_type: Option<&str>,
    settings: &Settings,
) -> String {
    let mut query = String::new();
    if !record.url_token.is_empty() {
        query = format!("api_key={}&", record.url_token.reveal());
    }
    query.push_str(&format!("file_name={file_name}"));
    if let Some(kind) = ipxe_script_type {
        query.push_str(&format!("&ipxe_script_type={kind}"));
    }
    let path = format!(
        "{}/v2/infra-envs/{}/downloads/files?{query}",
        Settings::API.trim_start_matches('/'),
        record.id
    );
    joined(&settings.service_base_url, &path)
}

fn joined(base: &HttpUrl, path: &str) -> String {
    format!("{}/{path}", base.as_str().trim_end_matches('/'))
}

//! URLs of an infra-env's images and files.

use ignition::discovery::HttpUrl;

use super::record::InfraEnvRecord;
use crate::Settings;

/// Returns the URL of an infra-env's image. It is short, has no query and ends in `.iso`, because the firmware of
/// servers requires that.
pub(crate) fn image(record: &InfraEnvRecord, settings: &Settings) -> String {
    let place = match record.url_token.reveal() {
        "" => format!("byid/{}", record.id),
        token => format!("byapikey/{token}"),
    };
    let (version, architecture) = (&record.image.os_image, record.cpu_architecture);
    let file = record.image.image_type.file_name();
    join_url(&settings.image_service_base_url, &format!("{place}/{version}/{architecture}/{file}"))
}

/// Returns the URL of a file of an infra-env. Query parameters are sorted by name.
pub(crate) fn file(
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
    join_url(&settings.service_base_url, &path)
}

fn join_url(base: &HttpUrl, path: &str) -> String {
    format!("{}/{path}", base.as_str().trim_end_matches('/'))
}

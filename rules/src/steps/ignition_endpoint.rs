//! The arguments of the `api-vip-connectivity-check` step: the URL of the Ignition config of the cluster that the host
//! joins.

use std::net::Ipv6Addr;

use assisted::Secret;
use assisted::host::{Header, HostRole};
use assisted::request::ApiVipRequest;

use super::input::StepError;
use crate::view::{ClusterSettings, HostView};

/// Port of the machine config server for HTTP.
const HTTP_PORT: u16 = 22624;

/// Port of the machine config server for HTTPS.
const HTTPS_PORT: u16 = 22623;

/// Returns the URL of the host's Ignition config, and the header fields and CA certificate for its download.
///
/// The CA certificate comes from the cluster. If the cluster has none, it comes from the Ignition override of the host.
pub(super) fn request(host: &HostView, cluster: &ClusterSettings) -> Result<ApiVipRequest, StepError> {
    let own = cluster.ignition_endpoint.ca_certificate.as_deref();
    let certificate =
        own.or(host.ignition_ca_certificate.as_deref()).filter(|certificate| !certificate.is_empty());
    let token = host.ignition_endpoint_token.as_ref().filter(|token| !token.is_empty());
    let authorization = token.map(|token| Header {
        key: "Authorization".to_owned(),
        value: Secret::new(format!("Bearer {}", token.reveal())),
    });
    let own_url = cluster.ignition_endpoint.url.as_deref().filter(|url| !url.is_empty());
    let url = match own_url {
        Some(url) => {
            custom_url(url, pool(host)).ok_or_else(|| StepError::IgnitionEndpoint(url.to_owned()))?
        }
        None => machine_config_server_url(cluster, pool(host), certificate.is_some())?,
    };
    Ok(ApiVipRequest {
        ca_certificate: certificate.map(str::to_owned),
        ignition_endpoint_token: token.cloned(),
        request_headers: authorization
            .into_iter()
            .chain(host.ignition_endpoint_headers.iter().cloned())
            .collect(),
        url,
        verify_cidr: false,
    })
}

/// Returns the machine config pool of the host: the pool that the user selected, or else the pool for the host's role.
fn pool(host: &HostView) -> &str {
    match host.effective_role() {
        _ if !host.machine_config_pool.is_empty() => &host.machine_config_pool,
        HostRole::AutoAssign => HostRole::Worker.as_str(),
        role => role.as_str(),
    }
}

/// Appends the pool to the URL of an endpoint, and removes empty path segments. Returns `None` if the endpoint is not a
/// URL with a host.
fn custom_url(endpoint: &str, pool: &str) -> Option<String> {
    let (scheme, rest) = endpoint.split_once("://")?;
    let (location, query) = match rest.find(['?', '#']) {
        Some(end) => rest.split_at_checked(end)?,
        None => (rest, ""),
    };
    let mut segments = location.split('/');
    let authority = segments.next().filter(|authority| !authority.is_empty())?;
    let path: Vec<_> = segments.chain([pool]).filter(|segment| !segment.is_empty()).collect();
    Some(format!("{scheme}://{authority}/{}{query}", path.join("/")))
}

/// Returns the URL of a pool on the cluster's machine config server.
///
/// The server's certificate is valid only for the internal name of the API.
fn machine_config_server_url(
    cluster: &ClusterSettings,
    pool: &str,
    has_certificate: bool,
) -> Result<String, StepError> {
    let name = cluster.api_name().ok_or(StepError::NoApiName)?;
    let (scheme, name, port) = match name.strip_prefix("api.") {
        Some(domain) if has_certificate => ("https", format!("api-int.{domain}"), HTTPS_PORT),
        _ if has_certificate => ("https", name, HTTPS_PORT),
        _ => ("http", name, HTTP_PORT),
    };
    let name = if name.parse::<Ipv6Addr>().is_ok() { format!("[{name}]") } else { name };
    Ok(format!("{scheme}://{name}:{port}/config/{pool}"))
}

//! The arguments of the `domain-resolution` step: domain names that the cluster needs, and names that must not resolve.

use std::net::IpAddr;

use assisted::cluster::ClusterKind;
use assisted::request::{DomainName, DomainRequest};

use super::input::StepError;
use crate::view::ClusterSettings;

pub(super) fn request(cluster: &ClusterSettings) -> Result<DomainRequest, StepError> {
    if cluster.name.is_empty() {
        return Err(StepError::NoClusterName);
    }
    if cluster.base_dns_domain.is_empty() {
        return Err(StepError::NoBaseDomain);
    }
    let domain = format!("{}.{}", cluster.name, cluster.base_dns_domain);
    let mut names = vec![
        format!("api.{domain}"),
        format!("api-int.{domain}"),
        format!("console-openshift-console.apps.{domain}"),
        // These names detect wildcard records, because they resolve only if such a record exists. Only for the name
        // without a final dot, resolvers also try search domains.
        format!("validateNoWildcardDNS.{domain}."),
        format!("validateNoWildcardDNS.{domain}"),
    ];
    // Hosts that join an existing cluster do not download a release image.
    if cluster.kind != ClusterKind::AddHostsCluster {
        let registry = release_image_host(&cluster.release_image)
            .ok_or_else(|| StepError::ReleaseImage(cluster.release_image.to_string()))?;
        if registry.parse::<IpAddr>().is_err() {
            names.push(registry.to_owned());
        }
    }
    Ok(DomainRequest { domains: names.into_iter().map(|domain_name| DomainName { domain_name }).collect() })
}

/// Returns the host name or address of the registry in a pull spec, without the port. `None` if the pull spec contains
/// no registry.
///
/// # Examples
///
/// ```
/// use rules::steps::release_image_host;
///
/// assert_eq!(release_image_host("registry.example.com:5000/ocp/release:4.18.1-x86_64"), Some("registry.example.com"));
/// assert_eq!(release_image_host("[2001:db8::1]:5000/ocp/release:4.18.1-x86_64"), Some("2001:db8::1"));
/// assert_eq!(release_image_host("release:4.18.1-x86_64"), None);
/// ```
#[must_use]
pub fn release_image_host(pull_spec: &str) -> Option<&str> {
    let (registry, _) = pull_spec.split_once('/')?;
    let host = match registry.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => registry.split_once(':').map_or(registry, |(host, _)| host),
    };
    (!host.is_empty()).then_some(host)
}

//! Rules for the settings of a cluster that the API schema does not express.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::LazyLock;

use assisted::Extensible;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ignition::discovery::HttpUrl;
use regex::Regex;
use rules::values::{RequiredRegistries, check_ntp_sources, check_proxies, check_pull_secret};
use serde_json::Value;

use super::network::check_networks;
use super::networking::{NetworkingContext, check_networking};
use super::parts::{
    DiskEncryption, DiskEncryptionMode, IgnitionEndpoint, LoadBalancerType, NodeRoles, PlatformType, Vip,
};
use super::record::ClusterSpec;
use crate::Settings;
use crate::error::Error;

/// Maximum length of a domain, in characters.
const MAX_DOMAIN: usize = 255;

#[expect(clippy::unwrap_used, reason = "the patterns are ours, and tests use them")]
mod patterns {
    use super::{LazyLock, Regex};

    pub(super) static NAME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").unwrap());
    pub(super) static DOTTED_NAME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").unwrap()
    });
    pub(super) static DOMAIN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^([a-z0-9]([\-]*[a-z0-9]+)*\.)+[a-z0-9]+([\-]*[a-z0-9]+)+$").unwrap());
    pub(super) static SINGLE_LABEL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[a-z0-9]([\-]*[a-z0-9]+)+$").unwrap());
    pub(super) static DOTTED_DECIMAL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[0-9]+(\.[0-9]+)*$").unwrap());
    pub(super) static TAG: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\w+( \w+)*$").unwrap());
}

/// Checks the values of a spec. Unchanged settings are accepted, because they may be older than a rule.
pub(super) fn check_spec(
    spec: &ClusterSpec,
    before: Option<&ClusterSpec>,
    context: NetworkingContext<'_>,
    settings: &Settings,
) -> Result<(), Error> {
    let is_new = |part: fn(&ClusterSpec) -> &str| before.is_none_or(|before| part(before) != part(spec));
    let platform = |spec: &ClusterSpec| spec.platform.as_ref().map(|platform| platform.platform_type);
    if is_new(|spec| &spec.name) || before.is_none_or(|before| platform(before) != platform(spec)) {
        check_name(&spec.name, platform(spec))?;
    }
    if is_new(|spec| &spec.base_dns_domain) {
        check_domain(&spec.base_dns_domain)?;
    }
    check_tags(&spec.tags)?;
    check_networks(&spec.cluster_networks, &spec.service_networks, &spec.machine_networks)?;
    check_vips(spec, before, context)?;
    check_networking(spec, before, context)?;
    check_proxies(&spec.http_proxy, &spec.https_proxy, &spec.no_proxy)?;
    let default = settings.default_ntp_source.as_str();
    check_ntp_sources(&spec.additional_ntp_source, &spec.ntp_sources, default)?;
    check_disk_encryption(&spec.disk_encryption)?;
    check_platform(spec)?;
    check_ignition_endpoint(&spec.ignition_endpoint)
}

/// Checks the name of a cluster. On the platform `none`, the name may contain dots.
fn check_name(name: &str, platform: Option<PlatformType>) -> Result<(), Error> {
    let may_have_dots = platform == Some(PlatformType::None);
    let is_name = patterns::NAME.is_match(name) || (may_have_dots && patterns::DOTTED_NAME.is_match(name));
    if is_name && !name.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Cluster name format is not valid: '{name}'. Name must start and end with either a letter or number and \
         consist of lower-case letters, numbers, and hyphens. Subdomains in cluster names are only valid with none \
         platform."
    )))
}

fn check_domain(domain: &str) -> Result<(), Error> {
    let is_domain = (patterns::DOMAIN.is_match(domain) || patterns::SINGLE_LABEL.is_match(domain))
        && domain.len() <= MAX_DOMAIN
        && !patterns::DOTTED_DECIMAL.is_match(domain);
    if domain.is_empty() || is_domain {
        return Ok(());
    }
    Err(Error::invalid(format!("DNS format mismatch: {domain} domain name is not valid")))
}

fn check_tags(tags: &str) -> Result<(), Error> {
    if tags.is_empty() || tags.split(',').all(|tag| patterns::TAG.is_match(tag)) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Invalid format for Tags: {tags}. Tags must be words of letters, digits and underscores, separated by commas"
    )))
}

fn check_vips(
    spec: &ClusterSpec,
    before: Option<&ClusterSpec>,
    context: NetworkingContext<'_>,
) -> Result<(), Error> {
    // A single-node cluster has user-managed networking by default. Existing clients create it with VIPs, which then
    // have no effect.
    let may_have_vips = match before {
        None => context.is_single_node && !context.requests_user_managed,
        Some(before) => {
            before.user_managed_networking
                && before.api_vips == spec.api_vips
                && before.ingress_vips == spec.ingress_vips
        }
    };
    if spec.vip_dhcp_allocation && spec.user_managed_networking {
        return Err(Error::invalid("VIP DHCP Allocation cannot be enabled with User Managed Networking"));
    }
    for (name, vips) in [("API", &spec.api_vips), ("Ingress", &spec.ingress_vips)] {
        if !vips.is_empty() && spec.user_managed_networking && !may_have_vips {
            return Err(Error::invalid(format!("{name} VIP cannot be set with User Managed Networking")));
        }
        if !vips.is_empty() && spec.vip_dhcp_allocation {
            let reason =
                format!("Setting {name} VIP is forbidden when cluster is in vip-dhcp-allocation mode");
            return Err(Error::invalid(reason));
        }
        check_addresses(name, vips)?;
    }
    let (api, ingress) = (spec.api_vips.len(), spec.ingress_vips.len());
    if api != ingress {
        return Err(Error::invalid(format!(
            "configuration must include the same number of apiVIPs (got {api}) and ingressVIPs (got {ingress})"
        )));
    }
    let is_shared = |vip: &&Vip| spec.ingress_vips.iter().any(|other| other.ip == vip.ip);
    match spec.api_vips.iter().find(is_shared) {
        Some(vip) if spec.load_balancer != Some(LoadBalancerType::UserManaged) => {
            Err(Error::invalid(format!("The IP address {} is both an API VIP and an Ingress VIP", vip.ip)))
        }
        _ => Ok(()),
    }
}

/// Checks that VIPs have at most one address of each IP family.
fn check_addresses(name: &str, vips: &[Vip]) -> Result<(), Error> {
    let mut families = BTreeSet::new();
    for Vip { ip, verification, .. } in vips {
        known_value("verification", verification.as_ref())?;
        let address: IpAddr =
            ip.parse().map_err(|_| Error::invalid(format!("{name} VIP {ip:?} is not a valid IP address")))?;
        if !families.insert(address.is_ipv6()) {
            let reason = format!(
                "{name} VIPs: at most one IPv4 and one IPv6 address are allowed, {ip} is one too many"
            );
            return Err(Error::invalid(reason));
        }
    }
    Ok(())
}

fn check_disk_encryption(encryption: &DiskEncryption) -> Result<(), Error> {
    let enable_on = known_value("disk_encryption.enable_on", encryption.enable_on.as_ref())?;
    let mode = known_value("disk_encryption.mode", encryption.mode.as_ref())?;
    let is_off = matches!(enable_on, None | Some(NodeRoles::None));
    if is_off || mode != Some(DiskEncryptionMode::Tang) {
        return Ok(());
    }
    let text = encryption.tang_servers.as_deref().unwrap_or_default();
    let servers: Option<Vec<Value>> = serde_json::from_str(text).ok();
    // Keys are compared case-insensitively, as in Go's JSON decoder, which clients and the installer use.
    let has = |server: &Value, key: &str| {
        let fields = server.as_object().into_iter().flatten();
        let mut values = fields.filter(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value);
        values.any(|value| value.as_str().is_some_and(|text| !text.is_empty()))
    };
    let is_server = |server: &Value| has(server, "url") && has(server, "thumbprint");
    match servers {
        Some(servers) if !servers.is_empty() && servers.iter().all(is_server) => Ok(()),
        _ => Err(Error::invalid(
            "disk_encryption.tang_servers must be a JSON list of servers with url and thumbprint when the mode is tang",
        )),
    }
}

fn check_platform(spec: &ClusterSpec) -> Result<(), Error> {
    let external = spec.platform.as_ref().and_then(|platform| platform.external.as_ref());
    let manager = external.and_then(|external| external.cloud_controller_manager.as_ref());
    known_value("platform.external.cloud_controller_manager", manager).map(drop)
}

/// Returns the value of an enum that newer versions of the API may extend. The service has no rules for values that it
/// does not support.
///
/// # Errors
///
/// Returns an error if the value is not supported. Requests with such a value are already refused by their schema.
pub(super) fn known_value<T: Copy>(key: &str, value: Option<&Extensible<T>>) -> Result<Option<T>, Error> {
    match value {
        None => Ok(None),
        Some(Extensible::Known(known)) => Ok(Some(*known)),
        Some(Extensible::Unknown(text)) => {
            Err(Error::malformed(format!("{key} has the unknown value {text:?}")))
        }
    }
}

fn check_ignition_endpoint(endpoint: &IgnitionEndpoint) -> Result<(), Error> {
    if let Some(url) = &endpoint.url {
        HttpUrl::parse("ignition_endpoint.url", url)
            .map_err(|error| Error::invalid(format!("Invalid Ignition endpoint URL: {error}")))?;
    }
    let Some(certificate) = &endpoint.ca_certificate else { return Ok(()) };
    let is_pem = BASE64
        .decode(certificate)
        .is_ok_and(|bytes| pem::parse_many(bytes).is_ok_and(|blocks| !blocks.is_empty()));
    if is_pem {
        Ok(())
    } else {
        Err(Error::invalid("ignition_endpoint.ca_certificate must be PEM in base64"))
    }
}

/// Checks that a pull secret has credentials for all images that hosts pull. The error message starts with `prefix`.
pub(super) fn check_credentials(
    prefix: &str,
    pull_secret: &str,
    release: &str,
    settings: &Settings,
) -> Result<(), Error> {
    let images = [&settings.agent_image, &settings.installer_image, &settings.controller_image];
    let mut images: Vec<_> = images.map(String::as_str).into();
    images.push(release);
    let required = RequiredRegistries { images: &images, public: &settings.public_registries };
    check_pull_secret(pull_secret, required).map_err(|error| Error::invalid(format!("{prefix}{error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_value_is_not_a_default() {
        let tang = Extensible::from(DiskEncryptionMode::Tang);
        assert_eq!(known_value("mode", Some(&tang)).unwrap(), Some(DiskEncryptionMode::Tang));
        assert_eq!(known_value::<DiskEncryptionMode>("mode", None).unwrap(), None);
        let enable_on = Some(Extensible::Unknown("edge".to_owned()));
        let encryption = DiskEncryption { enable_on, ..DiskEncryption::default() };
        let refusal = check_disk_encryption(&encryption).unwrap_err();
        assert_eq!(refusal.reason(), "disk_encryption.enable_on has the unknown value \"edge\"");
    }
}

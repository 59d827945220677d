//! Converts an infra-env draft into the parameters of the API request that creates it.

use assisted::architecture::{CpuArchitecture, ImageType};
use assisted::infra_env::{
    HostStaticNetwork, InfraEnvCreateParams, KernelArgument, KernelArgumentOperation, MacInterface, Proxy,
};
use discovery::{Checked, DiscoveryReport, Draft, FindingKind, Host, Located, SourceLocation, Text};
use ignition::discovery::kernel_arguments;
use ignition::network::KeyfileCache;

/// Checks a draft, and returns the parameters for the creation request together with the warnings. The service that
/// receives the request chooses the id.
///
/// # Errors
///
/// Returns all findings if a required value is missing, or if at least one finding is an error.
pub fn create_params(
    draft: &Draft,
    cache: &KeyfileCache,
) -> Result<Checked<InfraEnvCreateParams>, DiscoveryReport> {
    let mut findings = draft.check(cache);
    let missing = |findings: &mut DiscoveryReport, what: &str| {
        let place = SourceLocation::whole("infra-env");
        findings.missing(FindingKind::Missing, place, format!("{what} is missing"));
    };
    let pull_secret = draft.pull_secret.as_ref();
    if pull_secret.is_none() {
        missing(&mut findings, "pull secret");
    }
    let name = draft.name.as_ref().filter(|name| !name.value.is_empty());
    if name.is_none() {
        missing(&mut findings, "name");
    }
    report_unsupported(draft, &mut findings);
    let cpu_architecture = cpu_architecture(draft, &mut findings);
    let (Some(name), Some(pull_secret), false) = (name, pull_secret, findings.is_fatal()) else {
        return Err(findings);
    };
    let params = InfraEnvCreateParams {
        proxy: proxy(draft),
        additional_ntp_sources: text(&draft.additional_ntp_sources),
        ntp_sources: text(&draft.ntp_sources),
        ssh_authorized_key: text(&draft.ssh_keys),
        static_network_config: (!draft.hosts.is_empty())
            .then(|| draft.hosts.iter().map(static_network).collect()),
        image_type: draft.image_type.as_ref().map(image_type),
        ignition_config_override: text(&draft.config_override),
        openshift_version: text(&draft.version),
        cpu_architecture,
        kernel_arguments: kernel_argument_list(draft),
        additional_trust_bundle: text(&draft.trust_bundle),
        network_discovery_delay_seconds: draft.discovery_delay_seconds.as_ref().map(|it| it.value.into()),
        ..InfraEnvCreateParams::new(name.value.clone(), assisted::Secret::new(pull_secret.value.clone()))
    };
    Ok(Checked { value: params, warnings: findings })
}

/// Adds findings for values that the service ignores or chooses itself.
fn report_unsupported(draft: &Draft, findings: &mut DiscoveryReport) {
    if let Some(registries) = draft.registries.as_ref().filter(|it| !it.value.trim().is_empty()) {
        let message = "the API has no mirrors for one infra-env, so the service ignores them";
        findings.warning(registries.place.clone(), message);
    }
    if let (None, Some(place)) = (&draft.version, &draft.version_hint) {
        let message = "contains no OpenShift version, so the service uses its newest version";
        findings.warning(place.clone(), message);
    }
    for field in &draft.unsent_fields {
        findings.warning(field.place.clone(), format!("is not sent: {}", field.value));
    }
}

fn proxy(draft: &Draft) -> Option<Proxy> {
    let proxy = Proxy {
        http_proxy: text(&draft.http_proxy),
        https_proxy: text(&draft.https_proxy),
        no_proxy: text(&draft.no_proxy),
    };
    (proxy != Proxy::default()).then_some(proxy)
}

fn cpu_architecture(draft: &Draft, findings: &mut DiscoveryReport) -> Option<CpuArchitecture> {
    let name = draft.architecture.as_ref()?;
    let message = || format!("{:?} is not x86_64, arm64, ppc64le or s390x", name.value);
    findings.value(&name.place, CpuArchitecture::from_name(&name.value).ok_or_else(message))
}

/// Returns the image type of a checked draft.
fn image_type(name: &Text) -> ImageType {
    if name.value == ImageType::Minimal.as_str() { ImageType::Minimal } else { ImageType::Full }
}

fn kernel_argument_list(draft: &Draft) -> Option<Vec<KernelArgument>> {
    let argument = |change: &Located<(kernel_arguments::KernelArgumentOperation, String)>| KernelArgument {
        operation: Some(match change.value.0 {
            kernel_arguments::KernelArgumentOperation::Delete => KernelArgumentOperation::Delete,
            kernel_arguments::KernelArgumentOperation::Replace => KernelArgumentOperation::Replace,
            _ => KernelArgumentOperation::Append,
        }),
        value: change.value.1.clone(),
    };
    let list: Vec<KernelArgument> = draft.kernel_arguments.iter().map(argument).collect();
    Some(list).filter(|list| !list.is_empty())
}

fn static_network(host: &Host) -> HostStaticNetwork {
    let interface = |it: &ignition::network::MacInterface| MacInterface {
        logical_nic_name: it.logical_nic_name.clone(),
        mac_address: it.mac_address.clone(),
    };
    HostStaticNetwork {
        mac_interface_map: host.network.interfaces().unwrap_or_default().iter().map(interface).collect(),
        network_yaml: host.network.document().to_owned(),
    }
}

fn text(located: &Option<Text>) -> Option<String> {
    located.as_ref().map(|located| located.value.clone())
}

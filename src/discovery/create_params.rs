//! Converts a draft into the parameters of a request that creates the infra-env in a service.

use assisted::architecture::{CpuArchitecture, ImageType};
use assisted::infra_env::{
    HostStaticNetwork, InfraEnvCreateParams, KernelArgument, KernelArgumentOperation, MacInterface, Proxy,
};
use ignition::discovery::{DiscoveryImage, kernel_arguments};

use super::draft::Host;
use super::{DiscoveryReport, Draft, SourceLocation, Text};

impl Draft {
    /// Parses the values. Returns the parameters with which a service creates the infra-env, or `None` if a value is
    /// missing or invalid. Also returns the findings. The service chooses the id.
    #[must_use]
    pub fn create_params(&self) -> (Option<InfraEnvCreateParams>, DiscoveryReport) {
        let mut findings = DiscoveryReport::default();
        self.settings(None, &mut findings);
        self.report_unsupported(&mut findings);
        let image_type = match self.image_type(&mut findings) {
            DiscoveryImage::Minimal => ImageType::Minimal,
            _ => ImageType::Full,
        };
        let networks = self.hosts.iter().filter_map(|host| static_network(host, &mut findings)).collect();
        let params = InfraEnvCreateParams {
            proxy: self.proxy(),
            additional_ntp_sources: text(&self.additional_ntp_sources),
            ntp_sources: text(&self.ntp_sources),
            ssh_authorized_key: text(&self.ssh_keys),
            static_network_config: Some(networks).filter(|networks: &Vec<_>| !networks.is_empty()),
            image_type: self.image_type.is_some().then_some(image_type),
            ignition_config_override: text(&self.config_override),
            openshift_version: self.own_version(&mut findings),
            cpu_architecture: self.cpu_architecture(&mut findings),
            kernel_arguments: self.kernel_argument_list(&mut findings),
            additional_trust_bundle: text(&self.trust_bundle),
            network_discovery_delay_seconds: self.discovery_delay_seconds.as_ref().map(|it| it.value.into()),
            ..InfraEnvCreateParams::new(
                text(&self.name).unwrap_or_default(),
                assisted::Secret::new(text(&self.pull_secret).unwrap_or_default()),
            )
        };
        ((!findings.is_fatal()).then_some(params), findings)
    }

    /// Reports a missing name, and values that the service ignores or chooses itself.
    fn report_unsupported(&self, findings: &mut DiscoveryReport) {
        if self.name.as_ref().is_none_or(|name| name.value.is_empty()) {
            findings.error(SourceLocation::whole("infra-env"), "name is missing");
        }
        if let Some(registries) = self.registries.as_ref().filter(|it| !it.value.trim().is_empty()) {
            let message = "the API has no mirrors for one infra-env, so the service ignores them";
            findings.warning(registries.place.clone(), message);
        }
        if let (None, Some(place)) = (&self.version, &self.version_hint) {
            let message = "contains no OpenShift version, so the service uses its newest version";
            findings.warning(place.clone(), message);
        }
        for field in &self.unsent_fields {
            findings.warning(field.place.clone(), format!("is not sent: {}", field.value));
        }
    }

    fn proxy(&self) -> Option<Proxy> {
        let proxy = Proxy {
            http_proxy: text(&self.http_proxy),
            https_proxy: text(&self.https_proxy),
            no_proxy: text(&self.no_proxy),
        };
        (proxy != Proxy::default()).then_some(proxy)
    }

    fn cpu_architecture(&self, findings: &mut DiscoveryReport) -> Option<CpuArchitecture> {
        let name = self.architecture.as_ref()?;
        let message = || format!("{:?} is not x86_64, arm64, ppc64le or s390x", name.value);
        findings.value(&name.place, CpuArchitecture::from_name(&name.value).ok_or_else(message))
    }

    fn kernel_argument_list(&self, findings: &mut DiscoveryReport) -> Option<Vec<KernelArgument>> {
        let arguments = self.kernel_arguments(findings);
        let list = arguments.changes().iter().map(|change| KernelArgument {
            operation: Some(match change.operation() {
                kernel_arguments::KernelArgumentOperation::Delete => KernelArgumentOperation::Delete,
                kernel_arguments::KernelArgumentOperation::Replace => KernelArgumentOperation::Replace,
                _ => KernelArgumentOperation::Append,
            }),
            value: change.value().to_owned(),
        });
        Some(list.collect()).filter(|list: &Vec<_>| !list.is_empty())
    }
}

/// Returns the network of a host, which must have MAC addresses: a machine selects its network by them.
fn static_network(host: &Host, findings: &mut DiscoveryReport) -> Option<HostStaticNetwork> {
    let interfaces = host.network.interfaces().unwrap_or_default();
    if interfaces.is_empty() {
        let message = "has no MAC addresses; use an NMStateConfig, or a list with mac_interface_map";
        findings.error(host.place(), message);
        return None;
    }
    let interface = |it: &ignition::network::MacInterface| MacInterface {
        logical_nic_name: it.logical_nic_name.clone(),
        mac_address: it.mac_address.clone(),
    };
    Some(HostStaticNetwork {
        mac_interface_map: interfaces.iter().map(interface).collect(),
        network_yaml: host.network.document().to_owned(),
    })
}

fn text(located: &Option<Text>) -> Option<String> {
    located.as_ref().map(|located| located.value.clone())
}

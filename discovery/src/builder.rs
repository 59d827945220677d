//! A builder for the inputs of an infra-env's images, from typed values.

use ignition::discovery::kernel_arguments::KernelArguments;
use ignition::discovery::{InfraEnvSettings, InventoryService};
use ignition::network::check::ClusterNetworks;
use ignition::network::{HostNetwork, KeyfileCache, NetworkGeneration};
use ignition::version::Version;

use crate::check::{check_networks, check_override, check_version, report_compose_error};
use crate::checked::Checked;
use crate::finding::{DiscoveryReport, Located, SourceLocation};
use crate::host::Host;
use crate::inputs::Inputs;
use crate::version::OpenshiftVersion;

/// Inputs that are not checked yet. [`Inputs::builder`] creates the builder, and [`check`](Self::check) checks the
/// values.
///
/// # Examples
///
/// ```
/// use discovery::Inputs;
/// # use ignition::discovery::{HttpUrl, ImageReference, InfraEnvId, InfraEnvSettings, InventoryService, PullSecret};
/// use ignition::network::{HostNetwork, KeyfileCache};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let service = InventoryService::new(
/// #     HttpUrl::parse("service", "https://assisted.example.com")?,
/// #     ImageReference::parse("agent", "quay.io/example/agent:v1")?,
/// # );
/// # let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666")?;
/// # let infra_env = InfraEnvSettings::new(id, PullSecret::parse(r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#)?);
/// let network = HostNetwork::without_macs("interfaces:\n- {name: eno1, type: ethernet, mtu: 20}\n");
/// let builder = Inputs::builder(service, infra_env, "4.18".parse()?).host(network.with_name("node-0"));
/// let report = builder.check(&KeyfileCache::default()).unwrap_err();
/// assert_eq!(
///     report.to_string(),
///     "node-0:2: interfaces[0].mtu: error: an MTU of 20 is not within 68 to 65535\n\
///      node-0: error: has no MAC addresses; use an NMStateConfig, or a list with mac_interface_map",
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `check` is called"]
pub struct InputsBuilder {
    service: InventoryService,
    infra_env: InfraEnvSettings,
    hosts: Vec<Host>,
    kernel_arguments: KernelArguments,
    version: Located<OpenshiftVersion>,
    first_nmstate_version: Version,
    discovery_delay_seconds: u32,
    cluster: ClusterNetworks,
    /// The location of the Ignition config override.
    override_place: SourceLocation,
}

impl Inputs {
    /// Returns a builder. It takes the service that agents report to, the settings shared by all hosts, and the
    /// OpenShift version whose base image the hosts boot.
    pub fn builder(
        service: InventoryService,
        infra_env: InfraEnvSettings,
        version: OpenshiftVersion,
    ) -> InputsBuilder {
        InputsBuilder::new(service, infra_env, version)
    }
}

impl InputsBuilder {
    pub(crate) fn new(
        service: InventoryService,
        infra_env: InfraEnvSettings,
        version: OpenshiftVersion,
    ) -> Self {
        Self {
            service,
            infra_env,
            hosts: Vec::new(),
            kernel_arguments: KernelArguments::default(),
            version: Located::new(version, SourceLocation::whole("OpenShift version")),
            first_nmstate_version: NetworkGeneration::FIRST_NMSTATE_VERSION,
            discovery_delay_seconds: 0,
            cluster: ClusterNetworks::default(),
            override_place: SourceLocation::whole("Ignition override"),
        }
    }

    /// Adds the static network of a host. Findings refer to the host by its name, or by its position if it has no name.
    pub fn host(mut self, network: HostNetwork) -> Self {
        let name = network.name().map_or_else(|| format!("hosts[{}]", self.hosts.len()), str::to_owned);
        self.hosts.push(Host { name, network, origin: None });
        self
    }

    /// Adds the static networks of several hosts, like [`host`](Self::host).
    pub fn hosts(self, networks: impl IntoIterator<Item = HostNetwork>) -> Self {
        networks.into_iter().fold(self, Self::host)
    }

    /// Adds hosts together with the locations of their networks in files.
    pub fn located_hosts(mut self, hosts: impl IntoIterator<Item = Host>) -> Self {
        self.hosts.extend(hosts);
        self
    }

    /// Sets the changes to the kernel arguments. Default: no changes.
    pub fn kernel_arguments(self, kernel_arguments: KernelArguments) -> Self {
        Self { kernel_arguments, ..self }
    }

    /// Sets how long a host waits before it inspects its network, in seconds. Default: 0.
    pub fn discovery_delay_seconds(self, discovery_delay_seconds: u32) -> Self {
        Self { discovery_delay_seconds, ..self }
    }

    /// Sets the networks of the cluster that the hosts will join. The check compares the hosts with them.
    pub fn cluster(self, cluster: ClusterNetworks) -> Self {
        Self { cluster, ..self }
    }

    /// Sets the first OpenShift version whose live system runs nmstate. Default:
    /// [`NetworkGeneration::FIRST_NMSTATE_VERSION`].
    pub fn first_nmstate_version(self, first_nmstate_version: Version) -> Self {
        Self { first_nmstate_version, ..self }
    }

    /// Sets the locations of the version and of the override, for findings.
    pub(crate) fn places(self, version: SourceLocation, override_place: SourceLocation) -> Self {
        let version = Located::new(self.version.value, version);
        Self { version, override_place, ..self }
    }

    /// Checks the host networks, the override and the version, and composes the Ignition config once.
    ///
    /// The check generates the network files, which takes most of its time, and stores them in `cache`.
    ///
    /// # Errors
    ///
    /// Returns all findings if at least one of them is an error.
    pub fn check(self, cache: &KeyfileCache) -> Result<Checked<Inputs>, DiscoveryReport> {
        let mut findings = DiscoveryReport::default();
        check_networks(&self.hosts, &self.cluster, cache, &mut findings);
        let over = self.infra_env.config_override.as_ref();
        if let Some(text) = over.map(|over| String::from_utf8_lossy(over.as_bytes())) {
            check_override(&Located::new(text.as_ref(), self.override_place.clone()), &mut findings);
        }
        check_version(&self.version.as_ref(), &mut findings);
        let override_place = self.override_place.clone();
        let inputs = self.assume_checked();
        if !findings.is_fatal()
            && let Err(error) = inputs.config_without_networks()
        {
            report_compose_error(&error, &override_place, &mut findings);
        }
        if findings.is_fatal() { Err(findings) } else { Ok(Checked { value: inputs, warnings: findings }) }
    }

    /// Returns the inputs without checking them. Use it for stored values that were [checked](Self::check) before.
    #[must_use]
    pub fn assume_checked(self) -> Inputs {
        Inputs {
            generation: NetworkGeneration::for_version_since(
                self.version.value.as_str(),
                &self.first_nmstate_version,
            ),
            service: self.service,
            infra_env: self.infra_env,
            hosts: self.hosts.into_iter().map(|host| host.network).collect(),
            kernel_arguments: self.kernel_arguments,
            version: self.version.value,
            discovery_delay_seconds: self.discovery_delay_seconds,
        }
    }
}

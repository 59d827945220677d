//! An unchecked infra-env: texts with their locations, which become [`Inputs`] if all of them are valid.

use std::sync::Arc;

use ignition::discovery::kernel_arguments::{
    KernelArgumentChange, KernelArgumentOperation, KernelArguments, MAX_CHANGES,
};
use ignition::discovery::{
    CertificateBundle, DiscoveryImage, InfraEnvId, InfraEnvSettings, InputError, InventoryService, Mirrors,
    Override, Proxies, PullSecret, SshKeys, TimeSources,
};
use ignition::lint;
use ignition::network::check::{ClusterNetworks, NetworkFinding, check_hosts};
use ignition::network::{HostNetwork, KeyfileCache, NetworkGeneration, yaml};
use ignition::report::ConfigFinding;

use super::Inputs;
use super::finding::{DiscoveryReport, Located, SourceLocation};
use inventory::catalogue::Version;

/// A text and its location.
pub type Text = Located<String>;

/// An infra-env as the user wrote it. Its values are not checked yet.
#[derive(Clone, Default)]
pub struct Draft {
    /// The name of the infra-env.
    pub name: Option<Text>,
    /// The id of the infra-env in the inventory.
    pub id: Option<Text>,
    /// The pull secret.
    pub pull_secret: Option<Text>,
    /// The SSH public keys that may log in, one per line.
    pub ssh_keys: Option<Text>,
    /// The proxy for `http:` URLs.
    pub http_proxy: Option<Text>,
    /// The proxy for `https:` URLs.
    pub https_proxy: Option<Text>,
    /// Destinations that are reached without a proxy, separated by commas.
    pub no_proxy: Option<Text>,
    /// NTP servers in addition to those of the system, separated by commas.
    pub additional_ntp_sources: Option<Text>,
    /// NTP servers that replace those of the system, separated by commas.
    pub ntp_sources: Option<Text>,
    /// Additional trusted certificates, in PEM.
    pub trust_bundle: Option<Text>,
    /// The text of a `registries.conf` with mirrors of registries.
    pub registries: Option<Text>,
    /// The authorities that signed the certificates of the mirrors, in PEM.
    pub registries_authority: Option<Text>,
    /// A config that is merged over the generated one.
    pub config_override: Option<Text>,
    /// Changes of the kernel arguments.
    pub kernel_arguments: Vec<Located<(KernelArgumentOperation, String)>>,
    /// The static networks of the hosts.
    pub hosts: Vec<Host>,
    /// The networks of the cluster that the hosts are meant for.
    pub cluster: ClusterNetworks,
    /// The OpenShift version whose base image the hosts boot.
    pub version: Option<Text>,
    /// The location of a release image whose tag contains no version.
    pub version_hint: Option<SourceLocation>,
    /// The CPU architecture of the hosts.
    pub architecture: Option<Text>,
    /// The image type, as in the API.
    pub image_type: Option<Text>,
    /// The time in seconds that a host waits before it inspects its network.
    pub discovery_delay_seconds: Option<Located<u32>>,
    /// Fields of manifests that a request to a service does not contain, each with the reason or the consequence.
    pub unsent_fields: Vec<Located<&'static str>>,
}

/// The static network of one host.
#[derive(Clone, Debug)]
pub struct Host {
    /// The name of the host, for files and messages.
    pub name: String,
    /// The network.
    pub network: HostNetwork,
    /// The location of the network, if it is part of a larger document.
    pub origin: Option<Arc<HostOrigin>>,
}

/// The location of a host's network in a larger document.
#[derive(Clone, Debug)]
pub struct HostOrigin {
    /// The file.
    pub file: Arc<str>,
    /// The lines of the values in the document.
    pub lines: Arc<yaml::LineIndex>,
    /// The number of lines before the document in the file.
    pub skipped: usize,
    /// The path of the network in the document.
    pub network: String,
    /// The path of the list of MAC addresses.
    pub interfaces: String,
}

impl HostOrigin {
    /// Returns the location of a value of the network or of its list of MAC addresses.
    fn place(&self, path: &str) -> SourceLocation {
        let path = match path.strip_prefix("mac_interface_map") {
            Some(entry) => {
                let entry =
                    entry.replace(".mac_address", ".macAddress").replace(".logical_nic_name", ".name");
                format!("{}{entry}", self.interfaces)
            }
            None if path.is_empty() => self.network.clone(),
            None if self.network.is_empty() => path.to_owned(),
            None => format!("{}.{path}", self.network),
        };
        // If the value has no line, use the first line of the document: it identifies the document in the file.
        let line = self.lines.find(&path).unwrap_or(1).saturating_add(self.skipped);
        SourceLocation { file: self.file.to_string(), line: Some(line), path }
    }
}

/// Settings that all infra-envs of a service share.
#[derive(Clone, Debug)]
pub struct ServiceContext {
    /// The service that agents report to.
    pub service: InventoryService,
    /// The OpenShift version of the base image, if known. Used if the draft has none.
    pub version: Option<String>,
}

impl Draft {
    /// Merges `overrides` over this draft: its values take precedence.
    #[must_use]
    pub fn with(self, overrides: Self) -> Self {
        let join = |mut one: Vec<_>, mut other: Vec<_>| {
            one.append(&mut other);
            one
        };
        Self {
            name: overrides.name.or(self.name),
            id: overrides.id.or(self.id),
            pull_secret: overrides.pull_secret.or(self.pull_secret),
            ssh_keys: overrides.ssh_keys.or(self.ssh_keys),
            http_proxy: overrides.http_proxy.or(self.http_proxy),
            https_proxy: overrides.https_proxy.or(self.https_proxy),
            no_proxy: overrides.no_proxy.or(self.no_proxy),
            // The two exclude one another: setting one kind of NTP sources clears the other.
            additional_ntp_sources: match (&overrides.additional_ntp_sources, &overrides.ntp_sources) {
                (None, Some(_)) => None,
                _ => overrides.additional_ntp_sources.clone().or(self.additional_ntp_sources),
            },
            ntp_sources: match (&overrides.ntp_sources, &overrides.additional_ntp_sources) {
                (None, Some(_)) => None,
                _ => overrides.ntp_sources.or(self.ntp_sources),
            },
            trust_bundle: overrides.trust_bundle.or(self.trust_bundle),
            registries: overrides.registries.or(self.registries),
            registries_authority: overrides.registries_authority.or(self.registries_authority),
            config_override: overrides.config_override.or(self.config_override),
            kernel_arguments: join(self.kernel_arguments, overrides.kernel_arguments),
            hosts: if overrides.hosts.is_empty() { self.hosts } else { overrides.hosts },
            cluster: if overrides.cluster.is_empty() { self.cluster } else { overrides.cluster },
            version: overrides.version.or(self.version),
            version_hint: overrides.version_hint.or(self.version_hint),
            architecture: overrides.architecture.or(self.architecture),
            image_type: overrides.image_type.or(self.image_type),
            discovery_delay_seconds: overrides.discovery_delay_seconds.or(self.discovery_delay_seconds),
            unsent_fields: self.unsent_fields.into_iter().chain(overrides.unsent_fields).collect(),
        }
    }

    /// Checks the networks of the machines, the config override and the OpenShift version.
    #[must_use]
    pub fn check(&self, cache: &KeyfileCache) -> DiscoveryReport {
        let mut findings = DiscoveryReport::default();
        let networks: Vec<HostNetwork> = self.hosts.iter().map(|host| host.network.clone()).collect();
        for finding in check_hosts(&networks, &self.cluster, cache).findings() {
            let host = self.hosts.get(finding.host);
            let place = host
                .map_or_else(|| SourceLocation::whole(finding.to_string()), |host| host.place_of(finding));
            findings.push(finding.severity, place, finding.message.clone());
        }
        if let Some(overrides) = &self.config_override {
            for finding in lint::check(overrides.value.as_bytes()).findings() {
                let ConfigFinding { severity, pointer, position, message, .. } = finding.clone();
                let SourceLocation { file, line, path } = overrides.place.clone();
                // Lines of a config that is a string in a manifest are not lines of the manifest.
                let (line, message) = match path.is_empty() {
                    true => (position.map(|it| it.line).or(line), message),
                    false if pointer.is_empty() => (line, message),
                    false => (line, format!("{pointer}: {message}")),
                };
                let path = if path.is_empty() { pointer } else { path };
                findings.push(severity, SourceLocation { file, line, path }, message);
            }
        }
        self.check_version(&mut findings);
        findings
    }

    /// Warns about an unknown OpenShift version: a typing error is more likely than a later release.
    fn check_version(&self, findings: &mut DiscoveryReport) {
        let Some(given) = &self.version else { return };
        let Some(version) = Version::parse(&given.value) else { return };
        if !Version::KNOWN_MINORS.contains(&version.minor()) {
            let ((major, minor), (last_major, last_minor)) = Version::KNOWN_MINORS.into_inner();
            let known = format!("expected {major}.{minor} to {last_major}.{last_minor}");
            let message = format!("{} is not a known OpenShift version: {known}", given.value);
            findings.warning(given.place.clone(), message);
        }
    }

    /// Parses the values and returns the inputs of the images.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is missing or invalid. It contains all problems with their locations.
    pub fn inputs(&self, service_context: &ServiceContext) -> Result<Inputs, DiscoveryReport> {
        let mut findings = DiscoveryReport::default();
        let infra_env = self.infra_env(&mut findings);
        let version = self.version(service_context, &mut findings);
        let kernel_arguments = self.kernel_arguments(&mut findings);
        let image_type = self.image_type(&mut findings);
        match (infra_env, version) {
            (Some(infra_env), Some(version)) if !findings.is_fatal() => {
                let generation = NetworkGeneration::for_version(&version);
                Ok(Inputs {
                    service: service_context.service.clone(),
                    infra_env: InfraEnvSettings { image_type, ..infra_env },
                    hosts: self.hosts.iter().map(|host| host.network.clone()).collect(),
                    kernel_arguments,
                    generation,
                    version,
                    discovery_delay_seconds: self.discovery_delay_seconds.as_ref().map_or(0, |it| it.value),
                })
            }
            _ => Err(findings),
        }
    }

    fn infra_env(&self, findings: &mut DiscoveryReport) -> Option<InfraEnvSettings> {
        let id = parse_or_report(self.id.as_ref(), findings, InfraEnvId::parse);
        if self.id.is_none() {
            findings.error(SourceLocation::whole("infra-env"), "id is missing");
        }
        self.settings(id, findings)
    }

    /// Parses the values that an [`InfraEnvSettings`] has. Reports all problems, even without an id.
    pub(super) fn settings(
        &self,
        id: Option<InfraEnvId>,
        findings: &mut DiscoveryReport,
    ) -> Option<InfraEnvSettings> {
        let secret = self.pull_secret.as_ref().and_then(|given| {
            if given.value.trim().is_empty() {
                findings.error(given.place.clone(), "pull secret is empty");
                return None;
            }
            let parsed = PullSecret::parse(&given.value);
            findings.value(&given.place, parsed.map_err(|error| format!("pull secret: {}", reason(&error))))
        });
        if self.pull_secret.is_none() {
            findings.error(SourceLocation::whole("infra-env"), "pull secret is missing");
        }
        let ssh_keys = parse_or_report(self.ssh_keys.as_ref(), findings, SshKeys::parse);
        let proxies = self.proxies(findings);
        let time_sources = self.time_sources(findings);
        let trust_bundle = certificates(self.trust_bundle.as_ref(), findings);
        let mirrors = self.mirrors(findings);
        let mut infra_env = InfraEnvSettings::new(id?, secret?);
        infra_env.ssh_keys = ssh_keys.unwrap_or_default();
        infra_env.proxies = proxies;
        infra_env.time_sources = time_sources;
        infra_env.trust_bundle = trust_bundle;
        infra_env.mirrors = mirrors;
        infra_env.config_override = self.config_override.as_ref().map(|it| Override::new(it.value.as_str()));
        Some(infra_env)
    }

    fn proxies(&self, findings: &mut DiscoveryReport) -> Proxies {
        let texts = [&self.http_proxy, &self.https_proxy, &self.no_proxy];
        let [http, https, none_for] = texts.map(|it| it.as_ref().map_or("", |it| it.value.as_str()));
        let Some(first) = texts.into_iter().flatten().next() else { return Proxies::default() };
        let proxies = Proxies::parse(http, https, none_for).map_err(|error| error.to_string());
        findings.value(&first.place, proxies).unwrap_or_default()
    }

    fn time_sources(&self, findings: &mut DiscoveryReport) -> TimeSources {
        let texts = [&self.additional_ntp_sources, &self.ntp_sources];
        let [additional, only] = texts.map(|it| it.as_ref().map_or("", |it| it.value.as_str()));
        let Some(first) = texts.into_iter().flatten().next() else { return TimeSources::default() };
        let sources = TimeSources::parse(additional, only).map_err(|error| error.to_string());
        findings.value(&first.place, sources).unwrap_or_default()
    }

    fn mirrors(&self, findings: &mut DiscoveryReport) -> Option<Mirrors> {
        let authority = certificates(self.registries_authority.as_ref(), findings);
        let registries = self.registries.as_ref().filter(|it| !it.value.trim().is_empty())?;
        let mirrors = Mirrors::new(&registries.value, authority).map_err(|error| reason(&error));
        findings.value(&registries.place, mirrors)
    }

    pub(super) fn kernel_arguments(&self, findings: &mut DiscoveryReport) -> KernelArguments {
        if let Some(first) = self.kernel_arguments.get(MAX_CHANGES) {
            findings
                .error(first.place.clone(), format!("more than {MAX_CHANGES} changes of kernel arguments"));
        }
        let mut change = |given: &Located<(KernelArgumentOperation, String)>| {
            let (operation, value) = &given.value;
            findings.value(
                &given.place,
                KernelArgumentChange::new(*operation, value).map_err(|error| reason(&error)),
            )
        };
        self.kernel_arguments.iter().filter_map(&mut change).collect()
    }

    /// Returns the version, if the draft has a valid one.
    pub(super) fn own_version(&self, findings: &mut DiscoveryReport) -> Option<String> {
        let version = self.version.as_ref()?;
        let is_version = Version::parse(&version.value).is_some();
        let message = || format!("{:?} is not an OpenShift version such as 4.18", version.value);
        findings.value(&version.place, is_version.then(|| version.value.clone()).ok_or_else(message))
    }

    fn version(&self, service_context: &ServiceContext, findings: &mut DiscoveryReport) -> Option<String> {
        match (&self.version, &service_context.version) {
            (Some(_), _) => self.own_version(findings),
            (None, Some(known)) => Some(known.clone()),
            (None, None) => {
                const REMEDY: &str = "set --openshift-version or spec.osImageVersion";
                let (place, message) = match &self.version_hint {
                    Some(place) => {
                        (place.clone(), "contains no OpenShift version, and neither does the base image")
                    }
                    None => (
                        SourceLocation::whole("infra-env"),
                        "OpenShift version is missing, and the base image does not contain it",
                    ),
                };
                findings.error(place, format!("{message}: {REMEDY}"));
                None
            }
        }
    }

    pub(super) fn image_type(&self, findings: &mut DiscoveryReport) -> DiscoveryImage {
        match self.image_type.as_ref().map(|it| (it.value.as_str(), &it.place)) {
            None | Some(("full-iso", _)) => DiscoveryImage::Full,
            Some(("minimal-iso", _)) => DiscoveryImage::Minimal,
            Some((other, place)) => {
                findings.error(place.clone(), format!("{other:?} is neither full-iso nor minimal-iso"));
                DiscoveryImage::Full
            }
        }
    }
}

impl Host {
    /// Returns the location of the host's network.
    #[must_use]
    pub fn place(&self) -> SourceLocation {
        self.origin
            .as_ref()
            .map_or_else(|| SourceLocation::whole(self.name.as_str()), |origin| origin.place(""))
    }

    /// Returns the location of a finding about this host.
    #[must_use]
    pub fn place_of(&self, finding: &NetworkFinding) -> SourceLocation {
        match &self.origin {
            // A document that cannot be parsed has no paths.
            Some(origin) if origin.network.is_empty() && finding.path.is_empty() => {
                let line = finding.line.unwrap_or(1).saturating_add(origin.skipped);
                SourceLocation { line: Some(line), ..origin.place("") }
            }
            Some(origin) => origin.place(&finding.path),
            None => {
                SourceLocation { file: self.name.clone(), line: finding.line, path: finding.path.clone() }
            }
        }
    }
}

/// Omits the config and the credentials.
impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("hosts", &self.hosts.len())
            .finish_non_exhaustive()
    }
}

/// Returns the reason of an input error with the found value. The location already names the field.
pub(crate) fn reason(error: &InputError) -> String {
    match &error.found {
        Some(found) => format!("{:?} {}", found.chars().take(100).collect::<String>(), error.reason),
        None => error.reason.clone(),
    }
}

fn parse_or_report<T>(
    given: Option<&Text>,
    findings: &mut DiscoveryReport,
    parse: impl Fn(&str) -> Result<T, InputError>,
) -> Option<T> {
    let given = given?;
    findings.value(&given.place, parse(&given.value).map_err(|error| reason(&error)))
}

fn certificates(given: Option<&Text>, findings: &mut DiscoveryReport) -> Option<CertificateBundle> {
    let given = given.filter(|it| !it.value.trim().is_empty());
    parse_or_report(given, findings, |pem| CertificateBundle::parse("certificates", pem))
}

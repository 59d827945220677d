//! An infra-env as somebody wrote it: texts with their places, which become [`Inputs`] when all of them are good.

use std::sync::Arc;

use ignition::discovery::kernel_arguments::{Change, KernelArguments, MAX_CHANGES, Operation};
use ignition::discovery::{
    CertificateBundle, ImageType, InfraEnv, InfraEnvId, InputError, Mirrors, Override, Proxies, PullSecret,
    Service, SshKeys, TimeSources,
};
use ignition::lint;
use ignition::network::check::{self, ClusterNetworks, check_for};
use ignition::network::{Generation, HostNetwork, KeyfileCache, yaml};

use super::Inputs;
use super::finding::{Findings, Given, Place};
use crate::images::Version;

/// A text, and where it stands.
pub type Text = Given<String>;

/// An infra-env as somebody wrote it. Nothing of it is known to be right.
#[derive(Clone, Default)]
pub struct Draft {
    /// The id under which the service knows it.
    pub id: Option<Text>,
    /// Credentials of registries.
    pub pull_secret: Option<Text>,
    /// Who may log in, a key in each line.
    pub ssh_keys: Option<Text>,
    /// The proxy for `http:` URLs.
    pub http_proxy: Option<Text>,
    /// The proxy for `https:` URLs.
    pub https_proxy: Option<Text>,
    /// What is reached without a proxy, separated by commas.
    pub no_proxy: Option<Text>,
    /// Time servers beside those of the system, separated by commas.
    pub additional_ntp_sources: Option<Text>,
    /// Time servers in place of those of the system, separated by commas.
    pub ntp_sources: Option<Text>,
    /// More certificates to trust, in PEM.
    pub trust_bundle: Option<Text>,
    /// Mirrors of registries: the text of a `registries.conf`.
    pub registries: Option<Text>,
    /// Who signed the certificates of the mirrors, in PEM.
    pub registries_authority: Option<Text>,
    /// A config that is laid over the generated one.
    pub config_override: Option<Text>,
    /// Changes of the kernel arguments.
    pub kernel_arguments: Vec<Given<(Operation, String)>>,
    /// The networks of machines.
    pub hosts: Vec<Host>,
    /// The networks of the cluster that the machines are meant for.
    pub cluster: ClusterNetworks,
    /// The version of OpenShift whose live image machines boot.
    pub version: Option<Text>,
    /// Where the version would be, if something is there that does not tell it.
    pub versionless: Option<Place>,
    /// The processor of the machines.
    pub architecture: Option<Text>,
    /// The kind of image, as the inventory's API calls it.
    pub image_type: Option<Text>,
    /// How many seconds a machine waits before it looks at its network.
    pub discovery_delay_seconds: Option<Given<u32>>,
}

/// The network of one machine.
#[derive(Clone, Debug)]
pub struct Host {
    /// The machine's name, for files and messages.
    pub name: String,
    /// The network.
    pub network: HostNetwork,
    /// Where it stands, if it is a part of a larger document.
    pub origin: Option<Arc<HostOrigin>>,
}

/// Where in a larger document the network of a machine stands.
#[derive(Clone, Debug)]
pub struct HostOrigin {
    /// The file.
    pub file: Arc<str>,
    /// The lines of the values in the document.
    pub lines: Arc<yaml::Lines>,
    /// How many lines of the file come before the document.
    pub skipped: usize,
    /// The path of the network.
    pub network: String,
    /// The path of the list of MAC addresses.
    pub interfaces: String,
}

impl HostOrigin {
    /// The place of a value of the network, or of its list of MAC addresses.
    fn place(&self, path: &str) -> Place {
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
        // The line where the document begins tells it from others in the file.
        let line = self.lines.find(&path).unwrap_or(1).saturating_add(self.skipped);
        Place { file: self.file.to_string(), line: Some(line), path }
    }
}

/// What is the same whatever the infra-env.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The service that machines report to.
    pub service: Service,
    /// The version of OpenShift that the live image is known to be for, where the draft names none.
    pub version: Option<String>,
}

impl Draft {
    /// The same with what another has: where both have something, the other's counts.
    #[must_use]
    pub fn with(self, over: Self) -> Self {
        let join = |mut one: Vec<_>, mut other: Vec<_>| {
            one.append(&mut other);
            one
        };
        Self {
            id: over.id.or(self.id),
            pull_secret: over.pull_secret.or(self.pull_secret),
            ssh_keys: over.ssh_keys.or(self.ssh_keys),
            http_proxy: over.http_proxy.or(self.http_proxy),
            https_proxy: over.https_proxy.or(self.https_proxy),
            no_proxy: over.no_proxy.or(self.no_proxy),
            // The two exclude one another: who names one kind of time server means none of the other.
            additional_ntp_sources: match (&over.additional_ntp_sources, &over.ntp_sources) {
                (None, Some(_)) => None,
                _ => over.additional_ntp_sources.clone().or(self.additional_ntp_sources),
            },
            ntp_sources: match (&over.ntp_sources, &over.additional_ntp_sources) {
                (None, Some(_)) => None,
                _ => over.ntp_sources.or(self.ntp_sources),
            },
            trust_bundle: over.trust_bundle.or(self.trust_bundle),
            registries: over.registries.or(self.registries),
            registries_authority: over.registries_authority.or(self.registries_authority),
            config_override: over.config_override.or(self.config_override),
            kernel_arguments: join(self.kernel_arguments, over.kernel_arguments),
            hosts: if over.hosts.is_empty() { self.hosts } else { over.hosts },
            cluster: if over.cluster.is_empty() { self.cluster } else { over.cluster },
            version: over.version.or(self.version),
            versionless: over.versionless.or(self.versionless),
            architecture: over.architecture.or(self.architecture),
            image_type: over.image_type.or(self.image_type),
            discovery_delay_seconds: over.discovery_delay_seconds.or(self.discovery_delay_seconds),
        }
    }

    /// Checks the networks of the machines, the config override and the OpenShift version.
    #[must_use]
    pub fn check(&self, cache: &KeyfileCache) -> Findings {
        let mut findings = Findings::default();
        let networks: Vec<HostNetwork> = self.hosts.iter().map(|host| host.network.clone()).collect();
        for finding in check_for(&networks, &self.cluster, cache).findings() {
            let host = self.hosts.get(finding.host);
            let place = host.map(|host| host.place_of(finding)).unwrap_or_default();
            findings.push(finding.severity, place, finding.message.clone());
        }
        if let Some(over) = &self.config_override {
            for finding in lint::check(over.value.as_bytes()).findings() {
                let pointer = if finding.pointer.is_empty() { "" } else { ": " };
                let message = format!("{}{pointer}{}", finding.pointer, finding.message);
                // The lines of a config that is a text in a manifest are not those of the manifest.
                let line = finding.position.filter(|_| over.place.path.is_empty()).map(|it| it.line);
                let place = Place { line: line.or(over.place.line), ..over.place.clone() };
                findings.push(finding.severity, place, message);
            }
        }
        self.check_version(&mut findings);
        findings
    }

    /// Warns of a version that this program was not made for: more often a typing error than a later release.
    fn check_version(&self, findings: &mut Findings) {
        let Some(given) = &self.version else { return };
        let Some(version) = Version::parse(&given.value) else { return };
        if !Version::KNOWN_MINORS.contains(&version.minor()) {
            let ((major, minor), (last_major, last_minor)) = Version::KNOWN_MINORS.into_inner();
            let known = format!("those from {major}.{minor} to {last_major}.{last_minor} are known");
            let message = format!("{} is not a known OpenShift version: {known}", given.value);
            findings.warning(given.place.clone(), message);
        }
    }

    /// What its images are made of, if all of it is good.
    ///
    /// # Errors
    ///
    /// When a value is missing or no good: everything that is wrong, with its place.
    pub fn inputs(&self, surroundings: &Surroundings) -> Result<Inputs, Findings> {
        let mut findings = Findings::default();
        let infra_env = self.infra_env(&mut findings);
        let version = self.version(surroundings, &mut findings);
        let kernel_arguments = self.kernel_arguments(&mut findings);
        let image_type = self.image_type(&mut findings);
        match (infra_env, version) {
            (Some(infra_env), Some(version)) if !findings.is_fatal() => {
                let generation = Generation::for_version(&version);
                Ok(Inputs {
                    service: surroundings.service.clone(),
                    infra_env: InfraEnv { image_type, ..infra_env },
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

    fn infra_env(&self, findings: &mut Findings) -> Option<InfraEnv> {
        let id = parsed(self.id.as_ref(), findings, InfraEnvId::parse);
        if self.id.is_none() {
            findings.error(Place::of("infra-env"), "its id is missing");
        }
        let secret = parsed(self.pull_secret.as_ref(), findings, PullSecret::parse);
        if self.pull_secret.is_none() {
            findings.error(Place::of("infra-env"), "its pull secret is missing");
        }
        let ssh_keys = parsed(self.ssh_keys.as_ref(), findings, SshKeys::parse);
        let proxies = self.proxies(findings);
        let time_sources = self.time_sources(findings);
        let trust_bundle = certificates(self.trust_bundle.as_ref(), findings);
        let mirrors = self.mirrors(findings);
        let mut infra_env = InfraEnv::new(id?, secret?);
        infra_env.ssh_keys = ssh_keys.unwrap_or_default();
        infra_env.proxies = proxies;
        infra_env.time_sources = time_sources;
        infra_env.trust_bundle = trust_bundle;
        infra_env.mirrors = mirrors;
        infra_env.config_override = self.config_override.as_ref().map(|it| Override::new(it.value.as_str()));
        Some(infra_env)
    }

    fn proxies(&self, findings: &mut Findings) -> Proxies {
        let texts = [&self.http_proxy, &self.https_proxy, &self.no_proxy];
        let [http, https, none_for] = texts.map(|it| it.as_ref().map_or("", |it| it.value.as_str()));
        let place = texts.into_iter().flatten().next().map(|it| it.place.clone()).unwrap_or_default();
        let proxies = Proxies::parse(http, https, none_for).map_err(|error| error.to_string());
        findings.value(&place, proxies).unwrap_or_default()
    }

    fn time_sources(&self, findings: &mut Findings) -> TimeSources {
        let texts = [&self.additional_ntp_sources, &self.ntp_sources];
        let [additional, only] = texts.map(|it| it.as_ref().map_or("", |it| it.value.as_str()));
        let place = texts.into_iter().flatten().next().map(|it| it.place.clone()).unwrap_or_default();
        let sources = TimeSources::parse(additional, only).map_err(|error| error.to_string());
        findings.value(&place, sources).unwrap_or_default()
    }

    fn mirrors(&self, findings: &mut Findings) -> Option<Mirrors> {
        let authority = certificates(self.registries_authority.as_ref(), findings);
        let registries = self.registries.as_ref().filter(|it| !it.value.trim().is_empty())?;
        let mirrors = Mirrors::new(&registries.value, authority).map_err(|error| reason(&error));
        findings.value(&registries.place, mirrors)
    }

    fn kernel_arguments(&self, findings: &mut Findings) -> KernelArguments {
        if let Some(first) = self.kernel_arguments.get(MAX_CHANGES) {
            findings.error(first.place.clone(), format!("there are more than {MAX_CHANGES} changes"));
        }
        let mut change = |given: &Given<(Operation, String)>| {
            let (operation, value) = &given.value;
            findings.value(&given.place, Change::new(*operation, value).map_err(|error| reason(&error)))
        };
        self.kernel_arguments.iter().filter_map(&mut change).collect()
    }

    fn version(&self, surroundings: &Surroundings, findings: &mut Findings) -> Option<String> {
        let is_version = |text: &str| Version::parse(text).is_some();
        match (&self.version, &surroundings.version) {
            (Some(given), _) if is_version(&given.value) => Some(given.value.clone()),
            (Some(given), _) => {
                findings.error(
                    given.place.clone(),
                    format!("{:?} is not an OpenShift version such as 4.18", given.value),
                );
                None
            }
            (None, Some(known)) => Some(known.clone()),
            (None, None) => {
                const REMEDY: &str = "give --openshift-version or spec.osImageVersion";
                let (place, message) = match &self.versionless {
                    Some(place) => {
                        (place.clone(), "it tells no version of OpenShift, and neither does the live image")
                    }
                    None => (
                        Place::of("infra-env"),
                        "the version of OpenShift is missing, and the live image does not tell it",
                    ),
                };
                findings.error(place, format!("{message}: {REMEDY}"));
                None
            }
        }
    }

    fn image_type(&self, findings: &mut Findings) -> ImageType {
        match self.image_type.as_ref().map(|it| (it.value.as_str(), &it.place)) {
            None | Some(("full-iso", _)) => ImageType::Full,
            Some(("minimal-iso", _)) => ImageType::Minimal,
            Some((other, place)) => {
                findings.error(place.clone(), format!("{other:?} is neither full-iso nor minimal-iso"));
                ImageType::Full
            }
        }
    }
}

impl Host {
    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> Place {
        self.origin.as_ref().map_or_else(|| Place::of(self.name.as_str()), |origin| origin.place(""))
    }

    /// The place of a finding about it.
    #[must_use]
    pub fn place_of(&self, finding: &check::Finding) -> Place {
        match &self.origin {
            // A document that cannot be read has no paths.
            Some(origin) if origin.network.is_empty() && finding.path.is_empty() => {
                let line = finding.line.unwrap_or(1).saturating_add(origin.skipped);
                Place { line: Some(line), ..origin.place("") }
            }
            Some(origin) => origin.place(&finding.path),
            None => Place { file: self.name.clone(), line: finding.line, path: finding.path.clone() },
        }
    }
}

/// A config with an infra-env's secrets is not for logs.
impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("hosts", &self.hosts.len())
            .finish_non_exhaustive()
    }
}

/// What is wrong with a value; its place tells the field.
pub(crate) fn reason(error: &InputError) -> String {
    match &error.found {
        Some(found) => format!("{:?} {}", found.chars().take(100).collect::<String>(), error.reason),
        None => error.reason.clone(),
    }
}

fn parsed<T>(
    given: Option<&Text>,
    findings: &mut Findings,
    parse: impl Fn(&str) -> Result<T, InputError>,
) -> Option<T> {
    let given = given?;
    findings.value(&given.place, parse(&given.value).map_err(|error| reason(&error)))
}

fn certificates(given: Option<&Text>, findings: &mut Findings) -> Option<CertificateBundle> {
    let given = given.filter(|it| !it.value.trim().is_empty());
    parsed(given, findings, |pem| CertificateBundle::parse("certificates", pem))
}

//! The check of a draft, and its conversion to inputs.

use ignition::discovery::{InfraEnvSettings, Override};
use ignition::network::KeyfileCache;

use super::values::DraftValues;
use super::{Draft, ServiceContext, Text};
use crate::builder::InputsBuilder;
use crate::check::{check_networks, check_override, check_version};
use crate::checked::Checked;
use crate::finding::{DiscoveryReport, FindingKind, Located, SourceLocation};
use crate::inputs::Inputs;
use crate::version::OpenshiftVersion;

impl Draft {
    /// Checks all values of the draft. Finds invalid values, contradictions among hosts or with their cluster, and
    /// probable mistakes. Does not report missing values.
    ///
    /// The check generates the network files, which takes most of its time, and stores them in `cache`.
    #[must_use]
    pub fn check(&self, cache: &KeyfileCache) -> DiscoveryReport {
        let mut findings = DiscoveryReport::default();
        check_networks(&self.hosts, &self.cluster, cache, &mut findings);
        if let Some(over) = &self.config_override {
            check_override(&Located::new(over.value.as_str(), override_place(over)), &mut findings);
        }
        let values = DraftValues::parse(self, &mut findings);
        if let Some(version) = &values.version {
            check_version(&version.as_ref(), &mut findings);
        }
        findings
    }

    /// Parses and checks the values. Returns the inputs of the images, and the warnings about them.
    ///
    /// # Errors
    ///
    /// Returns all findings if a value is missing or at least one finding is an error.
    pub fn inputs(
        &self,
        service_context: &ServiceContext,
        cache: &KeyfileCache,
    ) -> Result<Checked<Inputs>, DiscoveryReport> {
        let (mut invalid, mut missing) = (DiscoveryReport::default(), DiscoveryReport::default());
        let values = DraftValues::parse(self, &mut invalid);
        let version = self.version(values.version, service_context, &mut missing);
        for (value, what) in [(&self.id, "id"), (&self.pull_secret, "pull secret")] {
            if value.is_none() {
                let place = SourceLocation::whole("infra-env");
                missing.missing(FindingKind::Missing, place, format!("{what} is missing"));
            }
        }
        let (Some(id), Some(pull_secret), Some(version), false) =
            (values.id, values.pull_secret, version, invalid.is_fatal())
        else {
            let mut findings = self.check(cache);
            findings.append(missing);
            return Err(findings);
        };
        let infra_env = InfraEnvSettings {
            ssh_keys: values.ssh_keys,
            proxies: values.proxies,
            time_sources: values.time_sources,
            trust_bundle: values.trust_bundle,
            mirrors: values.mirrors,
            image_type: values.image_type,
            config_override: self.config_override.as_ref().map(|it| Override::new(it.value.as_str())),
            ..InfraEnvSettings::new(id, pull_secret)
        };
        let over = self.config_override.as_ref().map(override_place).unwrap_or_default();
        InputsBuilder::new(service_context.service.clone(), infra_env, version.value)
            .located_hosts(self.hosts.iter().cloned())
            .kernel_arguments(values.kernel_arguments)
            .discovery_delay_seconds(self.discovery_delay_seconds.as_ref().map_or(0, |it| it.value))
            .cluster(self.cluster.clone())
            .places(version.place, over)
            .check(cache)
    }

    /// Returns the version of the draft, or else the version of the base image. Adds an error if neither is known.
    fn version(
        &self,
        own: Option<Located<OpenshiftVersion>>,
        service_context: &ServiceContext,
        findings: &mut DiscoveryReport,
    ) -> Option<Located<OpenshiftVersion>> {
        if self.version.is_some() {
            return own;
        }
        if let Some(version) = &service_context.version {
            return Some(Located::new(version.clone(), SourceLocation::whole("base image")));
        }
        let (place, message) = match &self.version_hint {
            Some(place) => (place.clone(), "contains no OpenShift version, and neither does the base image"),
            None => (
                SourceLocation::whole("infra-env"),
                "OpenShift version is missing, and the base image does not contain it",
            ),
        };
        findings.missing(FindingKind::MissingVersion, place, message);
        None
    }
}

fn override_place(over: &Text) -> SourceLocation {
    over.place.or_whole("Ignition override")
}

//! Conversion of an `InfraEnv` and the objects that it refers to into a draft.

use ignition::discovery::kernel_arguments::KernelArgumentOperation;
use ignition::discovery::{InfraEnvId, TimeSources};
use ignition::network::check::ClusterNetworks;
use ignition::report::Severity;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::nmstate_config::host;
use super::reference::{ReferencedObject, duplicate_message};
use super::{IdSource, Manifests, Object, OtherFile, cluster, selection};
use crate::draft::values::reason;
use crate::{
    DiscoveryFinding, DiscoveryReport, Draft, FindingKind, Host, Located, OpenshiftVersion, SourceLocation,
    Text,
};

/// The known fields of an `InfraEnv`'s `spec`.
const FIELDS: [&str; 19] = [
    "additionalNTPSources",
    "additionalTrustBundle",
    "agentApproval",
    "agentLabels",
    "clusterRef",
    "cpuArchitecture",
    "ignitionConfigOverride",
    "imageType",
    "ipxeScriptType",
    "kernelArguments",
    "mirrorRegistryRef",
    "networkDiscoveryDelaySeconds",
    "nmStateConfigLabelSelector",
    "ntpSources",
    "osImageVersion",
    "proxy",
    "pullSecretRef",
    "sshAuthorizedKey",
    // Some manifest generators write this field, although it has no effect.
    "agentLabelSelector",
];

/// Fields that a request to a service cannot contain, each with the reason or the consequence.
const UNSENT_FIELDS: [(&str, &str); 3] = [
    ("spec.clusterRef", "the hosts are not bound to a cluster"),
    ("spec.agentLabels", "they are labels of Kubernetes Agents, and hosts in the API have no such labels"),
    ("spec.ipxeScriptType", "the URL of an iPXE script selects its type"),
];

const PROXY_FIELDS: [&str; 3] = ["httpProxy", "httpsProxy", "noProxy"];
const KERNEL_ARGUMENT_FIELDS: [&str; 2] = ["operation", "value"];
const REFERENCE_FIELDS: [&str; 2] = ["name", "namespace"];

impl Manifests {
    /// Returns the draft of an infra-env and the findings about the manifests, which may include errors.
    ///
    /// `infra_env_name` is `NAME` or `NAMESPACE/NAME`, and is required if there are several `InfraEnv`s. Values in
    /// `over` take precedence, and a reference is not followed if `over` contains its value.
    ///
    /// # Errors
    ///
    /// Returns the findings if no `InfraEnv` matches or more than one matches.
    pub fn draft(
        &self,
        infra_env_name: Option<&str>,
        over: Draft,
    ) -> Result<(Draft, DiscoveryReport), DiscoveryReport> {
        let mut findings = self.findings.clone();
        let object = match self.infra_env(infra_env_name) {
            Ok(object) => object,
            Err(finding) => {
                findings.push(finding);
                return Err(findings);
            }
        };
        let mut reader = InfraEnvReader { manifests: self, object, findings };
        let draft = reader.draft(&over).with(over);
        Ok((draft, reader.findings))
    }

    fn infra_env(&self, infra_env_name: Option<&str>) -> Result<&Object, DiscoveryFinding> {
        let is_match =
            |object: &&Object| match infra_env_name.map(|it| it.split_once('/').unwrap_or(("", it))) {
                None => true,
                Some((namespace, name)) => {
                    object.name() == name && (namespace.is_empty() || namespace == object.namespace())
                }
            };
        let infra_envs: Vec<&Object> = self.objects_of_kind("InfraEnv").filter(is_match).collect();
        let error = |kind, place, message| {
            Err(DiscoveryFinding::new(Severity::Error, place, message).with_kind(kind))
        };
        match infra_envs.as_slice() {
            [object] => Ok(object),
            [] => {
                let suffix = infra_env_name.map(|name| format!(" named {name:?}")).unwrap_or_default();
                let place = SourceLocation::whole(self.location());
                error(FindingKind::UnknownInfraEnv, place, format!("no InfraEnv{suffix} found"))
            }
            [first, second, ..] => {
                let is_same = first.namespace() == second.namespace() && first.name() == second.name();
                let place = second.location_of("metadata.name");
                if is_same {
                    error(FindingKind::Value, place, duplicate_message([first, second]))
                } else {
                    error(FindingKind::AmbiguousInfraEnv, place, several_infra_envs_message(&infra_envs))
                }
            }
        }
    }
}

fn several_infra_envs_message(infra_envs: &[&Object]) -> String {
    let name = |it: &&Object| {
        format!("{}/{} ({})", it.namespace(), it.name(), it.location_of("metadata.name").line())
    };
    let names: Vec<String> = infra_envs.iter().map(name).collect();
    format!("found several InfraEnvs: {}", names.join(", "))
}

/// A reader of one `InfraEnv`.
struct InfraEnvReader<'a> {
    manifests: &'a Manifests,
    object: &'a Object,
    findings: DiscoveryReport,
}

impl<'a> InfraEnvReader<'a> {
    fn draft(&mut self, over: &Draft) -> Draft {
        self.object.has_fields("spec", &FIELDS, &mut self.findings);
        self.object.has_fields("spec.proxy", &PROXY_FIELDS, &mut self.findings);
        let is_cluster_sound = self.is_reference("spec.clusterRef");
        let mut draft = Draft {
            name: self.name(),
            id: self.infra_env_id(),
            ssh_keys: self.text("spec.sshAuthorizedKey"),
            http_proxy: self.text("spec.proxy.httpProxy"),
            https_proxy: self.text("spec.proxy.httpsProxy"),
            no_proxy: self.text("spec.proxy.noProxy"),
            additional_ntp_sources: self.time_sources("spec.additionalNTPSources"),
            ntp_sources: self.time_sources("spec.ntpSources"),
            trust_bundle: self.text("spec.additionalTrustBundle"),
            config_override: self.text("spec.ignitionConfigOverride"),
            kernel_arguments: self.kernel_arguments(),
            architecture: self.text("spec.cpuArchitecture"),
            image_type: self.text("spec.imageType"),
            discovery_delay_seconds: self.network_discovery_delay(),
            unsent_fields: self.unsent_fields(),
            ..Draft::default()
        };
        if over.pull_secret.is_none() {
            draft.pull_secret = self.pull_secret();
        }
        if over.version.is_none() {
            draft.version = self.text("spec.osImageVersion");
            if draft.version.is_some() && self.object.get("spec.clusterRef").is_some() {
                let message =
                    "the service accepts it together with spec.clusterRef only if that cluster is installed";
                self.findings.warning(self.object.location_of("spec.osImageVersion"), message);
            }
            if draft.version.is_none() && is_cluster_sound {
                (draft.version, draft.version_hint) = self.release();
            }
        }
        if over.registries.is_none() {
            (draft.registries, draft.registries_authority) = self.mirrors();
        }
        if is_cluster_sound {
            draft.cluster = self.cluster();
        }
        if over.hosts.is_empty() {
            draft.hosts = self.hosts();
        }
        draft
    }

    fn name(&self) -> Option<Text> {
        let name = Located::new(self.object.name().to_owned(), self.object.location_of("metadata.name"));
        Some(name).filter(|name| !name.value.is_empty())
    }

    fn unsent_fields(&self) -> Vec<Located<&'static str>> {
        let fields = UNSENT_FIELDS.iter().filter(|(path, _)| self.object.get(path).is_some());
        fields.map(|(path, reason)| Located::new(*reason, self.object.location_of(path))).collect()
    }

    fn text(&mut self, path: &str) -> Option<Text> {
        self.object.text(path, &mut self.findings).filter(|it| !it.value.is_empty())
    }

    /// Reads a list of NTP sources. Reports an invalid source with its index, and leaves it out.
    fn time_sources(&mut self, path: &str) -> Option<Text> {
        let Located { mut value, place } = self.object.texts(path, &mut self.findings)?;
        let mut index = 0_usize;
        value.retain(|source| {
            let place = self.object.location_of(&format!("{path}[{index}]"));
            index += 1;
            let parsed = TimeSources::parse(source, "").map_err(|error| reason(&error));
            self.findings.value(&place, parsed).is_some()
        });
        Some(Located::new(value.join(","), place))
    }

    fn infra_env_id(&mut self) -> Option<Text> {
        match self.manifests.ids {
            IdSource::Name => self.id_from_status_or_name(),
            IdSource::Uid => self.uid(),
        }
    }

    fn uid(&mut self) -> Option<Text> {
        const PATH: &str = "metadata.uid";
        let uid = self.text(PATH);
        if uid.is_none() && self.object.get(PATH).is_none_or(Value::is_string) {
            let place = self.object.location_of(PATH);
            self.findings.missing(FindingKind::Missing, place, "the InfraEnv has no uid, which is its id");
        }
        uid
    }

    /// Returns the id in the inventory if the status of the manifest contains it, because the manifest was exported
    /// from a cluster. Otherwise derives an id from the name.
    fn id_from_status_or_name(&mut self) -> Option<Text> {
        for path in ["status.isoDownloadURL", "status.bootArtifacts.initrd"] {
            let url = self.object.get(path).and_then(Value::as_str).into_iter();
            let mut parts = url.flat_map(|url| url.split(['/', '?', '&', '=']));
            if let Some(id) = parts.find_map(|part| InfraEnvId::parse(part).ok()) {
                return Some(Located::new(id.to_string(), self.object.location_of(path)));
            }
        }
        let place = self.object.location_of("metadata.name");
        if self.object.name().is_empty() {
            self.findings.error(place, "the InfraEnv has no name; its id is derived from the name");
            return None;
        }
        let name = format!("{}/{}", self.object.namespace(), self.object.name());
        Some(Located::new(id_from_name(&name), place))
    }

    /// Returns `true` if the value is absent or a valid reference. Reports an invalid reference.
    fn is_reference(&mut self, path: &str) -> bool {
        let Some(value) = self.object.get(path) else { return true };
        let (object, findings) = (self.object, &mut self.findings);
        object.are_fields((path, value), &REFERENCE_FIELDS, findings)
            && REFERENCE_FIELDS.iter().all(|field| object.text_in((path, value), field, findings).is_ok())
    }

    fn referenced_object<'b>(&'b self, kind: &'b str, path: &str) -> Option<ReferencedObject<'b>> {
        let name = self.object.get(&format!("{path}.name"))?.as_str()?;
        let namespace = self.object.get(&format!("{path}.namespace")).and_then(Value::as_str);
        Some(ReferencedObject { kind, namespace: namespace.unwrap_or(self.object.namespace()), name })
    }

    fn pull_secret(&mut self) -> Option<Text> {
        const PATH: &str = "spec.pullSecretRef";
        if !self.is_reference(PATH) {
            return None;
        }
        let Some(reference) = self.referenced_object("Secret", PATH) else {
            self.findings.error(self.object.location_of(PATH), "names no Secret");
            return None;
        };
        let mut findings = DiscoveryReport::default();
        let secret = self.manifests.find(reference, &self.object.location_of(PATH), &mut findings);
        let text = secret.and_then(|secret| secret.secret_text(".dockerconfigjson", &mut findings));
        self.findings.append(findings);
        text
    }

    /// Returns the mirrors that the `InfraEnv` refers to, or else the mirrors in the directory.
    fn mirrors(&mut self) -> (Option<Text>, Option<Text>) {
        const PATH: &str = "spec.mirrorRegistryRef";
        if self.object.get(PATH).is_none() {
            let text_of = |file: &Option<OtherFile>| {
                let file = file.as_ref()?;
                Some(Located::new(file.text.clone(), SourceLocation::whole(file.file.to_string())))
            };
            return (text_of(&self.manifests.registries), text_of(&self.manifests.registries_authority));
        }
        if !self.is_reference(PATH) {
            return (None, None);
        }
        let Some(reference) = self.referenced_object("ConfigMap", PATH) else {
            self.findings.error(self.object.location_of(PATH), "names no ConfigMap");
            return (None, None);
        };
        let mut findings = DiscoveryReport::default();
        let map = self.manifests.find(reference, &self.object.location_of(PATH), &mut findings);
        let texts = map.map(|map| {
            let registries = map.config_text("registries.conf", &mut findings);
            if registries.is_none() {
                findings.error(map.location_of("data"), "has no \"registries.conf\"");
            }
            (registries, map.config_text("ca-bundle.crt", &mut findings))
        });
        self.findings.append(findings);
        texts.unwrap_or_default()
    }

    /// Follows `spec.clusterRef` and its `ClusterDeployment` to the `AgentClusterInstall`.
    fn agent_cluster_install(&self, findings: &mut DiscoveryReport) -> Option<&'a Object> {
        let manifests = self.manifests;
        let reference = self.referenced_object("ClusterDeployment", "spec.clusterRef")?;
        let cluster = manifests.find(reference, &self.object.location_of("spec.clusterRef"), findings)?;
        let name = cluster.text("spec.clusterInstallRef.name", findings)?.value;
        let reference =
            ReferencedObject { kind: "AgentClusterInstall", namespace: cluster.namespace(), name: &name };
        manifests.find(reference, &cluster.location_of("spec.clusterInstallRef"), findings)
    }

    /// Returns the VIPs and machine networks of the cluster.
    fn cluster(&mut self) -> ClusterNetworks {
        // Ignore findings about missing objects here, because `release` reports them.
        let Some(install) = self.agent_cluster_install(&mut DiscoveryReport::default()) else {
            return ClusterNetworks::default();
        };
        cluster::networks(install, &mut self.findings)
    }

    /// Returns the version of the cluster's release. If the tag of its release image contains no version, returns the
    /// location of the image instead.
    fn release(&mut self) -> (Option<Text>, Option<SourceLocation>) {
        let manifests = self.manifests;
        let mut findings = DiscoveryReport::default();
        let release = self.agent_cluster_install(&mut findings).and_then(|install| {
            let name = install.text("spec.imageSetRef.name", &mut findings)?.value;
            let reference = ReferencedObject { kind: "ClusterImageSet", namespace: "", name: &name };
            let set = manifests.find(reference, &install.location_of("spec.imageSetRef"), &mut findings)?;
            set.text("spec.releaseImage", &mut findings)
        });
        // Report missing objects only as warnings, because another source may provide the version.
        for finding in findings.as_slice() {
            self.findings.warning(finding.place.clone(), finding.message.clone());
        }
        match release.map(|release| (release_version(&release.value), release.place)) {
            Some((Some(version), place)) => (Some(Located::new(version, place)), None),
            Some((None, place)) => (None, Some(place)),
            None => (None, None),
        }
    }

    fn network_discovery_delay(&mut self) -> Option<Located<u32>> {
        const PATH: &str = "spec.networkDiscoveryDelaySeconds";
        let value = self.object.get(PATH)?;
        let place = self.object.location_of(PATH);
        let Some(seconds) = value.as_u64().and_then(|it| u32::try_from(it).ok()) else {
            self.findings.error(place, "has to be a number of seconds");
            return None;
        };
        Some(Located::new(seconds, place))
    }

    fn kernel_arguments(&mut self) -> Vec<Located<(KernelArgumentOperation, String)>> {
        const PATH: &str = "spec.kernelArguments";
        let object = self.object;
        let mut changes = Vec::new();
        let list = object.list(PATH, &mut self.findings).unwrap_or_default();
        for (index, change) in list.iter().enumerate() {
            let path = format!("{PATH}[{index}]");
            if !object.are_fields((&path, change), &KERNEL_ARGUMENT_FIELDS, &mut self.findings) {
                continue;
            }
            let Ok(value) = object.text_in((&path, change), "value", &mut self.findings) else { continue };
            let operation_value = change.get("operation").cloned().unwrap_or_else(|| "append".into());
            match (serde_json::from_value::<KernelArgumentOperation>(operation_value.clone()), value) {
                (Ok(operation), Some(value)) => {
                    let place = object.location_of(&format!("{path}.value"));
                    changes.push(Located::new((operation, value.to_owned()), place));
                }
                (Err(_), _) => {
                    let place = object.location_of(&format!("{path}.operation"));
                    self.findings.error(place, format!("{operation_value} is not append, replace or delete"));
                }
                (_, None) => self.findings.error(object.location_of(&path), "has no value"),
            }
        }
        changes
    }

    fn hosts(&mut self) -> Vec<Host> {
        let configs = selection::select(self.manifests, self.object, &mut self.findings);
        configs.into_iter().filter_map(|object| host(object, &mut self.findings)).collect()
    }
}

/// Derives an id for an infra-env that is not in an inventory yet. The same name always results in the same id.
fn id_from_name(name: &str) -> String {
    let digest = Sha256::new_with_prefix(b"kindling infra-env ").chain_update(name).finalize();
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, of)| *byte = of);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// Returns the version in the tag of a release image. Returns `None` if the reference uses a digest or the tag is not a
/// version.
fn release_version(image: &str) -> Option<String> {
    let tag = image.rsplit('/').next()?.split('@').next()?.split_once(':')?.1;
    let machines = ["-x86_64", "-aarch64", "-arm64", "-ppc64le", "-s390x", "-multi"];
    let version = machines.iter().find_map(|machine| tag.strip_suffix(machine)).unwrap_or(tag);
    version.parse::<OpenshiftVersion>().ok().map(|version| version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_version_comes_from_the_tag() {
        for (image, version) in [
            ("quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64", Some("4.18.3")),
            ("mirror.example:5000/ocp/release:4.20.0-rc.1-multi", Some("4.20.0-rc.1")),
            ("quay.io/ocp/release@sha256:00ff", None),
            ("mirror.example:5000/release", None),
            ("release:latest", None),
        ] {
            assert_eq!(release_version(image).as_deref(), version, "{image}");
        }
    }

    #[test]
    fn id_depends_only_on_the_name() {
        let id = id_from_name("site/env");
        assert!(InfraEnvId::parse(&id).is_ok());
        assert_eq!(id, id_from_name("site/env"));
        assert_ne!(id, id_from_name("site/env2"));
    }
}

//! From an `InfraEnv` and what it refers to, to the draft of an infra-env.

use ignition::discovery::kernel_arguments::Operation;
use ignition::discovery::{InfraEnvId, TimeSources};
use ignition::network::check::ClusterNetworks;
use ignition::report::Severity;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::nmstate_config::host;
use super::reference::{Wanted, there_are_two};
use super::{Loose, Manifests, Object, cluster, selection};
use crate::discovery::{Draft, Findings, Given, Host, Place, Text, reason};

/// What the specification of an infra-env may have.
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
    // What some generators of manifests write, and nobody reads.
    "agentLabelSelector",
];

const PROXY_FIELDS: [&str; 3] = ["httpProxy", "httpsProxy", "noProxy"];
const KERNEL_ARGUMENT_FIELDS: [&str; 2] = ["operation", "value"];
const REFERENCE_FIELDS: [&str; 2] = ["name", "namespace"];

impl Manifests {
    /// The draft of an infra-env, and what there is to say about it. `wanted` is its name, or its namespace and name with a
    /// slash between, where there is more than one. What `over` has goes over what the manifests have, and is not looked for
    /// in them.
    #[must_use]
    pub fn draft(&self, wanted: Option<&str>, over: Draft) -> (Draft, Findings) {
        let mut findings = self.findings.clone();
        let Some(object) = self.infra_env(wanted, &mut findings) else { return (over, findings) };
        let mut reader = Reader { manifests: self, object, findings };
        let draft = reader.draft(&over).with(over);
        (draft, reader.findings)
    }

    fn infra_env(&self, wanted: Option<&str>, findings: &mut Findings) -> Option<&Object> {
        let is_wanted = |object: &&Object| match wanted.map(|it| it.split_once('/').unwrap_or(("", it))) {
            None => true,
            Some((namespace, name)) => {
                object.name() == name && (namespace.is_empty() || namespace == object.namespace())
            }
        };
        let found: Vec<&Object> = self.of_kind("InfraEnv").filter(is_wanted).collect();
        let directory = || Place::of(self.directory.display().to_string());
        match (found.as_slice(), wanted) {
            ([object], _) => Some(object),
            ([], None) => {
                findings.error(directory(), "there is no InfraEnv in it");
                None
            }
            ([], Some(wanted)) => {
                findings.error(directory(), format!("there is no InfraEnv of the name {wanted:?} in it"));
                None
            }
            ([first, second, ..], _) => {
                let is_same = first.namespace() == second.namespace() && first.name() == second.name();
                let message = if is_same { there_are_two([first, second]) } else { to_choose(&found) };
                findings.error(second.at("metadata.name"), message);
                None
            }
        }
    }
}

fn to_choose(found: &[&Object]) -> String {
    let name = |it: &&Object| format!("{}/{} ({})", it.namespace(), it.name(), it.at("metadata.name").line());
    let names: Vec<String> = found.iter().map(name).collect();
    format!("there are several InfraEnvs; choose one with --infra-env: {}", names.join(", "))
}

/// Reads one infra-env.
struct Reader<'a> {
    manifests: &'a Manifests,
    object: &'a Object,
    findings: Findings,
}

impl<'a> Reader<'a> {
    fn draft(&mut self, over: &Draft) -> Draft {
        self.object.has_fields("spec", &FIELDS, &mut self.findings);
        self.object.has_fields("spec.proxy", &PROXY_FIELDS, &mut self.findings);
        let is_cluster_sound = self.is_reference("spec.clusterRef");
        let mut draft = Draft {
            id: Some(self.id()),
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
            discovery_delay_seconds: self.delay(),
            ..Draft::default()
        };
        if over.pull_secret.is_none() {
            draft.pull_secret = self.pull_secret();
        }
        if over.version.is_none() {
            draft.version = self.text("spec.osImageVersion");
            if draft.version.is_some() && self.object.get("spec.clusterRef").is_some() {
                let message =
                    "the service takes it beside spec.clusterRef only once that cluster is installed";
                self.findings.warning(self.object.at("spec.osImageVersion"), message);
            }
            if draft.version.is_none() && is_cluster_sound {
                (draft.version, draft.versionless) = self.release();
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

    fn text(&mut self, path: &str) -> Option<Text> {
        self.object.text(path, &mut self.findings).filter(|it| !it.value.is_empty())
    }

    /// A list of time servers. A wrong one is reported where it is in the list, and left out.
    fn time_sources(&mut self, path: &str) -> Option<Text> {
        let Given { mut value, place } = self.object.texts(path, &mut self.findings)?;
        let mut index = 0_usize;
        value.retain(|source| {
            let place = self.object.at(&format!("{path}[{index}]"));
            index += 1;
            let parsed = TimeSources::parse(source, "").map_err(|error| reason(&error));
            self.findings.value(&place, parsed).is_some()
        });
        Some(Given::new(value.join(","), place))
    }

    /// The id by which the service knows it, where the manifest comes from a cluster and tells it; else one made of its name.
    fn id(&self) -> Text {
        for path in ["status.isoDownloadURL", "status.bootArtifacts.initrd"] {
            let url = self.object.get(path).and_then(Value::as_str).unwrap_or_default();
            if let Some(id) = url.split(['/', '?', '&', '=']).find_map(|part| InfraEnvId::parse(part).ok()) {
                return Given::new(id.to_string(), self.object.at(path));
            }
        }
        let name = format!("{}/{}", self.object.namespace(), self.object.name());
        Given::new(id_of(&name), self.object.at("metadata.name"))
    }

    /// Whether a reference has the shape of one, or is not there; findings for something else.
    fn is_reference(&mut self, path: &str) -> bool {
        let Some(value) = self.object.get(path) else { return true };
        let (object, findings) = (self.object, &mut self.findings);
        object.are_fields((path, value), &REFERENCE_FIELDS, findings)
            && REFERENCE_FIELDS.iter().all(|field| object.text_in((path, value), field, findings).is_ok())
    }

    fn wanted<'b>(&'b self, kind: &'b str, path: &str) -> Option<Wanted<'b>> {
        let name = self.object.get(&format!("{path}.name"))?.as_str()?;
        let namespace = self.object.get(&format!("{path}.namespace")).and_then(Value::as_str);
        Some(Wanted { kind, namespace: namespace.unwrap_or(self.object.namespace()), name })
    }

    fn pull_secret(&mut self) -> Option<Text> {
        const PATH: &str = "spec.pullSecretRef";
        if !self.is_reference(PATH) {
            return None;
        }
        let Some(wanted) = self.wanted("Secret", PATH) else {
            self.findings.error(self.object.at(PATH), "names no Secret");
            return None;
        };
        let mut findings = Findings::default();
        let secret = self.manifests.find(wanted, &self.object.at(PATH), &mut findings);
        let text = secret.and_then(|secret| secret.secret_text(".dockerconfigjson", &mut findings));
        self.findings.append(findings);
        text
    }

    /// The mirrors that the infra-env refers to, else those beside the manifests.
    fn mirrors(&mut self) -> (Option<Text>, Option<Text>) {
        const PATH: &str = "spec.mirrorRegistryRef";
        if self.object.get(PATH).is_none() {
            let given = |loose: &Option<Loose>| {
                let loose = loose.as_ref()?;
                Some(Given::new(loose.text.clone(), Place::of(loose.file.to_string())))
            };
            return (given(&self.manifests.registries), given(&self.manifests.registries_authority));
        }
        if !self.is_reference(PATH) {
            return (None, None);
        }
        let Some(wanted) = self.wanted("ConfigMap", PATH) else {
            self.findings.error(self.object.at(PATH), "names no ConfigMap");
            return (None, None);
        };
        let mut findings = Findings::default();
        let map = self.manifests.find(wanted, &self.object.at(PATH), &mut findings);
        let texts = map.map(|map| {
            let registries = map.config_text("registries.conf", &mut findings);
            if registries.is_none() {
                findings.error(map.at("data"), "has no \"registries.conf\"");
            }
            (registries, map.config_text("ca-bundle.crt", &mut findings))
        });
        self.findings.append(findings);
        texts.unwrap_or_default()
    }

    /// The `AgentClusterInstall` that `spec.clusterRef` leads to.
    fn install(&self, findings: &mut Findings) -> Option<&'a Object> {
        let manifests = self.manifests;
        let wanted = self.wanted("ClusterDeployment", "spec.clusterRef")?;
        let cluster = manifests.find(wanted, &self.object.at("spec.clusterRef"), findings)?;
        let name = cluster.text("spec.clusterInstallRef.name", findings)?.value;
        let wanted = Wanted { kind: "AgentClusterInstall", namespace: cluster.namespace(), name: &name };
        manifests.find(wanted, &cluster.at("spec.clusterInstallRef"), findings)
    }

    /// The virtual addresses and machine networks of the cluster.
    fn cluster(&mut self) -> ClusterNetworks {
        // A reference that leads nowhere is reported where the version is looked up.
        let Some(install) = self.install(&mut Findings::default()) else { return ClusterNetworks::default() };
        cluster::networks(install, &mut self.findings)
    }

    /// The version of the cluster's release, or where it would be if it told it.
    fn release(&mut self) -> (Option<Text>, Option<Place>) {
        let manifests = self.manifests;
        let mut findings = Findings::default();
        let release = self.install(&mut findings).and_then(|install| {
            let name = install.text("spec.imageSetRef.name", &mut findings)?.value;
            let wanted = Wanted { kind: "ClusterImageSet", namespace: "", name: &name };
            let set = manifests.find(wanted, &install.at("spec.imageSetRef"), &mut findings)?;
            set.text("spec.releaseImage", &mut findings)
        });
        // The version may be known from elsewhere: what is missing here need not be missed.
        for finding in findings.as_slice() {
            self.findings.push(Severity::Warning, finding.place.clone(), finding.message.clone());
        }
        match release.map(|release| (release_version(&release.value), release.place)) {
            Some((Some(version), place)) => (Some(Given::new(version, place)), None),
            Some((None, place)) => (None, Some(place)),
            None => (None, None),
        }
    }

    fn delay(&mut self) -> Option<Given<u32>> {
        const PATH: &str = "spec.networkDiscoveryDelaySeconds";
        let value = self.object.get(PATH)?;
        let place = self.object.at(PATH);
        let Some(seconds) = value.as_u64().and_then(|it| u32::try_from(it).ok()) else {
            self.findings.error(place, "has to be a number of seconds");
            return None;
        };
        Some(Given::new(seconds, place))
    }

    fn kernel_arguments(&mut self) -> Vec<Given<(Operation, String)>> {
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
            let written = change.get("operation").cloned().unwrap_or_else(|| "append".into());
            match (serde_json::from_value::<Operation>(written.clone()), value) {
                (Ok(operation), Some(value)) => {
                    let place = object.at(&format!("{path}.value"));
                    changes.push(Given::new((operation, value.to_owned()), place));
                }
                (Err(_), _) => {
                    let place = object.at(&format!("{path}.operation"));
                    self.findings.error(place, format!("{written} is not append, replace or delete"));
                }
                (_, None) => self.findings.error(object.at(&path), "has no value"),
            }
        }
        changes
    }

    fn hosts(&mut self) -> Vec<Host> {
        let chosen = selection::select(self.manifests, self.object, &mut self.findings);
        chosen.into_iter().filter_map(|object| host(object, &mut self.findings)).collect()
    }
}

/// The id of an infra-env that no service knows yet: the same for one name, everywhere and always.
fn id_of(name: &str) -> String {
    let digest = Sha256::new_with_prefix(b"kindling infra-env ").chain_update(name).finalize();
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, of)| *byte = of);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// The version in the tag of a release's image; none where it is named by a digest.
fn release_version(image: &str) -> Option<String> {
    let tag = image.rsplit('/').next()?.split('@').next()?.split_once(':')?.1;
    let machines = ["-x86_64", "-aarch64", "-arm64", "-ppc64le", "-s390x", "-multi"];
    let version = machines.iter().find_map(|machine| tag.strip_suffix(machine)).unwrap_or(tag);
    crate::images::Version::parse(version).map(|_| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_tells_its_version() {
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
    fn an_id_is_made_of_a_name() {
        let id = id_of("site/env");
        assert!(InfraEnvId::parse(&id).is_ok());
        assert_eq!(id, id_of("site/env"));
        assert_ne!(id, id_of("site/env2"));
    }
}

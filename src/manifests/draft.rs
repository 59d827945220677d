//! From an `InfraEnv` and what it refers to, to the draft of an infra-env.

use std::sync::Arc;

use ignition::discovery::InfraEnvId;
use ignition::discovery::kernel_arguments::Operation;
use ignition::network::{HostNetwork, MacInterface};
use ignition::report::Severity;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::reference::Wanted;
use super::selector::Selector;
use super::{Loose, Manifests, Object};
use crate::discovery::{Draft, Findings, Given, Host, Place, Text};

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

/// What the specification of a host's network may have.
const NETWORK_FIELDS: [&str; 2] = ["config", "interfaces"];

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
            ([_, second, ..], _) => {
                let names: Vec<String> =
                    found.iter().map(|it| format!("{}/{}", it.namespace(), it.name())).collect();
                let names = names.join(", ");
                findings.error(second.at("metadata.name"), format!("one InfraEnv has to be chosen: {names}"));
                None
            }
        }
    }
}

/// Reads one infra-env.
struct Reader<'a> {
    manifests: &'a Manifests,
    object: &'a Object,
    findings: Findings,
}

impl Reader<'_> {
    fn draft(&mut self, over: &Draft) -> Draft {
        self.object.warn_of_others("spec", &FIELDS, &mut self.findings);
        let mut draft = Draft {
            id: Some(self.id()),
            ssh_keys: self.text("spec.sshAuthorizedKey"),
            http_proxy: self.text("spec.proxy.httpProxy"),
            https_proxy: self.text("spec.proxy.httpsProxy"),
            no_proxy: self.text("spec.proxy.noProxy"),
            additional_ntp_sources: self.list("spec.additionalNTPSources"),
            ntp_sources: self.list("spec.ntpSources"),
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
            draft.version = self.version();
        }
        if over.registries.is_none() {
            (draft.registries, draft.registries_authority) = self.mirrors();
        }
        if over.hosts.is_empty() {
            draft.hosts = self.hosts();
        }
        draft
    }

    fn text(&mut self, path: &str) -> Option<Text> {
        self.object.text(path, &mut self.findings).filter(|it| !it.value.is_empty())
    }

    fn list(&mut self, path: &str) -> Option<Text> {
        let list = self.object.texts(path, &mut self.findings)?;
        Some(Given::new(list.value.join(","), list.place))
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

    fn wanted<'b>(&'b self, kind: &'b str, path: &str) -> Option<Wanted<'b>> {
        let name = self.object.get(&format!("{path}.name"))?.as_str()?;
        let namespace = self.object.get(&format!("{path}.namespace")).and_then(Value::as_str);
        Some(Wanted { kind, namespace: namespace.unwrap_or(self.object.namespace()), name })
    }

    fn pull_secret(&mut self) -> Option<Text> {
        const PATH: &str = "spec.pullSecretRef";
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

    /// The version that the infra-env asks for, else that of its cluster's release.
    fn version(&mut self) -> Option<Text> {
        if let Some(version) = self.text("spec.osImageVersion") {
            return Some(version);
        }
        let manifests = self.manifests;
        let mut findings = Findings::default();
        let version = self.wanted("ClusterDeployment", "spec.clusterRef").and_then(|wanted| {
            let from = self.object.at("spec.clusterRef");
            let cluster = manifests.find(wanted, &from, &mut findings)?;
            let install = cluster.get("spec.clusterInstallRef.name")?.as_str()?;
            let wanted =
                Wanted { kind: "AgentClusterInstall", namespace: cluster.namespace(), name: install };
            let install = manifests.find(wanted, &cluster.at("spec.clusterInstallRef"), &mut findings)?;
            let set = install.get("spec.imageSetRef.name")?.as_str()?;
            let wanted = Wanted { kind: "ClusterImageSet", namespace: "", name: set };
            let set = manifests.find(wanted, &install.at("spec.imageSetRef"), &mut findings)?;
            let release = set.text("spec.releaseImage", &mut findings)?;
            Some(Given::new(release_version(&release.value)?, release.place))
        });
        // The version may be known from elsewhere: what is missing here need not be missed.
        for finding in findings.as_slice() {
            self.findings.push(Severity::Warning, finding.place.clone(), finding.message.clone());
        }
        version
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
        let list = match self.object.get(PATH) {
            None => return Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.findings.error(self.object.at(PATH), "has to be a list");
                return Vec::new();
            }
        };
        let mut changes = Vec::new();
        for (index, change) in list.iter().enumerate() {
            let place = self.object.at(&format!("{PATH}[{index}]"));
            let operation = change.get("operation").cloned().unwrap_or_else(|| "append".into());
            let value = change.get("value").and_then(Value::as_str);
            match (serde_json::from_value::<Operation>(operation), value) {
                (Ok(operation), Some(value)) => {
                    changes.push(Given::new((operation, value.to_owned()), place));
                }
                (Err(_), _) => self.findings.error(place, "its operation is not append, replace or delete"),
                (_, None) => self.findings.error(place, "has no value"),
            }
        }
        changes
    }

    fn hosts(&mut self) -> Vec<Host> {
        const PATH: &str = "spec.nmStateConfigLabelSelector";
        let selector = match self.object.get(PATH).map(Selector::parse) {
            None => Selector::default(),
            Some(Ok(selector)) => selector,
            Some(Err((path, reason))) => {
                let path = if path.is_empty() { PATH.to_owned() } else { format!("{PATH}.{path}") };
                self.findings.error(self.object.at(&path), reason);
                return Vec::new();
            }
        };
        let namespace = self.object.namespace();
        let is_near = |object: &&Object| {
            object.namespace() == namespace || object.namespace().is_empty() || namespace.is_empty()
        };
        let all: Vec<&Object> = self.manifests.of_kind("NMStateConfig").filter(is_near).collect();
        let (chosen, others): (Vec<&Object>, Vec<&Object>) =
            all.into_iter().partition(|object| !selector.is_empty() && selector.selects(&object.labels()));
        self.tell_of_selection(&selector, &chosen, &others);
        chosen.into_iter().filter_map(|object| host(object, &mut self.findings)).collect()
    }

    fn tell_of_selection(&mut self, selector: &Selector, chosen: &[&Object], others: &[&Object]) {
        const PATH: &str = "spec.nmStateConfigLabelSelector";
        let place = self.object.at(PATH);
        match (selector.is_empty(), chosen.is_empty(), others.first()) {
            (true, _, Some(first)) => {
                let message = format!("is empty and selects nothing, though there is {first}");
                self.findings.warning(place, message);
            }
            (false, true, Some(first)) => {
                let labels: Vec<String> =
                    first.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
                let labels = if labels.is_empty() { "no labels".to_owned() } else { labels.join(", ") };
                self.findings.error(place, format!("matches nothing: {first}, for one, has {labels}"));
            }
            (false, true, None) => {
                self.findings
                    .warning(place, "matches nothing: there is no NMStateConfig, and machines use DHCP");
            }
            _ => {
                for object in others {
                    let message = "its labels are not those that the InfraEnv selects: it is left out";
                    self.findings.warning(object.at("metadata.labels"), message);
                }
            }
        }
    }
}

/// The network of a machine. The document is the JSON of what the manifest has, with its keys in order: what an API server
/// makes of it.
fn host(object: &Object, findings: &mut Findings) -> Option<Host> {
    object.warn_of_others("spec", &NETWORK_FIELDS, findings);
    let Some(config) = object.get("spec.config") else {
        findings.error(object.at("spec.config"), format!("the {object} has no network"));
        return None;
    };
    let interfaces = object.get("spec.interfaces").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if interfaces.is_empty() {
        findings.error(object.at("spec.interfaces"), format!("the {object} names no interface"));
        return None;
    }
    let mut map = Vec::new();
    for (index, interface) in interfaces.iter().enumerate() {
        let text = |key: &str| interface.get(key).and_then(Value::as_str);
        let (Some(name), Some(mac)) = (text("name"), text("macAddress")) else {
            let place = object.at(&format!("spec.interfaces[{index}]"));
            findings.error(place, "needs a name and a macAddress");
            return None;
        };
        map.push(MacInterface { logical_nic_name: name.to_owned(), mac_address: mac.to_owned() });
    }
    let document = sorted(config.clone()).to_string();
    let origin = Arc::new(object.origin("spec.config", "spec.interfaces"));
    let network = HostNetwork::new(document, map).named(object.name());
    Some(Host { name: object.name().to_owned(), network, origin: Some(origin) })
}

/// The same with the keys of all objects in order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut fields: Vec<(String, Value)> = map.into_iter().collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(fields.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        other => other,
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

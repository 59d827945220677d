//! Splits the spec of an InfraEnv into parts for separate checks, so that each fault can be reported for its field.

use crate::crds::{InfraEnvSpec, ProxySettings};

/// A part of an InfraEnv's spec.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpecPart {
    /// The path of the field, such as `spec.ignitionConfigOverride`.
    pub(super) field: String,
    /// The text of the field. The part has changed if the text differs.
    text: String,
    /// A spec that contains only this part.
    pub(super) spec: InfraEnvSpec,
}

/// Returns the parts of a spec that are new or changed.
pub(super) fn changed(new: &InfraEnvSpec, old: Option<&InfraEnvSpec>) -> Vec<SpecPart> {
    let former = old.map(parts).unwrap_or_default();
    let is_former =
        |part: &SpecPart| former.iter().any(|it| it.kind() == part.kind() && it.text == part.text);
    parts(new).into_iter().filter(|part| !is_former(part)).collect()
}

impl SpecPart {
    /// Returns the field without the list index: an entry that only moves within its list is unchanged.
    fn kind(&self) -> &str {
        self.field.split('[').next().unwrap_or_default()
    }
}

#[derive(Default)]
struct Parts(Vec<SpecPart>);

impl Parts {
    fn add(&mut self, field: impl Into<String>, text: &str, spec: InfraEnvSpec) {
        self.0.push(SpecPart { field: field.into(), text: text.to_owned(), spec });
    }

    fn add_text(&mut self, field: &str, text: Option<&String>, edit: impl FnOnce(&mut InfraEnvSpec, String)) {
        let Some(text) = text else { return };
        let mut spec = InfraEnvSpec::default();
        edit(&mut spec, text.clone());
        self.add(field, text, spec);
    }
}

fn parts(spec: &InfraEnvSpec) -> Vec<SpecPart> {
    let mut parts = Parts::default();
    add_proxies(&mut parts, spec.proxy.as_ref());
    for (field, sources) in
        [("spec.additionalNTPSources", &spec.additional_ntp_sources), ("spec.ntpSources", &spec.ntp_sources)]
    {
        for (index, source) in sources.iter().enumerate() {
            let part = InfraEnvSpec { ntp_sources: vec![source.clone()], ..InfraEnvSpec::default() };
            parts.add(format!("{field}[{index}]"), source, part);
        }
    }
    for (index, argument) in spec.kernel_arguments.iter().enumerate() {
        let text = format!("{argument:?}");
        let part = InfraEnvSpec { kernel_arguments: vec![argument.clone()], ..InfraEnvSpec::default() };
        parts.add(format!("spec.kernelArguments[{index}]"), &text, part);
    }
    parts.add_text("spec.sshAuthorizedKey", spec.ssh_authorized_key.as_ref(), |it, text| {
        it.ssh_authorized_key = Some(text);
    });
    parts.add_text("spec.additionalTrustBundle", spec.additional_trust_bundle.as_ref(), |it, text| {
        it.additional_trust_bundle = Some(text);
    });
    parts.add_text("spec.imageType", spec.image_type.as_ref(), |it, text| it.image_type = Some(text));
    parts.add_text("spec.cpuArchitecture", spec.cpu_architecture.as_ref(), |it, text| {
        it.cpu_architecture = Some(text);
    });
    if let Some(seconds) = spec.network_discovery_delay_seconds {
        let part = InfraEnvSpec { network_discovery_delay_seconds: Some(seconds), ..InfraEnvSpec::default() };
        parts.add("spec.networkDiscoveryDelaySeconds", &seconds.to_string(), part);
    }
    // The part also contains the OpenShift version and the CPU architecture, because they determine which Ignition spec
    // versions the override may use.
    parts.add_text("spec.ignitionConfigOverride", spec.ignition_config_override.as_ref(), |it, text| {
        it.ignition_config_override = Some(text);
        it.os_image_version.clone_from(&spec.os_image_version);
        it.cpu_architecture.clone_from(&spec.cpu_architecture);
    });
    parts.0
}

fn add_proxies(parts: &mut Parts, proxy: Option<&ProxySettings>) {
    let Some(proxy) = proxy else { return };
    parts.add_text("spec.proxy.httpProxy", proxy.http_proxy.as_ref(), |it, text| {
        it.proxy = Some(ProxySettings { http_proxy: Some(text), ..ProxySettings::default() });
    });
    parts.add_text("spec.proxy.httpsProxy", proxy.https_proxy.as_ref(), |it, text| {
        it.proxy = Some(ProxySettings { https_proxy: Some(text), ..ProxySettings::default() });
    });
    parts.add_text("spec.proxy.noProxy", proxy.no_proxy.as_ref(), |it, text| {
        it.proxy = Some(ProxySettings { no_proxy: Some(text), ..ProxySettings::default() });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crds::KernelArgument;

    fn fields(new: &InfraEnvSpec, old: Option<&InfraEnvSpec>) -> Vec<String> {
        changed(new, old).into_iter().map(|part| part.field).collect()
    }

    #[test]
    fn unchanged_and_moved_parts_are_skipped() {
        let argument = |value: &str| KernelArgument {
            operation: Some("append".to_owned()),
            value: Some(value.to_owned()),
        };
        let old = InfraEnvSpec {
            kernel_arguments: vec![argument("a"), argument("b")],
            ssh_authorized_key: Some("key".to_owned()),
            ntp_sources: vec!["x".to_owned()],
            ..InfraEnvSpec::default()
        };
        let expected = [
            "spec.ntpSources[0]",
            "spec.kernelArguments[0]",
            "spec.kernelArguments[1]",
            "spec.sshAuthorizedKey",
        ];
        assert_eq!(fields(&old, None), expected);
        assert_eq!(fields(&old, Some(&old)), [""; 0]);
        let mut new = InfraEnvSpec { kernel_arguments: vec![argument("b"), argument("c")], ..old.clone() };
        new.image_type = Some("x".to_owned());
        assert_eq!(fields(&new, Some(&old)), ["spec.kernelArguments[1]", "spec.imageType"]);
    }
}

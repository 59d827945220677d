//! Parsers for the individual values of a draft.

use ignition::discovery::kernel_arguments::{KernelArgumentChange, KernelArguments, MAX_CHANGES};
use ignition::discovery::{
    CertificateBundle, DiscoveryImage, InfraEnvId, InputError, Mirrors, Proxies, PullSecret, SshKeys,
    TimeSources,
};

use super::{Draft, Text};
use crate::finding::{DiscoveryReport, Located};
use crate::version::OpenshiftVersion;

/// The parsed values of a draft. An absent or invalid value is `None` or the default.
pub(crate) struct DraftValues {
    pub(crate) id: Option<InfraEnvId>,
    pub(crate) pull_secret: Option<PullSecret>,
    pub(crate) ssh_keys: SshKeys,
    pub(crate) proxies: Proxies,
    pub(crate) time_sources: TimeSources,
    pub(crate) trust_bundle: Option<CertificateBundle>,
    pub(crate) mirrors: Option<Mirrors>,
    pub(crate) kernel_arguments: KernelArguments,
    pub(crate) version: Option<Located<OpenshiftVersion>>,
    pub(crate) image_type: DiscoveryImage,
}

impl DraftValues {
    /// Parses the values, and adds findings for the invalid ones.
    pub(crate) fn parse(draft: &Draft, findings: &mut DiscoveryReport) -> Self {
        Self {
            id: parse_or_report(draft.id.as_ref(), "id", findings, InfraEnvId::parse),
            pull_secret: pull_secret(draft, findings),
            ssh_keys: parse_or_report(draft.ssh_keys.as_ref(), "SSH keys", findings, SshKeys::parse)
                .unwrap_or_default(),
            proxies: proxies(draft, findings),
            time_sources: time_sources(draft, findings),
            trust_bundle: certificates(draft.trust_bundle.as_ref(), "trust bundle", findings),
            mirrors: mirrors(draft, findings),
            kernel_arguments: kernel_arguments(draft, findings),
            version: version(draft, findings),
            image_type: image_type(draft, findings),
        }
    }
}

fn pull_secret(draft: &Draft, findings: &mut DiscoveryReport) -> Option<PullSecret> {
    let secret = draft.pull_secret.as_ref()?;
    let place = secret.place.or_whole("infra-env");
    if secret.value.trim().is_empty() {
        findings.error(place, "pull secret is empty");
        return None;
    }
    let parsed = PullSecret::parse(&secret.value);
    findings.value(&place, parsed.map_err(|error| format!("pull secret: {}", reason(&error))))
}

fn proxies(draft: &Draft, findings: &mut DiscoveryReport) -> Proxies {
    let texts = [&draft.http_proxy, &draft.https_proxy, &draft.no_proxy];
    let [http, https, none_for] = texts.map(|it| it.as_ref().map_or("", |it| it.value.as_str()));
    let Some(first) = texts.into_iter().flatten().next() else { return Proxies::default() };
    let proxies = Proxies::parse(http, https, none_for).map_err(|error| error.to_string());
    findings.value(&first.place, proxies).unwrap_or_default()
}

fn time_sources(draft: &Draft, findings: &mut DiscoveryReport) -> TimeSources {
    let texts = [&draft.additional_ntp_sources, &draft.ntp_sources];
    let [additional, only] = texts.map(|it| it.as_ref().map_or("", |it| it.value.as_str()));
    let Some(first) = texts.into_iter().flatten().next() else { return TimeSources::default() };
    let sources = TimeSources::parse(additional, only).map_err(|error| error.to_string());
    findings.value(&first.place, sources).unwrap_or_default()
}

fn mirrors(draft: &Draft, findings: &mut DiscoveryReport) -> Option<Mirrors> {
    let authority = certificates(draft.registries_authority.as_ref(), "certificates of registries", findings);
    let registries = draft.registries.as_ref().filter(|it| !it.value.trim().is_empty())?;
    let mirrors = Mirrors::new(&registries.value, authority).map_err(|error| reason(&error));
    findings.value(&registries.place.or_whole("registries"), mirrors)
}

fn kernel_arguments(draft: &Draft, findings: &mut DiscoveryReport) -> KernelArguments {
    const WHOLE: &str = "kernel arguments";
    if let Some(first) = draft.kernel_arguments.get(MAX_CHANGES) {
        let message = format!("more than {MAX_CHANGES} changes of kernel arguments");
        findings.error(first.place.or_whole(WHOLE), message);
    }
    let changes = draft.kernel_arguments.iter().filter_map(|change_text| {
        let (operation, value) = &change_text.value;
        let change = KernelArgumentChange::new(*operation, value).map_err(|error| reason(&error));
        findings.value(&change_text.place.or_whole(WHOLE), change)
    });
    changes.collect()
}

fn version(draft: &Draft, findings: &mut DiscoveryReport) -> Option<Located<OpenshiftVersion>> {
    let text = draft.version.as_ref()?;
    let place = text.place.or_whole("OpenShift version");
    let version = text.value.parse::<OpenshiftVersion>().map_err(|error| error.to_string());
    findings.value(&place, version).map(|version| Located::new(version, place))
}

fn image_type(draft: &Draft, findings: &mut DiscoveryReport) -> DiscoveryImage {
    match draft.image_type.as_ref().map(|it| (it.value.as_str(), &it.place)) {
        None | Some(("full-iso", _)) => DiscoveryImage::Full,
        Some(("minimal-iso", _)) => DiscoveryImage::Minimal,
        Some((other, place)) => {
            let message = format!("{other:?} is neither full-iso nor minimal-iso");
            findings.error(place.or_whole("image type"), message);
            DiscoveryImage::Full
        }
    }
}

fn certificates(
    text: Option<&Text>,
    field: &str,
    findings: &mut DiscoveryReport,
) -> Option<CertificateBundle> {
    let text = text.filter(|it| !it.value.trim().is_empty());
    parse_or_report(text, field, findings, |pem| CertificateBundle::parse("certificates", pem))
}

fn parse_or_report<T>(
    text: Option<&Text>,
    field: &str,
    findings: &mut DiscoveryReport,
    parse: impl Fn(&str) -> Result<T, InputError>,
) -> Option<T> {
    let text = text?;
    findings.value(&text.place.or_whole(field), parse(&text.value).map_err(|error| reason(&error)))
}

/// Returns the reason for an input error, with the invalid value. Omits the field name, because the location contains
/// it.
pub(crate) fn reason(error: &InputError) -> String {
    match &error.found {
        Some(value) => format!("{:?} {}", value.chars().take(100).collect::<String>(), error.reason),
        None => error.reason.clone(),
    }
}

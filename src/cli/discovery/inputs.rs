//! The options that describe an infra-env and its service.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use ignition::discovery::kernel_arguments::KernelArgumentOperation;
use ignition::discovery::{
    AgentToken, CertificateBundle, CertificateCheck, HttpUrl, ImageReference, InventoryService,
};

use crate::cli::input;
use crate::cli::refusal::{RefusedInputs, with_remedies};
use discovery::manifests::{HostFiles, Manifests};
use discovery::{DiscoveryReport, Draft, Host, Located, SourceLocation, Text};
use inventory::Settings;

/// The last clause of the error message when a `kindling discovery` command refuses its inputs.
pub(super) const NOTHING_WRITTEN: &str = "nothing was written";

#[derive(Debug, Args)]
#[command(next_help_heading = "Service")]
pub(super) struct ServiceOptions {
    /// URL at which machines reach the service that they report to
    #[arg(long, env = "SERVICE_BASE_URL", value_name = "URL", required_unless_present = "from_plan")]
    service_url: Option<String>,
    /// File with the token with which the agent authenticates to the service
    #[arg(long, value_name = "FILE")]
    service_token_file: Option<PathBuf>,
    /// File with CA certificates, in PEM, with which the agent verifies the service [default: the CA
    /// certificates of the live system]
    #[arg(long, env = "SERVICE_CA_CERT_PATH", value_name = "FILE")]
    service_ca_file: Option<PathBuf>,
    /// Let the agent skip TLS verification of the service (insecure)
    #[arg(long)]
    skip_certificate_verification: bool,
    /// Container image of the agent
    #[arg(long, env = "AGENT_DOCKER_IMAGE", value_name = "IMAGE", default_value = Settings::AGENT_IMAGE)]
    agent_image: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Infra-env")]
pub(super) struct InfraEnvOptions {
    #[command(flatten)]
    shared: SharedInfraEnvOptions,
    /// OpenShift version of the base image [default: the version in the manifests or of the image]
    #[arg(long, value_name = "VERSION")]
    openshift_version: Option<String>,
    /// Id of the infra-env in the service [default: derived from namespace and name]
    #[arg(long, value_name = "UUID", required_unless_present_any = ["manifests", "from_plan"])]
    infra_env_id: Option<String>,
    /// File with the pull secret
    #[arg(long, value_name = "FILE", required_unless_present_any = ["manifests", "from_plan"])]
    pull_secret: Option<String>,
    /// registries.conf file with registry mirrors
    #[arg(long, value_name = "FILE")]
    registries: Option<String>,
    /// File with the CA certificates of the mirrors, in PEM
    #[arg(long, value_name = "FILE", requires = "registries")]
    registries_ca: Option<String>,
}

/// The options of `discovery create` and `infra-env create`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Infra-env")]
pub(in crate::cli) struct SharedInfraEnvOptions {
    /// Directory of manifests, or one manifest file
    #[arg(long, value_name = "DIR")]
    manifests: Option<PathBuf>,
    /// InfraEnv to use if the manifests contain several
    #[arg(long, value_name = "[NAMESPACE/]NAME", requires = "manifests")]
    infra_env: Option<String>,
    /// File with public SSH keys that may log in as core
    #[arg(long, value_name = "FILE")]
    ssh_key: Vec<String>,
    /// Proxy for http: URLs
    #[arg(long, value_name = "URL")]
    http_proxy: Option<String>,
    /// Proxy for https: URLs
    #[arg(long, value_name = "URL")]
    https_proxy: Option<String>,
    /// Hosts to reach without a proxy: names, addresses and networks, separated by commas
    #[arg(long, value_name = "LIST")]
    no_proxy: Option<String>,
    /// Time server to use instead of the time servers of the system
    #[arg(long, value_name = "HOST", conflicts_with = "additional_ntp_source")]
    ntp_source: Vec<String>,
    /// Time server to use in addition to the time servers of the system
    #[arg(long, value_name = "HOST")]
    additional_ntp_source: Vec<String>,
    /// File with additional CA certificates to trust, in PEM
    #[arg(long, value_name = "FILE")]
    trust_bundle: Option<String>,
    /// File with an Ignition override, which is merged over the generated config
    #[arg(long, value_name = "FILE")]
    ignition_override: Option<String>,
    /// Kernel argument to append
    #[arg(long, value_name = "ARG")]
    karg_append: Vec<String>,
    /// Kernel argument to delete
    #[arg(long, value_name = "ARG")]
    karg_delete: Vec<String>,
    /// Kernel argument to replace
    #[arg(long, value_name = "KEY=OLD=NEW")]
    karg_replace: Vec<String>,
    /// File with host network configs, which replace the configs in the manifests: NMStateConfig manifests, or a list
    /// in the format of the API's static_network_config
    #[arg(long, value_name = "FILE")]
    network: Vec<String>,
    /// How long a machine waits before it checks its network, in seconds
    #[arg(long, value_name = "SECONDS")]
    discovery_delay: Option<u32>,
}

impl ServiceOptions {
    pub(super) fn service(&self) -> Result<InventoryService> {
        let url = HttpUrl::parse("--service-url", self.service_url.as_deref().unwrap_or_default())?;
        let mut service =
            InventoryService::new(url, ImageReference::parse("--agent-image", &self.agent_image)?);
        if let Some(file) = &self.service_token_file {
            let token = read_utf8("--service-token-file", file)?;
            let token = AgentToken::new(token.trim()).with_context(|| file.display().to_string())?;
            service.token = Some(token);
        }
        if let Some(file) = &self.service_ca_file {
            let bundle = CertificateBundle::parse(
                "--service-ca-file",
                &read_utf8("--service-ca-file (SERVICE_CA_CERT_PATH)", file)?,
            );
            service.authority = Some(bundle.with_context(|| file.display().to_string())?);
        }
        if self.skip_certificate_verification {
            service.certificate_check = CertificateCheck::Skip;
        }
        Ok(service)
    }
}

impl InfraEnvOptions {
    /// Returns the draft of an infra-env from manifests and options, and the findings about the manifests.
    pub(super) fn draft(&self) -> Result<(Draft, DiscoveryReport)> {
        let own = Draft {
            id: option_text("--infra-env-id", self.infra_env_id.as_ref()),
            version: option_text("--openshift-version", self.openshift_version.as_ref()),
            pull_secret: read_optional_file("--pull-secret", self.pull_secret.as_deref())?,
            registries: read_optional_file("--registries", self.registries.as_deref())?,
            registries_authority: read_optional_file("--registries-ca", self.registries_ca.as_deref())?,
            ..Draft::default()
        };
        self.shared.draft(own, NOTHING_WRITTEN)
    }
}

impl SharedInfraEnvOptions {
    /// Returns the draft of an infra-env from manifests and options, and the findings about the manifests. Options
    /// override manifests. `own` contains the options that only this command has. `consequence` is the end of the error
    /// message if the manifests are refused, such as "nothing was written".
    pub(in crate::cli) fn draft(&self, own: Draft, consequence: &str) -> Result<(Draft, DiscoveryReport)> {
        let (overrides, mut findings) = self.overriding_draft(own)?;
        let Some(directory) = &self.manifests else { return Ok((overrides, findings)) };
        match read_manifests(directory)?.draft(self.infra_env.as_deref(), overrides) {
            Ok((draft, manifest_findings)) => {
                findings.append(manifest_findings);
                Ok((draft, findings))
            }
            Err(manifest_findings) => {
                findings.append(with_remedies(manifest_findings));
                Err(RefusedInputs::print_and_refuse(findings, false, consequence).into())
            }
        }
    }

    /// Returns the draft from the options alone, which overrides the manifests.
    fn overriding_draft(&self, own: Draft) -> Result<(Draft, DiscoveryReport)> {
        let list = |option: &str, values: &[String]| {
            (!values.is_empty()).then(|| Located::new(values.join(","), SourceLocation::whole(option)))
        };
        let keys = self
            .ssh_key
            .iter()
            .map(|path| read_option_file("--ssh-key", path))
            .collect::<Result<Vec<_>>>()?;
        let keys = keys.into_iter().reduce(|one, other| {
            Located::new(format!("{}\n{}", one.value.trim_end(), other.value), one.place)
        });
        let (hosts, findings) = self.hosts()?;
        let draft = Draft {
            ssh_keys: keys,
            http_proxy: option_text("--http-proxy", self.http_proxy.as_ref()),
            https_proxy: option_text("--https-proxy", self.https_proxy.as_ref()),
            no_proxy: option_text("--no-proxy", self.no_proxy.as_ref()),
            additional_ntp_sources: list("--additional-ntp-source", &self.additional_ntp_source),
            ntp_sources: list("--ntp-source", &self.ntp_source),
            trust_bundle: read_optional_file("--trust-bundle", self.trust_bundle.as_deref())?,
            config_override: read_optional_file("--ignition-override", self.ignition_override.as_deref())?,
            kernel_arguments: self.kernel_arguments(),
            hosts,
            discovery_delay_seconds: self
                .discovery_delay
                .map(|seconds| Located::new(seconds, SourceLocation::whole("--discovery-delay"))),
            ..own
        };
        Ok((draft, findings))
    }

    fn kernel_arguments(&self) -> Vec<Located<(KernelArgumentOperation, String)>> {
        let lists = [
            (KernelArgumentOperation::Append, &self.karg_append),
            (KernelArgumentOperation::Delete, &self.karg_delete),
            (KernelArgumentOperation::Replace, &self.karg_replace),
        ];
        let change = |operation: KernelArgumentOperation, value: &String| {
            Located::new((operation, value.clone()), SourceLocation::whole(format!("--karg-{operation}")))
        };
        lists
            .into_iter()
            .flat_map(|(operation, values)| values.iter().map(move |it| change(operation, it)))
            .collect()
    }

    fn hosts(&self) -> Result<(Vec<Host>, DiscoveryReport)> {
        let mut files = HostFiles::default();
        for text in input::NamedText::read_all(&self.network).context("--network")? {
            files.add(&text.name, &text.bytes)?;
        }
        files.require_hosts();
        Ok((files.hosts, files.findings))
    }
}

/// Reads manifests. Adds the option to errors about the path, which have no location in a manifest.
fn read_manifests(path: &Path) -> Result<Manifests> {
    if !path.is_dir() && !path.is_file() {
        let problem = if path.exists() { "is neither a directory nor a file" } else { "does not exist" };
        bail!(
            "--manifests: {} {problem}; name a directory of manifests or one manifest file",
            path.display()
        );
    }
    Ok(Manifests::read(path)?)
}

pub(in crate::cli) fn option_text(name: &str, value: Option<&String>) -> Option<Text> {
    value.map(|value| Located::new(value.clone(), SourceLocation::whole(name)))
}

/// Reads the file that an option names. Returns `None` if the option is not set.
pub(in crate::cli) fn read_optional_file(option: &str, path: Option<&str>) -> Result<Option<Text>> {
    path.map(|path| read_option_file(option, path)).transpose()
}

fn read_option_file(option: &str, path: &str) -> Result<Text> {
    let bytes = input::read_input(Some(path)).with_context(|| format!("{option}: cannot read {path}"))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{option}: {path} is not valid UTF-8"))?;
    Ok(Located::new(text, SourceLocation::whole(path)))
}

fn read_utf8(option: &str, path: &Path) -> Result<String> {
    let path =
        path.to_str().with_context(|| format!("{option}: path {} is not valid UTF-8", path.display()))?;
    read_option_file(option, path).map(|text| text.value)
}

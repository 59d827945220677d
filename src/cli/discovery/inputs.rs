//! An infra-env as options.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use ignition::discovery::kernel_arguments::Operation;
use ignition::discovery::{CertificateBundle, CertificateCheck, HttpUrl, ImageReference, Service, Token};

use crate::cli::input;
use crate::discovery::{Draft, Findings, Given, Host, Place, Text};
use crate::inventory::Settings;
use crate::manifests::{HostFiles, Manifests};

#[derive(Debug, Args)]
#[command(next_help_heading = "Service")]
pub(super) struct ServiceOptions {
    /// Where machines reach the service that they report to
    #[arg(long, env = "SERVICE_BASE_URL", value_name = "URL", required_unless_present = "from_plan")]
    service_url: Option<String>,
    /// File with the token that the agent shows to the service
    #[arg(long, value_name = "FILE")]
    service_token_file: Option<PathBuf>,
    /// File with certificates, in PEM, by which the agent knows the service; it has them from the system without
    #[arg(long, env = "SERVICE_CA_CERT_PATH", value_name = "FILE")]
    service_ca_file: Option<PathBuf>,
    /// Let the agent trust whoever answers in the place of the service
    #[arg(long)]
    skip_certificate_verification: bool,
    /// The image of the agent
    #[arg(long, env = "AGENT_DOCKER_IMAGE", value_name = "IMAGE", default_value = Settings::AGENT_IMAGE)]
    agent_image: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Infra-env")]
pub(super) struct InfraEnvOptions {
    /// Directory of manifests, or one file of them
    #[arg(long, value_name = "DIR")]
    manifests: Option<PathBuf>,
    /// The InfraEnv to take from the manifests, where there are several
    #[arg(long, value_name = "[NAMESPACE/]NAME", requires = "manifests")]
    infra_env: Option<String>,
    /// The id by which the service knows the infra-env; one made of namespace and name without it
    #[arg(long, value_name = "UUID", required_unless_present_any = ["manifests", "from_plan"])]
    infra_env_id: Option<String>,
    /// The version of OpenShift that machines boot the live image of; told by the image or the manifests without it
    #[arg(long, value_name = "VERSION")]
    openshift_version: Option<String>,
    /// File with the pull secret
    #[arg(long, value_name = "FILE", required_unless_present_any = ["manifests", "from_plan"])]
    pull_secret: Option<String>,
    /// File with public SSH keys of who may log in as core
    #[arg(long, value_name = "FILE")]
    ssh_key: Vec<String>,
    /// Proxy for http: URLs
    #[arg(long, value_name = "URL")]
    http_proxy: Option<String>,
    /// Proxy for https: URLs
    #[arg(long, value_name = "URL")]
    https_proxy: Option<String>,
    /// What is reached without a proxy: names, addresses and networks, with commas between them
    #[arg(long, value_name = "LIST")]
    no_proxy: Option<String>,
    /// Time server in place of those of the system
    #[arg(long, value_name = "HOST", conflicts_with = "additional_ntp_source")]
    ntp_source: Vec<String>,
    /// Time server beside those of the system
    #[arg(long, value_name = "HOST")]
    additional_ntp_source: Vec<String>,
    /// File with more certificates to trust, in PEM
    #[arg(long, value_name = "FILE")]
    trust_bundle: Option<String>,
    /// File with mirrors of registries, a registries.conf
    #[arg(long, value_name = "FILE")]
    registries: Option<String>,
    /// File with the certificates of who signed those of the mirrors, in PEM
    #[arg(long, value_name = "FILE", requires = "registries")]
    registries_ca: Option<String>,
    /// File with an Ignition config to lay over the generated one
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
    /// File with networks of hosts, which replace those of the manifests: NMStateConfig manifests, or a list in the shape of
    /// the API's static_network_config
    #[arg(long, value_name = "FILE")]
    network: Vec<String>,
    /// How many seconds a machine waits before it looks at its network
    #[arg(long, value_name = "SECONDS")]
    discovery_delay: Option<u32>,
}

impl ServiceOptions {
    pub(super) fn service(&self) -> Result<Service> {
        let url = HttpUrl::parse("--service-url", self.service_url.as_deref().unwrap_or_default())?;
        let mut service = Service::new(url, ImageReference::parse("--agent-image", &self.agent_image)?);
        if let Some(file) = &self.service_token_file {
            let token = text(file)?;
            let token = Token::new(token.trim()).with_context(|| file.display().to_string())?;
            service.token = Some(token);
        }
        if let Some(file) = &self.service_ca_file {
            let bundle = CertificateBundle::parse("--service-ca-file", &text(file)?);
            service.authority = Some(bundle.with_context(|| file.display().to_string())?);
        }
        if self.skip_certificate_verification {
            service.certificate_check = CertificateCheck::Skip;
        }
        Ok(service)
    }
}

impl InfraEnvOptions {
    /// The draft of manifests and options, and what there is to say about the manifests.
    pub(super) fn draft(&self) -> Result<(Draft, Findings)> {
        let (over, mut findings) = self.over()?;
        let Some(directory) = &self.manifests else { return Ok((over, findings)) };
        let (draft, found) = Manifests::read(directory)?.draft(self.infra_env.as_deref(), over);
        findings.append(found);
        Ok((draft, findings))
    }

    /// The options alone.
    fn over(&self) -> Result<(Draft, Findings)> {
        let list = |option: &str, values: &[String]| {
            (!values.is_empty()).then(|| Given::new(values.join(","), Place::of(option)))
        };
        let keys = self.ssh_key.iter().map(|path| file(path)).collect::<Result<Vec<_>>>()?;
        let keys = keys
            .into_iter()
            .reduce(|one, other| Given::new(format!("{}\n{}", one.value.trim_end(), other.value), one.place));
        let (hosts, findings) = self.hosts()?;
        let draft = Draft {
            id: option("--infra-env-id", self.infra_env_id.as_ref()),
            pull_secret: self.pull_secret.as_deref().map(file).transpose()?,
            ssh_keys: keys,
            http_proxy: option("--http-proxy", self.http_proxy.as_ref()),
            https_proxy: option("--https-proxy", self.https_proxy.as_ref()),
            no_proxy: option("--no-proxy", self.no_proxy.as_ref()),
            additional_ntp_sources: list("--additional-ntp-source", &self.additional_ntp_source),
            ntp_sources: list("--ntp-source", &self.ntp_source),
            trust_bundle: self.trust_bundle.as_deref().map(file).transpose()?,
            registries: self.registries.as_deref().map(file).transpose()?,
            registries_authority: self.registries_ca.as_deref().map(file).transpose()?,
            config_override: self.ignition_override.as_deref().map(file).transpose()?,
            kernel_arguments: self.kernel_arguments(),
            hosts,
            version: option("--openshift-version", self.openshift_version.as_ref()),
            discovery_delay_seconds: self
                .discovery_delay
                .map(|seconds| Given::new(seconds, Place::of("--discovery-delay"))),
            ..Draft::default()
        };
        Ok((draft, findings))
    }

    fn kernel_arguments(&self) -> Vec<Given<(Operation, String)>> {
        let lists = [
            (Operation::Append, &self.karg_append),
            (Operation::Delete, &self.karg_delete),
            (Operation::Replace, &self.karg_replace),
        ];
        let change = |operation: Operation, value: &String| {
            Given::new((operation, value.clone()), Place::of(format!("--karg-{operation}")))
        };
        lists
            .into_iter()
            .flat_map(|(operation, values)| values.iter().map(move |it| change(operation, it)))
            .collect()
    }

    fn hosts(&self) -> Result<(Vec<Host>, Findings)> {
        let mut files = HostFiles::default();
        for text in input::Text::read_all(&self.network)? {
            files.add(&text.name, &text.bytes)?;
        }
        files.require_hosts();
        Ok((files.hosts, files.findings))
    }
}

fn option(name: &str, value: Option<&String>) -> Option<Text> {
    value.map(|value| Given::new(value.clone(), Place::of(name)))
}

/// The text of a file that an option names.
fn file(path: &str) -> Result<Text> {
    let text = String::from_utf8(input::read(Some(path))?).with_context(|| format!("{path} is no text"))?;
    Ok(Given::new(text, Place::of(path)))
}

fn text(path: &Path) -> Result<String> {
    let path = path.to_str().with_context(|| format!("{} is no text", path.display()))?;
    file(path).map(|text| text.value)
}

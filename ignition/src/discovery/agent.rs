//! Adds the agent to a discovery config. The agent registers a machine with the service and runs the service's steps.

use std::time::Duration;

use super::certificate::CertificateBundle;
use super::escape::{environment_file_line, unit_argument};
use super::input::{ImageReference, InfraEnvId};
use super::secret::AgentToken;
use super::url::HttpUrl;
use crate::builder::{ConfigBuilder, FileMode, UnitState};

pub(crate) const AGENT_UNIT: &str = "agent.service";

/// Path of the service's certificates, which only the agent trusts.
const SERVICE_AUTHORITY: &str = "/etc/assisted-service/service-ca-cert.crt";
/// Path of the file with the agent's token. Only root may read the file, while all users may read a unit.
const TOKEN_FILE: &str = "/etc/assisted/agent.env";

/// The agent's check of the service's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateCheck {
    /// The agent accepts only a trusted certificate.
    #[default]
    Verify,
    /// The agent accepts any certificate, so any server can impersonate the service and receive the agent's data. For
    /// test setups.
    Skip,
}

/// The service with which machines register.
#[derive(Clone, Debug)]
pub struct InventoryService {
    /// The URL of the service, without the `/api` part.
    pub base_url: HttpUrl,
    /// The container image of the agent.
    pub agent_image: ImageReference,
    /// Time limit for the start of the agent, including the pull of its image. Fractions of a second are rounded up.
    pub agent_start_timeout: Duration,
    /// The token that the agent sends, if the service requires one.
    pub token: Option<AgentToken>,
    /// The agent's check of the service's certificate.
    pub certificate_check: CertificateCheck,
    /// The certificate authority of the service, if the system does not already trust it.
    pub authority: Option<CertificateBundle>,
    /// The certificate authority of the organisation, which all programs of the machine trust.
    pub organisation_authority: Option<CertificateBundle>,
    /// The policy for container images that podman runs.
    pub image_policy: super::ImagePolicy,
}

impl InventoryService {
    /// Creates a service that requires no token and whose certificate the system trusts.
    #[must_use]
    pub fn new(base_url: HttpUrl, agent_image: ImageReference) -> Self {
        const START_TIMEOUT: Duration = Duration::from_secs(600);
        Self {
            base_url,
            agent_image,
            agent_start_timeout: START_TIMEOUT,
            token: None,
            certificate_check: CertificateCheck::Verify,
            authority: None,
            organisation_authority: None,
            image_policy: super::ImagePolicy::System,
        }
    }

    /// Adds the agent, its scripts, its token and the service's certificates.
    ///
    /// `environment` is the path of a file with environment variables.
    pub(crate) fn add_agent(
        &self,
        builder: &mut ConfigBuilder,
        id: &InfraEnvId,
        state: UnitState,
        environment: Option<&str>,
    ) {
        builder.replace_unit(AGENT_UNIT, state, &self.agent_unit(id, environment));
        let fix = include_str!("content/agent-fix-bz1964591");
        builder.replace_file("/usr/local/bin/agent-fix-bz1964591", FileMode::EXECUTABLE, fix);
        add_pull_script(builder);
        if let Some(token) = &self.token {
            let line = environment_file_line("PULL_SECRET_TOKEN", token.reveal());
            builder.replace_file(TOKEN_FILE, FileMode::PRIVATE, line);
        }
        if let Some(authority) = &self.authority {
            builder.replace_file(SERVICE_AUTHORITY, FileMode::PUBLIC, authority.as_pem());
        }
    }

    /// Returns the text of the unit. Each argument is on its own line, because Ignition rejects long lines.
    fn agent_unit(&self, id: &InfraEnvId, environment: Option<&str>) -> String {
        let token = self.token.is_some().then_some(TOKEN_FILE);
        let files: String =
            environment.into_iter().chain(token).map(|file| format!("EnvironmentFile={file}\n")).collect();
        let timeout = self.agent_start_timeout;
        let seconds = timeout.as_secs().saturating_add(u64::from(timeout.subsec_nanos() > 0));
        let authority = match self.authority {
            Some(_) => format!(" \\\n    --cacert {SERVICE_AUTHORITY}"),
            None => String::new(),
        };
        format!(
            "\
[Unit]
Description=Agent that reports this machine to the service
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=simple
Restart=always
RestartSec=3
TimeoutStartSec={seconds}
{files}ExecStartPre=/usr/local/bin/agent-fix-bz1964591 {image}
ExecStartPre=/usr/local/bin/agent-pull-image {image}
ExecStartPre=/usr/bin/podman run --pull=never --privileged --rm \\
    --volume /usr/local/bin:/hostbin \\
    {image} \\
    cp /usr/bin/agent /hostbin
ExecStart=/usr/local/bin/agent \\
    --url {url} \\
    --infra-env-id {id} \\
    --agent-version {image} \\
    --insecure={insecure}{authority}

[Install]
WantedBy=multi-user.target
",
            image = unit_argument(self.agent_image.as_str()),
            url = unit_argument(self.base_url.as_str()),
            insecure = self.certificate_check == CertificateCheck::Skip,
        )
    }
}

/// Adds the script that units run to pull their container images.
pub(crate) fn add_pull_script(builder: &mut ConfigBuilder) {
    let script = include_str!("content/agent-pull-image");
    builder.replace_file("/usr/local/bin/agent-pull-image", FileMode::EXECUTABLE, script);
}

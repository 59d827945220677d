//! The agent: the program that reports a machine to the service and runs the steps that it is told.

use std::time::Duration;

use super::certificate::CertificateBundle;
use super::escape::{argument, environment_file};
use super::input::{ImageReference, InfraEnvId};
use super::parts::Parts;
use super::secret::Token;
use super::url::HttpUrl;
use crate::builder::{FileMode, UnitState};

/// The unit that runs the agent.
pub const AGENT_UNIT: &str = "agent.service";

/// Where the certificates of the service are, for the agent alone.
const SERVICE_AUTHORITY: &str = "/etc/assisted-service/service-ca-cert.crt";
/// The token of the agent: a file that only root may read, where a unit is for everybody.
const TOKEN_FILE: &str = "/etc/assisted/agent.env";

/// Whether a certificate of the service is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateCheck {
    /// It is.
    #[default]
    Verify,
    /// Whoever answers is taken for the service, and is told everything. For test setups.
    Skip,
}

/// The service, as machines see it.
#[derive(Clone, Debug)]
pub struct Service {
    /// Where it is, without the `/api` part.
    pub base_url: HttpUrl,
    /// The image that holds the agent.
    pub agent_image: ImageReference,
    /// How long the agent's start may take, pulling its image included. Part of a second counts as a whole one.
    pub agent_start_timeout: Duration,
    /// What the agent proves itself with, where the service asks for it.
    pub token: Option<Token>,
    /// Whether the service's certificate is checked.
    pub certificate_check: CertificateCheck,
    /// Who signed the service's certificate, if it is none of the system's authorities.
    pub authority: Option<CertificateBundle>,
    /// An authority of the organisation, for all programs of the machine.
    pub organisation_authority: Option<CertificateBundle>,
    /// Which images podman runs.
    pub image_policy: super::ImagePolicy,
}

impl Service {
    /// A service that asks for no token and whose certificate the system's authorities have signed.
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

    /// Adds the agent, its scripts and what it needs to reach the service.
    pub(super) fn add_agent(&self, parts: &mut Parts, id: &InfraEnvId, start: AgentStart) {
        parts.unit(AGENT_UNIT, start.state, &self.unit(id, start.environment));
        let fix = include_str!("content/agent-fix-bz1964591");
        parts.file("/usr/local/bin/agent-fix-bz1964591", FileMode::EXECUTABLE, fix);
        add_pull_script(parts);
        if let Some(token) = &self.token {
            let line = environment_file("PULL_SECRET_TOKEN", token.reveal());
            parts.file(TOKEN_FILE, FileMode::PRIVATE, line);
        }
        if let Some(authority) = &self.authority {
            parts.file(SERVICE_AUTHORITY, FileMode::PUBLIC, authority.as_pem());
        }
    }

    /// The unit. Each argument has a line of its own, since Ignition refuses long ones.
    fn unit(&self, id: &InfraEnvId, environment: Option<&str>) -> String {
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
            image = argument(self.agent_image.as_str()),
            url = argument(self.base_url.as_str()),
            insecure = self.certificate_check == CertificateCheck::Skip,
        )
    }
}

/// The script with which units pull the image that they run.
pub(super) fn add_pull_script(parts: &mut Parts) {
    let script = include_str!("content/agent-pull-image");
    parts.file("/usr/local/bin/agent-pull-image", FileMode::EXECUTABLE, script);
}

/// How the agent starts.
pub(super) struct AgentStart<'a> {
    /// By itself, or when something else starts it.
    pub(super) state: UnitState,
    /// A file with variables.
    pub(super) environment: Option<&'a str>,
}

//! The facts about a host that validations and status rules read.

use std::sync::Arc;

use assisted::host::{Header, MediaStatus};
use rules::summary::HostSummary;
use rules::view::HostView;
use serde_json::Value;

use super::record::{Choices, HostRecord};

/// Returns the facts about a host. `is_connected` must be `true` if the agent has checked in recently.
pub(crate) fn host_view(host: &HostRecord, is_connected: bool, summary: Arc<HostSummary>) -> HostView {
    let boxed = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
    let choices = &host.choices;
    let disk = choices.installation_disk.as_ref();
    HostView {
        id: host.id,
        infra_env_id: host.infra_env_id,
        kind: host.kind,
        status: host.status(),
        stage: host.progress.stage,
        role: host.role,
        suggested_role: host.suggested_role,
        bootstrap: host.bootstrap,
        requested_hostname: choices.hostname.as_str().into(),
        installation_disk_id: disk.map_or("", |disk| &disk.id).into(),
        installation_disk_path: disk.map_or("", |disk| &disk.path).into(),
        skip_formatting_disks: boxed(&choices.skip_formatting_disks),
        agent_version: host.agent_version.as_str().into(),
        machine_config_pool: choices.machine_config_pool_name.as_str().into(),
        installer_args: choices.installer_args.as_str().into(),
        has_fencing_credentials: !choices.fencing_credentials.is_empty(),
        ignition_endpoint_token: Some(choices.ignition_endpoint_token.clone())
            .filter(|token| !token.is_empty()),
        ignition_endpoint_headers: headers(choices),
        ignition_ca_certificate: ca_certificate(&choices.ignition_config_overrides),
        has_logs: host.logs.collected_at.0.is_some(),
        is_connected,
        has_media: host.findings.media != Some(MediaStatus::Disconnected),
        clock_skew: host.findings.clock_skew,
        summary,
    }
}

fn headers(choices: &Choices) -> Vec<Header> {
    let headers = choices.ignition_endpoint_http_headers.iter();
    headers.map(|(key, value)| Header { key: key.clone(), value: value.clone() }).collect()
}

/// Returns the first CA certificate in an Ignition override: PEM, in base64.
fn ca_certificate(overrides: &str) -> Option<Box<str>> {
    if overrides.is_empty() {
        return None;
    }
    let config: Value = serde_json::from_str(overrides).ok()?;
    let source = config.pointer("/ignition/security/tls/certificateAuthorities/0/source")?.as_str()?;
    let (_, encoded) = source.split_once(";base64,")?;
    Some(encoded.into())
}

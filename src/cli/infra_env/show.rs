//! `kindling infra-env show`: shows an infra-env and the findings about it.

use std::fmt::Write;

use anyhow::Result;
use assisted::InfraEnvId;
use assisted::client::{ApiClient, ClientError};
use assisted::infra_env::{InfraEnv, KernelArgumentOperation, Preflight};
use clap::Args;
use ignition::discovery::masked_url;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{EXIT_CODES, find_infra_env, time_text};
use crate::cli::connection::UserConnectionOptions;
use crate::cli::output::{EscapedLines, escape_controls, print_bytes, print_json};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Show {
    /// Print the API's resource as JSON, with the findings in `preflight`
    #[arg(long)]
    json: bool,
    /// Id or name of the infra-env
    #[arg(value_name = "ID|NAME")]
    infra_env: String,
    #[command(flatten)]
    connection: UserConnectionOptions,
}

impl Show {
    pub(super) fn run(self) -> Result<()> {
        if self.json {
            let (mut resource, preflight) = self.read::<Map<String, Value>, Value>()?;
            resource.insert("preflight".to_owned(), preflight.unwrap_or_default());
            return print_json(&resource);
        }
        let (infra_env, preflight) = self.read::<InfraEnv, Preflight>()?;
        print_bytes(report_text(&infra_env, preflight.as_ref())?.as_bytes())
    }

    /// Returns the infra-env and the findings about it. The findings are `None` if the service cannot check infra-envs.
    fn read<T: DeserializeOwned, P: DeserializeOwned>(&self) -> Result<(T, Option<P>)> {
        self.connection.call(
            |builder| builder,
            async |client| {
                let id = find_infra_env(&client, &self.infra_env).await?;
                Ok((client.get_infra_env_as(id).await?, check_infra_env(&client, id).await?))
            },
        )
    }
}

/// Returns the findings about an infra-env, or `None` if the service has no such operation, like the Assisted Service.
/// If Kindling refuses the check, prints a warning and returns `None`, so that the rest is still shown.
async fn check_infra_env<P: DeserializeOwned>(
    client: &ApiClient,
    id: InfraEnvId,
) -> Result<Option<P>, ClientError> {
    match client.preflight_as(id).await {
        Ok(preflight) => Ok(Some(preflight)),
        Err(error) if matches!(error.status(), Some(404 | 405 | 501)) => Ok(None),
        Err(error @ ClientError::Response { .. }) => {
            eprintln!("Warning: {}", escape_controls(&error.to_string()));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn report_text(it: &InfraEnv, preflight: Option<&Preflight>) -> Result<String> {
    let mut out = EscapedLines::default();
    writeln!(out, "Name:              {}", it.name)?;
    writeln!(out, "Id:                {}", it.id)?;
    writeln!(out, "Image URL:         {}", it.download_url.reveal())?;
    writeln!(out, "Image type:        {}", it.image_type)?;
    writeln!(out, "OpenShift version: {}", or_none(&it.openshift_version))?;
    if let Some(architecture) = &it.cpu_architecture {
        writeln!(out, "Architecture:      {architecture}")?;
    }
    let cluster = it.cluster_id.map(|id| id.to_string()).unwrap_or_default();
    writeln!(out, "Cluster:           {}", or_none(&cluster))?;
    writeln!(out, "Created:           {}", time_text(it.created_at))?;
    writeln!(out, "Changed:           {}", time_text(it.updated_at))?;
    write_access(&mut out, it)?;
    write_network(&mut out, it)?;
    write_system(&mut out, it)?;
    write_findings(&mut out, preflight)?;
    Ok(out.into_text())
}

fn write_access(out: &mut EscapedLines, it: &InfraEnv) -> Result<()> {
    let keys = it.ssh_authorized_key.lines().filter(|line| !line.trim().is_empty()).count();
    writeln!(out, "Pull secret:       {}", if it.pull_secret_set { "set" } else { "not set" })?;
    writeln!(out, "SSH keys:          {keys}")?;
    Ok(())
}

fn write_network(out: &mut EscapedLines, it: &InfraEnv) -> Result<()> {
    match it.static_networks() {
        Ok(networks) => match networks.len() {
            0 => writeln!(out, "Static networks:   none; machines use DHCP")?,
            1 => writeln!(out, "Static networks:   1 host")?,
            count => writeln!(out, "Static networks:   {count} hosts")?,
        },
        Err(_) => writeln!(out, "Static networks:   in an unknown format")?,
    }
    let proxies = [("http", &it.proxy.http_proxy), ("https", &it.proxy.https_proxy)];
    for (scheme, url) in proxies {
        if let Some(url) = url.as_deref().filter(|url| !url.is_empty()) {
            writeln!(out, "{:<18} {}", format!("Proxy for {scheme}:"), masked_url(url))?;
        }
    }
    if let Some(list) = it.proxy.no_proxy.as_deref().filter(|list| !list.is_empty()) {
        writeln!(out, "Without proxy:     {list}")?;
    }
    for (label, sources) in
        [("Time servers:", &it.ntp_sources), ("More time servers:", &it.additional_ntp_sources)]
    {
        if !sources.is_empty() {
            writeln!(out, "{label:<18} {sources}")?;
        }
    }
    Ok(())
}

fn write_system(out: &mut EscapedLines, it: &InfraEnv) -> Result<()> {
    for change in it.kernel_argument_changes().unwrap_or_default() {
        let operation = match change.operation {
            Some(KernelArgumentOperation::Delete) => "delete",
            Some(KernelArgumentOperation::Replace) => "replace",
            Some(KernelArgumentOperation::Append) | None => "append",
        };
        writeln!(out, "Kernel argument:   {operation} {}", change.value)?;
    }
    if !it.ignition_config_override.is_empty() {
        writeln!(out, "Ignition override: {} bytes", it.ignition_config_override.len())?;
    }
    if !it.additional_trust_bundle.is_empty() {
        let count = it.additional_trust_bundle.matches("-----BEGIN CERTIFICATE-----").count();
        writeln!(out, "Trusted CAs:       {count}")?;
    }
    if let Some(seconds) = it.network_discovery_delay_seconds {
        writeln!(out, "Discovery delay:   {seconds} s")?;
    }
    Ok(())
}

fn write_findings(out: &mut EscapedLines, preflight: Option<&Preflight>) -> Result<()> {
    let Some(preflight) = preflight else {
        writeln!(out, "Findings:          not available from this service")?;
        return Ok(());
    };
    let Preflight { network, ignition, addresses, .. } = preflight;
    let findings: Vec<&Value> = network.iter().chain(ignition).chain(addresses).collect();
    writeln!(
        out,
        "Findings:          {}",
        if findings.is_empty() { "none".to_owned() } else { findings.len().to_string() }
    )?;
    for finding in findings {
        let text = |key: &str| finding.get(key).and_then(Value::as_str).unwrap_or_default();
        // The API numbers hosts from 0, but messages number hosts from 1.
        let host = finding.get("host").and_then(Value::as_u64);
        let host = host.map(|host| format!("host {}: ", host.saturating_add(1)));
        let place = [text("path"), text("pointer")].concat();
        let place = if place.is_empty() { place } else { format!("{place}: ") };
        writeln!(out, "  {}: {}{place}{}", text("severity"), host.unwrap_or_default(), text("message"))?;
    }
    Ok(())
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

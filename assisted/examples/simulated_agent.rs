//! Registers a host and replies to its first steps, like the agent of a virtual machine.
//!
//! ```sh
//! cargo run -p assisted --example simulated_agent -- http://127.0.0.1:8090 INFRA_ENV_ID
//! ```

use std::error::Error;

use assisted::client::ApiClient;
use assisted::host::{Host, HostCreateParams};
use assisted::inventory_report::{Cpu, Disk, Interface, InventoryReport, Memory};
use assisted::reply::{ExitCode, NtpReport, NtpSource, ReplyPayload, StepReply};
use assisted::request::{NtpRequest, StepRequest};
use assisted::step::Step;
use assisted::{HostId, InfraEnvId, Millis};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, infra_env] = arguments.as_slice() else { return Err("expected URL and INFRA_ENV_ID".into()) };
    let host = simulate(url, infra_env.parse()?, HostId::fresh()).await?;
    println!("host {} is {}: {}", host.id, host.status, host.status_info);
    Ok(())
}

/// Registers the host and runs its first steps once, as an agent does after boot. Returns the host as users see it.
pub(crate) async fn simulate(url: &str, infra_env: InfraEnvId, host: HostId) -> Result<Host, Box<dyn Error>> {
    // Use the agent version of the service. Otherwise the service would ask the agent to upgrade.
    let versions = ApiClient::new(url)?.component_versions().await?.versions;
    let version = versions.get("discovery-agent").cloned().unwrap_or_default();
    let client = ApiClient::builder(url).agent_version(&version).build()?;
    let params = HostCreateParams { host_id: host, discovery_agent_version: Some(version) };
    client.register_host(infra_env, &params).await?;

    let clock = Millis::now().0.map_or(0, |now| now.timestamp());
    let steps = client.next_steps(infra_env, host, clock).await?;
    for step in &steps.instructions {
        client.post_reply(infra_env, host, &reply(step)?).await?;
    }
    Ok(client.get_host(infra_env, host).await?)
}

fn reply(step: &Step) -> Result<StepReply, serde_json::Error> {
    let payload = match StepRequest::parse(step) {
        Ok(StepRequest::Inventory(_)) => ReplyPayload::Inventory(Box::new(inventory_report())),
        Ok(StepRequest::Ntp(request)) => ReplyPayload::Ntp(ntp_report(&request)),
        Ok(_) => return Ok(StepReply::failure(step, ExitCode::FAILED, "not simulated")),
        Err(error) => return Ok(StepReply::failure(step, ExitCode::INVALID, error.to_string())),
    };
    StepReply::success(step, &payload)
}

fn inventory_report() -> InventoryReport<'static> {
    let cpu = Cpu { count: 8, architecture: "x86_64".into(), ..Cpu::default() };
    let memory = Memory { physical_bytes: 32 << 30, usable_bytes: 32 << 30, ..Memory::default() };
    let disk = Disk {
        id: "/dev/vda".into(),
        path: "/dev/vda".into(),
        name: "vda".into(),
        drive_type: "HDD".into(),
        size_bytes: 128_000_000_000,
        ..Disk::default()
    };
    let interface = Interface {
        name: "eth0".into(),
        interface_type: "physical".into(),
        mac_address: "52:54:00:00:00:01".into(),
        ipv4_addresses: vec!["192.0.2.11/24".into()].into(),
        ..Interface::default()
    };
    InventoryReport {
        hostname: "simulated-1".into(),
        cpu: Some(cpu),
        memory: Some(memory),
        disks: vec![disk].into(),
        interfaces: vec![interface].into(),
        ..InventoryReport::default()
    }
}

fn ntp_report(request: &NtpRequest) -> NtpReport<'static> {
    let names = request.ntp_source.split(',').filter(|name| !name.is_empty());
    let synced =
        |name: &str| NtpSource { source_name: name.to_owned().into(), source_state: "synced".into() };
    NtpReport { ntp_sources: names.map(synced).collect() }
}

//! The settings of an example site.

use std::error::Error;

use discovery::InputsBuilder;
use ignition::discovery::{
    ImageReference, InfraEnvId, InfraEnvSettings, InventoryService, Override, PullSecret,
};
use ignition::network::HostNetwork;

/// The pull secret of all infra-envs.
pub const PULL_SECRET: &str = r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#;
/// The id of the infra-env.
pub const ID: &str = "0f2a5d3c-1111-4222-8333-444455556666";

/// Returns the service to which hosts report.
pub fn service() -> Result<InventoryService, Box<dyn Error>> {
    let agent = ImageReference::parse("agent_image", "quay.io/example/agent:v1")?;
    Ok(InventoryService::new("https://assisted.example.com".parse()?, agent))
}

/// Returns the settings of the infra-env.
pub fn infra_env(config_override: Option<&str>) -> Result<InfraEnvSettings, Box<dyn Error>> {
    let id: InfraEnvId = ID.parse()?;
    let mut settings = InfraEnvSettings::new(id, PullSecret::parse(PULL_SECRET)?);
    settings.config_override = config_override.map(Override::new);
    Ok(settings)
}

/// Returns the network of a host.
pub fn host(name: &str, mac: &str, address: &str) -> Result<HostNetwork, Box<dyn Error>> {
    let document = format!(
        "interfaces:\n- name: eno1\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: false\n    \
         address: [{{ip: {address}, prefix-length: 24}}]\n"
    );
    Ok(HostNetwork::new(document, [("eno1", mac.parse()?)]).with_name(name))
}

/// Returns a builder of image inputs with two hosts.
pub fn inputs(config_override: Option<&str>) -> Result<InputsBuilder, Box<dyn Error>> {
    let builder = discovery::Inputs::builder(service()?, infra_env(config_override)?, "4.18".parse()?);
    Ok(builder.host(host("node-0", "52:54:00:00:00:01", "192.0.2.11")?).host(host(
        "node-1",
        "52:54:00:00:00:02",
        "192.0.2.12",
    )?))
}

//! `kindling pxe`: customizes the initrd images of network boots.

mod customize;
mod ignition;
pub(super) mod network;

use anyhow::Result;
use clap::Subcommand;

pub(super) use customize::CustomizeOptions;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a custom live PXE boot config
    Customize(Box<customize::Customize>),
    /// Commands to manage a live PXE Ignition config
    #[command(subcommand)]
    Ignition(ignition::Command),
    /// Commands to manage live PXE network settings
    #[command(subcommand)]
    Network(network::Command),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Customize(command) => command.run(),
            Self::Ignition(command) => command.run(),
            Self::Network(command) => command.run(),
        }
    }
}

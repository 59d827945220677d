//! Errors from creating discovery images.

use ignition::config::ConfigError;
use ignition::discovery::{ComposeError, InputError};
use ignition::network::HostError;

/// Reasons why a discovery image cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The config cannot be composed.
    #[error(transparent)]
    Compose(#[from] ComposeError),
    /// The config cannot be serialized.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An input is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The network of a host cannot be converted to files.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The base image cannot be read, or the edits do not fit into it.
    #[error(transparent)]
    Image(#[from] isogen::Error),
    /// The network archive for the initrd cannot be packed.
    #[error("cannot pack the archive for the early boot")]
    Pack(#[from] isogen::ArchiveError),
}

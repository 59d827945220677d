//! Why an infra-env gives no image.

use ignition::discovery::{ComposeError, InputError};
use ignition::network::HostError;

/// Why an infra-env gives no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The config cannot be put together.
    #[error(transparent)]
    Compose(#[from] ComposeError),
    /// An input is no good.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The network of a host gives no files.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The live image has no place for it.
    #[error(transparent)]
    Image(#[from] isogen::Error),
    /// The archive for the early boot cannot be packed.
    #[error("the archive for the early boot cannot be packed")]
    Pack(#[from] isogen::ArchiveError),
}

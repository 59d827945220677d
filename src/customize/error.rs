//! What can go wrong while a customisation is put together.

use ignition::builder::BuildError;
use ignition::config::ConfigError;
use ignition::network::NetworkError;

use super::capability::Unsupported;
use super::installer_config::InstallerConfigError;

/// Why a customisation could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The image lacks a feature that the customisation needs.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A path that ends in no file name.
    #[error("missing filename in {path:?}")]
    MissingFileName {
        /// The path as given.
        path: String,
    },
    /// A hook script whose name would break out of the unit that runs it.
    #[error("hook script name {name:?} contains a control character")]
    HookName {
        /// The file name of the script.
        name: String,
    },
    /// A live or destination config that is not an Ignition config.
    #[error("parsing Ignition config {path}")]
    IgnitionConfig {
        /// The file it was read from.
        path: String,
        /// What is wrong with it.
        #[source]
        source: ConfigError,
    },
    /// An installer config with a syntax error, an unknown key or a bad value.
    #[error("parsing installer config {path}")]
    InstallerConfig {
        /// The file it was read from.
        path: String,
        /// What is wrong with it.
        #[source]
        source: InstallerConfigError,
    },
    /// An nmstate document that gives no keyfiles.
    #[error("converting nmstate document {path}")]
    Nmstate {
        /// The file it was read from.
        path: String,
        /// What is wrong with it.
        #[source]
        source: NetworkError,
    },
    /// Two keyfiles of one name, given or generated.
    #[error("config already specifies keyfile {name}")]
    DuplicateKeyfile {
        /// The name that is taken.
        name: String,
    },
    /// Two things with one path or unit name, or contents that could not be embedded.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The destination config could not be written as JSON.
    #[error("writing the destination Ignition config")]
    WriteDestination(#[source] ConfigError),
    /// The options for the installer could not be written as YAML.
    #[error("writing the installer config")]
    WriteInstallerConfig(#[source] InstallerConfigError),
}

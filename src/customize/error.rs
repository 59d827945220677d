//! The errors of a customisation.

use ignition::builder::BuildError;
use ignition::config::ConfigError;
use ignition::network::NetworkError;

use super::capability::UnsupportedFeature;
use super::installer_config::InstallerConfigError;

/// Why a customisation could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CustomizeError {
    /// The image lacks a feature that the customisation needs.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedFeature),
    /// A path has no file name.
    #[error("missing filename in {path:?}")]
    MissingFileName {
        /// The path as given.
        path: String,
    },
    /// The name of a hook script contains a control character, which could add lines to the systemd unit.
    #[error("hook script name {name:?} contains a control character")]
    HookName {
        /// The file name of the script.
        name: String,
    },
    /// A live or destination config is not a valid Ignition config.
    #[error("parsing Ignition config {path}")]
    IgnitionConfig {
        /// The file of the config.
        path: String,
        /// What is wrong with it.
        #[source]
        source: ConfigError,
    },
    /// An installer config has a syntax error, an unknown key or an invalid value.
    #[error("parsing installer config {path}")]
    InstallerConfig {
        /// The file of the config.
        path: String,
        /// What is wrong with it.
        #[source]
        source: InstallerConfigError,
    },
    /// An nmstate document cannot be converted to keyfiles.
    #[error("converting nmstate document {path}")]
    Nmstate {
        /// The file of the document.
        path: String,
        /// What is wrong with it.
        #[source]
        source: NetworkError,
    },
    /// Two keyfiles, given or generated, have the same name.
    #[error("config already specifies keyfile {name}")]
    DuplicateKeyfile {
        /// The name of both keyfiles.
        name: String,
    },
    /// Two files have the same path, or two units the same name.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A generated config could not be written as JSON.
    #[error("writing an Ignition config")]
    WriteConfig(#[source] ConfigError),
    /// The installer options could not be written as YAML.
    #[error("writing the installer config")]
    WriteInstallerConfig(#[source] InstallerConfigError),
}

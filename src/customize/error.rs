//! Errors from building a customisation.

use ignition::builder::BuildError;
use ignition::config::ConfigError;
use ignition::network::NetworkError;

use super::capability::UnsupportedFeature;
use super::installer_config::InstallerConfigError;

/// The reason why a customisation could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CustomizeError {
    /// The image lacks a feature that the customisation needs.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedFeature),
    /// A path has no file name.
    #[error("missing filename in {path:?}")]
    MissingFileName {
        /// The path that the user wrote.
        path: String,
    },
    /// The name of a hook script contains a control character, which could add lines to the systemd unit.
    #[error("hook script name {name:?} contains a control character")]
    HookName {
        /// The last component of the script's path.
        name: String,
    },
    /// A live or destination config is not a valid Ignition config.
    #[error("parsing Ignition config {path}")]
    IgnitionConfig {
        /// The path of the config, as the user wrote it.
        path: String,
        /// The reason why the config is invalid.
        #[source]
        source: ConfigError,
    },
    /// An installer config has a syntax error, an unknown key or an invalid value.
    #[error("parsing installer config {path}")]
    InstallerConfig {
        /// The path of the config, as the user wrote it.
        path: String,
        /// The reason why the config is invalid.
        #[source]
        source: InstallerConfigError,
    },
    /// An nmstate document cannot be converted to keyfiles.
    #[error("converting nmstate document {path}")]
    Nmstate {
        /// The path of the document, as the user wrote it.
        path: String,
        /// The reason why the document cannot be converted.
        #[source]
        source: NetworkError,
    },
    /// Two keyfiles from the user or from nmstate documents have the same name.
    #[error("config already specifies keyfile {name}")]
    DuplicateKeyfile {
        /// The common file name, without a directory.
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

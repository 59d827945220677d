//! The installer's config file: the options of `coreos-installer install` as YAML.
//!
//! The config files of the user are parsed only to check that the installer accepts them. They are embedded unchanged.
//! [`InstallerConfig::to_yaml`] writes the options of a customisation as an additional file. The keys in that file have
//! the order of the fields of [`InstallerConfig`].

mod digest;
mod retries;
mod url;

use serde::{Deserialize, Serialize};

pub use digest::{IgnitionDigest, IgnitionDigestError};
pub use retries::{FetchRetries, FetchRetriesError};
pub use url::{InstallUrl, InstallUrlError};

use super::console::Console;

/// The options of an installer config file. The written file omits unset options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct InstallerConfig {
    /// The stream whose current image the installer installs, such as `stable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// URL of the image to install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<InstallUrl>,
    /// Path of a local image to install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_file: Option<String>,
    /// Path of a local Ignition config for the installed system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_file: Option<String>,
    /// URL of the Ignition config for the installed system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_url: Option<InstallUrl>,
    /// Expected digest of the Ignition config at `ignition_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_hash: Option<IgnitionDigest>,
    /// CPU architecture of the image to install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Ignition platform of the installed system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// Consoles of the kernel and the boot loader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub console: Vec<Console>,
    /// Kernel arguments to append.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub append_karg: Vec<String>,
    /// Kernel arguments to delete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete_karg: Vec<String>,
    /// Whether to copy the live system's network configuration.
    #[serde(skip_serializing_if = "is_false")]
    pub copy_network: bool,
    /// Directory of the network configuration to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_dir: Option<String>,
    /// Label patterns of partitions to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub save_partlabel: Vec<String>,
    /// Numbers or ranges of partitions to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub save_partindex: Vec<String>,
    /// Whether to install without a network.
    #[serde(skip_serializing_if = "is_false")]
    pub offline: bool,
    /// Whether to accept an image without a signature.
    #[serde(skip_serializing_if = "is_false")]
    pub insecure: bool,
    /// Whether to accept an Ignition URL with neither HTTPS nor a digest.
    #[serde(skip_serializing_if = "is_false")]
    pub insecure_ignition: bool,
    /// Base URL of the stream metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_base_url: Option<InstallUrl>,
    /// Whether to keep the partition table if the installation fails.
    #[serde(skip_serializing_if = "is_false")]
    pub preserve_on_error: bool,
    /// Number of retries after a failed download.
    #[serde(skip_serializing_if = "FetchRetries::is_default")]
    pub fetch_retries: FetchRetries,
    /// Whether to set up IBM Secure IPL.
    #[serde(skip_serializing_if = "is_false")]
    pub secure_ipl: bool,
    /// Path of the disk to install to. The installer overwrites it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest_device: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The reason why an installer config could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the file is not an installer config in YAML")]
pub struct InstallerConfigError(#[from] serde_yaml_ng::Error);

impl InstallerConfig {
    /// Parses a config file. Empty text is an empty config.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a single YAML mapping, a key is unknown or duplicate, or a value is invalid.
    pub fn parse(yaml: &[u8]) -> Result<Self, InstallerConfigError> {
        Ok(serde_yaml_ng::from_slice(yaml)?)
    }

    /// Formats the set options as a YAML mapping in block style.
    ///
    /// # Errors
    ///
    /// Returns an error if the YAML writer fails.
    pub fn to_yaml(&self) -> Result<String, InstallerConfigError> {
        Ok(serde_yaml_ng::to_string(self)?)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use proptest::prelude::*;

    use super::*;

    const FULL: &str = "\
stream: stable
image-url: https://example.com/image
image-file: /image
ignition-file: /config.ign
ignition-url: https://example.com/config.ign
ignition-hash: sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
architecture: s390x
platform: vmware
console:
- ttyS0,9600n8
append-karg:
- a=b
delete-karg:
- quiet
copy-network: true
network-dir: /net
save-partlabel:
- data*
save-partindex:
- 5-7
offline: true
insecure: true
insecure-ignition: true
stream-base-url: https://example.com/
preserve-on-error: true
fetch-retries: infinite
secure-ipl: true
dest-device: /dev/sda
";

    #[test]
    fn all_keys_round_trip_in_order() {
        let config = InstallerConfig::parse(FULL.as_bytes()).unwrap();
        assert_eq!(config.to_yaml().unwrap(), FULL);
        assert_eq!(FULL.lines().filter(|line| !line.starts_with('-')).count(), 23);
    }

    #[test]
    fn empty_text_is_empty_config() {
        for text in ["", "\n", "# remark\n", "---\n", "{}"] {
            assert_eq!(
                InstallerConfig::parse(text.as_bytes()).unwrap(),
                InstallerConfig::default(),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_are_accepted_as_strings() {
        let text = b"append-karg: [1, true]\nfetch-retries: 3\nsave-partindex: [4]";
        let config = InstallerConfig::parse(text).unwrap();
        assert_eq!(config.append_karg, ["1", "true"]);
        assert_eq!(config.fetch_retries, FetchRetries::Times(3));
    }

    #[test]
    fn rejects_configs_that_the_installer_rejects() {
        for text in [
            "[connection]",
            "text",
            "colour: blue",
            "config-file: /a",
            "firstboot-args: a",
            "append-karg: a",
            "stream: a\nstream: b",
            "copy-network: perhaps",
            "console: [tty9]",
            "ignition-hash: sha256-00",
            "image-url: /local",
            "fetch-retries: often",
            "---\n{}\n---\n{}",
            "a: [",
            "\u{0}",
        ] {
            let error = InstallerConfig::parse(text.as_bytes()).unwrap_err();
            assert!(error.source().is_some(), "{text}");
        }
    }

    #[test]
    fn error_source_names_key_and_line() {
        let error = InstallerConfig::parse(b"stream: a\ncolour: blue").unwrap_err();
        let source = error.source().unwrap().to_string();
        assert!(source.contains("colour") && source.contains("line 2"), "{source}");
        for (text, said) in [
            (
                "image-url: /local",
                "image-url: URL \"/local\" has no scheme such as https: at line 1 column 12",
            ),
            ("stream: a\nignition-url: http://", "ignition-url: "),
            ("ignition-hash: sha256-00", "ignition-hash: digest \"sha256-00\" does not hold 64"),
            ("fetch-retries: often", "fetch-retries: "),
            ("console: [ttyS0, tty9]", "console[1]: "),
        ] {
            let error = InstallerConfig::parse(text.as_bytes()).unwrap_err();
            let source = error.source().unwrap().to_string();
            assert!(source.starts_with(said) && source.contains(" at line "), "{source}");
        }
    }

    prop_compose! {
        fn any_config()(
            device in proptest::option::of(any::<String>()),
            append in proptest::collection::vec(any::<String>(), 0..4),
            delete in proptest::collection::vec("[ -~\n]{0,40}", 0..4),
            console in proptest::collection::vec("ttyS[0-9],[1-9][0-9]{2,5}[noe][5-8]", 0..3),
            flags in any::<[bool; 2]>(),
            retries in any::<u32>(),
        ) -> InstallerConfig {
            InstallerConfig {
                dest_device: device,
                append_karg: append,
                delete_karg: delete,
                console: console.iter().map(|spec| spec.parse().unwrap()).collect(),
                copy_network: flags[0],
                secure_ipl: flags[1],
                fetch_retries: FetchRetries::Times(retries),
                ..InstallerConfig::default()
            }
        }
    }

    proptest! {
        #[test]
        fn written_config_round_trips(config in any_config()) {
            let yaml = config.to_yaml().unwrap();
            prop_assert_eq!(InstallerConfig::parse(yaml.as_bytes()).unwrap(), config);
        }
    }
}

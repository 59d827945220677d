//! The installer's config file: the options of `coreos-installer install` as YAML.
//!
//! Files that a user brings are only read to see whether the installer is going to understand them; they are
//! embedded as they are. The one file that a customisation writes itself is [`InstallerConfig::to_yaml`] of its
//! own options; the keys come in the order of the struct.

mod digest;
mod retries;
mod url;

use serde::{Deserialize, Serialize};

pub use digest::{IgnitionDigest, IgnitionDigestError};
pub use retries::{FetchRetries, FetchRetriesError};
pub use url::{InstallUrl, InstallUrlError};

use super::console::Console;

/// Every option that an installer config file may hold. Unset options are left out on writing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct InstallerConfig {
    /// Stream whose current image is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Where the image is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<InstallUrl>,
    /// A local image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_file: Option<String>,
    /// A local Ignition config for the installed system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_file: Option<String>,
    /// Where the Ignition config for the installed system is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_url: Option<InstallUrl>,
    /// What the fetched Ignition config must hash to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_hash: Option<IgnitionDigest>,
    /// Processor architecture of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Ignition platform of the installed system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// Consoles of kernel and boot loader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub console: Vec<Console>,
    /// Kernel arguments to add.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub append_karg: Vec<String>,
    /// Kernel arguments to take away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete_karg: Vec<String>,
    /// Take the live system's network configuration over.
    #[serde(skip_serializing_if = "is_false")]
    pub copy_network: bool,
    /// Directory of the network configuration to take over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_dir: Option<String>,
    /// Label patterns of partitions to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub save_partlabel: Vec<String>,
    /// Numbers or ranges of partitions to keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub save_partindex: Vec<String>,
    /// Use no network.
    #[serde(skip_serializing_if = "is_false")]
    pub offline: bool,
    /// Accept an image without a signature.
    #[serde(skip_serializing_if = "is_false")]
    pub insecure: bool,
    /// Accept an Ignition URL without HTTPS or hash.
    #[serde(skip_serializing_if = "is_false")]
    pub insecure_ignition: bool,
    /// Where stream metadata is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_base_url: Option<InstallUrl>,
    /// Leave the partition table alone when the installation fails.
    #[serde(skip_serializing_if = "is_false")]
    pub preserve_on_error: bool,
    /// How often a failed fetch is repeated.
    #[serde(skip_serializing_if = "FetchRetries::is_none")]
    pub fetch_retries: FetchRetries,
    /// Set up IBM Secure IPL.
    #[serde(skip_serializing_if = "is_false")]
    pub secure_ipl: bool,
    /// The disk that is overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest_device: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Why an installer config could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the file is not an installer config in YAML")]
pub struct InstallerConfigError(#[from] serde_yaml_ng::Error);

impl InstallerConfig {
    /// Reads a config file. Empty text is an empty config.
    ///
    /// # Errors
    ///
    /// When the text is not one YAML mapping, when a key is unknown or given twice, and when a value has the
    /// wrong type or form.
    pub fn parse(yaml: &[u8]) -> Result<Self, InstallerConfigError> {
        Ok(serde_yaml_ng::from_slice(yaml)?)
    }

    /// Writes the options that are set, one block-style YAML mapping.
    ///
    /// # Errors
    ///
    /// Only when the YAML writer fails.
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
    fn all_keys_are_read_and_written_in_order() {
        let config = InstallerConfig::parse(FULL.as_bytes()).unwrap();
        assert_eq!(config.to_yaml().unwrap(), FULL);
        assert_eq!(FULL.lines().filter(|line| !line.starts_with('-')).count(), 23);
    }

    #[test]
    fn empty_texts_are_empty_configs() {
        for text in ["", "\n", "# remark\n", "---\n", "{}"] {
            assert_eq!(
                InstallerConfig::parse(text.as_bytes()).unwrap(),
                InstallerConfig::default(),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_stand_for_texts() {
        let text = b"append-karg: [1, true]\nfetch-retries: 3\nsave-partindex: [4]";
        let config = InstallerConfig::parse(text).unwrap();
        assert_eq!(config.append_karg, ["1", "true"]);
        assert_eq!(config.fetch_retries, FetchRetries::Times(3));
    }

    #[test]
    fn what_the_installer_would_refuse_is_refused() {
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
    fn the_source_says_where_and_which() {
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
        fn what_is_written_reads_back(config in any_config()) {
            let yaml = config.to_yaml().unwrap();
            prop_assert_eq!(InstallerConfig::parse(yaml.as_bytes()).unwrap(), config);
        }
    }
}

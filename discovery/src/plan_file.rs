//! Plan files, which describe an image in a few KiB by its new contents and the digest of its base image.
//!
//! A machine that has the base image can create the same image from the plan file, byte for byte, instead of
//! downloading another gigabyte.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ignition::discovery::kernel_arguments::KernelArguments;
use isogen::{BaseImage, Digest, PackedArchive, Plan};
use serde::{Deserialize, Serialize};

use crate::error::DiscoveryError;
use crate::form::Form;
use crate::packed::{BaseContext, PackedConfig};

/// The version of the plan file format.
const VERSION: u32 = 1;

/// Reasons why a plan file cannot be read or applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFileError {
    /// The text is not a plan file.
    #[error("not a plan file")]
    Malformed(#[source] serde_json::Error),
    /// The format version of the file is not supported.
    #[error("plan file has format version {found}, this program reads version {VERSION}")]
    Version {
        /// The format version of the file.
        found: u32,
    },
    /// An archive in the file is not valid base64.
    #[error("{field} is not valid base64: {source}")]
    Base64 {
        /// The name of the field that contains the archive.
        field: &'static str,
        /// The error of the decoder.
        source: base64::DecodeError,
    },
    /// The opened base image is not the base image of the plan file.
    #[error("{base} is not the base image of this plan: it has {found}, expected {wanted}")]
    OtherBase {
        /// The name of the opened base image.
        base: String,
        /// The length and digest of the opened base image.
        found: Box<ImageIdentity>,
        /// The length and digest of the base image of the plan file.
        wanted: Box<ImageIdentity>,
    },
    /// This version of the program lays out the image differently from the version that made the plan.
    #[error("plan was made by {made_by}, whose layout differs; apply it with that version")]
    OtherLayout {
        /// Name and version of the program that made the plan.
        made_by: String,
    },
    /// The image cannot be created.
    #[error(transparent)]
    Image(#[from] DiscoveryError),
}

/// The length and SHA-256 digest of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageIdentity {
    /// Length of the file, in bytes.
    pub size: u64,
    /// SHA-256 digest of the file.
    #[serde(with = "hexadecimal")]
    pub sha256: Digest,
}

impl fmt::Display for ImageIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes and SHA-256 {}", self.size, self.sha256)
    }
}

/// Serialization of digests as hexadecimal text.
mod hexadecimal {
    use isogen::Digest;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(digest)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// An image, described by its new contents and the digest of its base image. The config in it contains secrets.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    kindling_plan: u32,
    made_by: String,
    image: Form,
    base: ImageIdentity,
    result: ImageIdentity,
    /// The archive with the Ignition config, in base64.
    config: String,
    /// The network archive for the initrd, in base64.
    network: String,
    /// Whether the image includes `nmstatectl` from the base image.
    nmstatectl: bool,
    kernel_arguments: KernelArguments,
}

impl fmt::Debug for PlanFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanFile")
            .field("image", &self.image)
            .field("base", &self.base)
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}

impl PlanFile {
    /// Creates the plan file of an image. Reads the whole image and its base image to compute their digests.
    ///
    /// # Errors
    ///
    /// Returns an error if the image cannot be created or read.
    pub fn new(form: &Form, packed: &PackedConfig, context: BaseContext<'_>) -> Result<Self, DiscoveryError> {
        let plan = packed.plan(form, context)?;
        let source = context.base.source();
        // Hash both files concurrently. Each digest keeps one CPU core busy while a gigabyte is read.
        let (result, base) = std::thread::scope(|scope| {
            let base = scope.spawn(|| source.digest());
            (plan.sha256(), base.join().unwrap_or_else(|_| source.digest()))
        });
        Ok(Self {
            kindling_plan: VERSION,
            made_by: concat!("kindling ", env!("CARGO_PKG_VERSION")).to_owned(),
            image: form.clone(),
            base: ImageIdentity { size: source.len(), sha256: base? },
            result: ImageIdentity { size: plan.len(), sha256: result? },
            config: STANDARD.encode(packed.config.as_bytes()),
            network: STANDARD.encode(packed.network.as_bytes()),
            nmstatectl: context.nmstatectl.is_some(),
            kernel_arguments: packed.kernel_arguments.clone(),
        })
    }

    /// Parses a plan file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a plan file, or has an unsupported format version.
    pub fn parse(json: &[u8]) -> Result<Self, PlanFileError> {
        #[derive(Deserialize)]
        struct Version {
            kindling_plan: u32,
        }
        // Check the version first, because a later version may have other fields.
        let Version { kindling_plan: found } =
            serde_json::from_slice(json).map_err(PlanFileError::Malformed)?;
        if found != VERSION {
            return Err(PlanFileError::Version { found });
        }
        serde_json::from_slice(json).map_err(PlanFileError::Malformed)
    }

    /// Returns the plan file as JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the plan file cannot be serialized, which does not occur in practice.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Returns the form of the image.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.image
    }

    /// Returns the length and digest of the base image.
    #[must_use]
    pub fn base(&self) -> ImageIdentity {
        self.base
    }

    /// Returns the length and digest of the described image.
    #[must_use]
    pub fn result(&self) -> ImageIdentity {
        self.result
    }

    /// Returns the plan of the image over its base image. Reads the whole base image to verify its digest. The caller
    /// must then compare the digest of the created image with [`result`](Self::result), or call [`prove`](Self::prove).
    ///
    /// # Errors
    ///
    /// Returns an error if the base image has another digest, or if the image cannot be created.
    pub fn plan(&self, base: &BaseImage) -> Result<Plan, PlanFileError> {
        let source = base.source();
        let other_base = |sha256| PlanFileError::OtherBase {
            base: source.name().to_owned(),
            found: Box::new(ImageIdentity { size: source.len(), sha256 }),
            wanted: Box::new(self.base),
        };
        let sha256 = source.digest().map_err(DiscoveryError::from)?;
        if (source.len(), sha256) != (self.base.size, self.base.sha256) {
            return Err(other_base(sha256));
        }
        let packed = PackedConfig {
            config: archive("config", &self.config)?,
            network: archive("network", &self.network)?,
            kernel_arguments: self.kernel_arguments.clone(),
        };
        let nmstatectl = if self.nmstatectl {
            let root = base.root_filesystem().map_err(DiscoveryError::from)?;
            Some(root.pack_nmstatectl().map_err(DiscoveryError::from)?)
        } else {
            None
        };
        let plan = packed.plan(&self.image, BaseContext { base, nmstatectl: nmstatectl.as_ref() })?;
        if plan.len() != self.result.size {
            return Err(self.other_layout());
        }
        Ok(plan)
    }

    /// Compares the digest of a created image with the plan file.
    ///
    /// # Errors
    ///
    /// Returns an error if the digest differs from the digest in the plan file.
    pub fn prove(&self, sha256: Digest) -> Result<(), PlanFileError> {
        if sha256 == self.result.sha256 { Ok(()) } else { Err(self.other_layout()) }
    }

    fn other_layout(&self) -> PlanFileError {
        PlanFileError::OtherLayout { made_by: self.made_by.clone() }
    }
}

fn archive(field: &'static str, text: &str) -> Result<PackedArchive, PlanFileError> {
    let bytes = STANDARD.decode(text).map_err(|source| PlanFileError::Base64 { field, source })?;
    Ok(PackedArchive::from_encoded(bytes.into()))
}

#[cfg(test)]
mod tests {
    use ignition::discovery::HttpUrl;
    use isogen::Source;

    use super::*;

    fn file() -> String {
        let stamp = ImageIdentity { size: 5, sha256: Digest::from_data(b"12345") };
        let file = PlanFile {
            kindling_plan: VERSION,
            made_by: "a test".to_owned(),
            image: Form::Minimal {
                rootfs_url: HttpUrl::parse("rootfs_url", "http://192.0.2.1/rootfs").unwrap(),
            },
            base: stamp,
            result: stamp,
            config: STANDARD.encode("config"),
            network: String::new(),
            nmstatectl: true,
            kernel_arguments: KernelArguments::parse(r#"[{"operation": "append", "value": "quiet"}]"#)
                .unwrap(),
        };
        file.to_json().unwrap()
    }

    #[test]
    fn plan_file_round_trips() {
        let text = file();
        let read = PlanFile::parse(text.as_bytes()).unwrap();
        assert_eq!(read.to_json().unwrap(), text);
        assert!(!format!("{read:?}").contains("config"));
    }

    proptest::proptest! {
        #[test]
        fn altered_plan_file_is_never_applied(at in 0..2000usize, with in "[0-9a-z{}:,\"]{0,6}") {
            let mut text = file();
            let at = at % text.len();
            text.replace_range(at..=at, &with);
            if let Ok(file) = PlanFile::parse(text.as_bytes()) {
                let base = fixtures::Recipe::all().next().unwrap().build();
                let base = BaseImage::from_source(Source::from_bytes("base", base)).unwrap();
                proptest::prop_assert!(file.plan(&base).is_err());
            }
        }
    }
}

//! Plan files: an image as the digest of its live image and what goes into it, a few KiB.
//!
//! Whoever has the live image already makes the image of it, byte for byte, without another gigabyte being sent.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ignition::discovery::kernel_arguments::KernelArguments;
use isogen::{BaseImage, Digest, Packed, Plan};
use serde::{Deserialize, Serialize};

use super::{BaseContext, DiscoveryError, Form, PackedConfig};

/// The version of plan files that is written and read.
const VERSION: u32 = 1;

/// Why a plan file gives no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFileError {
    /// The text is not a plan file.
    #[error("not a plan file")]
    Malformed(#[source] serde_json::Error),
    /// It is one of another version of the format.
    #[error("it has version {found} of the format, and this program reads version {VERSION}")]
    Version {
        /// The version that it has.
        found: u32,
    },
    /// One of its archives is no base64.
    #[error("{field} is no base64: {source}")]
    Base64 {
        /// Which one.
        field: &'static str,
        /// Why.
        source: base64::DecodeError,
    },
    /// It is for another live image.
    #[error("{base} is not the live image of this plan: it has {found}, and that has {wanted}")]
    OtherBase {
        /// The live image.
        base: String,
        /// What it is.
        found: Box<Stamp>,
        /// What it should be.
        wanted: Box<Stamp>,
    },
    /// This program makes something else of it.
    #[error("this program lays the image out otherwise than {made_by}, which made the plan: use that one")]
    OtherLayout {
        /// The program that made the plan.
        made_by: String,
    },
    /// The image cannot be made.
    #[error(transparent)]
    Image(#[from] DiscoveryError),
}

/// What a file is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    /// Its length in bytes.
    pub size: u64,
    /// Its SHA-256.
    #[serde(with = "hexadecimal")]
    pub sha256: Digest,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes and SHA-256 {}", self.size, self.sha256)
    }
}

/// Digests as text.
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

/// An image as the digest of its live image and what goes into it. The config in it holds secrets.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    kindling_plan: u32,
    made_by: String,
    image: Form,
    base: Stamp,
    result: Stamp,
    /// The archive with the config, as base64.
    config: String,
    /// The archive for the early boot, as base64.
    network: String,
    /// Whether the program `nmstatectl` of the live image goes in as well.
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
    /// The plan file of an image. All of the image is read, for its digest and that of its base.
    ///
    /// # Errors
    ///
    /// When the image cannot be made or read.
    pub fn of(form: &Form, packed: &PackedConfig, context: BaseContext<'_>) -> Result<Self, DiscoveryError> {
        let plan = packed.plan(form, context)?;
        let source = context.base.source();
        // Each takes a processor for as long as it takes to read a gigabyte.
        let (result, base) = std::thread::scope(|scope| {
            let base = scope.spawn(|| source.digest());
            (plan.sha256(), base.join().unwrap_or_else(|_| source.digest()))
        });
        Ok(Self {
            kindling_plan: VERSION,
            made_by: concat!("kindling ", env!("CARGO_PKG_VERSION")).to_owned(),
            image: form.clone(),
            base: Stamp { size: source.len(), sha256: base? },
            result: Stamp { size: plan.len(), sha256: result? },
            config: STANDARD.encode(packed.config.as_bytes()),
            network: STANDARD.encode(packed.network.as_bytes()),
            nmstatectl: context.nmstatectl.is_some(),
            kernel_arguments: packed.kernel_arguments.clone(),
        })
    }

    /// Reads a plan file.
    ///
    /// # Errors
    ///
    /// When it is none, or one of another version.
    pub fn parse(json: &[u8]) -> Result<Self, PlanFileError> {
        #[derive(Deserialize)]
        struct Version {
            kindling_plan: u32,
        }
        // A later version may have other fields: its number says more than their names.
        let Version { kindling_plan: found } =
            serde_json::from_slice(json).map_err(PlanFileError::Malformed)?;
        if found != VERSION {
            return Err(PlanFileError::Version { found });
        }
        serde_json::from_slice(json).map_err(PlanFileError::Malformed)
    }

    /// Its text.
    ///
    /// # Errors
    ///
    /// Never, as long as there is memory for it.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// The form of the image.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.image
    }

    /// What the live image is known by.
    #[must_use]
    pub fn base(&self) -> Stamp {
        self.base
    }

    /// What the image is known by.
    #[must_use]
    pub fn result(&self) -> Stamp {
        self.result
    }

    /// The image on its live image, which is read whole to make sure that it is the right one. What the plan gives is
    /// known by [`result`](Self::result): whoever writes it compares.
    ///
    /// # Errors
    ///
    /// When the live image is another one, or the image cannot be made.
    pub fn plan(&self, base: &BaseImage) -> Result<Plan, PlanFileError> {
        let source = base.source();
        let refused = |sha256| PlanFileError::OtherBase {
            base: source.name().to_owned(),
            found: Box::new(Stamp { size: source.len(), sha256 }),
            wanted: Box::new(self.base),
        };
        let sha256 = source.digest().map_err(DiscoveryError::from)?;
        if (source.len(), sha256) != (self.base.size, self.base.sha256) {
            return Err(refused(sha256));
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

    /// Makes sure that an image is the one that was meant.
    ///
    /// # Errors
    ///
    /// When it is another.
    pub fn prove(&self, sha256: Digest) -> Result<(), PlanFileError> {
        if sha256 == self.result.sha256 { Ok(()) } else { Err(self.other_layout()) }
    }

    fn other_layout(&self) -> PlanFileError {
        PlanFileError::OtherLayout { made_by: self.made_by.clone() }
    }
}

fn archive(field: &'static str, text: &str) -> Result<Packed, PlanFileError> {
    let bytes = STANDARD.decode(text).map_err(|source| PlanFileError::Base64 { field, source })?;
    Ok(Packed::from_encoded(bytes.into()))
}

#[cfg(test)]
mod tests {
    use isogen::Source;

    use super::*;

    fn file() -> String {
        let stamp = Stamp { size: 5, sha256: Digest::of(b"12345") };
        let file = PlanFile {
            kindling_plan: VERSION,
            made_by: "a test".to_owned(),
            image: Form::Minimal { rootfs_url: "http://192.0.2.1/rootfs".to_owned() },
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
    fn a_file_is_read_as_it_was_written() {
        let text = file();
        let read = PlanFile::parse(text.as_bytes()).unwrap();
        assert_eq!(read.to_json().unwrap(), text);
        assert!(!format!("{read:?}").contains("config"));
    }

    proptest::proptest! {
        #[test]
        fn any_change_is_read_or_refused(at in 0..2000usize, with in "[0-9a-z{}:,\"]{0,6}") {
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

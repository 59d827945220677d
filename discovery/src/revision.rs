//! Revisions of images: short digests of everything that determines an image's bytes.
//!
//! A revision is known without the base image, so a URL that contains it can be published before the base image is
//! downloaded. It covers the packed archives, the changes to the kernel arguments, the form, the layout rules, and the
//! catalogue's description of the base image. If the catalogue has no digest of the base image, the revision does not
//! cover its contents; the entity tag does.

use std::fmt;
use std::str::FromStr;

use isogen::plan::PLAN_VERSION;
use isogen::{Digest, Hasher, KargsOperations};

use crate::form::Form;
use crate::packed::PackedConfig;

/// The revision of an image: 16 lower-case hexadecimal digits. Images with different bytes have different revisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageRevision(u64);

/// The error of parsing an [`ImageRevision`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid image revision (expected 16 hexadecimal digits in lower case)")]
pub struct InvalidRevision;

impl fmt::Display for ImageRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ImageRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ImageRevision({self})")
    }
}

impl FromStr for ImageRevision {
    type Err = InvalidRevision;

    /// Parses a revision. Accepts only one text for each revision, so that an image has only one URL.
    fn from_str(text: &str) -> Result<Self, InvalidRevision> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 16 || !text.bytes().all(is_digit) {
            return Err(InvalidRevision);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| InvalidRevision)
    }
}

/// A base image, as the catalogue describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseImageEntry<'a> {
    /// The version of the base image.
    pub version: &'a str,
    /// The CPU architecture, by name.
    pub architecture: &'a str,
    /// The URL to download the base image from.
    pub url: &'a str,
    /// The expected SHA-256 digest of the base image, if known.
    pub sha256: Option<Digest>,
}

impl PackedConfig {
    /// Returns the revision of the image with the given form and base image.
    #[must_use]
    pub fn revision(&self, form: &Form, base: &BaseImageEntry<'_>) -> ImageRevision {
        let operations = self.kargs_operations();
        let kargs = operations_digest(&operations);
        // A part that the form does not use must not change the revision.
        let (name, network, kargs, rootfs_url): (_, &[u8], &[u8], _) = match form {
            Form::Full => ("full", &[], &kargs.0, ""),
            Form::Minimal { rootfs_url } => {
                ("minimal", self.network.as_bytes(), &kargs.0, rootfs_url.as_str())
            }
            Form::Initrd => ("initrd", self.network.as_bytes(), &[], ""),
        };
        // The URL does not matter if the digest is known, because the bytes are the same.
        let contents = base.sha256.map_or_else(|| base.url.to_owned(), |digest| digest.to_string());
        let digest = list_digest([
            b"kindling image",
            [PLAN_VERSION].as_slice(),
            name.as_bytes(),
            self.config.as_bytes(),
            network,
            kargs,
            rootfs_url.as_bytes(),
            base.version.as_bytes(),
            base.architecture.as_bytes(),
            contents.as_bytes(),
        ]);
        let Digest([a, b, c, d, e, f, g, h, ..]) = digest;
        ImageRevision(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

fn operations_digest(operations: &KargsOperations) -> Digest {
    let KargsOperations { delete, append, replace } = operations;
    list_digest([delete, append, replace].map(|values| list_digest(values).0))
}

/// Returns a digest of the number and the contents of the items.
fn list_digest(items: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Digest {
    let mut hasher = Hasher::new();
    for item in items {
        // All item digests have the same length, so the combined digest also determines the boundaries between items.
        hasher.update(&Digest::from_data(item.as_ref()).0);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use ignition::discovery::HttpUrl;
    use ignition::discovery::kernel_arguments::KernelArguments;
    use isogen::{Encoding, PackedArchive};

    use super::*;

    const ENTRY: BaseImageEntry<'_> =
        BaseImageEntry { version: "418.1", architecture: "x86_64", url: "http://a/b.iso", sha256: None };

    fn archive(contents: &str) -> PackedArchive {
        PackedArchive::from_file("config.ign", 0o100_600, contents.as_bytes(), Encoding::Stored).unwrap()
    }

    fn packed(config: &str, network: &str, arguments: &str) -> PackedConfig {
        let network = if network.is_empty() { PackedArchive::default() } else { archive(network) };
        let kernel_arguments = KernelArguments::parse(arguments).unwrap();
        PackedConfig { config: archive(config), network, kernel_arguments }
    }

    fn minimal(rootfs_url: &str) -> Form {
        Form::Minimal { rootfs_url: HttpUrl::parse("rootfs_url", rootfs_url).unwrap() }
    }

    #[test]
    fn rejects_other_spellings_of_a_revision() {
        let revision: ImageRevision = "00c0ffee00c0ffee".parse().unwrap();
        assert_eq!(revision.to_string(), "00c0ffee00c0ffee");
        for text in
            ["", "latest", "00c0ffee00c0ffe", "00c0ffee00c0ffee0", "00C0FFEE00C0FFEE", "+0c0ffee00c0ffee"]
        {
            assert_eq!(text.parse::<ImageRevision>(), Err(InvalidRevision), "{text:?}");
        }
    }

    /// If this test fails, the URLs of all images change.
    #[test]
    fn revision_is_the_same_on_every_machine() {
        let arguments = r#"[{"operation": "append", "value": "quiet"}]"#;
        let revision = packed("{}", "n", arguments).revision(&minimal("http://a/rootfs"), &ENTRY);
        assert_eq!(revision.to_string(), "a8546abd9c21c82a");
    }

    #[test]
    fn each_part_of_an_image_changes_its_revision() {
        let append = r#"[{"operation": "append", "value": "a"}]"#;
        let delete = r#"[{"operation": "delete", "value": "a"}]"#;
        let form = minimal("http://a/rootfs");
        let revisions = [
            packed("{}", "", append).revision(&form, &ENTRY),
            packed("{} ", "", append).revision(&form, &ENTRY),
            packed("{}", "n", append).revision(&form, &ENTRY),
            packed("{}", "", "[]").revision(&form, &ENTRY),
            packed("{}", "", delete).revision(&form, &ENTRY),
            packed("{}", "", append).revision(&minimal("http://b/rootfs"), &ENTRY),
            packed("{}", "", append).revision(&Form::Full, &ENTRY),
            packed("{}", "", append).revision(&Form::Initrd, &ENTRY),
            packed("{}", "", append).revision(&form, &BaseImageEntry { version: "418.2", ..ENTRY }),
            packed("{}", "", append).revision(&form, &BaseImageEntry { architecture: "arm64", ..ENTRY }),
            packed("{}", "", append).revision(&form, &BaseImageEntry { url: "http://a/c.iso", ..ENTRY }),
            packed("{}", "", append)
                .revision(&form, &BaseImageEntry { sha256: Some(Digest::from_data(b"a")), ..ENTRY }),
        ];
        for (index, revision) in revisions.iter().enumerate() {
            assert!(!revisions[..index].contains(revision), "{index}: {revisions:?}");
        }
    }

    #[test]
    fn unused_parts_do_not_change_a_revision() {
        let arguments = r#"[{"operation": "append", "value": "a"}]"#;
        let full = packed("{}", "", arguments).revision(&Form::Full, &ENTRY);
        assert_eq!(packed("{}", "n", arguments).revision(&Form::Full, &ENTRY), full);
        // Kernel arguments of a host that boots over the network are in its iPXE script, not in its initrd.
        let initrd = packed("{}", "n", "[]").revision(&Form::Initrd, &ENTRY);
        assert_eq!(packed("{}", "n", arguments).revision(&Form::Initrd, &ENTRY), initrd);
        let with_digest = BaseImageEntry { sha256: Some(Digest::from_data(b"a")), ..ENTRY };
        let moved = BaseImageEntry { url: "http://mirror/b.iso", ..with_digest };
        let config = packed("{}", "", "[]");
        assert_eq!(config.revision(&Form::Full, &moved), config.revision(&Form::Full, &with_digest));
    }
}

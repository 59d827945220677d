//! Which images and releases there are, in the forms of `OS_IMAGES`, `RELEASE_IMAGES` and `IGNORED_OPENSHIFT_VERSIONS`.

use std::collections::BTreeSet;

use isogen::Digest;
use serde::{Deserialize, Deserializer, Serialize};

use super::architecture::{CpuArchitecture, ImageType};
use super::list::{Element, List};
use super::release::{ReleaseArchitecture, ReleaseImage};
use super::version::Version;

/// A live image of CoreOS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsImage {
    /// The version of OpenShift that it is for: `4.14`, `4.14.3`, or one before its release.
    pub openshift_version: String,
    /// The machines that it is for.
    pub cpu_architecture: CpuArchitecture,
    /// Where it comes from.
    pub url: String,
    /// Its own version.
    pub version: String,
    /// What it is a base of: full and minimal images, or disconnected ones.
    #[serde(rename = "type", default)]
    pub image_type: ImageType,
    /// The SHA-256 that it has to have, where the operator knows it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "digest")]
    pub sha256: Option<Digest>,
}

fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Digest>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
}

/// The images and releases that there are.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    os_images: Vec<OsImage>,
    pub(super) releases: Vec<ReleaseImage>,
    pub(super) ignored: BTreeSet<String>,
}

/// No image or release is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The list cannot be read.
    #[error("{variable}: {reason}")]
    List {
        /// Where the list stands.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// No image is there for a version.
    #[error("No OS image for Openshift version {version} and architecture {architecture}: {reason}")]
    NoOsImage {
        /// The version.
        version: String,
        /// The machine.
        architecture: CpuArchitecture,
        /// Why not.
        reason: String,
    },
    /// No image at all is there for a machine.
    #[error("Failed to get latest OS image for architecture {0}: No OS images are available")]
    NoOsImages(CpuArchitecture),
    /// No release is there for a version.
    #[error("No release image for Openshift version {version} and architecture {architecture}: {reason}")]
    NoRelease {
        /// The version.
        version: String,
        /// The machines.
        architecture: ReleaseArchitecture,
        /// Why not.
        reason: String,
    },
    /// There is a release, and no image that its machines could boot.
    #[error("No OS images are available for version {version} and architecture {architecture}")]
    NoOsImageOfRelease {
        /// The version of the release.
        version: String,
        /// The machine.
        architecture: CpuArchitecture,
    },
    /// No release has a pull spec.
    #[error("No release image with URL {0}")]
    NoReleaseAt(String),
}

const OS_IMAGES: List = List("OS_IMAGES");

impl Catalogue {
    /// Reads a list of images in the form of `OS_IMAGES`.
    ///
    /// # Errors
    ///
    /// When the text is no such list, or an empty one.
    pub fn parse(os_images: &str) -> Result<Self, CatalogueError> {
        if os_images.trim().is_empty() {
            return Err(OS_IMAGES.error("OS_IMAGES list is empty"));
        }
        let os_images = OS_IMAGES.read(os_images, read_os_image)?;
        if os_images.is_empty() {
            return Err(OS_IMAGES.error("No OS images provided"));
        }
        Ok(Self { os_images, ..Self::default() })
    }

    /// With more images, behind those that it has.
    #[must_use]
    pub fn with_os_images(mut self, more: impl IntoIterator<Item = OsImage>) -> Self {
        self.os_images.extend(more);
        self
    }

    /// All images.
    #[must_use]
    pub fn os_images(&self) -> &[OsImage] {
        &self.os_images
    }

    /// The image that machines boot for a version: the one of exactly this version, else that of its minor version, else
    /// the newest one of a version in it. Without a version, the newest of all.
    ///
    /// # Errors
    ///
    /// When there is none, or the version has fewer than two parts.
    pub fn os_image(
        &self,
        version: Option<&str>,
        architecture: CpuArchitecture,
    ) -> Result<&OsImage, CatalogueError> {
        self.os_image_of_type(ImageType::Full, version, architecture)
    }

    /// The base of disconnected images, by the same rules as [`Catalogue::os_image`].
    ///
    /// # Errors
    ///
    /// When there is none, or the version has fewer than two parts.
    pub fn disconnected_os_image(
        &self,
        version: Option<&str>,
        architecture: CpuArchitecture,
    ) -> Result<&OsImage, CatalogueError> {
        self.os_image_of_type(ImageType::Disconnected, version, architecture)
    }

    fn os_image_of_type(
        &self,
        image_type: ImageType,
        version: Option<&str>,
        architecture: CpuArchitecture,
    ) -> Result<&OsImage, CatalogueError> {
        let is_disconnected = image_type == ImageType::Disconnected;
        let of_machine = |image: &&OsImage| {
            image.cpu_architecture == architecture
                && (image.image_type == ImageType::Disconnected) == is_disconnected
        };
        let images = || self.os_images.iter().filter(of_machine);
        let Some(version) = version.filter(|version| !version.is_empty()) else {
            return newest(images()).ok_or(CatalogueError::NoOsImages(architecture));
        };
        let none =
            |reason: String| CatalogueError::NoOsImage { version: version.to_owned(), architecture, reason };
        if images().next().is_none() {
            return Err(none(format!(
                "The requested CPU architecture ({architecture}) isn't specified in OS images list"
            )));
        }
        let minor = minor_of(version).ok_or_else(|| none("invalid version".to_owned()))?;
        let exactly = |key: &str| images().find(|image| image.openshift_version == key);
        let within = || newest(images().filter(|image| minor_of(&image.openshift_version) == Some(minor)));
        exactly(version).or_else(|| exactly(minor)).or_else(within).ok_or_else(|| {
            none(format!(
                "The requested OS image for version ({version}) and CPU architecture ({architecture}) isn't \
                 specified in OS images list"
            ))
        })
    }
}

/// The first one of the newest version.
fn newest<'a>(images: impl Iterator<Item = &'a OsImage>) -> Option<&'a OsImage> {
    images.reduce(|best, image| {
        let is_newer = Version::parse(&image.openshift_version) > Version::parse(&best.openshift_version);
        if is_newer { image } else { best }
    })
}

/// The minor version of a version, as it is written: what stands before the first `-`, of that the first two parts.
pub(super) fn minor_of(version: &str) -> Option<&str> {
    let release = version.split('-').next()?;
    let (major, rest) = release.split_once('.')?;
    let minor = rest.split('.').next()?;
    release.get(..major.len() + 1 + minor.len())
}

fn read_os_image(element: &Element<'_>) -> Result<OsImage, CatalogueError> {
    let openshift_version = element.text("openshift_version")?;
    if Version::parse(openshift_version).is_none() {
        return Err(
            element.error("openshift_version", format_args!("is {openshift_version:?}, which is no version"))
        );
    }
    let image_type = match element.optional("type")? {
        None | Some("full-iso") => ImageType::Full,
        Some("disconnected-iso") => ImageType::Disconnected,
        Some(other) => {
            let reason = format_args!("is {other:?}; it may be full-iso or disconnected-iso");
            return Err(element.error("type", reason));
        }
    };
    let sha256 = element.optional("sha256")?.map(str::parse).transpose();
    let sha256 = sha256.map_err(|error| element.error("sha256", format_args!("is wrong: {error}")))?;
    Ok(OsImage {
        openshift_version: openshift_version.to_owned(),
        cpu_architecture: element.architecture("cpu_architecture")?,
        url: element.text("url")?.to_owned(),
        version: element.text("version")?.to_owned(),
        image_type,
        sha256,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalogue(images: &[(&str, &str)]) -> Catalogue {
        let element = |(version, architecture): &(&str, &str)| {
            json!({
                "openshift_version": version,
                "cpu_architecture": architecture,
                "url": format!("http://mirror.example/{version}-{architecture}.iso"),
                "version": "1",
            })
        };
        Catalogue::parse(&json!(images.iter().map(element).collect::<Vec<_>>()).to_string()).unwrap()
    }

    #[track_caller]
    fn assert_found(catalogue: &Catalogue, cases: &[(&str, &str)]) {
        for (asked, expected) in cases {
            let found = catalogue.os_image(Some(asked), CpuArchitecture::X86_64).unwrap();
            assert_eq!(found.openshift_version, *expected, "for {asked}");
        }
    }

    #[test]
    fn keys_of_images_match_without_case() {
        let list = r#"[{"OpenShift_Version": "4.14", "CPU_Architecture": "x86_64", "URL": "http://a/b.iso", "Version": "1"}]"#;
        assert_eq!(Catalogue::parse(list).unwrap().os_images()[0].url, "http://a/b.iso");
    }

    #[test]
    fn an_image_is_found_by_its_version_then_by_the_minor_one_then_within_it() {
        let catalogue = catalogue(&[
            ("4.13.2", "x86_64"),
            ("4.13.10", "x86_64"),
            ("4.13.11", "arm64"),
            ("4.14", "x86_64"),
            ("4.14.5", "x86_64"),
            ("4.15.0-rc.2", "x86_64"),
            ("4.15.0-ec.10", "x86_64"),
        ]);
        assert_found(
            &catalogue,
            &[
                ("4.14.5", "4.14.5"),
                ("4.14.6", "4.14"),
                ("4.14", "4.14"),
                ("4.14.0-rc.1", "4.14"),
                ("4.14-multi", "4.14"),
                ("4.13.2", "4.13.2"),
                ("4.13", "4.13.10"),
                ("4.13.99", "4.13.10"),
                ("4.15", "4.15.0-rc.2"),
            ],
        );
    }

    #[test]
    fn without_a_version_it_is_the_newest_one_before_its_release_or_not() {
        let catalogue =
            catalogue(&[("4.9", "x86_64"), ("4.16.0-ec.1", "x86_64"), ("4.14", "x86_64"), ("4.17", "s390x")]);
        for version in [None, Some("")] {
            let found = catalogue.os_image(version, CpuArchitecture::X86_64).unwrap();
            assert_eq!(found.openshift_version, "4.16.0-ec.1");
        }
        let error = catalogue.os_image(None, CpuArchitecture::Arm64).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Failed to get latest OS image for architecture arm64: No OS images are available"
        );
    }

    #[test]
    fn what_is_not_there_is_said() {
        let catalogue = catalogue(&[("4.14", "x86_64"), ("4.14.3", "x86_64")]);
        let reason =
            |version, architecture| catalogue.os_image(Some(version), architecture).unwrap_err().to_string();
        assert_eq!(
            reason("4.14", CpuArchitecture::Arm64),
            "No OS image for Openshift version 4.14 and architecture arm64: The requested CPU architecture \
             (arm64) isn't specified in OS images list"
        );
        assert_eq!(
            reason("4.15.1", CpuArchitecture::X86_64),
            "No OS image for Openshift version 4.15.1 and architecture x86_64: The requested OS image for \
             version (4.15.1) and CPU architecture (x86_64) isn't specified in OS images list"
        );
        assert_eq!(
            reason("4", CpuArchitecture::X86_64),
            "No OS image for Openshift version 4 and architecture x86_64: invalid version"
        );
        reason("4.1", CpuArchitecture::X86_64);
        reason("4.140", CpuArchitecture::X86_64);
    }

    #[test]
    fn both_names_of_arm_are_one() {
        let catalogue = catalogue(&[("4.14", "aarch64"), ("4.15", "arm64")]);
        for version in ["4.14", "4.15"] {
            let found = catalogue.os_image(Some(version), CpuArchitecture::Arm64).unwrap();
            assert_eq!(found.cpu_architecture.as_str(), "arm64");
        }
    }

    #[test]
    fn disconnected_images_have_bases_of_their_own() {
        let text = r#"[
            {"openshift_version": "4.19", "cpu_architecture": "x86_64", "url": "d", "version": "1",
             "type": "disconnected-iso"},
            {"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "f", "version": "1",
             "rootfs_url": "old"}
        ]"#;
        let catalogue = Catalogue::parse(text).unwrap();
        assert_eq!(catalogue.os_image(None, CpuArchitecture::X86_64).unwrap().url, "f");
        assert_eq!(catalogue.disconnected_os_image(None, CpuArchitecture::X86_64).unwrap().url, "d");
        assert!(catalogue.os_image(Some("4.19"), CpuArchitecture::X86_64).is_err());
    }

    #[test]
    fn an_image_may_have_a_digest_that_it_has_to_have() {
        let digest = Digest::of(b"image");
        let element = |sha256: serde_json::Value| json!([{"openshift_version": "4.14", "cpu_architecture": "x86_64", "url": "u", "version": "1", "sha256": sha256}]);
        let read = |sha256| {
            Catalogue::parse(&element(sha256).to_string()).map(|catalogue| catalogue.os_images()[0].sha256)
        };
        assert_eq!(read(json!(digest.to_string().to_uppercase())).unwrap(), Some(digest));
        assert_eq!(read(json!(null)).unwrap(), None);
        assert_eq!(read(json!("")).unwrap(), None);
        let error = read(json!("abc")).unwrap_err().to_string();
        assert_eq!(
            error,
            "OS_IMAGES: [0].sha256 is wrong: \"abc\" is no SHA-256: expected 64 hexadecimal digits"
        );

        let image = Catalogue::parse(&element(json!(digest.to_string())).to_string()).unwrap();
        let value = serde_json::to_value(&image.os_images()[0]).unwrap();
        assert_eq!(value["sha256"], digest.to_string());
        assert_eq!(serde_json::from_value::<OsImage>(value).unwrap(), image.os_images()[0]);
    }

    #[test]
    fn a_mistake_in_the_list_is_named() {
        let with = |key: &str, value: serde_json::Value| {
            let mut second = json!({"openshift_version": "4.14", "cpu_architecture": "x86_64", "url": "u", "version": "1"});
            let first = second.clone();
            second[key] = value;
            json!([first, second]).to_string()
        };
        for (text, reason) in [
            (String::new(), "OS_IMAGES: OS_IMAGES list is empty"),
            ("[]".to_owned(), "OS_IMAGES: No OS images provided"),
            ("[1]".to_owned(), "OS_IMAGES: [0] must be an object"),
            (with("url", json!(null)), "OS_IMAGES: [1].url is missing"),
            (with("version", json!("")), "OS_IMAGES: [1].version is missing"),
            (with("version", json!(4)), "OS_IMAGES: [1].version must be a string"),
            (
                with("openshift_version", json!("4")),
                "OS_IMAGES: [1].openshift_version is \"4\", which is no version",
            ),
            (
                with("cpu_architecture", json!("mips")),
                "OS_IMAGES: [1].cpu_architecture is \"mips\", which is no processor",
            ),
            (
                with("type", json!("minimal-iso")),
                "OS_IMAGES: [1].type is \"minimal-iso\"; it may be full-iso or disconnected-iso",
            ),
        ] {
            assert_eq!(Catalogue::parse(&text).unwrap_err().to_string(), reason);
        }
        let error = Catalogue::parse("[{]").unwrap_err().to_string();
        assert!(error.starts_with("OS_IMAGES: ") && error.contains("line 1"), "{error}");
    }
}

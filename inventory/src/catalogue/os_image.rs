//! The catalogue of base images. Its lists have the formats of the Assisted Installer's variables `OS_IMAGES`,
//! `RELEASE_IMAGES` and `IGNORED_OPENSHIFT_VERSIONS`.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use assisted::architecture::{CpuArchitecture, ImageType};
use discovery::BaseImageEntry;
use ignition::discovery::{HttpUrl, InputError};
use isogen::Digest;
use serde::{Deserialize, Deserializer, Serialize};

use super::Version;
use super::error::{CatalogueError, CatalogueList};
use super::list::CatalogueElement;
use super::release_image::ReleaseImage;

/// Maximum number of characters in the version of a base image. With prefix and suffix, the name of the image file then
/// stays below the limit of 255 bytes in file systems.
pub const MAX_IMAGE_VERSION_LEN: usize = 150;

/// A base image of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsImage {
    /// The OpenShift version that the image is for: `4.14`, `4.14.3`, or a pre-release.
    #[serde(deserialize_with = "version")]
    pub openshift_version: String,
    /// The CPU architecture that the image is for.
    pub cpu_architecture: CpuArchitecture,
    /// The location to download the image from.
    pub url: String,
    /// The version of the image, such as `418.94.1`.
    pub version: String,
    /// The type of artifacts created from the image: full and minimal ISOs, or disconnected ISOs.
    #[serde(rename = "type", default)]
    pub image_type: ImageType,
    /// The expected SHA-256 digest, if the operator provides it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_digest")]
    pub sha256: Option<Digest>,
}

impl OsImage {
    /// Returns the parsed OpenShift version.
    ///
    /// # Errors
    ///
    /// Returns an error if `openshift_version` is not a version.
    pub fn parsed_version(&self) -> Result<Version, CatalogueError> {
        Version::parse(&self.openshift_version).ok_or_else(|| CatalogueError::InvalidVersion {
            version: self.openshift_version.clone(),
            architecture: self.cpu_architecture,
        })
    }

    /// Returns the URL of the image's root file system on an image service.
    ///
    /// # Errors
    ///
    /// Returns an error if the version of the image cannot be part of a URL.
    pub fn rootfs_url(&self, image_service: &HttpUrl) -> Result<HttpUrl, InputError> {
        let base = image_service.as_str().trim_end_matches('/');
        let Self { cpu_architecture, version, .. } = self;
        let url = format!("{base}/boot-artifacts/rootfs?arch={cpu_architecture}&version={version}");
        HttpUrl::parse("rootfs_url", &url)
    }

    /// Returns the data of this image that image revisions depend on.
    #[must_use]
    pub fn revision_entry(&self) -> BaseImageEntry<'_> {
        BaseImageEntry {
            version: &self.version,
            architecture: self.cpu_architecture.as_str(),
            url: &self.url,
            sha256: self.sha256,
        }
    }

    /// Returns `true` if the version is safe as part of a file name.
    #[must_use]
    pub fn has_safe_version(&self) -> bool {
        let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+~".contains(&byte);
        let len = self.version.len();
        (1..=MAX_IMAGE_VERSION_LEN).contains(&len) && self.version.bytes().all(is_harmless)
    }
}

/// Returns the base image selected by a version in the URL of an image: the image with exactly this version, otherwise
/// the image for this OpenShift version. Disconnected ISOs have separate base images.
pub fn os_image_in_url<'a, T: Borrow<OsImage>>(
    images: &'a [T],
    (version, architecture): (&str, CpuArchitecture),
    image_type: ImageType,
) -> Option<&'a T> {
    let matching = || {
        images.iter().filter(move |image| {
            let image: &OsImage = (*image).borrow();
            image.cpu_architecture == architecture && image.image_type == image_type
        })
    };
    let by_own = matching().find(|image| (*image).borrow().version == version);
    by_own.or_else(|| matching().find(|image| (*image).borrow().openshift_version == version))
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match Version::parse(&text) {
        Some(_) => Ok(text),
        None => Err(serde::de::Error::custom(format_args!("{text:?} is not a valid version"))),
    }
}

/// Reads a digest in hexadecimal, or null.
fn read_digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Digest>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
}

/// The configured images and releases.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    os_images: Vec<OsImage>,
    pub(super) releases: Vec<ReleaseImage>,
    pub(super) ignored: BTreeSet<String>,
}

/// The keys of an image. Lists for old Assisted Installer releases contain `rootfs_url`, which has no effect.
const OS_IMAGE_KEYS: [&str; 7] =
    ["openshift_version", "cpu_architecture", "url", "version", "type", "sha256", "rootfs_url"];

impl Catalogue {
    /// Parses a list of images in the format of the Assisted Installer's `OS_IMAGES`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a valid list or if the list is empty.
    pub fn parse(os_images: &str) -> Result<Self, CatalogueError> {
        if os_images.trim().is_empty() {
            return Err(CatalogueList::OsImages.error("the list is empty"));
        }
        let os_images = CatalogueList::OsImages.read(os_images, read_os_image)?;
        if os_images.is_empty() {
            return Err(CatalogueList::OsImages.error("No OS images provided"));
        }
        Ok(Self { os_images, ..Self::default() })
    }

    /// Appends images to the list.
    #[must_use]
    pub fn with_os_images(mut self, more: impl IntoIterator<Item = OsImage>) -> Self {
        self.os_images.extend(more);
        self
    }

    /// Returns all images.
    #[must_use]
    pub fn os_images(&self) -> &[OsImage] {
        &self.os_images
    }

    /// Returns the image that hosts boot for a version: the image for exactly this version, otherwise the image for its
    /// minor version, otherwise the newest image within the minor version. Without a version, returns the newest image.
    ///
    /// # Errors
    ///
    /// Returns an error if no image matches, or if the text or an image of the catalogue has an invalid version.
    pub fn os_image(
        &self,
        version: Option<&str>,
        architecture: CpuArchitecture,
    ) -> Result<&OsImage, CatalogueError> {
        // Skip the separate base images of disconnected ISOs.
        let of_machine = |image: &&OsImage| {
            image.cpu_architecture == architecture && image.image_type != ImageType::Disconnected
        };
        let images = || self.os_images.iter().filter(of_machine);
        let Some(version) = version.filter(|version| !version.is_empty()) else {
            return newest_image(images())?.ok_or(CatalogueError::NoOsImages(architecture));
        };
        let none =
            |reason: String| CatalogueError::NoOsImage { version: version.to_owned(), architecture, reason };
        if images().next().is_none() {
            return Err(none(format!(
                "The requested CPU architecture ({architecture}) isn't specified in OS images list"
            )));
        }
        let requested = Version::parse(version).ok_or_else(|| none("invalid version".to_owned()))?;
        let exactly = |key: &str| images().find(|image| image.openshift_version == key);
        if let Some(image) = exactly(version).or_else(|| exactly(&minor_text(&requested))) {
            return Ok(image);
        }
        let mut within = Vec::new();
        for image in images() {
            if image.parsed_version()?.minor() == requested.minor() {
                within.push(image);
            }
        }
        newest_image(within)?.ok_or_else(|| {
            none(format!(
                "The requested OS image for version ({version}) and CPU architecture ({architecture}) isn't \
                 specified in OS images list"
            ))
        })
    }
}

/// Returns the first image of the newest version.
fn newest_image<'a>(
    images: impl IntoIterator<Item = &'a OsImage>,
) -> Result<Option<&'a OsImage>, CatalogueError> {
    let mut best: Option<(Version, &OsImage)> = None;
    for image in images {
        let version = image.parsed_version()?;
        if best.as_ref().is_none_or(|(newest, _)| version > *newest) {
            best = Some((version, image));
        }
    }
    Ok(best.map(|(_, image)| image))
}

/// Returns the text of a minor version, such as `4.14`.
pub(super) fn minor_text(version: &Version) -> String {
    let (major, minor) = version.minor();
    format!("{major}.{minor}")
}

fn read_os_image(element: &CatalogueElement<'_>) -> Result<OsImage, CatalogueError> {
    element.require_known_keys(&OS_IMAGE_KEYS)?;
    let openshift_version = element.text("openshift_version")?;
    if Version::parse(openshift_version).is_none() {
        return Err(element.error(
            "openshift_version",
            format_args!("is {openshift_version:?}, which is not a valid version"),
        ));
    }
    let image_type = match element.optional("type")? {
        None | Some("full-iso") => ImageType::Full,
        Some("disconnected-iso") => ImageType::Disconnected,
        Some(other) => {
            let reason = format_args!("is {other:?}; expected full-iso or disconnected-iso");
            return Err(element.error("type", reason));
        }
    };
    let sha256 = element.optional_text("sha256")?.map(str::parse).transpose();
    let sha256 = sha256.map_err(|error| element.error("sha256", format_args!("is invalid: {error}")))?;
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
        for (version, expected) in cases {
            let image = catalogue.os_image(Some(version), CpuArchitecture::X86_64).unwrap();
            assert_eq!(image.openshift_version, *expected, "for {version}");
        }
    }

    #[test]
    fn keys_of_images_are_case_insensitive() {
        let list = r#"[{"OpenShift_Version": "4.14", "CPU_Architecture": "x86_64", "URL": "http://a/b.iso", "Version": "1"}]"#;
        assert_eq!(Catalogue::parse(list).unwrap().os_images()[0].url, "http://a/b.iso");
    }

    #[test]
    fn os_image_prefers_exact_version_then_minor_version() {
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
    fn os_image_without_version_is_newest_including_prereleases() {
        let catalogue =
            catalogue(&[("4.9", "x86_64"), ("4.16.0-ec.1", "x86_64"), ("4.14", "x86_64"), ("4.17", "s390x")]);
        for version in [None, Some("")] {
            let image = catalogue.os_image(version, CpuArchitecture::X86_64).unwrap();
            assert_eq!(image.openshift_version, "4.16.0-ec.1");
        }
        let error = catalogue.os_image(None, CpuArchitecture::Arm64).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Failed to get latest OS image for architecture arm64: No OS images are available"
        );
    }

    #[test]
    fn os_image_error_names_the_reason() {
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
        for version in ["4.14-", "4.14.0.1", "4.14-a b", "v4.14", "latest"] {
            assert!(reason(version, CpuArchitecture::X86_64).ends_with(": invalid version"), "{version}");
        }
        reason("4.1", CpuArchitecture::X86_64);
        reason("4.140", CpuArchitecture::X86_64);
    }

    #[test]
    fn image_with_an_invalid_version_is_an_error() {
        let valid = catalogue(&[("4.14", "x86_64"), ("4.16.1", "x86_64")]);
        let mut image = valid.os_images()[0].clone();
        image.openshift_version = "latest".to_owned();
        let catalogue = valid.with_os_images([image.clone()]);
        for version in [None, Some("4.16"), Some("4.17")] {
            let error = catalogue.os_image(version, CpuArchitecture::X86_64).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the OS image for architecture x86_64 has the invalid OpenShift version \"latest\"",
                "{version:?}"
            );
        }
        let stored = serde_json::to_value(&image).unwrap();
        let error = serde_json::from_value::<OsImage>(stored).unwrap_err();
        assert_eq!(error.to_string(), "\"latest\" is not a valid version");
    }

    #[test]
    fn aarch64_equals_arm64() {
        let catalogue = catalogue(&[("4.14", "aarch64"), ("4.15", "arm64")]);
        for version in ["4.14", "4.15"] {
            let image = catalogue.os_image(Some(version), CpuArchitecture::Arm64).unwrap();
            assert_eq!(image.cpu_architecture.as_str(), "arm64");
        }
    }

    #[test]
    fn disconnected_images_are_not_used_for_other_artifacts() {
        let text = r#"[
            {"openshift_version": "4.19", "cpu_architecture": "x86_64", "url": "d", "version": "1",
             "type": "disconnected-iso"},
            {"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "f", "version": "1",
             "rootfs_url": "old"}
        ]"#;
        let catalogue = Catalogue::parse(text).unwrap();
        assert_eq!(catalogue.os_image(None, CpuArchitecture::X86_64).unwrap().url, "f");
        assert!(catalogue.os_image(Some("4.19"), CpuArchitecture::X86_64).is_err());
    }

    #[test]
    fn sha256_is_optional_and_case_insensitive() {
        let digest = Digest::from_data(b"image");
        let element = |sha256: serde_json::Value| json!([{"openshift_version": "4.14", "cpu_architecture": "x86_64", "url": "u", "version": "1", "sha256": sha256}]);
        let read = |sha256| {
            Catalogue::parse(&element(sha256).to_string()).map(|catalogue| catalogue.os_images()[0].sha256)
        };
        assert_eq!(read(json!(digest.to_string().to_uppercase())).unwrap(), Some(digest));
        assert_eq!(read(json!(null)).unwrap(), None);
        assert_eq!(read(json!("")).unwrap_err().to_string(), "base image 1: sha256 is empty");
        let error = read(json!("abc")).unwrap_err().to_string();
        assert_eq!(
            error,
            "base image 1: sha256 is invalid: invalid SHA-256 digest \"abc\": expected 64 hexadecimal digits"
        );

        let image = Catalogue::parse(&element(json!(digest.to_string())).to_string()).unwrap();
        let value = serde_json::to_value(&image.os_images()[0]).unwrap();
        assert_eq!(value["sha256"], digest.to_string());
        assert_eq!(serde_json::from_value::<OsImage>(value).unwrap(), image.os_images()[0]);
    }

    #[test]
    fn rejects_invalid_lists() {
        let with = |key: &str, value: serde_json::Value| {
            let mut second = json!({"openshift_version": "4.14", "cpu_architecture": "x86_64", "url": "u", "version": "1"});
            let first = second.clone();
            second[key] = value;
            json!([first, second]).to_string()
        };
        for (text, reason) in [
            (String::new(), "list of base images: the list is empty"),
            ("[]".to_owned(), "list of base images: No OS images provided"),
            ("[1]".to_owned(), "base image 1: must be an object"),
            (with("url", json!(null)), "base image 2: url is missing"),
            (with("version", json!("")), "base image 2: version is missing"),
            (with("version", json!(4)), "base image 2: version must be a string"),
            (
                with("sha-256", json!("")),
                "base image 2: sha-256 is not a known key (did you mean sha256?); known keys are openshift_version, cpu_architecture, url, \
                 version, type, sha256, rootfs_url",
            ),
            (with("Version", json!("2")), "base image 2: Version is set twice"),
            (
                with("openshift_version", json!("4")),
                "base image 2: openshift_version is \"4\", which is not a valid version",
            ),
            (
                with("cpu_architecture", json!("mips")),
                "base image 2: cpu_architecture is \"mips\", which is not a known CPU architecture",
            ),
            (
                with("type", json!("minimal-iso")),
                "base image 2: type is \"minimal-iso\"; expected full-iso or disconnected-iso",
            ),
        ] {
            assert_eq!(Catalogue::parse(&text).unwrap_err().to_string(), reason);
        }
        let error = Catalogue::parse("[{]").unwrap_err().to_string();
        assert!(error.starts_with("list of base images: ") && error.contains("line 1"), "{error}");
    }
}

//! The location of a base image: a URL on a server, an object in a bucket, or a local file.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::Url;

/// The location of a base image. `Display` and `Debug` omit the parts that may contain credentials: user, password and
/// query parameters.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ImageLocation {
    Http(Url),
    Bucket {
        bucket: String,
        key: String,
    },
    /// A file on this machine. The library uses it in place and does not copy it.
    File(PathBuf),
}

/// The error for a URL or path that is not a valid location of a base image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid URL of a base image: {0}; expected an http:, https:, s3: or file: URL, or a path")]
pub struct ImageLocationError(String);

impl ImageLocation {
    pub(super) fn parse(text: &str) -> Result<Self, ImageLocationError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return if text.is_empty() {
                Err(ImageLocationError("empty".to_owned()))
            } else {
                Ok(Self::from_path(text))
            };
        };
        let refused = |what: &str| ImageLocationError(format!("{scheme}: {what}"));
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {
                let url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
                if url.has_host() { Ok(Self::Http(url)) } else { Err(refused("no host")) }
            }
            "file" => {
                let url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
                url.to_file_path().map(Self::File).map_err(|()| refused("unexpected host"))
            }
            "s3" => match rest.split_once('/') {
                Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
                    Ok(Self::Bucket { bucket: bucket.to_owned(), key: key.to_owned() })
                }
                _ => Err(refused("no bucket or no key")),
            },
            _ => Err(ImageLocationError(format!("{}:", scheme.chars().take(40).collect::<String>()))),
        }
    }

    fn from_path(path: &str) -> Self {
        Self::File(Path::new(path).to_owned())
    }
}

/// Returns the URL without user, password, query and fragment.
pub(super) fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // URLs for which these calls fail have no user or password.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

impl fmt::Display for ImageLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => f.write_str(&without_credentials(url)),
            Self::Bucket { bucket, key } => write!(f, "s3://{bucket}/{key}"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Debug for ImageLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls_and_paths_and_hides_credentials() {
        for (text, shown) in [
            (
                "https://user:s3cret@mirror.example/a/b.iso?token=s3cret#s3cret",
                "https://mirror.example/a/b.iso",
            ),
            ("HTTP://mirror.example:8080/b.iso", "http://mirror.example:8080/b.iso"),
            ("s3://bucket/a/b.iso", "s3://bucket/a/b.iso"),
            ("file:///srv/my%20image.iso", "/srv/my image.iso"),
            ("/srv/b.iso", "/srv/b.iso"),
            ("b.iso", "b.iso"),
        ] {
            let location = ImageLocation::parse(text).unwrap();
            assert_eq!(location.to_string(), shown);
            assert_eq!(format!("{location:?}"), shown);
        }
    }

    #[test]
    fn rejects_other_locations_without_showing_credentials() {
        for text in [
            "",
            "ftp://user:s3cret@host/b.iso",
            "http://",
            "https://user:s3cret@",
            "http://user:s3cret@host:99999/b.iso",
            "file://host/b.iso",
            "s3://bucket",
            "s3:///key",
        ] {
            let error = ImageLocation::parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with("invalid URL of a base image") && !error.contains("s3cret"),
                "{text}: {error}"
            );
        }
    }
}

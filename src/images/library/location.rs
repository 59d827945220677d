//! Where an image comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::Url;

/// Where an image comes from. As text, it is without credentials: no user, no password, no parameters.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Location {
    /// A server.
    Http(Url),
    /// An object in a bucket.
    Bucket {
        /// The name of the bucket.
        bucket: String,
        /// The name of the object.
        key: String,
    },
    /// A file on this machine, which is used where it is: a link or a copy of gigabytes would say nothing more about it,
    /// and whoever put it there decides how long it stays.
    File(PathBuf),
}

/// A URL that is none of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("images are at http:, https:, s3: and file: URLs and at paths, not at {0}")]
pub struct LocationError(String);

impl Location {
    pub(super) fn parse(text: &str) -> Result<Self, LocationError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return if text.is_empty() {
                Err(LocationError("an empty one".to_owned()))
            } else {
                Ok(Self::file(text))
            };
        };
        let refused = |what: &str| LocationError(format!("{scheme}: {what}"));
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {
                let url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
                if url.has_host() { Ok(Self::Http(url)) } else { Err(refused("without a host")) }
            }
            "file" => {
                let url = Url::parse(text).map_err(|error| refused(&error.to_string()))?;
                url.to_file_path().map(Self::File).map_err(|()| refused("with a host"))
            }
            "s3" => match rest.split_once('/') {
                Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
                    Ok(Self::Bucket { bucket: bucket.to_owned(), key: key.to_owned() })
                }
                _ => Err(refused("without a bucket and a key")),
            },
            _ => Err(LocationError(format!("{}:", scheme.chars().take(40).collect::<String>()))),
        }
    }

    fn file(path: &str) -> Self {
        Self::File(Path::new(path).to_owned())
    }
}

/// A URL without what gives access.
pub(super) fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // URLs that cannot have them have none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => f.write_str(&without_credentials(url)),
            Self::Bucket { bucket, key } => write!(f, "s3://{bucket}/{key}"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_on_servers_in_buckets_and_in_files() {
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
            let location = Location::parse(text).unwrap();
            assert_eq!(location.to_string(), shown);
            assert_eq!(format!("{location:?}"), shown);
        }
    }

    #[test]
    fn other_places_are_refused_without_their_credentials() {
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
            let error = Location::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("images are at") && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}

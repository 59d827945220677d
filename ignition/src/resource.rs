//! Contents carried inside a config: gzip in a base64 `data:` URL.
//!
//! ```text
//! {"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/..."}
//! ```
//!
//! The gzip header holds no time and no name (`1F 8B 08 00`, four zero bytes), says "best compression" (`02`) and
//! "unknown system" (`FF`), so equal contents give equal sources. They are deflated by the library that
//! `coreos-installer` uses, so that both programs make the same config of the same input.

use std::fmt;
use std::io::{self, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Crc;
use flate2::read::GzDecoder;
use ignition_config::v3_3::Resource;

use crate::validate::url;

/// What every source that this module writes begins with.
const DATA_PREFIX: &str = "data:;base64,";

/// The value of a resource's `compression` key.
const GZIP: &str = "gzip";

/// Most bytes that [`decode`] unpacks. An embed area holds 256 KiB, so honest contents stay far below; a deflate
/// stream of that size could otherwise grow a thousandfold.
pub const MAX_DECODED_LEN: usize = 64 << 20;

/// Why contents could not be taken out of a resource.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The resource does not carry its contents in the form that this module writes.
    #[error("the resource source {found} does not start with \"data:;base64,\"")]
    NotInline {
        /// The beginning of the source, or what is there instead.
        found: Beginning,
    },
    /// The resource names a compression other than gzip.
    #[error("the resource compression {found:?} is not \"gzip\"")]
    UnknownCompression {
        /// The compression that is named.
        found: String,
    },
    /// The source is not a valid `data:` URL.
    #[error("the source is not a valid data URL")]
    Url(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The data URL is not valid base64.
    #[error("the data URL is not valid base64")]
    Base64(#[source] base64::DecodeError),
    /// The gzip stream is damaged.
    #[error("the compressed contents are damaged")]
    Decompress(#[source] io::Error),
    /// The contents are larger than [`MAX_DECODED_LEN`].
    #[error("the contents unpack to more than {MAX_DECODED_LEN} bytes")]
    TooLarge,
}

/// The first characters of a source, fit for an error message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning(String);

impl Beginning {
    const MAX_CHARS: usize = 40;

    fn of(source: Option<&str>) -> Self {
        Self(match source {
            None => "(none)".to_owned(),
            Some(text) => format!("{:?}", text.chars().take(Self::MAX_CHARS).collect::<String>()),
        })
    }
}

impl fmt::Display for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Packs contents into a resource.
///
/// # Examples
///
/// ```
/// let resource = ignition::resource::encode(b"hello\n");
/// assert!(resource.source.as_deref().is_some_and(|s| s.starts_with("data:;base64,H4sIAAAAAAAC/")));
/// assert_eq!(ignition::resource::decode(&resource)?, b"hello\n");
/// # Ok::<(), ignition::resource::ResourceError>(())
/// ```
#[must_use]
pub fn encode(contents: &[u8]) -> Resource {
    Resource {
        source: Some(format!("{DATA_PREFIX}{}", BASE64.encode(gzip(contents)))),
        compression: Some(GZIP.to_owned()),
        ..Resource::default()
    }
}

/// No time, no name, best compression, unknown system.
const GZIP_HEADER: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 0xFF];
/// The strongest level that gzip knows.
const LEVEL: u8 = 9;

pub(crate) fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut checksum = Crc::new();
    checksum.update(contents);
    let deflated = miniz_oxide::deflate::compress_to_vec(contents, LEVEL);
    [&GZIP_HEADER, deflated.as_slice(), &checksum.sum().to_le_bytes(), &checksum.amount().to_le_bytes()]
        .concat()
}

/// Takes the contents out of a resource that [`encode`] could have written, compressed or not.
///
/// # Errors
///
/// When the source is anything but a plain base64 data URL, when it is damaged, and when it unpacks to more than
/// [`MAX_DECODED_LEN`].
pub fn decode(resource: &Resource) -> Result<Vec<u8>, ResourceError> {
    let source = resource.source.as_deref();
    let Some(text) = source.and_then(|s| s.strip_prefix(DATA_PREFIX)) else {
        return Err(ResourceError::NotInline { found: Beginning::of(source) });
    };
    unpack(BASE64.decode(text).map_err(ResourceError::Base64)?, resource.compression.as_deref())
}

fn unpack(packed: Vec<u8>, compression: Option<&str>) -> Result<Vec<u8>, ResourceError> {
    match compression {
        None | Some("") => Ok(packed),
        Some(GZIP) => gunzip(&packed, MAX_DECODED_LEN),
        Some(other) => Err(ResourceError::UnknownCompression { found: other.to_owned() }),
    }
}

/// Takes the contents out of a `data:` URL of any form, unpacked if they are compressed.
///
/// # Errors
///
/// When the source is no valid `data:` URL, and as [`decode`] does.
///
/// # Examples
///
/// ```
/// assert_eq!(ignition::resource::contents("data:,a%20b", None)?, b"a b");
/// # Ok::<(), ignition::resource::ResourceError>(())
/// ```
pub fn contents(source: &str, compression: Option<&str>) -> Result<Vec<u8>, ResourceError> {
    unpack(url::decode(source).map_err(|error| ResourceError::Url(Box::new(error)))?, compression)
}

/// Unpacks a gzip stream of at most so many bytes.
pub(crate) fn gunzip(packed: &[u8], max_len: usize) -> Result<Vec<u8>, ResourceError> {
    let mut contents = Vec::new();
    let limit = u64::try_from(max_len).unwrap_or(u64::MAX).saturating_add(1);
    let read =
        GzDecoder::new(packed).take(limit).read_to_end(&mut contents).map_err(ResourceError::Decompress)?;
    if read > max_len {
        return Err(ResourceError::TooLarge);
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn raw(resource: &Resource) -> Vec<u8> {
        let source = resource.source.as_deref().unwrap();
        BASE64.decode(source.strip_prefix(DATA_PREFIX).unwrap()).unwrap()
    }

    #[test]
    fn the_header_names_neither_time_nor_file_nor_system() {
        let resource = encode(b"anything");
        assert_eq!(raw(&resource)[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn the_json_has_two_keys_in_this_order() {
        let json = serde_json::to_string(&encode(b"")).unwrap();
        let source = "H4sIAAAAAAAC/wMAAAAAAAAAAAA=";
        assert_eq!(json, format!(r#"{{"compression":"gzip","source":"data:;base64,{source}"}}"#));
    }

    #[test]
    fn foreign_resources_are_refused() {
        let with = |source: Option<&str>, compression: Option<&str>| Resource {
            source: source.map(str::to_owned),
            compression: compression.map(str::to_owned),
            ..Resource::default()
        };
        let error = |resource| decode(&resource).unwrap_err().to_string();
        assert!(error(with(None, None)).contains("(none)"));
        assert!(error(with(Some("https://example.com/a"), None)).contains("https://example.com/a"));
        assert!(error(with(Some("data:;base64,AAAA"), Some("xz"))).contains("\"xz\""));
        assert!(error(with(Some("data:;base64,!"), None)).contains("base64"));
        assert!(error(with(Some("data:;base64,AAAA"), Some("gzip"))).contains("damaged"));
        assert_eq!(decode(&with(Some("data:;base64,aGk="), None)).unwrap(), b"hi");
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let len = MAX_DECODED_LEN;
        let bomb = encode(&vec![0; len + 1]);
        assert!(matches!(decode(&bomb), Err(ResourceError::TooLarge)));
        let largest = encode(&vec![0; len]);
        assert_eq!(decode(&largest).unwrap().len(), len);
    }

    proptest! {
        #[test]
        fn contents_survive(contents in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let resource = encode(&contents);
            prop_assert_eq!(decode(&resource).unwrap(), contents);
        }
    }
}

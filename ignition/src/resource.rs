//! Encodes and decodes inline contents of a config, which are `data:` URLs.
//!
//! ```text
//! {"compression":"gzip","source":"data:;base64,H4sIAAAAAAAC/..."}      compressed
//! {"source":"data:,plain%20text"}                                      plain
//! ```
//!
//! The gzip header contains no time and no name (`1F 8B 08 00`, four zero bytes), the flag "best compression" (`02`)
//! and the system "unknown" (`FF`), so equal contents have equal sources. The compression library is `miniz_oxide`, as
//! in `coreos-installer`, so both programs generate the same config from the same input.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Crc;
use flate2::read::GzDecoder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::json::Json;

/// Characters to escape in the data of a `data:` URL: all except letters, digits and harmless punctuation.
const ESCAPED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b':')
    .remove(b'=')
    .remove(b'@')
    .remove(b'/')
    .remove(b',')
    .remove(b';')
    .remove(b'!')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The reason why a gzip stream cannot be decompressed.
#[derive(Debug)]
pub(crate) enum GunzipError {
    /// The stream is damaged.
    Damaged,
    /// The contents are larger than the limit.
    TooLarge,
}

/// Returns a resource with compressed contents.
pub(crate) fn compressed_resource(contents: &[u8]) -> Json {
    let source = format!("data:;base64,{}", BASE64.encode(gzip(contents)));
    Json::object([("compression", "gzip".into()), ("source", source.into())])
}

/// Returns a resource with uncompressed contents. A compressed resource would break an override that changes only the
/// source of a file, because the override would inherit the `compression`.
pub(crate) fn plain_resource(contents: &[u8]) -> Json {
    Json::object([("source", data_url(contents).into())])
}

/// Returns contents as a `data:` URL. Text remains readable and compresses well. Other bytes are base64.
pub(crate) fn data_url(contents: &[u8]) -> String {
    match std::str::from_utf8(contents) {
        Ok(text) => {
            let mut url = String::with_capacity(text.len() + text.len() / 2);
            url.push_str("data:,");
            url.extend(utf8_percent_encode(text, ESCAPED_CHARACTERS));
            url
        }
        Err(_) => format!("data:;base64,{}", BASE64.encode(contents)),
    }
}

/// The gzip header without time and name, for best compression on an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 0xFF];
/// The highest compression level of gzip.
const COMPRESSION_LEVEL: u8 = 9;

pub(crate) fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut checksum = Crc::new();
    checksum.update(contents);
    let deflated = miniz_oxide::deflate::compress_to_vec(contents, COMPRESSION_LEVEL);
    [&GZIP_HEADER, deflated.as_slice(), &checksum.sum().to_le_bytes(), &checksum.amount().to_le_bytes()]
        .concat()
}

/// Decompresses a gzip stream. Returns an error if the contents are longer than `max_len` bytes.
pub(crate) fn gunzip(packed: &[u8], max_len: usize) -> Result<Vec<u8>, GunzipError> {
    let mut decoder = GzDecoder::new(packed);
    let mut contents = Vec::new();
    // On supported platforms, `usize` always fits into `u64`.
    let limit = u64::try_from(max_len).map_err(|_| GunzipError::TooLarge)?;
    decoder.by_ref().take(limit).read_to_end(&mut contents).map_err(|_| GunzipError::Damaged)?;
    match decoder.read(&mut [0]) {
        Ok(0) => Ok(contents),
        Ok(_) => Err(GunzipError::TooLarge),
        Err(_) => Err(GunzipError::Damaged),
    }
}

/// Returns the contents of a `data:` URL in any form. It decompresses compressed contents.
#[cfg(test)]
pub(crate) fn decode_contents(source: &str, compression: Option<&str>) -> Vec<u8> {
    let bytes = crate::validate::url::decode_data_url(source).unwrap();
    if compression == Some("gzip") { gunzip(&bytes, 1 << 20).unwrap() } else { bytes }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(resource: &Json) -> &str {
        resource.get("source").and_then(Json::as_text).unwrap()
    }

    #[test]
    fn gzip_header_has_no_time_no_file_name_and_no_system() {
        assert_eq!(gzip(b"anything")[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn compressed_resource_has_compression_then_source() {
        let json = serde_json::to_string(&compressed_resource(b"")).unwrap();
        let source = "H4sIAAAAAAAC/wMAAAAAAAAAAAA=";
        assert_eq!(json, format!(r#"{{"compression":"gzip","source":"data:;base64,{source}"}}"#));
    }

    #[test]
    fn text_stays_readable_and_bytes_are_base64() {
        assert_eq!(data_url(b"a=b\nc"), "data:,a=b%0Ac");
        assert_eq!(
            data_url("-_.~$&+:=@/,;!*'()\"%\u{e4}\0".as_bytes()),
            "data:,-_.~$&+:=@/,;!*'()%22%25%C3%A4%00"
        );
        assert_eq!(data_url(&[0xFF]), "data:;base64,/w==");
    }

    #[test]
    fn gzip_bomb_stops_at_the_limit() {
        let packed = gzip(&vec![0; 1000]);
        assert_eq!(gunzip(&packed, 1000).unwrap().len(), 1000);
        assert!(matches!(gunzip(&packed, 999), Err(GunzipError::TooLarge)));
        assert!(matches!(gunzip(&packed[..packed.len() - 9], 1000), Err(GunzipError::Damaged)));
    }

    proptest! {
        #[test]
        fn contents_round_trip_with_and_without_compression(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
            prop_assert_eq!(&decode_contents(source(&compressed_resource(&bytes)), Some("gzip")), &bytes);
            prop_assert_eq!(decode_contents(source(&plain_resource(&bytes)), None), bytes);
        }

        #[test]
        fn text_round_trips_through_a_data_url(text: String) {
            prop_assert_eq!(decode_contents(&data_url(text.as_bytes()), None), text.into_bytes());
        }
    }
}

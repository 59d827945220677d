//! Decodes the contents of files in a config, without the code under test.

#![allow(dead_code, reason = "not every test program needs all of it")]

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::GzDecoder;
use ignition::config::Config;
use percent_encoding::percent_decode_str;

/// Returns the contents of a resource whose source is a `data:` URL.
pub(crate) fn decode(source: &str, compression: Option<&str>) -> Vec<u8> {
    let (header, data) = source.strip_prefix("data:").unwrap().split_once(',').unwrap();
    let bytes = match header.strip_suffix(";base64") {
        Some(_) => BASE64.decode(data).unwrap(),
        None => percent_decode_str(data).collect(),
    };
    if compression != Some("gzip") {
        return bytes;
    }
    let mut contents = Vec::new();
    GzDecoder::new(bytes.as_slice()).read_to_end(&mut contents).unwrap();
    contents
}

/// Returns the contents of a file in a config, including the appended parts.
pub(crate) fn contents(config: &Config, path: &str) -> Option<Vec<u8>> {
    let root = config.to_value();
    let file = root["storage"]["files"].as_array()?.iter().find(|file| file["path"] == path)?;
    let parts = std::iter::once(&file["contents"]).chain(file["append"].as_array().into_iter().flatten());
    let sources = parts.filter_map(|part| part["source"].as_str());
    Some(sources.flat_map(|source| decode(source, None)).collect())
}

//! Serializes bits as base64 text in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(bits: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD_NO_PAD.encode(bits))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    // The decoder may reserve more memory than it needs, so the unused part is dropped.
    STANDARD_NO_PAD.decode(text).map(Vec::into_boxed_slice).map(Vec::from).map_err(D::Error::custom)
}

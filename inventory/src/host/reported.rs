//! Reports of agents, parsed from JSON into types.
//!
//! Agents are not trusted. Their JSON is parsed into the types below: unknown keys are ignored, the length of lists is
//! limited, and values of a wrong type are refused. A report is stored as it is serialized from these types.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::api::{ApiError, to_json_text};

/// The most items of a list in a report. An item of two bytes of JSON may take hundreds of bytes in memory.
const MAX_ITEMS: usize = 16 << 10;

/// Parses a report.
pub(super) fn read<T: DeserializeOwned>(what: &str, report: &str) -> Result<T, ApiError> {
    if has_nul(report) {
        return Err(ApiError::bad(format!("{what}: a text must not contain a NUL character")));
    }
    serde_json::from_str(report).map_err(|error| ApiError::bad(format!("{what}: {error}")))
}

/// Returns `true` if a string of the JSON contains a NUL. Valid JSON contains it only as an escape.
fn has_nul(json: &str) -> bool {
    let mut rest = json;
    while let Some((_, escape)) = rest.split_once('\\') {
        if escape.starts_with("u0000") {
            return true;
        }
        let mut after = escape.chars();
        after.next();
        rest = after.as_str();
    }
    false
}

/// Serializes a parsed report.
pub(super) fn write<T: Serialize>(what: &str, report: &T) -> Result<String, ApiError> {
    to_json_text(&format!("the report {what}"), report)
}

/// A value that is omitted from JSON if it is empty, as with Go's `omitempty`.
pub(super) trait OmitEmpty {
    /// Returns `true` if the value is omitted.
    fn is_omitted(&self) -> bool;
}

impl OmitEmpty for String {
    fn is_omitted(&self) -> bool {
        self.is_empty()
    }
}

impl OmitEmpty for bool {
    fn is_omitted(&self) -> bool {
        !self
    }
}

impl OmitEmpty for i64 {
    fn is_omitted(&self) -> bool {
        *self == 0
    }
}

impl OmitEmpty for f64 {
    fn is_omitted(&self) -> bool {
        *self == 0.0
    }
}

impl<T> OmitEmpty for Option<T> {
    fn is_omitted(&self) -> bool {
        self.is_none()
    }
}

/// A list. It is never omitted: a missing list is written as null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T>(pub(crate) Option<Vec<T>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> OmitEmpty for List<T> {
    fn is_omitted(&self) -> bool {
        false
    }
}

impl<T> List<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        if let Some(items) = &mut self.0 {
            items.retain(keep);
        }
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items(PhantomData)).map(|items| Self(Some(items)))
    }
}

/// The visitor of a list's items.
struct Items<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX_ITEMS}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MAX_ITEMS {
                return Err(serde::de::Error::invalid_length(MAX_ITEMS + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}

/// Reads a value, with null as the default.
pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a struct from a JSON object, never from an array, and matches keys without case, as Go does.
pub(super) struct ObjectOnly<D>(pub(super) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(CaseFolding { fields, inner: visitor })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Renames keys that differ from a field by case alone to that field. It wraps the visitor of the struct, the map's
/// access and the seed of each key, so that a report is read in one pass without a copy of its keys.
struct CaseFolding<T> {
    fields: &'static [&'static str],
    inner: T,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for CaseFolding<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(CaseFolding { fields: self.fields, inner: map })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for CaseFolding<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(FoldedKey { fields: self.fields, seed })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// The seed of one key.
struct FoldedKey<K> {
    fields: &'static [&'static str],
    seed: K,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for FoldedKey<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for FoldedKey<K> {
    type Value = K::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<K::Value, E> {
        let field = self.fields.iter().find(|field| field.eq_ignore_ascii_case(key));
        self.seed.deserialize(field.map_or(key, |field| *field).into_deserializer())
    }
}

/// Defines types of reports. Each field may be absent or null, and empty fields are omitted.
macro_rules! reported {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, remote = "Self")]
        pub(crate) struct $name {
            $(
                $(#[$of_field])*
                #[serde(
                    deserialize_with = "crate::host::reported::null_as_default",
                    skip_serializing_if = "crate::host::reported::OmitEmpty::is_omitted"
                )]
                pub(crate) $field: $type,
            )*
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize($crate::host::reported::ObjectOnly(deserializer))
            }
        }

        /// An object is written even if all of its fields are empty.
        impl crate::host::reported::OmitEmpty for $name {
            fn is_omitted(&self) -> bool {
                false
            }
        }
    )+};
}
pub(super) use reported;

reported! {
    /// The reply of `ntp-synchronizer`.
    NtpReport {
        ntp_sources: List<NtpSource>,
    }

    /// A time server.
    NtpSource {
        source_name: String,
        source_state: String,
    }

    /// The reply of `connectivity-check`.
    ConnectivityReport {
        remote_hosts: List<RemoteHost>,
    }

    /// Connectivity to another host.
    RemoteHost {
        host_id: String,
        l2_connectivity: List<LinkReport>,
        l3_connectivity: List<PingReport>,
        mtu_report: List<MtuReport>,
    }

    /// Result of an L2 check: whether a host is on the same link.
    LinkReport {
        outgoing_nic: String,
        outgoing_ip_address: String,
        remote_ip_address: String,
        remote_mac: String,
        successful: bool,
    }

    /// Result of an L3 check: whether a host answers a ping.
    PingReport {
        outgoing_nic: String,
        remote_ip_address: String,
        successful: bool,
        average_rtt_ms: f64,
        packet_loss_percentage: f64,
    }

    /// Result of an MTU check: whether large packets reach a host.
    MtuReport {
        outgoing_nic: String,
        remote_ip_address: String,
        mtu_successful: bool,
    }

    /// Free addresses of a network, an item of the reply of `free-network-addresses`.
    FreeNetwork {
        network: String,
        free_addresses: List<String>,
    }

    /// The reply of `domain-resolution`.
    DomainReport {
        resolutions: List<DomainResolution>,
    }

    /// Result of a DNS lookup.
    DomainResolution {
        domain_name: String,
        ipv4_addresses: List<String>,
        ipv6_addresses: List<String>,
        cnames: List<String>,
    }

    /// The reply of `api-vip-connectivity-check`.
    ApiVipReport {
        is_success: bool,
        url: String,
        download_error: String,
        ignition: String,
    }

    /// The reply of `tang-connectivity-check`.
    TangReport {
        is_success: bool,
        tang_server_response: List<TangServer>,
    }

    /// Response of a Tang server.
    TangServer {
        tang_url: String,
        payload: String,
        signatures: List<TangSignature>,
    }

    /// A signature in the response of a Tang server.
    TangSignature {
        protected: String,
        signature: String,
    }

    /// The reply of `container-image-availability`.
    ImagesReport {
        images: List<ImageReport>,
    }

    /// Availability of a container image, and the speed of its download.
    ImageReport {
        name: String,
        result: String,
        size_bytes: f64,
        time: f64,
        download_rate: f64,
    }

    /// The reply of `installation-disk-speed-check`.
    DiskSpeedReport {
        path: String,
        io_sync_duration: i64,
    }

    /// The reply of `upgrade-agent`.
    UpgradeReport {
        agent_image: String,
        result: String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_dropped_and_null_is_the_default() {
        let text = r#"{"colour": {"of": ["x"]}, "ntp_sources": [{"source_name": "a", "source_state": null, "x": 1}]}"#;
        let report: NtpReport = read("ntp", text).unwrap();
        assert_eq!(write("ntp", &report).unwrap(), r#"{"ntp_sources":[{"source_name":"a"}]}"#);
        assert_eq!(
            write("ntp", &read::<NtpReport>("ntp", "{}").unwrap()).unwrap(),
            r#"{"ntp_sources":null}"#
        );
    }

    #[test]
    fn keys_match_without_case() {
        let text =
            r#"{"NTP_Sources": [{"SOURCE_NAME": "a", "Source_State": "synced", "\u0053ource_Other": 1}]}"#;
        let report: NtpReport = read("ntp", text).unwrap();
        assert_eq!(
            write("ntp", &report).unwrap(),
            r#"{"ntp_sources":[{"source_name":"a","source_state":"synced"}]}"#
        );
    }

    #[test]
    fn rejects_lists_with_too_many_items() {
        let items = |count: usize| format!(r#"{{"ntp_sources": [{}]}}"#, vec!["{}"; count].join(","));
        read::<NtpReport>("ntp", &items(MAX_ITEMS)).unwrap();
        let refusal = read::<NtpReport>("ntp", &items(MAX_ITEMS + 1)).unwrap_err();
        assert!(refusal.reason().contains("invalid length 16385"), "{refusal}");
    }

    #[test]
    fn rejects_strings_with_nul() {
        for (text, is_valid) in [
            (r#"{"ntp_sources": [{"source_name": "\u0000"}]}"#, false),
            (r#"{"ntp_sources": [{"source_name": "\\\u0000"}]}"#, false),
            (r#"{"\u0000": 1}"#, false),
            (r#"{"ntp_sources": [{"source_name": "\\u0000 \n\u0001"}]}"#, true),
        ] {
            assert_eq!(read::<NtpReport>("ntp", text).is_ok(), is_valid, "{text}");
        }
    }

    #[test]
    fn rejects_invalid_reports() {
        for text in [
            "",
            "[]",
            "null",
            "{",
            r#"{"ntp_sources": [null]}"#,
            r#"{"ntp_sources": [["a"]]}"#,
            r#"{"ntp_sources": {}}"#,
        ] {
            assert!(read::<NtpReport>("ntp", text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(read::<NtpReport>("ntp", &format!(r#"{{"x": {deep}"#)).is_err());
    }
}

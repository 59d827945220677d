//! What agents report, read from their JSON into types.
//!
//! An agent may be anybody. What it says is read straight into the types below: a key that nobody knows is passed over, a
//! list has an end, and a value of another type is refused. What is kept is written anew from the types.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::api_error::ApiError;

/// What a list in a report may have at most. An item may be two bytes of JSON and hundreds in memory.
const MOST_ITEMS: usize = 16 << 10;

/// Reads a report.
pub(super) fn read<T: DeserializeOwned>(what: &str, report: &str) -> Result<T, ApiError> {
    if has_nul(report) {
        return Err(ApiError::bad(format!("{what}: a text must not have a NUL")));
    }
    serde_json::from_str(report).map_err(|error| ApiError::bad(format!("{what}: {error}")))
}

/// Whether a text of JSON has a NUL, which can only be there with an escape.
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

/// Writes what was read.
pub(super) fn write<T: Serialize>(report: &T) -> String {
    // Reports are made of texts, numbers and lists: these always have a JSON form.
    serde_json::to_string(report).unwrap_or_default()
}

/// A value that is not written when it says nothing.
pub(super) trait Absent {
    fn is_absent(&self) -> bool;
}

impl Absent for String {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for bool {
    fn is_absent(&self) -> bool {
        !self
    }
}

impl Absent for i64 {
    fn is_absent(&self) -> bool {
        *self == 0
    }
}

impl Absent for f64 {
    fn is_absent(&self) -> bool {
        *self == 0.0
    }
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// A list: always written, as null if it was never there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T>(pub(crate) Option<Vec<T>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Absent for List<T> {
    fn is_absent(&self) -> bool {
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

struct Items<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST_ITEMS}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MOST_ITEMS {
                return Err(serde::de::Error::invalid_length(MOST_ITEMS + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}

/// Null is as good as nothing.
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

/// Makes types of reports: everything may be absent or null, and what says nothing is not written.
macro_rules! reported {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, remote = "Self")]
        pub(crate) struct $name {
            $(
                $(#[$of_field])*
                #[serde(
                    deserialize_with = "crate::inventory::host::reported::null_as_default",
                    skip_serializing_if = "crate::inventory::host::reported::Absent::is_absent"
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
                Self::deserialize($crate::inventory::host::reported::ObjectOnly(deserializer))
            }
        }

        /// A part is written also if all that it has says nothing.
        impl crate::inventory::host::reported::Absent for $name {
            fn is_absent(&self) -> bool {
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

    /// How another host is reached.
    RemoteHost {
        host_id: String,
        l2_connectivity: List<LinkReport>,
        l3_connectivity: List<PingReport>,
        mtu_report: List<MtuReport>,
    }

    /// Whether a host is on the same link.
    LinkReport {
        outgoing_nic: String,
        outgoing_ip_address: String,
        remote_ip_address: String,
        remote_mac: String,
        successful: bool,
    }

    /// Whether a host answers.
    PingReport {
        outgoing_nic: String,
        remote_ip_address: String,
        successful: bool,
        average_rtt_ms: f64,
        packet_loss_percentage: f64,
    }

    /// Whether large packets reach a host.
    MtuReport {
        outgoing_nic: String,
        remote_ip_address: String,
        mtu_successful: bool,
    }

    /// An item of the reply of `free-network-addresses`.
    FreeNetwork {
        network: String,
        free_addresses: List<String>,
    }

    /// The reply of `domain-resolution`.
    DomainReport {
        resolutions: List<DomainResolution>,
    }

    /// What a name is resolved to.
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

    /// What a server answered.
    TangServer {
        tang_url: String,
        payload: String,
        signatures: List<TangSignature>,
    }

    /// A signature of a server.
    TangSignature {
        protected: String,
        signature: String,
    }

    /// The reply of `container-image-availability`.
    ImagesReport {
        images: List<ImageReport>,
    }

    /// Whether an image could be fetched, and how fast.
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
    fn what_nobody_knows_is_dropped_and_null_is_nothing() {
        let text = r#"{"colour": {"of": ["x"]}, "ntp_sources": [{"source_name": "a", "source_state": null, "x": 1}]}"#;
        let report: NtpReport = read("ntp", text).unwrap();
        assert_eq!(write(&report), r#"{"ntp_sources":[{"source_name":"a"}]}"#);
        assert_eq!(write(&read::<NtpReport>("ntp", "{}").unwrap()), r#"{"ntp_sources":null}"#);
    }

    #[test]
    fn keys_match_without_case() {
        let text =
            r#"{"NTP_Sources": [{"SOURCE_NAME": "a", "Source_State": "synced", "\u0053ource_Other": 1}]}"#;
        let report: NtpReport = read("ntp", text).unwrap();
        assert_eq!(write(&report), r#"{"ntp_sources":[{"source_name":"a","source_state":"synced"}]}"#);
    }

    #[test]
    fn lists_have_an_end() {
        let items = |count: usize| format!(r#"{{"ntp_sources": [{}]}}"#, vec!["{}"; count].join(","));
        read::<NtpReport>("ntp", &items(MOST_ITEMS)).unwrap();
        let refusal = read::<NtpReport>("ntp", &items(MOST_ITEMS + 1)).unwrap_err();
        assert!(refusal.reason().contains("invalid length 16385"), "{refusal}");
    }

    #[test]
    fn no_text_has_a_nul() {
        for (text, is_taken) in [
            (r#"{"ntp_sources": [{"source_name": "\u0000"}]}"#, false),
            (r#"{"ntp_sources": [{"source_name": "\\\u0000"}]}"#, false),
            (r#"{"\u0000": 1}"#, false),
            (r#"{"ntp_sources": [{"source_name": "\\u0000 \n\u0001"}]}"#, true),
        ] {
            assert_eq!(read::<NtpReport>("ntp", text).is_ok(), is_taken, "{text}");
        }
    }

    #[test]
    fn what_is_no_report_is_refused() {
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

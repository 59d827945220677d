//! Reports of agents, parsed from JSON into types.
//!
//! Agents are not trusted. Their JSON is parsed into the types below: unknown keys are ignored, the length of lists is
//! limited, and values of a wrong type are refused. A report is stored as it is serialized from these types.
//!
//! A report has more than a thousand short texts, so a parsed report borrows them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::json::to_json_text;

/// Maximum number of items of a list in a report. An item of two bytes of JSON may take hundreds of bytes in memory.
const MAX_ITEMS: usize = 16 << 10;

/// Parses a report.
pub(crate) fn read<'a, T: Deserialize<'a>>(what: &str, report: &'a str) -> Result<T, Error> {
    if has_nul(report) {
        return Err(Error::invalid(format!("{what}: a text must not contain a NUL character")));
    }
    serde_json::from_str(report).map_err(|error| Error::invalid(format!("{what}: {error}")))
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
pub(crate) fn write<T: Serialize>(what: &str, report: &T) -> Result<String, Error> {
    to_json_text(&format!("the report {what}"), report)
}

/// A value that is omitted from JSON if it is empty, as with Go's `omitempty`.
pub(crate) trait OmitEmpty {
    /// Returns `true` if the value is omitted.
    fn is_omitted(&self) -> bool;
}

/// A text of a report. It is part of the report, or a copy if the report has escapes in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl OmitEmpty for Text<'_> {
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
pub(crate) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a struct from a JSON object, never from an array, and matches keys without case, as Go does.
pub(crate) struct ObjectOnly<D>(pub(crate) D);

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

/// Defines types of reports. Each field may be absent or null, and empty fields are omitted. A type with the lifetime
/// `'a` borrows its texts from the report.
macro_rules! reported {
    (@type $(#[$doc:meta])* $name:ident, [$($generics:tt)*], [$($de:tt)*], $(#[$bound:meta])? {
        $($(#[$of_field:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, remote = "Self")]
        $(#[$bound])?
        pub(crate) struct $name $($generics)* {
            $(
                $(#[$of_field])*
                #[serde(
                    deserialize_with = "crate::host::reported::null_as_default",
                    skip_serializing_if = "crate::host::reported::OmitEmpty::is_omitted"
                )]
                pub(crate) $field: $type,
            )*
        }

        impl $($generics)* serde::Serialize for $name $($generics)* {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<$($de)*> serde::Deserialize<'de> for $name $($generics)* {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize($crate::host::reported::ObjectOnly(deserializer))
            }
        }

        /// An object is written even if all of its fields are empty.
        impl $($generics)* crate::host::reported::OmitEmpty for $name $($generics)* {
            fn is_omitted(&self) -> bool {
                false
            }
        }
    };
    (@type $(#[$doc:meta])* $name:ident<'a> $fields:tt) => {
        crate::host::reported::reported! {
            @type $(#[$doc])* $name, [<'a>], ['de: 'a, 'a], #[serde(bound(deserialize = "'de: 'a"))] $fields
        }
    };
    (@type $(#[$doc:meta])* $name:ident $fields:tt) => {
        crate::host::reported::reported! { @type $(#[$doc])* $name, [], ['de], $fields }
    };
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($fields:tt)* })+) => {$(
        crate::host::reported::reported! { @type $(#[$doc])* $name $(<$life>)? { $($fields)* } }
    )+};
}
pub(crate) use reported;

reported! {
    /// The reply of `ntp-synchronizer`.
    NtpReport<'a> {
        ntp_sources: List<NtpSource<'a>>,
    }

    /// A time server.
    NtpSource<'a> {
        source_name: Text<'a>,
        source_state: Text<'a>,
    }

    /// The reply of `connectivity-check`.
    ConnectivityReport<'a> {
        remote_hosts: List<RemoteHost<'a>>,
    }

    /// Connectivity to another host.
    RemoteHost<'a> {
        host_id: Text<'a>,
        l2_connectivity: List<LinkReport<'a>>,
        l3_connectivity: List<PingReport<'a>>,
        mtu_report: List<MtuReport<'a>>,
    }

    /// Result of an L2 check: whether a host is on the same link.
    LinkReport<'a> {
        outgoing_nic: Text<'a>,
        outgoing_ip_address: Text<'a>,
        remote_ip_address: Text<'a>,
        remote_mac: Text<'a>,
        successful: bool,
    }

    /// Result of an L3 check: whether a host answers a ping.
    PingReport<'a> {
        outgoing_nic: Text<'a>,
        remote_ip_address: Text<'a>,
        successful: bool,
        average_rtt_ms: f64,
        packet_loss_percentage: f64,
    }

    /// Result of an MTU check: whether large packets reach a host.
    MtuReport<'a> {
        outgoing_nic: Text<'a>,
        remote_ip_address: Text<'a>,
        mtu_successful: bool,
    }

    /// Free addresses of a network, an item of the reply of `free-network-addresses`.
    FreeNetwork<'a> {
        network: Text<'a>,
        free_addresses: List<Text<'a>>,
    }

    /// The reply of `domain-resolution`.
    DomainReport<'a> {
        resolutions: List<DomainResolution<'a>>,
    }

    /// Result of a DNS lookup.
    DomainResolution<'a> {
        domain_name: Text<'a>,
        ipv4_addresses: List<Text<'a>>,
        ipv6_addresses: List<Text<'a>>,
        cnames: List<Text<'a>>,
    }

    /// The reply of `api-vip-connectivity-check`.
    ApiVipReport<'a> {
        is_success: bool,
        url: Text<'a>,
        download_error: Text<'a>,
        ignition: Text<'a>,
    }

    /// The reply of `tang-connectivity-check`.
    TangReport<'a> {
        is_success: bool,
        tang_server_response: List<TangServer<'a>>,
    }

    /// Response of a Tang server.
    TangServer<'a> {
        tang_url: Text<'a>,
        payload: Text<'a>,
        signatures: List<TangSignature<'a>>,
    }

    /// A signature in the response of a Tang server.
    TangSignature<'a> {
        protected: Text<'a>,
        signature: Text<'a>,
    }

    /// The reply of `container-image-availability`.
    ImagesReport<'a> {
        images: List<ImageReport<'a>>,
    }

    /// Availability of a container image, and the speed of its download.
    ImageReport<'a> {
        name: Text<'a>,
        result: Text<'a>,
        size_bytes: f64,
        time: f64,
        download_rate: f64,
    }

    /// The reply of `installation-disk-speed-check`.
    DiskSpeedReport<'a> {
        path: Text<'a>,
        io_sync_duration: i64,
    }

    /// The reply of `upgrade-agent`.
    UpgradeReport<'a> {
        agent_image: Text<'a>,
        result: Text<'a>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_dropped_and_null_is_the_default() {
        let text = r#"{"colour": {"of": ["x"]}, "ntp_sources": [{"source_name": "a", "source_state": null, "x": 1}]}"#;
        let report: NtpReport<'_> = read("ntp", text).unwrap();
        assert_eq!(write("ntp", &report).unwrap(), r#"{"ntp_sources":[{"source_name":"a"}]}"#);
        assert_eq!(
            write("ntp", &read::<NtpReport<'_>>("ntp", "{}").unwrap()).unwrap(),
            r#"{"ntp_sources":null}"#
        );
    }

    #[test]
    fn texts_with_escapes_are_copied() {
        let text = r#"{"ntp_sources": [{"source_name": "a\n\u00e9", "source_state": "é"}]}"#;
        let report: NtpReport<'_> = read("ntp", text).unwrap();
        let source = report.ntp_sources.iter().next().unwrap();
        assert_eq!((&*source.source_name, &*source.source_state), ("a\né", "é"));
        assert!(matches!((&source.source_name.0, &source.source_state.0), (Cow::Owned(_), Cow::Borrowed(_))));
        assert_eq!(
            write("ntp", &report).unwrap(),
            r#"{"ntp_sources":[{"source_name":"a\né","source_state":"é"}]}"#
        );
    }

    #[test]
    fn keys_match_without_case() {
        let text =
            r#"{"NTP_Sources": [{"SOURCE_NAME": "a", "Source_State": "synced", "\u0053ource_Other": 1}]}"#;
        let report: NtpReport<'_> = read("ntp", text).unwrap();
        assert_eq!(
            write("ntp", &report).unwrap(),
            r#"{"ntp_sources":[{"source_name":"a","source_state":"synced"}]}"#
        );
    }

    #[test]
    fn rejects_lists_with_too_many_items() {
        let items = |count: usize| format!(r#"{{"ntp_sources": [{}]}}"#, vec!["{}"; count].join(","));
        read::<NtpReport<'_>>("ntp", &items(MAX_ITEMS)).unwrap();
        let refusal = read::<NtpReport<'_>>("ntp", &items(MAX_ITEMS + 1)).unwrap_err();
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
            assert_eq!(read::<NtpReport<'_>>("ntp", text).is_ok(), is_valid, "{text}");
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
            assert!(read::<NtpReport<'_>>("ntp", text).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(read::<NtpReport<'_>>("ntp", &format!(r#"{{"x": {deep}"#)).is_err());
    }
}

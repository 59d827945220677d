//! Reports of agents, parsed from JSON into types.
//!
//! Agents are not trusted. Their JSON is parsed into the types below: unknown keys are ignored, the length of lists is
//! limited, and values of a wrong type are refused. A report is stored as it is serialized from these types.
//!
//! A report has more than a thousand short texts, so a parsed report borrows them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

pub(crate) use assisted::List;
use assisted::wire::Absent;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Error;
use crate::json::to_json_text;

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

impl Absent for Text<'_> {
    fn is_absent(&self) -> bool {
        self.is_empty()
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
                    deserialize_with = "assisted::wire::null_as_default",
                    skip_serializing_if = "assisted::wire::Absent::is_absent"
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
                Self::deserialize(assisted::wire::ObjectOnly(deserializer))
            }
        }

        /// An object is written even if all of its fields are empty.
        impl $($generics)* assisted::wire::Absent for $name $($generics)* {
            fn is_absent(&self) -> bool {
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

    /// Maximum number of items of a list.
    const MAX_ITEMS: usize = 16 << 10;

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

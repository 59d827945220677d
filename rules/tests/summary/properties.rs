//! Checks with random replies that summaries stay within the memory limit and survive a round trip.

use proptest::prelude::*;
use rules::summary::limits::MAX_MEMORY;
use rules::summary::{HostSummary, MeasurementLimits, StoredSummary};
use serde_json::{Map, Value, json};

use crate::apply::apply;
use crate::golden::summary_of;

/// Texts with a meaning for at least one setter.
const TEXTS: [&str; 16] = [
    "",
    "eth0",
    "physical",
    "192.168.1.10",
    "192.168.1.10/24",
    "10.0.0.0/22",
    "fd00::1",
    "fd00::1/64",
    "NaN",
    "-inf",
    "52:54:00:00:00:01",
    "0aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a11",
    "api",
    "succeeded",
    "dm-0,dm-1",
    "{\"storage\":{\"luks\":[{\"clevis\":{\"tang\":[{\"url\":\"a\"}]}}]}}",
];

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => (0..TEXTS.len()).prop_map(|index| json!(TEXTS[index])),
        1 => any::<String>().prop_map(Value::from),
        1 => (0..5000_usize).prop_map(|len| json!("é".repeat(len))),
    ]
}

fn texts() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => prop::collection::vec(text(), 0..5).prop_map(Value::from),
        1 => (text(), 0..200_usize).prop_map(|(text, count)| json!(vec![text; count])),
        1 => Just(Value::Null),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![any::<i64>().prop_map(Value::from), (-2..300_i64).prop_map(Value::from)]
}

fn float() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::num::f64::ANY.prop_map(|value| if value.is_finite() { json!(value) } else { Value::Null }),
        (0.0..2000.0_f64).prop_map(Value::from),
    ]
}

fn flag() -> impl Strategy<Value = Value> {
    any::<bool>().prop_map(Value::from)
}

/// Generates objects with some of these keys.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> =
        fields.into_iter().map(|(key, value)| (Just(key), prop::option::of(value))).collect();
    let fields = fields.prop_map(|fields| {
        Value::Object(
            fields
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?)))
                .collect::<Map<_, _>>(),
        )
    });
    fields.boxed()
}

/// Generates lists of a few different items, or of many equal items.
fn list(item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![
        4 => prop::collection::vec(item.clone(), 0..6).prop_map(Value::from),
        1 => (item, 0..1500_usize).prop_map(|(item, count)| json!(vec![item; count])),
    ]
    .boxed()
}

fn inventory() -> BoxedStrategy<Value> {
    let text = || text().boxed();
    let disk = object(vec![
        ("id", text()),
        ("by_path", text()),
        ("name", text()),
        ("drive_type", text()),
        ("holders", text()),
        ("serial", text()),
        ("size_bytes", number().boxed()),
        ("bootable", flag().boxed()),
        ("iscsi", object(vec![("host_ip_address", text())])),
        ("installation_eligibility", object(vec![("not_eligible_reasons", texts().boxed())])),
    ]);
    let nic = object(vec![
        ("name", text()),
        ("mac_address", text()),
        ("mtu", number().boxed()),
        ("ipv4_addresses", texts().boxed()),
        ("ipv6_addresses", texts().boxed()),
        ("has_carrier", flag().boxed()),
    ]);
    let route = object(vec![
        ("destination", text()),
        ("gateway", text()),
        ("interface", text()),
        ("metric", number().boxed()),
    ]);
    object(vec![
        ("hostname", text()),
        (
            "cpu",
            object(vec![("count", number().boxed()), ("architecture", text()), ("flags", texts().boxed())]),
        ),
        ("memory", object(vec![("physical_bytes", number().boxed()), ("usable_bytes", number().boxed())])),
        ("boot", object(vec![("device_type", text()), ("secure_boot_state", text())])),
        ("system_vendor", object(vec![("manufacturer", text()), ("virtual", flag().boxed())])),
        ("truncation", object(vec![("type", text()), ("reasons", texts().boxed())])),
        ("gpus", list(object(vec![("vendor_id", text()), ("device_id", text())]))),
        ("disks", list(disk)),
        ("interfaces", list(nic)),
        ("routes", list(route)),
    ])
}

fn connectivity() -> BoxedStrategy<Value> {
    let text = || text().boxed();
    let link = object(vec![
        ("outgoing_nic", text()),
        ("remote_ip_address", text()),
        ("remote_mac", text()),
        ("successful", flag().boxed()),
    ]);
    let ping = object(vec![
        ("remote_ip_address", text()),
        ("successful", flag().boxed()),
        ("average_rtt_ms", float().boxed()),
        ("packet_loss_percentage", float().boxed()),
    ]);
    let mtu = object(vec![
        ("outgoing_nic", text()),
        ("remote_ip_address", text()),
        ("mtu_successful", flag().boxed()),
    ]);
    let host = (
        any::<u8>(),
        object(vec![
            ("l2_connectivity", list(link)),
            ("l3_connectivity", list(ping)),
            ("mtu_report", list(mtu)),
        ]),
    );
    let hosts = prop::collection::vec(host, 0..4).prop_map(|hosts| {
        let with_id = |(number, mut host): (u8, Value)| {
            host["host_id"] = json!(format!("0aa1aa6b-3ea4-4fcb-a7d4-5b3c1e2f0a{number:02x}"));
            host
        };
        json!({"remote_hosts": hosts.into_iter().map(with_id).collect::<Vec<_>>()})
    });
    hosts.boxed()
}

fn replies() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let text = || text().boxed();
    let texts = || texts().boxed();
    let name = object(vec![
        ("domain_name", text()),
        ("ipv4_addresses", texts()),
        ("ipv6_addresses", texts()),
        ("cnames", texts()),
    ]);
    let results = |item: BoxedStrategy<Value>| {
        let results = prop::collection::vec((any::<String>(), item), 0..5);
        results.prop_map(|results| Value::Object(results.into_iter().collect())).boxed()
    };
    let speed = object(vec![
        ("tested", flag().boxed()),
        ("exit_code", number().boxed()),
        ("speed_ms", number().boxed()),
    ]);
    let steps: Vec<(&str, BoxedStrategy<Value>)> = vec![
        ("inventory", inventory()),
        ("connectivity-check", connectivity()),
        ("free-network-addresses", list(object(vec![("network", text()), ("free_addresses", texts())]))),
        ("ntp-synchronizer", list(object(vec![("source_name", text()), ("source_state", text())]))),
        ("domain-resolution", object(vec![("resolutions", list(name))])),
        ("verify-vips", list(object(vec![("vip", text()), ("vip_type", text()), ("verification", text())]))),
        ("dhcp-lease-allocate", object(vec![("api_vip_address", text()), ("ingress_vip_address", text())])),
        (
            "api-vip-connectivity-check",
            object(vec![
                ("is_success", flag().boxed()),
                ("url", text()),
                ("download_error", text()),
                ("ignition", text()),
            ]),
        ),
        ("tang-connectivity-check", text()),
        ("installation-disk-speed-check", results(object(vec![("disk_speed", speed)]))),
        (
            "container-image-availability",
            results(object(vec![("result", text()), ("size_bytes", float().boxed())])),
        ),
    ];
    steps.into_iter().map(|(step, reply)| (Just(step), reply)).collect::<Vec<_>>()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_replies_have_a_bounded_summary_that_round_trips(replies in replies()) {
        let mut summary = HostSummary::default();
        for (step, reply) in &replies {
            // An invalid reply must not change the summary.
            let before = summary.clone();
            if apply(&mut summary, step, reply).is_err() {
                prop_assert_eq!(&before, &summary);
            }
        }
        prop_assert!(summary.memory_len() <= MAX_MEMORY);
        let stored = HostSummary::from_stored(&summary.to_stored().unwrap()).unwrap();
        prop_assert_eq!(&stored, &StoredSummary::Current(Box::new(summary.clone())));
        prop_assert!(summary.is_same_except_measurements(&summary.clone(), &MeasurementLimits::default()));
    }

    #[test]
    fn damaged_stored_texts_are_errors_or_summaries(at in any::<prop::sample::Index>(), byte in 0x20..0x7f_u8) {
        let stored = summary_of("odd_values.json").to_stored().unwrap();
        let mut bytes = stored.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(StoredSummary::Current(summary)) = HostSummary::from_stored(&String::from_utf8(bytes).unwrap()) {
            let again = HostSummary::from_stored(&summary.to_stored().unwrap()).unwrap();
            prop_assert_eq!(again, StoredSummary::Current(summary));
        }
    }
}

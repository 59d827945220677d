//! Tests the findings about the URL of the service in a discovery image.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isogen::initrd::IGNITION_CONFIG;
use isogen::{Archive, BaseImage, Edits, Encoding, Source};
use kindling::doctor::{CheckOutcome, DoctorCheck, DoctorFinding, DoctorOptions, DoctorReport};
use serde_json::json;

use crate::raw_server::serve_file;
use crate::support::CONFIG;
use crate::{bootable_image, checks_with_outcome, examine_url};

/// Returns an image with an Ignition config.
fn image_with_config(config: &str, encoding: Encoding) -> Vec<u8> {
    let base = BaseImage::from_source(Source::from_bytes("base", bootable_image())).unwrap();
    let mut archive = Archive::new();
    archive.insert(IGNITION_CONFIG, config.to_owned());
    let plan = base.plan(&Edits::new().archive(archive.pack(encoding).unwrap())).unwrap();
    let mut bytes = Vec::new();
    plan.write_to(&mut bytes).unwrap();
    bytes
}

/// Returns a discovery config with the URL of its service, and a file of incompressible text.
fn discovery_config(url: &str, file_len: usize) -> String {
    let unit =
        format!("[Service]\nExecStart=/usr/local/bin/agent \\\n    --url {url} \\\n    --insecure=false\n");
    let mut state = 1_u32;
    let random = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'0' + u8::try_from(state >> 26).unwrap())
    };
    let text: String = (0..file_len).map(random).filter(|it| it.is_ascii_alphanumeric()).collect();
    let file = json!({"path": "/etc/random", "contents": {"source": format!("data:,{text}")}});
    let units = json!([{"name": "agent.service", "contents": unit}]);
    json!({"ignition": {"version": "3.1.0"}, "storage": {"files": [file]}, "systemd": {"units": units}})
        .to_string()
}

/// Examines an image at a server. Returns the report and the number of requests.
fn examine_image(image: Vec<u8>) -> (DoctorReport, usize) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    let count: crate::raw_server::SharedReplyChange = Arc::new(move |_, _| {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let address = serve_file(image.leak(), count, None);
    let report = examine_url(&format!("http://{address}/full.iso"), &DoctorOptions::default());
    (report, requests.load(Ordering::SeqCst))
}

fn service_finding(report: &DoctorReport) -> Option<(CheckOutcome, &str)> {
    let finding = report.finding(DoctorCheck::ServiceUrl);
    finding.map(|DoctorFinding { outcome, detail, .. }| (*outcome, detail.as_str()))
}

#[test]
fn service_url_is_read_from_archives_of_all_encodings() {
    let config = discovery_config("http://u:hunter2@192.0.2.1:8090/x?k=hunter2", 100);
    for encoding in [Encoding::Xz, Encoding::Gzip, Encoding::Stored] {
        let (report, _) = examine_image(image_with_config(&config, encoding));
        let expected = (CheckOutcome::Holds, "http://*****@192.0.2.1:8090/x?*****");
        assert_eq!(service_finding(&report), Some(expected), "{encoding:?}: {report:#?}");
    }
}

#[test]
fn loopback_service_url_fails_but_refuses_no_client() {
    for url in ["http://127.0.0.1:8090", "https://LOCALHOST.", "http://[::]:1"] {
        let (report, _) = examine_image(image_with_config(&discovery_config(url, 100), Encoding::Xz));
        let (outcome, detail) = service_finding(&report).unwrap();
        assert_eq!(outcome, CheckOutcome::Fails);
        assert!(detail.starts_with(&format!("other machines cannot reach {url}: its host")), "{detail}");
        assert!(!report.is_refused(), "{report:#?}");
        let client = report.clients.iter().find(|client| !client.reasons.is_empty()).unwrap();
        assert!(client.reasons.iter().any(|reason| reason.check == DoctorCheck::ServiceUrl), "{report:#?}");
    }
}

#[test]
fn service_url_costs_at_most_three_requests() {
    let (_, without) = examine_image(vec![1; bootable_image().len()]);
    let (report, with) =
        examine_image(image_with_config(&discovery_config("http://a", 20_000), Encoding::Xz));
    assert_eq!(service_finding(&report), Some((CheckOutcome::Holds, "http://a")));
    assert!(with <= without + 3, "{with} requests, {without} for a file that is not an image");
}

#[test]
fn service_url_is_read_from_a_large_config_up_to_a_limit() {
    let (report, _) =
        examine_image(image_with_config(&discovery_config("http://a", 1 << 20), Encoding::Gzip));
    assert_eq!(service_finding(&report), Some((CheckOutcome::Holds, "http://a")));
    let (report, _) =
        examine_image(image_with_config(&discovery_config("http://a", 4 << 20), Encoding::Gzip));
    assert_eq!(service_finding(&report), None);
    assert_eq!(checks_with_outcome(&report, CheckOutcome::Fails), [""; 0], "{report:#?}");
}

#[test]
fn images_without_a_service_have_no_finding() {
    let (report, _) = examine_image(bootable_image().to_vec());
    assert_eq!(service_finding(&report), None);
    for config in [CONFIG, "not JSON", &discovery_config("${URL}", 100)] {
        let (report, _) = examine_image(image_with_config(config, Encoding::Xz));
        assert_eq!(service_finding(&report), None, "{config}");
    }
    // A damaged archive: the test overwrites bytes near its beginning.
    let mut image = image_with_config(&discovery_config("http://a", 100), Encoding::Xz);
    let area = BaseImage::from_source(Source::from_bytes("image", image.clone())).unwrap();
    let extent = area.ignition_area().unwrap().extent;
    let start = usize::try_from(extent.offset()).unwrap();
    image[start + 20..start + 40].fill(0xff);
    let (report, _) = examine_image(image);
    assert_eq!(service_finding(&report), None);
    // The beginning of an image whose rest is missing.
    let (report, _) = examine_image(bootable_image()[..200 << 10].to_vec());
    assert_eq!(service_finding(&report), None);
}

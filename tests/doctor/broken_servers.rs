//! Servers with one defect each. They show that every check can fail.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use kindling::doctor::{CheckOutcome, ClientVerdict, DoctorCheck, DoctorOptions};

use crate::raw_server::{DoctorRequest, DoctoredReply, SharedReplyChange, serve_file};
use crate::{bootable_image, checks_with_outcome, examine_url, refusing_clients};

/// The defect, the path of the file, the change to the responses, the failing checks, and the clients that refuse the
/// server.
type BrokenServerCase =
    (&'static str, &'static str, SharedReplyChange, &'static [&'static str], &'static [&'static str]);

const ALL_CLIENTS: &[&str] = &["bmc", "ipxe", "uefi", "qemu", "download", "rootfs"];
const READERS: &[&str] = &["bmc", "ipxe", "uefi", "qemu", "download"];
const IN_PIECES: &[&str] = &["bmc", "ipxe", "qemu"];

fn new_change(
    change: impl Fn(&DoctorRequest, &mut DoctoredReply) + Send + Sync + 'static,
) -> SharedReplyChange {
    Arc::new(change)
}

fn requested_range(request: &DoctorRequest) -> &str {
    request.header("range").and_then(|range| range.strip_prefix("bytes=")).unwrap_or_default()
}

/// Ignores `Range` headers of some form, and sends the whole file instead.
fn ignore_range_if(form: impl Fn(&str) -> bool + Send + Sync + 'static) -> SharedReplyChange {
    new_change(move |request, reply| {
        if request.header("range").is_some() && form(requested_range(request)) {
            reply.status = 200;
            reply.remove("Content-Range");
            reply.set("Content-Type", "application/octet-stream");
            reply.replace(bootable_image().to_vec());
        }
    })
}

fn length_cases() -> Vec<BrokenServerCase> {
    vec![
        ("nothing", "/full.iso", new_change(|_, _| {}), &[], &[]),
        ("no file", "/full.iso", new_change(|_, reply| reply.status(404)), &["answers"], ALL_CLIENTS),
        (
            "no length",
            "/full.iso",
            new_change(|request, reply| {
                if request.is_for_whole_file() {
                    reply.remove("Content-Length");
                    reply.closes = true;
                }
            }),
            &["length", "head-same"],
            &["bmc"],
        ),
        (
            "cut",
            "/full.iso",
            new_change(|request, reply| {
                if request.is_for_whole_file() {
                    reply.body.truncate(100_000);
                    reply.closes = true;
                }
            }),
            &["complete"],
            READERS,
        ),
        (
            "chunks",
            "/full.iso",
            new_change(|request, reply| {
                if request.is_for_whole_file() {
                    reply.remove("Content-Length");
                    reply.set("Transfer-Encoding", "chunked");
                    let mut body = format!("{:x}\r\n", reply.body.len()).into_bytes();
                    body.append(&mut reply.body);
                    body.extend_from_slice(b"\r\n0\r\n\r\n");
                    reply.body = body;
                }
            }),
            &["length", "not-chunked", "head-same", "http-1.0"],
            &["bmc"],
        ),
        (
            "compressed",
            "/full.iso",
            new_change(|_, reply| reply.set("Content-Encoding", "gzip")),
            &["identity", "identity-when-asked"],
            READERS,
        ),
        (
            "compressed if the client accepts it",
            "/full.iso",
            new_change(|request, reply| {
                if request.header("accept-encoding").is_some() {
                    reply.set("Content-Encoding", "br");
                }
            }),
            &["identity-when-asked"],
            &[],
        ),
    ]
}

fn content_type_cases() -> Vec<BrokenServerCase> {
    vec![
        (
            "headers without spaces",
            "/full.iso",
            new_change(|_, reply| reply.colon = ":"),
            &["header-form"],
            &["ipxe"],
        ),
        (
            "page",
            "/full.iso",
            new_change(|_, reply| {
                if reply.status == 200 {
                    reply.set("Content-Type", "text/html");
                }
            }),
            &["media-type"],
            &[],
        ),
        ("no suffix", "/full", new_change(|_, _| {}), &["url-suffix", "uefi-type"], &["bmc", "uefi"]),
    ]
}

fn head_cases() -> Vec<BrokenServerCase> {
    let of_head = |wrong: fn(&mut DoctoredReply)| {
        new_change(move |request, reply| {
            if request.method == "HEAD" {
                wrong(reply);
            }
        })
    };
    vec![
        (
            "no HEAD",
            "/full.iso",
            of_head(|reply| reply.status(405)),
            &["head", "head-length", "head-same", "keep-alive"],
            IN_PIECES,
        ),
        (
            "HEAD with a body",
            "/full.iso",
            of_head(|reply| reply.body_anyway = true),
            &["head", "keep-alive"],
            IN_PIECES,
        ),
        (
            "HEAD without a length",
            "/full.iso",
            of_head(|reply| reply.remove("Content-Length")),
            &["head-length", "head-same"],
            IN_PIECES,
        ),
        (
            "HEAD of another length",
            "/full.iso",
            of_head(|reply| reply.set("Content-Length", "0")),
            &["head-length", "head-same"],
            IN_PIECES,
        ),
        (
            "HEAD of another file",
            "/full.iso",
            of_head(|reply| reply.set("ETag", "\"other\"")),
            &["head-same"],
            &[],
        ),
    ]
}

fn range_cases() -> Vec<BrokenServerCase> {
    vec![
        (
            "no ranges",
            "/full.iso",
            ignore_range_if(|_| true),
            &[
                "range",
                "range-open",
                "range-suffix",
                "range-many",
                "range-64k",
                "range-behind-end",
                "if-range",
            ],
            IN_PIECES,
        ),
        (
            "silent on ranges",
            "/full.iso",
            new_change(|_, reply| reply.remove("Accept-Ranges")),
            &["accept-ranges"],
            &["qemu"],
        ),
        (
            "ranges without an end",
            "/full.iso",
            ignore_range_if(|range| range.ends_with('-') && range != "2097152-"),
            &["range-open"],
            &[],
        ),
        ("suffixes", "/full.iso", ignore_range_if(|range| range.starts_with('-')), &["range-suffix"], &[]),
        ("several ranges", "/full.iso", ignore_range_if(|range| range.contains(',')), &["range-many"], &[]),
        (
            "ranges beyond the end",
            "/full.iso",
            ignore_range_if(|range| range == "2097152-"),
            &["range-behind-end"],
            &[],
        ),
        (
            "416 without a length",
            "/full.iso",
            new_change(|_, reply| {
                if reply.status == 416 {
                    reply.remove("Content-Range");
                }
            }),
            &["range-behind-end"],
            &[],
        ),
    ]
}

fn wrong_range_cases() -> Vec<BrokenServerCase> {
    vec![
        (
            "ranges of 16 bits",
            "/full.iso",
            new_change(|_, reply| {
                if reply.status == 206 && reply.body.len() > 65_535 {
                    let len = reply.body.len() % 65_536;
                    reply.replace(reply.body[..len].to_vec());
                }
            }),
            &["range-64k"],
            &["bmc", "qemu"],
        ),
        (
            "wrong bytes in long ranges",
            "/full.iso",
            new_change(|_, reply| {
                if reply.status == 206 && reply.body.len() == 65_536 {
                    reply.body[65_535] ^= 1;
                }
            }),
            &["range-64k"],
            &["bmc", "qemu"],
        ),
        (
            "ranges that say something else",
            "/full.iso",
            new_change(|_, reply| {
                if reply.status == 206 {
                    reply.set("Content-Range", "bytes 0-0/1");
                }
            }),
            &["range", "range-open", "range-suffix", "range-64k", "if-range"],
            IN_PIECES,
        ),
    ]
}

fn condition_cases() -> Vec<BrokenServerCase> {
    vec![
        (
            "no validators",
            "/full.iso",
            new_change(|_, reply| {
                reply.remove("ETag");
                reply.remove("Last-Modified");
            }),
            &["validator", "if-range", "if-none-match"],
            &[],
        ),
        (
            "deaf to If-Range",
            "/full.iso",
            new_change(|request, reply| {
                if request.header("if-range").is_some() && reply.status == 200 {
                    reply.status = 206;
                    reply.set("Content-Range", "bytes 0-99/2097152");
                    reply.replace(bootable_image()[..100].to_vec());
                }
            }),
            &["if-range"],
            &[],
        ),
        (
            "deaf to If-None-Match",
            "/full.iso",
            new_change(|_, reply| {
                if reply.status == 304 {
                    reply.status = 200;
                    reply.replace(bootable_image().to_vec());
                }
            }),
            &["if-none-match"],
            &[],
        ),
        (
            "deaf to HTTP/1.0",
            "/full.iso",
            new_change(|request, reply| {
                if request.version == "HTTP/1.0" {
                    reply.status(505);
                }
            }),
            &["http-1.0"],
            &[],
        ),
        (
            "no expectations",
            "/full.iso",
            new_change(|request, reply| {
                if request.header("expect").is_some() {
                    reply.status(417);
                }
            }),
            &["expect"],
            &[],
        ),
        ("one request each", "/full.iso", new_change(|_, reply| reply.closes = true), &["keep-alive"], &[]),
    ]
}

fn body_cases() -> Vec<BrokenServerCase> {
    let changing = {
        let count = AtomicUsize::new(0);
        new_change(move |request, reply| {
            if request.is_for_whole_file() && reply.status == 200 {
                let count = u8::try_from(count.fetch_add(1, Ordering::Relaxed)).unwrap();
                reply.body[190_000] = count;
            }
        })
    };
    let tags = {
        let count = AtomicUsize::new(0);
        new_change(move |request, reply| {
            if request.is_for_whole_file() && reply.status == 200 {
                reply.set("ETag", &format!("\"{}\"", count.fetch_add(1, Ordering::Relaxed)));
            }
        })
    };
    let slow = {
        let count = AtomicUsize::new(0);
        new_change(move |_, _| {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                thread::sleep(Duration::from_millis(5200));
            }
        })
    };
    let crowded = {
        let inside = AtomicUsize::new(0);
        new_change(move |request, reply| {
            // Handle only the ranges that the doctor requests concurrently: they are 2048 bytes long and close their
            // connections.
            if reply.body.len() != 2048 || request.header("connection") != Some("close") {
                return;
            }
            inside.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(400));
            if inside.load(Ordering::SeqCst) > 1 {
                reply.body.fill(0xee);
            }
            thread::sleep(Duration::from_millis(400));
            inside.fetch_sub(1, Ordering::SeqCst);
        })
    };
    vec![
        ("another image each time", "/full.iso", changing, &["same-bytes"], READERS),
        (
            "another tag each time",
            "/full.iso",
            tags,
            &["head-same", "if-range", "if-none-match", "same-bytes"],
            READERS,
        ),
        ("late", "/full.iso", slow, &["first-byte"], &["qemu"]),
        ("one at a time", "/full.iso", crowded, &["concurrent"], &["bmc", "qemu"]),
    ]
}

fn redirect_cases() -> Vec<BrokenServerCase> {
    let to = |location: &'static str| {
        new_change(move |request: &DoctorRequest, reply: &mut DoctoredReply| {
            if request.path != "/there.iso" {
                reply.status(302);
                reply.set("Location", location);
            }
        })
    };
    vec![
        ("elsewhere", "/full.iso", to("/there.iso"), &["not-redirected"], &["bmc"]),
        ("in circles", "/full.iso", to("/full.iso"), &["redirects-end", "not-redirected"], ALL_CLIENTS),
        (
            "nowhere",
            "/full.iso",
            to("ftp://127.0.0.1/there.iso"),
            &["redirects-end", "not-redirected"],
            ALL_CLIENTS,
        ),
        (
            "elsewhere without ranges",
            "/full.iso",
            new_change(|request, reply| match request.path.as_str() {
                "/there.iso" => {}
                _ if request.header("range").is_some() => reply.status(400),
                _ => {
                    reply.status(302);
                    reply.set("Location", "/there.iso");
                }
            }),
            &["not-redirected", "redirect-ranges"],
            &["bmc"],
        ),
    ]
}

/// Checks of certificates, of the URL itself and of the service URL, which have their own tests.
const ELSEWHERE: &[DoctorCheck] = &[
    DoctorCheck::UrlShort,
    DoctorCheck::UrlWithoutQuery,
    DoctorCheck::UrlWithoutPassword,
    DoctorCheck::UrlWithoutToken,
    DoctorCheck::UrlUsualPort,
    DoctorCheck::UrlAddress,
    DoctorCheck::UrlEncrypted,
    DoctorCheck::UrlUnencrypted,
    DoctorCheck::Reachable,
    DoctorCheck::CertificateTrusted,
    DoctorCheck::CertificateName,
    DoctorCheck::CertificateDates,
    DoctorCheck::CertificateLasts,
    DoctorCheck::CertificateRsa,
    DoctorCheck::Tls12,
    DoctorCheck::RedirectScheme,
    DoctorCheck::Content,
    DoctorCheck::ServiceUrl,
];

#[test]
fn every_check_can_fail() {
    let cases = [
        length_cases(),
        content_type_cases(),
        head_cases(),
        range_cases(),
        wrong_range_cases(),
        condition_cases(),
        body_cases(),
        redirect_cases(),
    ]
    .into_iter()
    .flatten();
    let checked: Vec<_> = cases
        .map(|(name, path, change, failing, refused)| {
            thread::spawn(move || {
                let url = format!("http://{}{path}", serve_file(bootable_image(), change, None));
                let report = examine_url(&url, &DoctorOptions::default());
                assert_eq!(checks_with_outcome(&report, CheckOutcome::Fails), failing, "{name}: {report:#?}");
                assert_eq!(
                    checks_with_outcome(&report, CheckOutcome::Untried),
                    [""; 0],
                    "{name}: {report:#?}"
                );
                assert_eq!(refusing_clients(&report), refused, "{name}: {report:#?}");
                failing
            })
        })
        .collect();
    let mut failed: BTreeSet<&str> = BTreeSet::new();
    let mut wrong = 0;
    for case in checked {
        match case.join() {
            Ok(failing) => failed.extend(failing),
            Err(_) => wrong += 1,
        }
    }
    assert_eq!(wrong, 0, "cases failed");
    let expected = DoctorCheck::ALL.iter().filter(|check| !ELSEWHERE.contains(check));
    let missing: Vec<&str> =
        expected.map(|check| check.name()).filter(|name| !failed.contains(name)).collect();
    assert!(missing.is_empty(), "no case fails the checks {missing:?}");
}

#[test]
fn problems_of_the_url_are_reported() {
    let address = serve_file(bootable_image(), no_change(), None);
    let long = format!("/{}/full.iso", "a".repeat(255));
    let password = format!("http://core:secret@{address}/full.iso");
    for (url, failing, refused) in [
        (format!("http://{address}{long}"), &["url-short"][..], &["bmc"][..]),
        (format!("http://{address}/full.iso?arch=x86_64"), &["url-without-query"], &["bmc"]),
        (
            format!("http://{address}/full.iso?api_key=secret"),
            &["url-without-query", "url-without-token"],
            &["bmc"],
        ),
        (format!("http://{address}/byapikey/secret/full.iso"), &["url-without-token"], &[]),
        (password, &["url-without-password"], &["bmc"]),
        (format!("http://localhost:{}/full.iso", address.port()), &["url-address"], &[]),
    ] {
        let report = examine_url(&url, &DoctorOptions::default());
        assert_eq!(checks_with_outcome(&report, CheckOutcome::Fails), failing, "{url}");
        assert_eq!(refusing_clients(&report), refused, "{url}");
        assert!(!serde_json::to_string(&report).unwrap().contains("secret"), "{url}");
    }
    let report = examine_url("http://127.0.0.1:9/full.iso", &DoctorOptions::default());
    assert_eq!(checks_with_outcome(&report, CheckOutcome::Fails), ["reachable"]);
    assert_eq!(refusing_clients(&report), ALL_CLIENTS);
}

fn no_change() -> SharedReplyChange {
    new_change(|_, _| {})
}

/// A volume without a boot record, a login page, and zeros.
#[test]
fn file_that_no_client_boots_fails_content() {
    let mut data = bootable_image().to_vec();
    data[17 * 2048 + 7] = b'e';
    let page = b"<html>Please log in</html>".to_vec();
    for file in [data, page, vec![0; 300_000]] {
        let address = serve_file(file.leak(), no_change(), None);
        let report = examine_url(&format!("http://{address}/full.iso"), &DoctorOptions::default());
        assert_eq!(checks_with_outcome(&report, CheckOutcome::Fails), ["content"], "{report:#?}");
        assert_eq!(refusing_clients(&report), ["bmc", "ipxe", "uefi", "qemu", "rootfs"]);
    }
}

#[test]
fn file_for_other_clients_is_not_a_failure() {
    static SCRIPT: &[u8] = b"#!ipxe\nboot\n";
    let address = serve_file(SCRIPT, no_change(), None);
    let report = examine_url(&format!("http://{address}/script.ipxe"), &DoctorOptions::default());
    let verdicts: Vec<ClientVerdict> = report.clients.iter().map(|client| client.verdict).collect();
    let not = ClientVerdict::NotForIt;
    assert_eq!(verdicts, [not, ClientVerdict::Works, not, not, ClientVerdict::Works, not]);
    assert!(!report.is_refused());
}

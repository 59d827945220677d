//! Servers with one thing wrong: each check is seen to fail.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use kindling::doctor::{Check, Options, Outcome, Verdict};

use crate::raw::{Asked, Change, Reply, serve};
use crate::{examined, image, refusing, with};

/// What is wrong, where the file is, what is changed in the answers, the checks that fail, and the clients that refuse.
type Case = (&'static str, &'static str, Change, &'static [&'static str], &'static [&'static str]);

const EVERYBODY: &[&str] = &["bmc", "ipxe", "uefi", "qemu", "download", "rootfs"];
const READERS: &[&str] = &["bmc", "ipxe", "uefi", "qemu", "download"];
const IN_PIECES: &[&str] = &["bmc", "ipxe", "qemu"];

fn change(change: impl Fn(&Asked, &mut Reply) + Send + Sync + 'static) -> Change {
    Arc::new(change)
}

fn range_of(asked: &Asked) -> &str {
    asked.header("range").and_then(|range| range.strip_prefix("bytes=")).unwrap_or_default()
}

/// Answers with the whole file where a range is of some form.
fn whole_for(form: impl Fn(&str) -> bool + Send + Sync + 'static) -> Change {
    change(move |asked, reply| {
        if asked.header("range").is_some() && form(range_of(asked)) {
            reply.status = 200;
            reply.remove("Content-Range");
            reply.set("Content-Type", "application/octet-stream");
            reply.replace(image().to_vec());
        }
    })
}

fn lengths() -> Vec<Case> {
    vec![
        ("nothing", "/full.iso", change(|_, _| {}), &[], &[]),
        ("no file", "/full.iso", change(|_, reply| reply.status(404)), &["answers"], EVERYBODY),
        (
            "no length",
            "/full.iso",
            change(|asked, reply| {
                if asked.is_whole() {
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
            change(|asked, reply| {
                if asked.is_whole() {
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
            change(|asked, reply| {
                if asked.is_whole() {
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
            change(|_, reply| reply.set("Content-Encoding", "gzip")),
            &["identity", "identity-when-asked"],
            READERS,
        ),
        (
            "compressed where that is taken",
            "/full.iso",
            change(|asked, reply| {
                if asked.header("accept-encoding").is_some() {
                    reply.set("Content-Encoding", "br");
                }
            }),
            &["identity-when-asked"],
            &[],
        ),
    ]
}

fn types() -> Vec<Case> {
    vec![
        (
            "headers without spaces",
            "/full.iso",
            change(|_, reply| reply.colon = ":"),
            &["header-form"],
            &["ipxe"],
        ),
        (
            "page",
            "/full.iso",
            change(|_, reply| {
                if reply.status == 200 {
                    reply.set("Content-Type", "text/html");
                }
            }),
            &["media-type"],
            &[],
        ),
        ("no suffix", "/full", change(|_, _| {}), &["url-suffix", "uefi-type"], &["bmc", "uefi"]),
    ]
}

fn heads() -> Vec<Case> {
    let of_head = |wrong: fn(&mut Reply)| {
        change(move |asked, reply| {
            if asked.method == "HEAD" {
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

fn ranges() -> Vec<Case> {
    vec![
        (
            "no ranges",
            "/full.iso",
            whole_for(|_| true),
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
            change(|_, reply| reply.remove("Accept-Ranges")),
            &["accept-ranges"],
            &["qemu"],
        ),
        (
            "ranges without an end",
            "/full.iso",
            whole_for(|range| range.ends_with('-') && range != "2097152-"),
            &["range-open"],
            &[],
        ),
        ("suffixes", "/full.iso", whole_for(|range| range.starts_with('-')), &["range-suffix"], &[]),
        ("several ranges", "/full.iso", whole_for(|range| range.contains(',')), &["range-many"], &[]),
        (
            "ranges behind the end",
            "/full.iso",
            whole_for(|range| range == "2097152-"),
            &["range-behind-end"],
            &[],
        ),
        (
            "416 without a length",
            "/full.iso",
            change(|_, reply| {
                if reply.status == 416 {
                    reply.remove("Content-Range");
                }
            }),
            &["range-behind-end"],
            &[],
        ),
    ]
}

fn wrong_ranges() -> Vec<Case> {
    vec![
        (
            "ranges of 16 bits",
            "/full.iso",
            change(|_, reply| {
                if reply.status == 206 && reply.body.len() > 65_535 {
                    let len = reply.body.len() % 65_536;
                    reply.replace(reply.body[..len].to_vec());
                }
            }),
            &["range-64k"],
            &["bmc", "qemu"],
        ),
        (
            "ranges of other bytes where they are long",
            "/full.iso",
            change(|_, reply| {
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
            change(|_, reply| {
                if reply.status == 206 {
                    reply.set("Content-Range", "bytes 0-0/1");
                }
            }),
            &["range", "range-open", "range-suffix", "range-64k", "if-range"],
            IN_PIECES,
        ),
    ]
}

fn conditions() -> Vec<Case> {
    vec![
        (
            "no validators",
            "/full.iso",
            change(|_, reply| {
                reply.remove("ETag");
                reply.remove("Last-Modified");
            }),
            &["validator", "if-range", "if-none-match"],
            &[],
        ),
        (
            "deaf to If-Range",
            "/full.iso",
            change(|asked, reply| {
                if asked.header("if-range").is_some() && reply.status == 200 {
                    reply.status = 206;
                    reply.set("Content-Range", "bytes 0-99/2097152");
                    reply.replace(image()[..100].to_vec());
                }
            }),
            &["if-range"],
            &[],
        ),
        (
            "deaf to If-None-Match",
            "/full.iso",
            change(|_, reply| {
                if reply.status == 304 {
                    reply.status = 200;
                    reply.replace(image().to_vec());
                }
            }),
            &["if-none-match"],
            &[],
        ),
        (
            "deaf to HTTP/1.0",
            "/full.iso",
            change(|asked, reply| {
                if asked.version == "HTTP/1.0" {
                    reply.status(505);
                }
            }),
            &["http-1.0"],
            &[],
        ),
        (
            "no expectations",
            "/full.iso",
            change(|asked, reply| {
                if asked.header("expect").is_some() {
                    reply.status(417);
                }
            }),
            &["expect"],
            &[],
        ),
        ("one request each", "/full.iso", change(|_, reply| reply.closes = true), &["keep-alive"], &[]),
    ]
}

fn bytes() -> Vec<Case> {
    let changing = {
        let count = AtomicUsize::new(0);
        change(move |asked, reply| {
            if asked.is_whole() && reply.status == 200 {
                let count = u8::try_from(count.fetch_add(1, Ordering::Relaxed)).unwrap();
                reply.body[190_000] = count;
            }
        })
    };
    let tags = {
        let count = AtomicUsize::new(0);
        change(move |asked, reply| {
            if asked.is_whole() && reply.status == 200 {
                reply.set("ETag", &format!("\"{}\"", count.fetch_add(1, Ordering::Relaxed)));
            }
        })
    };
    let slow = {
        let count = AtomicUsize::new(0);
        change(move |_, _| {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                thread::sleep(Duration::from_millis(5200));
            }
        })
    };
    let crowded = {
        let inside = AtomicUsize::new(0);
        change(move |asked, reply| {
            // The ranges that are asked for at once.
            if reply.body.len() != 2048 || asked.header("connection") != Some("close") {
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
        ("one at once", "/full.iso", crowded, &["concurrent"], &["bmc", "qemu"]),
    ]
}

fn redirects() -> Vec<Case> {
    let to = |location: &'static str| {
        change(move |asked: &Asked, reply: &mut Reply| {
            if asked.path != "/there.iso" {
                reply.status(302);
                reply.set("Location", location);
            }
        })
    };
    vec![
        ("elsewhere", "/full.iso", to("/there.iso"), &["not-redirected"], &["bmc"]),
        ("in circles", "/full.iso", to("/full.iso"), &["redirects-end", "not-redirected"], EVERYBODY),
        (
            "nowhere",
            "/full.iso",
            to("ftp://127.0.0.1/there.iso"),
            &["redirects-end", "not-redirected"],
            EVERYBODY,
        ),
        (
            "elsewhere without ranges",
            "/full.iso",
            change(|asked, reply| match asked.path.as_str() {
                "/there.iso" => {}
                _ if asked.header("range").is_some() => reply.status(400),
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

/// The checks of certificates, and of what a URL says itself: they have tests of their own.
const ELSEWHERE: &[Check] = &[
    Check::UrlShort,
    Check::UrlWithoutQuery,
    Check::UrlWithoutPassword,
    Check::UrlWithoutToken,
    Check::UrlUsualPort,
    Check::UrlAddress,
    Check::UrlEncrypted,
    Check::UrlUnencrypted,
    Check::Reachable,
    Check::CertificateTrusted,
    Check::CertificateName,
    Check::CertificateDates,
    Check::CertificateLasts,
    Check::CertificateRsa,
    Check::Tls12,
    Check::RedirectScheme,
    Check::Content,
];

#[test]
fn each_check_is_seen_to_fail() {
    let cases = [lengths(), types(), heads(), ranges(), wrong_ranges(), conditions(), bytes(), redirects()]
        .into_iter()
        .flatten();
    let checked: Vec<_> = cases
        .map(|(name, path, change, failing, refused)| {
            thread::spawn(move || {
                let url = format!("http://{}{path}", serve(image(), change, None));
                let report = examined(&url, &Options::default());
                assert_eq!(with(&report, Outcome::Fails), failing, "{name}: {report:#?}");
                assert_eq!(with(&report, Outcome::Untried), [""; 0], "{name}: {report:#?}");
                assert_eq!(refusing(&report), refused, "{name}: {report:#?}");
                failing
            })
        })
        .collect();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut wrong = 0;
    for case in checked {
        match case.join() {
            Ok(failing) => seen.extend(failing),
            Err(_) => wrong += 1,
        }
    }
    assert_eq!(wrong, 0, "cases were not as expected");
    let expected = Check::ALL.iter().filter(|check| !ELSEWHERE.contains(check));
    let missing: Vec<&str> = expected.map(|check| check.name()).filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "nothing fails {missing:?}");
}

#[test]
fn what_a_url_says_itself_is_told() {
    let address = serve(image(), change_nothing(), None);
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
        let report = examined(&url, &Options::default());
        assert_eq!(with(&report, Outcome::Fails), failing, "{url}");
        assert_eq!(refusing(&report), refused, "{url}");
        assert!(!serde_json::to_string(&report).unwrap().contains("secret"), "{url}");
    }
    let report = examined("http://127.0.0.1:9/full.iso", &Options::default());
    assert_eq!(with(&report, Outcome::Fails), ["reachable"]);
    assert_eq!(refusing(&report), EVERYBODY);
}

fn change_nothing() -> Change {
    change(|_, _| {})
}

/// A volume without a boot record, a page that says where to log in, and zeros.
#[test]
fn what_boots_nowhere_is_told() {
    let mut data = image().to_vec();
    data[17 * 2048 + 7] = b'e';
    let page = b"<html>Please log in</html>".to_vec();
    for file in [data, page, vec![0; 300_000]] {
        let address = serve(file.leak(), change_nothing(), None);
        let report = examined(&format!("http://{address}/full.iso"), &Options::default());
        assert_eq!(with(&report, Outcome::Fails), ["content"], "{report:#?}");
        assert_eq!(refusing(&report), ["bmc", "ipxe", "uefi", "qemu", "rootfs"]);
    }
}

#[test]
fn what_is_for_others_is_not_refused() {
    static SCRIPT: &[u8] = b"#!ipxe\nboot\n";
    let address = serve(SCRIPT, change_nothing(), None);
    let report = examined(&format!("http://{address}/script.ipxe"), &Options::default());
    let verdicts: Vec<Verdict> = report.clients.iter().map(|client| client.verdict).collect();
    let not = Verdict::NotForIt;
    assert_eq!(verdicts, [not, Verdict::Works, not, not, Verdict::Works, not]);
    assert!(!report.is_refused());
}

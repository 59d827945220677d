//! Live images that are not at hand: at a URL, or in a catalogue.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::json;

use crate::support::{Output, Scratch};
use crate::{BASE, ROOTFS, SERVICE, create, recipe, scratch};

/// Serves the live image as `/base.iso` to a number of requests, and as `/guarded.iso` to those with a key; gives where.
fn serve(requests: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().take(requests) {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let has_key = head.iter().any(|line| line.eq_ignore_ascii_case("x-key: one"));
            let is_known = head.first().is_some_and(|line| {
                line.starts_with("GET /base.iso") || line.starts_with("GET /guarded.iso?part=two ") && has_key
            });
            let (status, body) = if is_known { ("200 OK", &BASE[..]) } else { ("404 Not Found", &b""[..]) };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    url
}

/// Makes the full image of a site on another live image.
fn made_on(scratch: &Scratch, base: &[&str], output: &str) -> Output {
    made(scratch, &[base, &["--full", output]].concat())
}

/// Makes images of a site.
fn made(scratch: &Scratch, options: &[&str]) -> Output {
    let usual = [
        "discovery",
        "create",
        "--manifests",
        "manifests",
        "--service-url",
        SERVICE,
        "--images-dir",
        "cache",
    ];
    scratch.command(usual.iter().chain(options)).output()
}

#[test]
fn a_live_image_at_a_url_is_fetched_once() {
    let scratch = scratch("bonded");
    create(&scratch, &["--full", "expected.iso"]).success();
    let url = format!("{}/base.iso", serve(1));
    for output in ["first.iso", "second.iso"] {
        made_on(&scratch, &["--base", &url], output).success();
        assert!(scratch.read(output) == scratch.read("expected.iso"), "{output}");
    }
    let sha256 = isogen::Digest::of(b"another").to_string();
    let wrong = format!("{}/base.iso?again", serve(8));
    made_on(&scratch, &["--base", &wrong, "--base-sha256", &sha256], "wrong.iso").failure(&sha256);
    let guarded = format!("{}/guarded.iso", serve(1));
    let key =
        ["--image-request-headers", r#"{"X-Key": "one"}"#, "--image-request-query", r#"{"part": "two"}"#];
    made_on(&scratch, &[&["--base", &guarded], &key[..]].concat(), "guarded.iso").success();
    let missing = format!("{}/missing.iso", serve(8));
    made_on(&scratch, &["--base", &missing], "missing.iso").failure("404");
    assert!(!scratch.has("wrong.iso") && !scratch.has("missing.iso"));
}

#[test]
fn a_live_image_of_the_catalogue_is_chosen_by_version() {
    let scratch = scratch("bonded");
    create(&scratch, &["--full", "expected.iso"]).success();
    let images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
        "url": format!("file://{}", scratch.path("base.iso").display()),
    }]);
    let images = images.to_string();
    made_on(&scratch, &["--os-image", "4.18", "--os-images", &images], "made.iso").success();
    assert!(scratch.read("made.iso") == scratch.read("expected.iso"));
    made_on(&scratch, &["--os-image", "4.20", "--os-images", &images], "other.iso").failure("4.20");
    made_on(&scratch, &["--os-image", "4.18"], "other.iso")
        .failure("there is no list of live images: give one");
    made_on(&scratch, &["--os-image", "4.18", "--os-images", &images, "--arch", "s390x"], "other.iso")
        .failure("s390x");
}

#[test]
fn minimal_iso_on_a_base_with_a_wrong_description_gets_a_new_layout() {
    let scratch = scratch("disconnected");
    let offset = recipe().master().files["images/pxeboot/initrd.img"].offset;
    let mut wrong = BASE.clone();
    wrong[usize::try_from(offset).unwrap() + 200] ^= 1;
    scratch.write("wrong.iso", &wrong);
    let (path, url) = ("wrong.iso".to_owned(), format!("file://{}", scratch.path("wrong.iso").display()));
    let right = ("base.iso".to_owned(), "as the live image describes it");
    let reason = "the image's description of its minimal form is wrong";
    for (number, (base, layout)) in [right, (path, reason), (url, reason)].into_iter().enumerate() {
        let output = format!("{number}.iso");
        let options = ["--base", &base, "--minimal", &output, "--rootfs-url", ROOTFS];
        let text = made(&scratch, &options).printed();
        assert!(text.contains(layout), "{base}: {text}");
        scratch.kindling(&format!("iso verify {output}")).success();
    }
    assert!(scratch.read("1.iso") == scratch.read("2.iso"));
}

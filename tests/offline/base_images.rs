//! Base images at a URL or in a catalogue.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::json;

use crate::support::{RunOutput, Scratch};
use crate::{BASE, ROOTFS, SERVICE, base_recipe, run_create, scratch_with_site};

/// Serves the base image as `/base.iso`, and as `/guarded.iso` to requests with a key. Stops after `requests` requests.
/// Returns the URL of the server.
fn serve_base_image(requests: usize) -> String {
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

/// Creates the full image of a site from another base image.
fn create_on_base(scratch: &Scratch, base: &[&str], output: &str) -> RunOutput {
    create_images(scratch, &[base, &["--full", output]].concat())
}

fn create_images(scratch: &Scratch, options: &[&str]) -> RunOutput {
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
    scratch.command(usual.iter().chain(options)).run()
}

#[test]
fn base_image_at_a_url_is_fetched_once() {
    let scratch = scratch_with_site("bonded");
    run_create(&scratch, &["--full", "expected.iso"]).expect_success();
    let url = format!("{}/base.iso", serve_base_image(1));
    for output in ["first.iso", "second.iso"] {
        create_on_base(&scratch, &["--base", &url], output).expect_success();
        assert!(scratch.read(output) == scratch.read("expected.iso"), "{output}");
    }
    let sha256 = isogen::Digest::from_data(b"another").to_string();
    let wrong = format!("{}/base.iso?again", serve_base_image(8));
    create_on_base(&scratch, &["--base", &wrong, "--base-sha256", &sha256], "wrong.iso")
        .expect_failure(&sha256);
    let guarded = format!("{}/guarded.iso", serve_base_image(1));
    let key =
        ["--image-request-headers", r#"{"X-Key": "one"}"#, "--image-request-query", r#"{"part": "two"}"#];
    create_on_base(&scratch, &[&["--base", &guarded], &key[..]].concat(), "guarded.iso").expect_success();
    let missing = format!("{}/missing.iso", serve_base_image(8));
    create_on_base(&scratch, &["--base", &missing], "missing.iso").expect_failure("404");
    assert!(!scratch.has_file("wrong.iso") && !scratch.has_file("missing.iso"));
}

#[test]
fn configured_base_image_is_selected_by_version() {
    let scratch = scratch_with_site("bonded");
    run_create(&scratch, &["--full", "expected.iso"]).expect_success();
    let images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
        "url": format!("file://{}", scratch.path("base.iso").display()),
    }]);
    let images = images.to_string();
    create_on_base(&scratch, &["--os-image", "4.18", "--os-images", &images], "made.iso").expect_success();
    assert!(scratch.read("made.iso") == scratch.read("expected.iso"));
    create_on_base(&scratch, &["--os-image", "4.20", "--os-images", &images], "other.iso")
        .expect_failure("4.20");
    create_on_base(&scratch, &["--os-image", "4.18"], "other.iso")
        .expect_failure("no list of base images; set --os-images-file");
    create_on_base(&scratch, &["--os-image", "4.18", "--os-images", &images, "--arch", "s390x"], "other.iso")
        .expect_failure("s390x");
}

#[test]
fn minimal_iso_of_a_base_with_a_wrong_description_is_re_laid_out() {
    let scratch = scratch_with_site("disconnected");
    let offset = base_recipe().master().files["images/pxeboot/initrd.img"].offset;
    let mut wrong = BASE.clone();
    wrong[usize::try_from(offset).unwrap() + 200] ^= 1;
    scratch.write("wrong.iso", &wrong);
    let (path, url) = ("wrong.iso".to_owned(), format!("file://{}", scratch.path("wrong.iso").display()));
    let right = ("base.iso".to_owned(), "as described by the base image");
    let reason = "the image's description of its minimal form is wrong";
    for (number, (base, layout)) in [right, (path, reason), (url, reason)].into_iter().enumerate() {
        let output = format!("{number}.iso");
        let options = ["--base", &base, "--minimal", &output, "--rootfs-url", ROOTFS];
        let text = create_images(&scratch, &options).expect_text();
        assert!(text.contains(layout), "{base}: {text}");
        scratch.run_kindling(&format!("iso verify {output}")).expect_success();
    }
    assert!(scratch.read("1.iso") == scratch.read("2.iso"));
}

//! The command: what it prints, its exit codes, and what it keeps to itself.

use std::sync::Arc;

use serde_json::Value;

use crate::image;
use crate::raw::serve;
use crate::support::Scratch;

#[test]
fn it_says_what_works_and_what_does_not() {
    let scratch = Scratch::new();
    let good = serve(image(), Arc::new(|_, _| {}), None);
    let output = scratch.kindling(&format!("doctor http://{good}/full.iso"));
    assert_eq!(output.status.code(), Some(0), "{}", output.text());
    assert!(output.text().contains("an ISO 9660 volume that boots"), "{}", output.text());
    assert!(output.text().contains("QEMU block driver  works\n"), "{}", output.text());
    let bad = serve(image(), Arc::new(|_, reply| reply.remove("Accept-Ranges")), None);
    let output = scratch.kindling(&format!("doctor http://{bad}/full.iso"));
    assert_eq!(output.status.code(), Some(1), "{}", output.text());
    assert!(output.text().contains("QEMU block driver  REFUSES\n  ! accept-ranges: "), "{}", output.text());
    // Who does not ask about QEMU is not told about it.
    let output = scratch.kindling(&format!("doctor --client bmc --client ipxe http://{bad}/full.iso"));
    assert_eq!(output.status.code(), Some(0), "{}", output.text());
    assert!(!output.text().contains("QEMU"), "{}", output.text());
}

#[test]
fn it_prints_json() {
    let scratch = Scratch::new();
    let address = serve(image(), Arc::new(|_, reply| reply.remove("Accept-Ranges")), None);
    let output = scratch.kindling(&format!("doctor --json http://{address}/full.iso"));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["url"], format!("http://{address}/full.iso"));
    assert_eq!(report["size"], image().len());
    assert_eq!(report["content"]["kind"], "iso");
    let find = |list: &str, key: &str, name: &str| {
        report[list].as_array().unwrap().iter().find(|it| it[key] == name).unwrap().clone()
    };
    assert_eq!(find("findings", "check", "range-64k")["outcome"], "holds");
    assert_eq!(find("findings", "check", "accept-ranges")["outcome"], "fails");
    let qemu = find("clients", "client", "qemu");
    assert_eq!(qemu["verdict"], "refuses");
    assert_eq!(qemu["reasons"][0]["check"], "accept-ranges");
}

#[test]
fn secrets_are_not_printed() {
    let scratch = Scratch::new();
    let address = serve(
        image(),
        Arc::new(|asked, reply| {
            if asked.header("authorization") != Some("Bearer_hidden") || !asked.path.contains("secret") {
                reply.status(401);
            }
        }),
        None,
    );
    let url = format!("http://core:hushed@{address}/byapikey/secret/full.iso?api_key=secret&other=secret");
    for arguments in ["", "--json"] {
        let output =
            scratch.kindling(&format!("doctor {arguments} --header Authorization:Bearer_hidden {url}"));
        assert!(output.text().contains("head-same"), "the header did not get there: {}", output.text());
        for secret in ["secret", "hidden", "hushed"] {
            assert!(!output.text().contains(secret) && !output.stderr.contains(secret), "{}", output.text());
        }
    }
}

#[test]
fn wrong_usage_is_told_apart() {
    let scratch = Scratch::new();
    for (arguments, phrase) in [
        ("doctor", "<URL>"),
        ("doctor full.iso", "this is no URL"),
        ("doctor ftp://127.0.0.1/full.iso", "images are at http: and https:"),
        ("doctor --timeout 0s http://127.0.0.1/", "some time"),
        ("doctor --timeout 1h http://127.0.0.1/", "ten minutes"),
        ("doctor --header Range:bytes=0-1 http://127.0.0.1/", "cannot be sent"),
        ("doctor --header secret http://127.0.0.1/", "no name with a colon"),
        ("doctor --client bios http://127.0.0.1/", "possible values"),
    ] {
        let output = scratch.kindling(arguments);
        output.usage(phrase);
        assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    }
    scratch.kindling("doctor --ca missing.pem http://127.0.0.1/").failure("missing.pem");
    scratch.write("empty.pem", "");
    scratch.kindling("doctor --ca empty.pem http://127.0.0.1/").failure("there is none in it");
}

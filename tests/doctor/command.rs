//! The command `kindling doctor`: its output, its exit codes, and secrets that it must not print.

use std::sync::Arc;

use serde_json::Value;

use crate::bootable_image;
use crate::raw_server::serve_file;
use crate::support::Scratch;

#[test]
fn doctor_reports_passing_and_failing_clients() {
    let scratch = Scratch::new();
    let good = serve_file(bootable_image(), Arc::new(|_, _| {}), None);
    let output = scratch.run_kindling(&format!("doctor http://{good}/full.iso"));
    assert_eq!(output.status.code(), Some(0), "{}", output.stdout_text());
    assert!(output.stdout_text().contains("an ISO 9660 volume that boots"), "{}", output.stdout_text());
    assert!(output.stdout_text().contains("QEMU block driver  works\n"), "{}", output.stdout_text());
    let bad = serve_file(bootable_image(), Arc::new(|_, reply| reply.remove("Accept-Ranges")), None);
    let output = scratch.run_kindling(&format!("doctor http://{bad}/full.iso"));
    assert_eq!(output.status.code(), Some(1), "{}", output.stdout_text());
    assert!(
        output.stdout_text().contains("QEMU block driver  REFUSES\n  ! accept-ranges: "),
        "{}",
        output.stdout_text()
    );
    // Findings about QEMU appear only if the client is selected.
    let output = scratch.run_kindling(&format!("doctor --client bmc --client ipxe http://{bad}/full.iso"));
    assert_eq!(output.status.code(), Some(0), "{}", output.stdout_text());
    assert!(!output.stdout_text().contains("QEMU"), "{}", output.stdout_text());
}

#[test]
fn doctor_prints_json() {
    let scratch = Scratch::new();
    let address = serve_file(bootable_image(), Arc::new(|_, reply| reply.remove("Accept-Ranges")), None);
    let output = scratch.run_kindling(&format!("doctor --json http://{address}/full.iso"));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["url"], format!("http://{address}/full.iso"));
    assert_eq!(report["size"], bootable_image().len());
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
    let address = serve_file(
        bootable_image(),
        Arc::new(|request, reply| {
            if request.header("authorization") != Some("Bearer_hidden") || !request.path.contains("secret") {
                reply.status(401);
            }
        }),
        None,
    );
    let url = format!("http://core:hushed@{address}/byapikey/secret/full.iso?api_key=secret&other=secret");
    for arguments in ["", "--json"] {
        let output =
            scratch.run_kindling(&format!("doctor {arguments} --header Authorization:Bearer_hidden {url}"));
        assert!(
            output.stdout_text().contains("head-same"),
            "the header was not sent: {}",
            output.stdout_text()
        );
        for secret in ["secret", "hidden", "hushed"] {
            assert!(
                !output.stdout_text().contains(secret) && !output.stderr.contains(secret),
                "{}",
                output.stdout_text()
            );
        }
    }
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    let scratch = Scratch::new();
    for (arguments, phrase) in [
        ("doctor", "<URL>"),
        ("doctor full.iso", "not a valid image URL"),
        ("doctor ftp://127.0.0.1/full.iso", "expected http or https"),
        ("doctor --timeout 0s http://127.0.0.1/", "greater than 0"),
        ("doctor --timeout 1h http://127.0.0.1/", "at most 10m"),
        ("doctor --header Range:bytes=0-1 http://127.0.0.1/", "cannot send header"),
        ("doctor --header secret http://127.0.0.1/", "expected NAME: VALUE"),
        ("doctor --client bios http://127.0.0.1/", "possible values"),
    ] {
        let output = scratch.run_kindling(arguments);
        output.expect_usage_error(phrase);
        assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    }
    scratch.run_kindling("doctor --ca missing.pem http://127.0.0.1/").expect_failure("missing.pem");
    scratch.write("empty.pem", "");
    scratch.run_kindling("doctor --ca empty.pem http://127.0.0.1/").expect_failure("no certificates found");
}

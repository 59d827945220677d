//! Tests `kindling auth`, which creates keys and tokens.

use std::fs;
use std::os::unix::fs::symlink;

use crate::file_mode;
use crate::support::{ProgramRun, Scratch, require_tool};

const PRIVATE: &str = "keys/ec-private-key.pem";
const PUBLIC: &str = "keys/ec-public-key.pem";

#[test]
fn key_files_are_private_and_never_overwritten() {
    let scratch = Scratch::new();
    let printed = scratch.run_kindling("auth keys --out keys").expect_text();
    assert_eq!(printed, format!("{PRIVATE}\n{PUBLIC}\n"));
    let files = scratch.files();
    assert_eq!(files.keys().collect::<Vec<_>>(), [PRIVATE, PUBLIC]);
    assert_eq!((file_mode(&files, PRIVATE), file_mode(&files, PUBLIC)), (0o600, 0o644));
    scratch.run_kindling("auth keys --out keys").expect_failure(
        "cannot create keys/ec-private-key.pem: File exists; remove it, or use another path for --out",
    );
    assert!(scratch.files() == files);
    scratch.remove(PRIVATE);
    scratch.run_kindling("auth keys --out keys").expect_failure("ec-public-key.pem: File exists");
    assert_eq!(scratch.names(), [PUBLIC]);
    // A dangling link is an existing output as well.
    scratch.remove(PUBLIC);
    symlink("nowhere", scratch.path(PUBLIC)).unwrap();
    scratch.run_kindling("auth keys --out keys").expect_failure("File exists");
    assert!(scratch.names().is_empty());
    scratch.write("file", "");
    scratch
        .run_kindling("auth keys --out file")
        .expect_failure("file is not a directory; remove it, or use another path for --out");
}

#[test]
fn two_key_pairs_differ() {
    let scratch = Scratch::new();
    let (one, two) = (
        scratch.run_kindling("auth keys --env").expect_text(),
        scratch.run_kindling("auth keys --env").expect_text(),
    );
    assert_ne!(one, two);
    assert_eq!(one.lines().count(), 2);
    assert!(scratch.names().is_empty());
}

#[test]
fn rejects_invalid_keys() {
    let scratch = Scratch::new();
    scratch.run_kindling("auth keys --out keys").expect_success();
    scratch.run_kindling("auth keys --out other").expect_success();
    scratch.write("garbage", [0xFF; 100]);
    scratch.write("large", "A".repeat(100_000));
    let token = |options: &str| scratch.run_kindling(&format!("auth token --user {options}"));
    token("").expect_failure("no private key: set EC_PRIVATE_KEY_PEM");
    token(&format!("--ec-private-key-file {PUBLIC}")).expect_failure("the private key is neither PEM");
    token("--ec-private-key-file garbage").expect_failure("reading garbage");
    token("--ec-private-key-file large").expect_failure("large has more than 65536 bytes");
    token("--ec-private-key-file missing").expect_failure("reading missing");
    let strange = format!("--ec-private-key-file {PRIVATE} --ec-public-key-file other/ec-public-key.pem");
    token(&strange).expect_failure("the public key does not belong to the private key");
    token(&format!("--ec-private-key-file {PRIVATE} --ec-public-key-file {PUBLIC}")).expect_success();
}

#[test]
fn wrong_command_lines_create_no_files() {
    let scratch = Scratch::new();
    for line in [
        "auth",
        "auth keys",
        "auth token",
        "auth token --user --infra-env 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "auth token --cluster",
        "auth token --user --expires soon",
        "auth token --user --expires -1h",
        "auth token --infra-env 6ba7b810-9dad-11d1-80b4-00c04fd430c8 --expires 1h",
    ] {
        scratch.run_kindling(line).expect_usage_error("");
    }
    scratch
        .run_kindling("auth token --infra-env mine")
        .expect_usage_error("'--infra-env <ID>': expected a UUID");
    scratch.run_kindling("auth keys --out keys").expect_success();
    let line = format!("auth token --ec-private-key-file {PRIVATE} --user --expires 100000d");
    scratch.run_kindling(&line).expect_success();
}

/// Keys and tokens are exchanged with openssl in both directions.
#[test]
fn keys_and_tokens_are_interoperable_with_openssl() {
    let Some(openssl) = require_tool("openssl") else { return };
    let scratch = Scratch::new();
    scratch.run_kindling("auth keys --out keys").expect_success();
    let run = |line: &str| ProgramRun::new(&openssl, scratch.folder()).args(line.split_whitespace()).run();
    let derived = run(&format!("ec -in {PRIVATE} -pubout")).expect_text();
    let ours = fs::read_to_string(scratch.path(PUBLIC)).unwrap();
    assert_eq!(derived.replace("PUBLIC", "EC PUBLIC"), ours);
    run("ecparam -name prime256v1 -genkey -out theirs.pem").expect_success();
    run("pkcs8 -topk8 -nocrypt -in theirs.pem -out pkcs8.pem").expect_success();
    run("ec -in theirs.pem -pubout -out public.pem").expect_success();
    for private in ["theirs.pem", "pkcs8.pem"] {
        let line =
            format!("auth token --user --ec-private-key-file {private} --ec-public-key-file public.pem");
        scratch.run_kindling(&line).expect_success();
    }
    run("ecparam -name secp384r1 -genkey -out other.pem").expect_success();
    scratch
        .run_kindling("auth token --user --ec-private-key-file other.pem")
        .expect_failure("not a key of curve P-256");
}

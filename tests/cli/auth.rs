//! `kindling auth`: keys and tokens.

use std::fs;
use std::os::unix::fs::symlink;

use crate::mode;
use crate::support::{Run, Scratch, require_tool};

const PRIVATE: &str = "keys/ec-private-key.pem";
const PUBLIC: &str = "keys/ec-public-key.pem";

#[test]
fn keys_are_written_once_and_for_their_owner() {
    let scratch = Scratch::new();
    let printed = scratch.kindling("auth keys --out keys").printed();
    assert_eq!(printed, format!("{PRIVATE}\n{PUBLIC}\n"));
    let files = scratch.files();
    assert_eq!(files.keys().collect::<Vec<_>>(), [PRIVATE, PUBLIC]);
    assert_eq!((mode(&files, PRIVATE), mode(&files, PUBLIC)), (0o600, 0o644));
    scratch.kindling("auth keys --out keys").failure("is there already");
    assert!(scratch.files() == files);
    scratch.remove(PRIVATE);
    scratch.kindling("auth keys --out keys").failure("ec-public-key.pem is there already");
    assert_eq!(scratch.names(), [PUBLIC]);
    // A link that leads nowhere is there as well.
    scratch.remove(PUBLIC);
    symlink("nowhere", scratch.path(PUBLIC)).unwrap();
    scratch.kindling("auth keys --out keys").failure("is there already");
    assert!(scratch.names().is_empty());
    scratch.write("file", "");
    scratch.kindling("auth keys --out file").failure("cannot be made");
}

#[test]
fn two_pairs_differ() {
    let scratch = Scratch::new();
    let (one, two) =
        (scratch.kindling("auth keys --env").printed(), scratch.kindling("auth keys --env").printed());
    assert_ne!(one, two);
    assert_eq!(one.lines().count(), 2);
    assert!(scratch.names().is_empty());
}

#[test]
fn what_is_no_key_is_refused() {
    let scratch = Scratch::new();
    scratch.kindling("auth keys --out keys").success();
    scratch.kindling("auth keys --out other").success();
    scratch.write("garbage", [0xFF; 100]);
    scratch.write("large", "A".repeat(100_000));
    let token = |options: &str| scratch.kindling(&format!("auth token --user {options}"));
    token("").failure("no private key is given: set EC_PRIVATE_KEY_PEM");
    token(&format!("--ec-private-key-file {PUBLIC}")).failure("the private key is neither PEM");
    token("--ec-private-key-file garbage").failure("reading garbage");
    token("--ec-private-key-file large").failure("large has more than 65536 bytes");
    token("--ec-private-key-file missing").failure("reading missing");
    let strange = format!("--ec-private-key-file {PRIVATE} --ec-public-key-file other/ec-public-key.pem");
    token(&strange).failure("the public key does not belong to the private key");
    token(&format!("--ec-private-key-file {PRIVATE} --ec-public-key-file {PUBLIC}")).success();
}

#[test]
fn wrong_command_lines_make_nothing() {
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
        scratch.kindling(line).usage("");
    }
    scratch.kindling("auth token --infra-env mine").usage("'--infra-env <ID>': expected a UUID");
    scratch.kindling("auth keys --out keys").success();
    let line = format!("auth token --ec-private-key-file {PRIVATE} --user --expires 100000d");
    scratch.kindling(&line).success();
}

/// Other programs read our keys, and we read theirs.
#[test]
fn openssl_and_we_understand_each_other() {
    let Some(openssl) = require_tool("openssl") else { return };
    let scratch = Scratch::new();
    scratch.kindling("auth keys --out keys").success();
    let run = |line: &str| Run::new(&openssl, scratch.folder()).args(line.split_whitespace()).output();
    let derived = run(&format!("ec -in {PRIVATE} -pubout")).printed();
    let ours = fs::read_to_string(scratch.path(PUBLIC)).unwrap();
    assert_eq!(derived.replace("PUBLIC", "EC PUBLIC"), ours);
    run("ecparam -name prime256v1 -genkey -out theirs.pem").success();
    run("pkcs8 -topk8 -nocrypt -in theirs.pem -out pkcs8.pem").success();
    run("ec -in theirs.pem -pubout -out public.pem").success();
    for private in ["theirs.pem", "pkcs8.pem"] {
        let line =
            format!("auth token --user --ec-private-key-file {private} --ec-public-key-file public.pem");
        scratch.kindling(&line).success();
    }
    run("ecparam -name secp384r1 -genkey -out other.pem").success();
    scratch
        .kindling("auth token --user --ec-private-key-file other.pem")
        .failure("no key of the curve P-256");
}

//! Input that is not a valid Ignition config is embedded as `coreos-installer` does it, with a warning, and `iso verify`
//! reports it.

use serde_json::{Value, json};

use crate::support::{CONFIG, Output, Scratch};
use crate::usual;

/// An input, and what is wrong with it, as the messages list it for the file name `NAME`.
const INPUTS: [(&str, &str); 5] = [
    ("", "NAME: error: the file is empty"),
    (
        "variant: fcos\nversion: 1.5.0\n",
        "NAME:1:1: error: /: not valid JSON: expected value at line 1 column 1",
    ),
    (
        "{\"ignition\": {\n  \"version\": \"9.0.0\"}}",
        "NAME:2:14: error: /ignition/version: \"9.0.0\" is not a supported spec version; supported are 3.0.0 to 3.6.0",
    ),
    (
        "{}",
        "NAME:1:1: error: /ignition/version: \"\" is not a supported spec version; supported are 3.0.0 to 3.6.0",
    ),
    (
        "{\"ignition\": {\"version\": \"3.3.0\"},\n\"storage\": {\"files\": [{\"path\": \"a\"}]}}",
        "NAME:2:32: error: /storage/files/0/path: the path \"a\" is not absolute",
    ),
];

fn warning(name: &str, error: &str) -> String {
    format!(
        "warning: {name} is not a valid Ignition config; it is written unchanged\n{}\n",
        error.replace("NAME", name)
    )
}

#[track_caller]
fn assert_warned(output: Output, expected: &str) -> Vec<u8> {
    assert_eq!(output.stderr, expected);
    output.success()
}

#[test]
fn embed_of_an_invalid_config_warns_and_writes_it_unchanged() {
    for (input, error) in INPUTS {
        let scratch = usual().scratch();
        scratch.write("bad.ign", input);
        let output = scratch.kindling("iso ignition embed -i bad.ign image.iso");
        assert!(assert_warned(output, &warning("bad.ign", error)).is_empty());
        assert_eq!(scratch.kindling("iso ignition show image.iso").printed(), input);
        let output = scratch.command(["iso", "ignition", "embed", "-f", "image.iso"]).stdin(input).output();
        assert_warned(output, &warning("stdin", error));
        let output = scratch.kindling("iso embed -f -c bad.ign image.iso");
        let moved = "`iso embed` is deprecated; use `iso ignition embed`. Continuing.\n";
        assert_warned(output, &format!("{moved}{}", warning("bad.ign", error)));
    }
}

#[test]
fn wrap_of_an_invalid_config_warns_and_writes_it_unchanged() {
    for (input, error) in INPUTS {
        let scratch = Scratch::new();
        scratch.write("bad.ign", input);
        assert_warned(scratch.kindling("pxe ignition wrap -i bad.ign -o a.img"), &warning("bad.ign", error));
        assert_eq!(scratch.kindling("pxe ignition unwrap a.img").printed(), input);
        let archive = scratch.command(["pxe", "ignition", "wrap"]).stdin(input).output();
        assert!(assert_warned(archive, &warning("stdin", error)) == scratch.read("a.img"));
    }
}

#[test]
fn a_valid_config_is_embedded_and_wrapped_without_a_warning() {
    let scratch = usual().scratch();
    assert_warned(scratch.kindling("iso ignition embed -i config.ign image.iso"), "");
    assert_warned(scratch.kindling("pxe ignition wrap -i config.ign -o a.img"), "");
    assert_eq!(scratch.kindling("iso ignition show image.iso").printed(), CONFIG);
}

#[test]
fn a_long_list_of_errors_is_cut() {
    let scratch = usual().scratch();
    let files: Vec<Value> = (0..20).map(|number| json!({"path": format!("a{number}")})).collect();
    let config = json!({"ignition": {"version": "3.3.0"}, "storage": {"files": files}});
    scratch.write("bad.ign", config.to_string());
    let output = scratch.kindling("iso ignition embed -i bad.ign image.iso");
    assert_eq!(output.stderr.lines().count(), 1 + 8 + 1, "{}", output.stderr);
    assert!(
        output.stderr.ends_with("\n12 more errors: `kindling ignition validate` lists all\n"),
        "{}",
        output.stderr
    );
}

/// A name and a value of the config may hold what a terminal obeys.
#[test]
fn control_characters_of_a_config_are_shown() {
    let scratch = usual().scratch();
    scratch.write("bad.ign", r#"{"ignition": {"version": "\u001b[2J"}}"#);
    let output = scratch.kindling("iso ignition embed -i bad.ign image.iso");
    assert!(!output.stderr.contains('\u{1b}'), "{}", output.stderr);
    assert!(output.stderr.contains("[2J"), "{}", output.stderr);
}

/// The outcome of the check of the config, as text and as JSON.
fn verified(scratch: &Scratch) -> (Option<i32>, String, Value) {
    let output = scratch.kindling("iso verify image.iso");
    let text = output.text();
    let start = text.find("ignition config").unwrap_or_else(|| panic!("no check of the config: {text}"));
    let json = scratch.kindling("iso verify --json image.iso");
    assert_eq!(json.status.code(), output.status.code());
    let checks: Value = serde_json::from_str(json.text()).unwrap();
    let mut checks = checks.as_array().unwrap().iter();
    let check = checks.find(|check| check["name"] == "ignition config").unwrap().clone();
    (output.status.code(), text[start..].to_owned(), check)
}

#[test]
fn verify_reports_whether_the_embedded_config_is_valid() {
    let scratch = usual().scratch();
    let (code, text, check) = verified(&scratch);
    assert_eq!((code, text.as_str()), (Some(0), "ignition config    absent\n"));
    assert_eq!(check, json!({"name": "ignition config", "outcome": "absent"}));
    scratch.kindling("iso ignition embed -i config.ign image.iso").success();
    let (code, text, check) = verified(&scratch);
    assert_eq!((code, text.as_str()), (Some(0), "ignition config    ok\n"));
    assert_eq!(check, json!({"name": "ignition config", "outcome": "ok"}));
    for (input, error) in INPUTS {
        scratch.command(["iso", "ignition", "embed", "-f", "image.iso"]).stdin(input).output().success();
        let (code, text, check) = verified(&scratch);
        let error = error.replace("NAME", "config.ign");
        assert_eq!((code, text), (Some(1), format!("ignition config    WRONG\n    {error}\n")));
        assert_eq!(check, json!({"name": "ignition config", "outcome": "wrong", "detail": [error]}));
    }
}

#[test]
fn verify_skips_the_config_of_an_area_that_cannot_be_read() {
    let scratch = usual().scratch();
    let mut bytes = scratch.read("image.iso");
    let start = usize::try_from(usual().truth.ignition.unwrap().offset).unwrap();
    bytes[start..start + 4].copy_from_slice(b"junk");
    scratch.write("image.iso", bytes);
    let (code, text, _) = verified(&scratch);
    assert_eq!(code, Some(1));
    assert_eq!(text, "ignition config    skipped\n    the Ignition area cannot be read\n");
}

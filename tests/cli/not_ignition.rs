//! Input that is not a valid Ignition config. As with `coreos-installer`, commands embed it; in addition, they print a
//! warning, and `iso verify` reports it.

use serde_json::{Value, json};

use crate::full_featured_image;
use crate::support::{CONFIG, RunOutput, Scratch};

/// Inputs with their errors, in which `NAME` stands for the file name.
const INPUTS: [(&str, &str); 5] = [
    ("", "NAME: error: the file is empty"),
    (
        "variant: fcos\nversion: 1.5.0\n",
        "NAME:1: error: this is a Butane config (fcos), not an Ignition config; convert it with `butane`",
    ),
    (
        "{\"ignition\": {\n  \"version\": \"9.0.0\"}}",
        "NAME:2: /ignition/version: error: \"9.0.0\" is not a supported spec version; supported are 3.0.0 to 3.6.0",
    ),
    (
        "{}",
        "NAME:1: /ignition/version: error: \"\" is not a supported spec version; supported are 3.0.0 to 3.6.0",
    ),
    (
        "{\"ignition\": {\"version\": \"3.3.0\"},\n\"storage\": {\"files\": [{\"path\": \"a\"}]}}",
        "NAME:2: /storage/files/0/path: error: the path \"a\" is not absolute",
    ),
];

fn expected_warning(name: &str, error: &str) -> String {
    format!(
        "warning: {name} is not a valid Ignition config; it is written unchanged\n{}\n",
        error.replace("NAME", name)
    )
}

#[track_caller]
fn assert_warned(output: RunOutput, expected: &str) -> Vec<u8> {
    assert_eq!(output.stderr, expected);
    output.expect_success()
}

#[test]
fn embed_warns_of_an_invalid_config_and_writes_it_unchanged() {
    for (input, error) in INPUTS {
        let scratch = full_featured_image().scratch_with_image();
        scratch.write("bad.ign", input);
        let output = scratch.run_kindling("iso ignition embed -i bad.ign image.iso");
        assert!(assert_warned(output, &expected_warning("bad.ign", error)).is_empty());
        assert_eq!(scratch.run_kindling("iso ignition show image.iso").expect_text(), input);
        let output = scratch.command(["iso", "ignition", "embed", "-f", "image.iso"]).stdin(input).run();
        assert_warned(output, &expected_warning("stdin", error));
        let output = scratch.run_kindling("iso embed -f -c bad.ign image.iso");
        let moved = "`iso embed` is deprecated; use `iso ignition embed`. Continuing.\n";
        assert_warned(output, &format!("{moved}{}", expected_warning("bad.ign", error)));
    }
}

#[test]
fn wrap_warns_of_an_invalid_config_and_writes_it_unchanged() {
    for (input, error) in INPUTS {
        let scratch = Scratch::new();
        scratch.write("bad.ign", input);
        assert_warned(
            scratch.run_kindling("pxe ignition wrap -i bad.ign -o a.img"),
            &expected_warning("bad.ign", error),
        );
        assert_eq!(scratch.run_kindling("pxe ignition unwrap a.img").expect_text(), input);
        let archive = scratch.command(["pxe", "ignition", "wrap"]).stdin(input).run();
        assert!(assert_warned(archive, &expected_warning("stdin", error)) == scratch.read("a.img"));
    }
}

#[test]
fn valid_config_is_embedded_and_wrapped_without_a_warning() {
    let scratch = full_featured_image().scratch_with_image();
    assert_warned(scratch.run_kindling("iso ignition embed -i config.ign image.iso"), "");
    assert_warned(scratch.run_kindling("pxe ignition wrap -i config.ign -o a.img"), "");
    assert_eq!(scratch.run_kindling("iso ignition show image.iso").expect_text(), CONFIG);
}

#[test]
fn long_list_of_errors_is_truncated() {
    let scratch = full_featured_image().scratch_with_image();
    let files: Vec<Value> = (0..20).map(|number| json!({"path": format!("a{number}")})).collect();
    let config = json!({"ignition": {"version": "3.3.0"}, "storage": {"files": files}});
    scratch.write("bad.ign", config.to_string());
    let output = scratch.run_kindling("iso ignition embed -i bad.ign image.iso");
    assert_eq!(output.stderr.lines().count(), 1 + 8 + 1, "{}", output.stderr);
    assert!(
        output.stderr.ends_with("\n12 more errors; `kindling ignition validate` lists all\n"),
        "{}",
        output.stderr
    );
}

/// Names and values of a config may contain terminal control characters.
#[test]
fn control_characters_of_a_config_are_escaped() {
    let scratch = full_featured_image().scratch_with_image();
    scratch.write("bad.ign", r#"{"ignition": {"version": "\u001b[2J"}}"#);
    let output = scratch.run_kindling("iso ignition embed -i bad.ign image.iso");
    assert!(!output.stderr.contains('\u{1b}'), "{}", output.stderr);
    assert!(output.stderr.contains("[2J"), "{}", output.stderr);
}

/// Returns the exit code of `iso verify`, and its result for the config as text and as JSON.
fn config_check_outcome(scratch: &Scratch) -> (Option<i32>, String, Value) {
    let output = scratch.run_kindling("iso verify image.iso");
    let text = output.stdout_text();
    let start = text.find("ignition config").unwrap_or_else(|| panic!("no check of the config: {text}"));
    let json = scratch.run_kindling("iso verify --json image.iso");
    assert_eq!(json.status.code(), output.status.code());
    let checks: Value = serde_json::from_str(json.stdout_text()).unwrap();
    let mut checks = checks.as_array().unwrap().iter();
    let check = checks.find(|check| check["name"] == "ignition config").unwrap().clone();
    (output.status.code(), text[start..].to_owned(), check)
}

#[test]
fn verify_checks_the_embedded_config() {
    let scratch = full_featured_image().scratch_with_image();
    let (code, text, check) = config_check_outcome(&scratch);
    assert_eq!((code, text.as_str()), (Some(0), "ignition config    absent\n"));
    assert_eq!(check, json!({"name": "ignition config", "outcome": "absent"}));
    scratch.run_kindling("iso ignition embed -i config.ign image.iso").expect_success();
    let (code, text, check) = config_check_outcome(&scratch);
    assert_eq!((code, text.as_str()), (Some(0), "ignition config    ok\n"));
    assert_eq!(check, json!({"name": "ignition config", "outcome": "ok"}));
    for (input, error) in INPUTS {
        scratch.command(["iso", "ignition", "embed", "-f", "image.iso"]).stdin(input).run().expect_success();
        let (code, text, check) = config_check_outcome(&scratch);
        let error = error.replace("NAME", "config.ign");
        assert_eq!((code, text), (Some(1), format!("ignition config    WRONG\n    {error}\n")));
        assert_eq!(check, json!({"name": "ignition config", "outcome": "wrong", "detail": [error]}));
    }
}

#[test]
fn verify_skips_the_config_of_an_unreadable_area() {
    let scratch = full_featured_image().scratch_with_image();
    let mut bytes = scratch.read("image.iso");
    let start = usize::try_from(full_featured_image().truth.ignition.unwrap().offset).unwrap();
    bytes[start..start + 4].copy_from_slice(b"junk");
    scratch.write("image.iso", bytes);
    let (code, text, _) = config_check_outcome(&scratch);
    assert_eq!(code, Some(1));
    assert_eq!(text, "ignition config    skipped\n    the Ignition area cannot be read\n");
}

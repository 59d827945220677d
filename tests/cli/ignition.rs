//! `kindling ignition`: findings with their lines, merges, and exit codes for scripts.

use serde_json::Value;

use crate::support::{CONFIG, Scratch};

const GOOD: &str = "{\"ignition\": {\"version\": \"3.1.0\"},\n\"storage\": {\"files\": [\n\
    {\"path\": \"/etc/motd\", \"mode\": 420, \"user\": {\"name\": \"root\"}, \"contents\": {\"source\": \"data:,a\"}}]}}\n";
const CHANGE: &str = "{\"ignition\": {\"version\": \"3.3.0\"}, \"kernelArguments\": {\"shouldExist\": [\"quiet\"]},\n\
    \"storage\": {\"files\": [{\"path\": \"/etc/motd\", \"contents\": {\"source\": \"data:,b\"}}]}}\n";
const WARNED: &str = "{\"ignition\": {\"version\": \"3.3.0\"},\n\"colour\": 1,\n\
    \"storage\": {\"files\": [{\"path\": \"/a\", \"mode\": 644}]}}\n";
const BAD: &str = "{\"ignition\": {\"version\": \"3.3.0\"},\n\"storage\": {\"files\": [\n\
    {\"path\": \"/a\"},\n{\"path\": \"a\"}]}}\n";
const OWNED: &str = "{\"ignition\": {\"version\": \"3.1.0\"},\n\
    \"storage\": {\"files\": [{\"path\": \"/etc/motd\", \"user\": {\"id\": 0}}]}}\n";

fn scratch_with_configs() -> Scratch {
    let scratch = Scratch::new();
    for (name, text) in [
        ("good.ign", GOOD),
        ("change.ign", CHANGE),
        ("warned.ign", WARNED),
        ("bad.ign", BAD),
        ("owned.ign", OWNED),
        ("broken.ign", "{\n]"),
    ] {
        scratch.write(name, text);
    }
    scratch
}

/// Runs a command with findings. Returns its exit code and both output streams.
#[track_caller]
fn exit_code_and_output(scratch: &Scratch, line: &str) -> (i32, String, String) {
    let output = scratch.run_kindling(line);
    let text = output.stdout_text().to_owned();
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    (output.status.code().unwrap(), text, output.stderr)
}

#[test]
fn valid_configs_pass_silently() {
    let scratch = scratch_with_configs();
    assert_eq!(scratch.run_kindling("ignition validate --strict good.ign change.ign").expect_text(), "");
    let piped = scratch.command(["ignition", "validate", "-"]).stdin(CONFIG);
    assert_eq!(piped.run().expect_text(), "");
    assert_eq!(scratch.command(["ignition", "validate"]).stdin(CONFIG).run().expect_text(), "");
}

#[test]
fn findings_name_file_and_line() {
    let scratch = scratch_with_configs();
    let warnings = "warned.ign:2: /colour: warning: unknown key: Ignition ignores it\n\
        warned.ign:3: /storage/files/0/mode: warning: the mode 644 is octal 1204; octal 644 is written as 420\n";
    let unknown = "warned.ign:2: /colour: warning: unknown key: Ignition ignores it\n";
    let special = "warned.ign:3: /storage/files/0/mode: warning: spec 3.3.0 ignores the special bits of the mode \
        644 (octal 1204)\n";
    let misread = warnings.strip_prefix(unknown).unwrap();
    let all = format!("{unknown}{special}{misread}");
    assert_eq!(
        exit_code_and_output(&scratch, "ignition validate warned.ign"),
        (0, all.clone(), String::new())
    );
    assert_eq!(
        exit_code_and_output(&scratch, "ignition validate --strict warned.ign"),
        (1, all, String::new())
    );
    let own = format!("{unknown}{special}");
    assert_eq!(
        exit_code_and_output(&scratch, "ignition validate --no-lint warned.ign"),
        (0, own, String::new())
    );
    let bad = "bad.ign:4: /storage/files/1/path: error: the path \"a\" is not absolute\n";
    assert_eq!(
        exit_code_and_output(&scratch, "ignition validate good.ign bad.ign"),
        (1, bad.to_owned(), String::new())
    );
    let (code, text, _) = exit_code_and_output(&scratch, "ignition validate broken.ign");
    assert_eq!((code, text.split(": not").next()), (1, Some("broken.ign:2: error")), "{text}");
    let piped = scratch.command(["ignition", "validate"]).stdin(BAD).run();
    assert!(
        piped.stdout_text().starts_with("stdin:4: /storage/files/1/path: error: "),
        "{}",
        piped.stdout_text()
    );
}

#[test]
fn findings_are_available_as_json() {
    let scratch = scratch_with_configs();
    let (code, text, _) = exit_code_and_output(&scratch, "ignition validate --json good.ign bad.ign");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 1);
    assert_eq!(json[0], serde_json::json!({"file": "good.ign", "findings": []}));
    let finding = serde_json::json!({
        "severity": "error", "origin": "ignition", "pointer": "/storage/files/1/path", "line": 4, "column": 10,
        "message": "the path \"a\" is not absolute",
    });
    assert_eq!(json[1], serde_json::json!({"file": "bad.ign", "findings": [finding]}));
}

#[test]
fn configs_are_merged_in_order() {
    let scratch = scratch_with_configs();
    let expected = r#"{"ignition":{"version":"3.3.0"},"kernelArguments":{"shouldExist":["quiet"]},"storage":{"files":[{"contents":{"source":"data:,b"},"mode":420,"path":"/etc/motd","user":{"name":"root"}}]}}"#;
    assert_eq!(
        scratch.run_kindling("ignition merge good.ign change.ign").expect_text(),
        format!("{expected}\n")
    );
    let back = scratch.run_kindling("ignition merge change.ign good.ign").expect_text();
    assert!(back.contains("data:,a"), "{back}");
    assert_eq!(scratch.run_kindling("ignition merge good.ign change.ign -o out.ign").expect_text(), "");
    assert_eq!(scratch.read("out.ign"), format!("{expected}\n").into_bytes());
    assert_eq!(
        scratch.run_kindling("ignition merge good.ign change.ign -o -").expect_text(),
        format!("{expected}\n")
    );
    assert!(!scratch.has_file("-"));
    let newer =
        scratch.run_kindling("ignition merge --pretty --spec 3.5.0 good.ign change.ign").expect_text();
    assert!(newer.contains("\n    \"version\": \"3.5.0\"\n"), "{newer}");
    let piped = scratch.command(["ignition", "merge", "-", "change.ign"]).stdin(GOOD).run();
    assert_eq!(piped.expect_text(), format!("{expected}\n"));
}

#[test]
fn invalid_config_or_result_writes_nothing() {
    let scratch = scratch_with_configs();
    let (code, text, errors) = exit_code_and_output(&scratch, "ignition merge good.ign bad.ign -o out.ign");
    assert_eq!((code, text.as_str()), (1, ""));
    assert!(errors.starts_with("bad.ign:4: /storage/files/1/path: error: "), "{errors}");
    let (code, text, errors) = exit_code_and_output(&scratch, "ignition merge good.ign owned.ign -o out.ign");
    assert_eq!((code, text.as_str()), (1, ""));
    let both = "merged: /storage/files/0/user: error: an owner has either an id or a name\n";
    assert_eq!(errors, both);
    let (code, _, errors) =
        exit_code_and_output(&scratch, "ignition merge --strict good.ign warned.ign -o out.ign");
    assert!(code == 1 && errors.contains("/colour"), "{errors}");
    assert!(!scratch.files().contains_key("out.ign"));
    let (code, text, errors) = exit_code_and_output(&scratch, "ignition merge good.ign warned.ign");
    assert!(code == 0 && text.contains("\"/a\"") && errors.contains("/colour"), "{errors}");
    scratch
        .run_kindling("ignition merge --spec 3.1.0 good.ign change.ign")
        .expect_failure("only translation to a newer spec");
}

#[test]
fn show_prints_counts_and_contents() {
    let scratch = scratch_with_configs();
    let text = scratch.run_kindling("ignition show warned.ign").expect_text();
    assert!(text.starts_with("warned.ign: spec 3.3.0\nMerges:  0\nStorage: 1 files, "), "{text}");
    assert!(text.contains("\nwarned.ign:2: /colour: warning: "), "{text}");
    assert!(text.ends_with("        \"path\": \"/a\"\n      }\n    ]\n  }\n}\n"), "{text}");
    let json = scratch.command(["ignition", "show", "--json"]).stdin(CONFIG).run().expect_text();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["summary"]["users"], serde_json::json!(["core"]));
    let removed = r#"{"ignition":{"version":"3.2.0"},"passwd":{"users":[{"name":"a","shouldExist":false}]}}"#;
    let text = scratch.command(["ignition", "show"]).stdin(removed).run().expect_text();
    assert!(text.contains("\nUsers:   none\nRemoved: a\n"), "{text}");
    assert_eq!(json["config"], serde_json::from_str::<Value>(CONFIG).unwrap());
    scratch.run_kindling("ignition show broken.ign").expect_failure("not valid JSON");
}

#[test]
fn wrong_usage_is_refused() {
    let scratch = scratch_with_configs();
    scratch.run_kindling("ignition merge good.ign").expect_usage_error("<CHILD>");
    scratch
        .run_kindling("ignition merge --spec 3.1 good.ign change.ign")
        .expect_usage_error("supported are 3.0.0 to 3.6.0");
    scratch.run_kindling("ignition merge - -").expect_failure("stdin can be read only once");
    scratch.run_kindling("ignition validate gone.ign").expect_failure("opening gone.ign");
}

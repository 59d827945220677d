//! `kindling ignition`: findings with their lines, merges, and exit codes that scripts can go by.

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

fn scratch() -> Scratch {
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

/// Runs a command that finds something: what it prints to both streams, and its exit code.
#[track_caller]
fn outcome(scratch: &Scratch, line: &str) -> (i32, String, String) {
    let output = scratch.kindling(line);
    let text = output.text().to_owned();
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    (output.status.code().unwrap(), text, output.stderr)
}

#[test]
fn good_configs_are_passed_in_silence() {
    let scratch = scratch();
    assert_eq!(scratch.kindling("ignition validate --strict good.ign change.ign").printed(), "");
    let piped = scratch.command(["ignition", "validate", "-"]).stdin(CONFIG);
    assert_eq!(piped.output().printed(), "");
    assert_eq!(scratch.command(["ignition", "validate"]).stdin(CONFIG).output().printed(), "");
}

#[test]
fn findings_name_file_and_line() {
    let scratch = scratch();
    let warnings = "warned.ign:2:11: warning: /colour: unknown key: Ignition ignores it\n\
        warned.ign:3:46: warning: /storage/files/0/mode: the mode 644 is octal 1204; octal 644 is written as 420\n";
    let unknown = "warned.ign:2:11: warning: /colour: unknown key: Ignition ignores it\n";
    let special = "warned.ign:3:46: warning: /storage/files/0/mode: spec 3.3.0 ignores the special bits of the mode \
        644 (octal 1204)\n";
    let misread = warnings.strip_prefix(unknown).unwrap();
    let all = format!("{unknown}{special}{misread}");
    assert_eq!(outcome(&scratch, "ignition validate warned.ign"), (0, all.clone(), String::new()));
    assert_eq!(outcome(&scratch, "ignition validate --strict warned.ign"), (1, all, String::new()));
    let own = format!("{unknown}{special}");
    assert_eq!(outcome(&scratch, "ignition validate --no-lint warned.ign"), (0, own, String::new()));
    let bad = "bad.ign:4:10: error: /storage/files/1/path: the path \"a\" is not absolute\n";
    assert_eq!(outcome(&scratch, "ignition validate good.ign bad.ign"), (1, bad.to_owned(), String::new()));
    let (code, text, _) = outcome(&scratch, "ignition validate broken.ign");
    assert_eq!((code, text.split(": not").next()), (1, Some("broken.ign:2:1: error: /")), "{text}");
    let piped = scratch.command(["ignition", "validate"]).stdin(BAD).output();
    assert!(piped.text().starts_with("stdin:4:10: error: "), "{}", piped.text());
}

#[test]
fn findings_are_json_for_programs() {
    let scratch = scratch();
    let (code, text, _) = outcome(&scratch, "ignition validate --json good.ign bad.ign");
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
fn configs_merge_in_their_order() {
    let scratch = scratch();
    let expected = r#"{"ignition":{"version":"3.3.0"},"kernelArguments":{"shouldExist":["quiet"]},"storage":{"files":[{"contents":{"source":"data:,b"},"mode":420,"path":"/etc/motd","user":{"name":"root"}}]}}"#;
    assert_eq!(scratch.kindling("ignition merge good.ign change.ign").printed(), format!("{expected}\n"));
    let back = scratch.kindling("ignition merge change.ign good.ign").printed();
    assert!(back.contains("data:,a"), "{back}");
    assert_eq!(scratch.kindling("ignition merge good.ign change.ign -o out.ign").printed(), "");
    assert_eq!(scratch.read("out.ign"), format!("{expected}\n").into_bytes());
    assert_eq!(
        scratch.kindling("ignition merge good.ign change.ign -o -").printed(),
        format!("{expected}\n")
    );
    assert!(!scratch.has("-"));
    let newer = scratch.kindling("ignition merge --pretty --spec 3.5.0 good.ign change.ign").printed();
    assert!(newer.contains("\n    \"version\": \"3.5.0\"\n"), "{newer}");
    let piped = scratch.command(["ignition", "merge", "-", "change.ign"]).stdin(GOOD).output();
    assert_eq!(piped.printed(), format!("{expected}\n"));
}

#[test]
fn nothing_is_written_where_a_config_or_the_result_is_bad() {
    let scratch = scratch();
    let (code, text, errors) = outcome(&scratch, "ignition merge good.ign bad.ign -o out.ign");
    assert_eq!((code, text.as_str()), (1, ""));
    assert!(errors.starts_with("bad.ign:4:10: error: /storage/files/1/path: "), "{errors}");
    let (code, text, errors) = outcome(&scratch, "ignition merge good.ign owned.ign -o out.ign");
    assert_eq!((code, text.as_str()), (1, ""));
    let both = "merged: error: /storage/files/0/user: an owner has either an id or a name\n";
    assert_eq!(errors, both);
    let (code, _, errors) = outcome(&scratch, "ignition merge --strict good.ign warned.ign -o out.ign");
    assert!(code == 1 && errors.contains("/colour"), "{errors}");
    assert!(!scratch.files().contains_key("out.ign"));
    let (code, text, errors) = outcome(&scratch, "ignition merge good.ign warned.ign");
    assert!(code == 0 && text.contains("\"/a\"") && errors.contains("/colour"), "{errors}");
    scratch.kindling("ignition merge --spec 3.1.0 good.ign change.ign").failure("only newer versions");
}

#[test]
fn show_counts_and_prints() {
    let scratch = scratch();
    let text = scratch.kindling("ignition show warned.ign").printed();
    assert!(text.starts_with("warned.ign: spec 3.3.0\nMerges:  0\nStorage: 1 files, "), "{text}");
    assert!(text.contains("\nwarned.ign:2:11: warning: /colour: "), "{text}");
    assert!(text.ends_with("        \"path\": \"/a\"\n      }\n    ]\n  }\n}\n"), "{text}");
    let json = scratch.command(["ignition", "show", "--json"]).stdin(CONFIG).output().printed();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["summary"]["users"], serde_json::json!(["core"]));
    let removed = r#"{"ignition":{"version":"3.2.0"},"passwd":{"users":[{"name":"a","shouldExist":false}]}}"#;
    let text = scratch.command(["ignition", "show"]).stdin(removed).output().printed();
    assert!(text.contains("\nUsers:   none\nRemoved: a\n"), "{text}");
    assert_eq!(json["config"], serde_json::from_str::<Value>(CONFIG).unwrap());
    scratch.kindling("ignition show broken.ign").failure("not valid JSON");
}

#[test]
fn wrong_usage_is_refused() {
    let scratch = scratch();
    scratch.kindling("ignition merge good.ign").usage("<CHILD>");
    scratch.kindling("ignition merge --spec 3.1 good.ign change.ign").usage("supported are 3.0.0 to 3.6.0");
    scratch.kindling("ignition merge - -").failure("stdin can be read only once");
    scratch.kindling("ignition validate gone.ign").failure("opening gone.ign");
}

//! `--json`: the form of errors is the same for all commands, and results are objects instead of a line of text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::{env, fs, io};

use serde_json::{Value, json};

use crate::full_featured_image;
use crate::infra_env::serve_text;
use crate::support::{ProgramRun, RunOutput, Scratch};

#[track_caller]
fn parse(output: &RunOutput) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn errors_have_one_form() {
    let scratch = full_featured_image().scratch_with_image();
    for (line, message) in [
        ("iso inspect missing.iso", "missing.iso"),
        ("iso verify missing.iso", "missing.iso"),
        ("iso kargs show missing.iso", "missing.iso"),
        ("ignition validate missing.ign", "missing.ign"),
        ("network check missing.yaml", "missing.yaml"),
        ("doctor --ca missing.pem http://127.0.0.1:1/x.iso", "missing.pem"),
        ("discovery apply image.iso missing.plan -o x.iso", "missing.plan"),
        ("discovery plan --base image.iso --manifests missing --service-url http://192.0.2.1", "missing"),
        ("boot-test --media http image.iso", "image.iso"),
        ("auth token --user --ec-private-key-file missing.pem", "missing.pem"),
        ("auth keys --out image.iso", "image.iso"),
        ("infra-env list --url http://127.0.0.1:1", "http://127.0.0.1:1"),
        (
            "simulate --url http://127.0.0.1:1 --infra-env 00000000-0000-4000-8000-000000000000",
            "http://127.0.0.1:1",
        ),
    ] {
        let output = scratch.run_kindling(&format!("{line} --json"));
        output.expect_failure("");
        let text = output.stdout_text();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let error = &last["error"];
        assert!(error["message"].as_str().unwrap().contains(message), "{line}: {text}");
        assert!(error["causes"].is_array() && error["findings"] == json!([]), "{line}: {text}");
        let first = output.stderr.split_once("Error: ").unwrap().1.lines().next().unwrap();
        assert_eq!(error["message"], first, "{line}");
        // Without the option, errors are only on stderr.
        let plain = scratch.run_kindling(line);
        assert!(plain.stdout.is_empty() || line.starts_with("simulate"), "{line}: {}", plain.stdout_text());
    }
    let differing = scratch.run_kindling("iso diff --json image.iso missing.iso");
    assert_eq!(differing.status.code(), Some(2));
    assert!(parse(&differing)["error"]["message"].as_str().unwrap().contains("missing.iso"));
    let streamed = scratch.run_kindling("discovery apply image.iso a.plan -o - --json");
    streamed.expect_usage_error("--json needs a file as --output");
}

#[test]
fn errors_of_inputs_have_findings() {
    let scratch = full_featured_image().scratch_with_image();
    scratch.write(
        "site/env.yaml",
        "kind: InfraEnv\nmetadata: {name: edge}\nspec: {pullSecretRef: {name: gone}}\n",
    );
    for line in [
        "discovery create --base image.iso --service-url http://192.0.2.1 --full x.iso",
        "discovery plan --base image.iso --service-url http://192.0.2.1",
        "infra-env create",
    ] {
        let output = scratch.run_kindling(&format!("{line} --manifests site --json"));
        output.expect_failure("error");
        let error = &parse(&output)["error"];
        let finding = &error["findings"][0];
        assert_eq!((&finding["severity"], &finding["line"]), (&json!("error"), &json!(3)), "{line}: {error}");
        assert_eq!(
            (&finding["file"], &finding["path"]),
            (&json!("site/env.yaml"), &json!("spec.pullSecretRef"))
        );
        assert!(finding["message"].as_str().unwrap().contains("gone"), "{error}");
    }
    assert!(!scratch.has_file("x.iso"));
}

#[test]
fn refused_networks_have_findings() {
    let scratch = Scratch::new();
    scratch.write("wrong.yaml", "kind: NMStateConfig\nmetadata: {name: node-0}\nspec: {interfaces: []}\n");
    let output = scratch.run_kindling("network keyfiles --json wrong.yaml");
    output.expect_failure("wrong.yaml:3: spec.config: error: NMStateConfig node-0 has no spec.config\n");
    let finding = json!({
        "severity": "error", "file": "wrong.yaml", "line": 3, "path": "spec.config",
        "message": "NMStateConfig node-0 has no spec.config",
    });
    let message = "1 error; nothing was written";
    assert_eq!(parse(&output), json!({"error": {"message": message, "causes": [], "findings": [finding]}}));
}

#[test]
fn paths_that_are_not_utf8_are_printed_with_a_replacement_character() {
    let scratch = Scratch::new();
    let directory = OsStr::from_bytes(b"k\xFF");
    let arguments = ["auth", "keys", "--json", "--out"].map(OsStr::new);
    let output = scratch.command(arguments.iter().copied().chain([directory])).run();
    let expected = json!({
        "private_key_file": "k\u{fffd}/ec-private-key.pem", "public_key_file": "k\u{fffd}/ec-public-key.pem",
    });
    assert_eq!(parse(&output), expected);
    output.expect_success();
    assert!(scratch.folder().join(directory).join("ec-public-key.pem").is_file());
}

#[test]
fn keys_and_tokens_are_printed_as_json() {
    let scratch = Scratch::new();
    let keys = parse(&scratch.run_kindling("auth keys --out keys --json"));
    let (private, public) = ("keys/ec-private-key.pem", "keys/ec-public-key.pem");
    assert_eq!(keys, json!({"private_key_file": private, "public_key_file": public}));
    assert!(scratch.has_file(private) && scratch.has_file(public));
    let variables = parse(&scratch.run_kindling("auth keys --env --json"));
    assert!(variables["EC_PRIVATE_KEY_PEM"].is_string() && variables["EC_PUBLIC_KEY_PEM"].is_string());
    let token = |options: &str| {
        parse(&scratch.run_kindling(&format!("auth token --json --ec-private-key-file {private} {options}")))
    };
    let limited = token("--user --expires 1h");
    assert_eq!(limited["token"].as_str().unwrap().split('.').count(), 3);
    assert!(limited["expires_at"].as_str().unwrap().ends_with('Z'), "{limited}");
    assert_eq!(token("--user --expires never")["expires_at"], Value::Null);
    assert_eq!(token("--infra-env 6ba7b810-9dad-11d1-80b4-00c04fd430c8")["expires_at"], Value::Null);
}

#[test]
fn kernel_arguments_are_printed_as_json() {
    let scratch = full_featured_image().scratch_with_image();
    scratch.run_kindling("iso kargs modify -a number=42 image.iso").expect_success();
    for option in ["", " --default"] {
        let text = scratch.run_kindling(&format!("iso kargs show image.iso{option}")).expect_text();
        let output = parse(&scratch.run_kindling(&format!("iso kargs show image.iso --json{option}")));
        assert_eq!(output, json!({"kernel_arguments": text.strip_suffix('\n').unwrap()}));
        assert_eq!(text.contains("number=42"), option.is_empty());
    }
}

/// Prepares a command that boots a machine, which writes `console text`, and waits for a marker.
fn boot_test(scratch: &Scratch, marker: &str) -> ProgramRun {
    let program = scratch.write("bin/qemu-system-x86_64", "#!/bin/sh\necho console text\n");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", scratch.path("bin").display(), env::var("PATH").unwrap());
    scratch.command(["boot-test", "--json", "--marker", marker, "image.iso"]).env("PATH", path)
}

#[test]
fn closed_stderr_does_not_prevent_json() {
    let scratch = Scratch::new();
    let run = |command: ProgramRun| {
        let (reader, stderr) = io::pipe().unwrap();
        drop(reader);
        let output = command.command().stdin(Stdio::null()).stderr(stderr).output().unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), value)
    };
    let (code, result) = run(boot_test(&scratch, "console"));
    assert_eq!((code, &result["seen"]), (Some(0), &json!(true)));
    let (code, result) = run(boot_test(&scratch, "marker"));
    assert_eq!((code, &result["seen"]), (Some(1), &json!(false)));
    let (code, result) = run(scratch.command(["iso", "inspect", "--json", "missing.iso"]));
    assert_eq!((code, &result["error"]["message"]), (Some(1), &json!("opening missing.iso")));
}

#[test]
fn boot_test_result_is_printed_as_json() {
    let scratch = Scratch::new();
    let run = |marker: &str| boot_test(&scratch, marker).run();
    let output = run("console");
    let result = parse(&output);
    assert_eq!((&result["seen"], &result["marker"]), (&json!(true), &json!("console")));
    assert!(result["seconds"].as_f64().is_some() && result["reason"].is_null(), "{result}");
    assert_eq!(result["readings"], json!([]));
    assert!(output.stderr.starts_with("console text\n"), "{}", output.stderr);
    assert_eq!(output.status.code(), Some(0));
    let missed = run("marker");
    let result = parse(&missed);
    assert_eq!((&result["seen"], &result["seconds"]), (&json!(false), &Value::Null));
    assert!(result["reason"].as_str().unwrap().starts_with("the machine ended"), "{result}");
    assert_eq!(missed.status.code(), Some(1));
}

#[test]
fn refusal_of_a_service_has_its_status() {
    let scratch = Scratch::new();
    let refusal = "{\"code\": \"409\", \"id\": 409, \"kind\": \"Error\", \"reason\": \"busy\"}";
    let url = serve_text("409 Conflict", refusal);
    let error = parse(&scratch.run_kindling(&format!("infra-env list --json --url {url}")));
    let message = "cannot list infra-envs: status 409: busy";
    assert_eq!(error["error"], json!({"message": message, "causes": [], "findings": [], "status": 409}));
}

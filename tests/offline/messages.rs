//! Typical mistakes of new users, with the complete message for each.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{RunOutput, Scratch};
use crate::{ROOTFS, SERVICE, SOURCE, run_create, scratch_with_site};

#[track_caller]
fn assert_refused(output: &RunOutput, stderr: &str) {
    assert_eq!(output.stderr, stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}

#[test]
fn versions_outside_the_known_range_are_a_warning() {
    let scratch = scratch_with_site("disconnected");
    let reason = "is not a known OpenShift version: expected 4.6 to 4.22";
    for (index, version) in ["3.11", "4.5", "4.23.0-ec.1", "4.99", "5.0.1"].iter().enumerate() {
        let output = run_create(
            &scratch,
            &["--full", &format!("{index}.iso"), "--openshift-version", version, "--json"],
        );
        assert_eq!(output.stderr, format!("--openshift-version: warning: {version} {reason}\n"));
        let summary: Value = serde_json::from_str(&output.expect_text()).unwrap();
        let finding = json!({"severity": "warning", "file": "--openshift-version", "message": format!("{version} {reason}")});
        assert_eq!(summary["findings"], json!([finding]));
    }
    for version in ["4.6", "4.18.3-multi", "4.22.7"] {
        let output =
            run_create(&scratch, &["--full", &format!("{version}.iso"), "--openshift-version", version]);
        assert_eq!(output.stderr, "");
        output.expect_success();
    }
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    scratch.write("manifests/infraenv.yaml", text.replace("\"4.16\"", "\"4.99\""));
    let output = run_create(&scratch, &["--full", "manifest.iso"]);
    assert_eq!(
        output.stderr,
        format!("manifests/infraenv.yaml:9: spec.osImageVersion: warning: 4.99 {reason}\n")
    );
    output.expect_success();
}

#[test]
fn loopback_service_urls_are_a_warning() {
    let scratch = scratch_with_site("disconnected");
    let create = |url: &str, image: &str, more: &[&str]| {
        let line =
            ["discovery", "create", "--manifests", "manifests", "--base", "base.iso", "--service-url", url];
        scratch.command(line.iter().chain(&["--full", image]).chain(more)).run()
    };
    let output = create("http://u:hunter2@127.0.0.1", "a.iso", &[]);
    let reason =
        "other machines cannot reach http://*****@127.0.0.1: its host is a loopback or unspecified address";
    assert_eq!(output.stderr, format!("--service-url: warning: {reason}\n"));
    output.expect_success();
    let output = create("http://localhost:8090", "b.iso", &["--strict"]);
    output.expect_failure("1 warning, an error because of --strict");
    assert!(
        output
            .stderr
            .starts_with("--service-url: warning: other machines cannot reach http://localhost:8090:"),
        "{}",
        output.stderr
    );
    assert!(!scratch.has_file("b.iso"));
    // The command refuses the URL before it downloads a base image.
    let line = "discovery create --manifests manifests --base http://127.0.0.1:1/x.iso --full c.iso --strict";
    let output = scratch.run_kindling(&format!("{line} --service-url http://localhost --images-dir cache"));
    output.expect_failure("Error: 1 warning, an error because of --strict; nothing was written\n");
    assert!(!scratch.has_file("cache"));
}

#[test]
fn swapped_arguments_are_recognised() {
    let scratch = scratch_with_site("disconnected");
    scratch.command(["discovery", "plan", "-o", "site.plan"].iter().chain(&SOURCE)).run().expect_success();
    let said = |arguments: &str| {
        format!("Error: base.iso: not a plan file but an ISO image; did you swap {arguments}?\n")
    };
    assert_refused(
        &scratch.run_kindling("discovery apply site.plan base.iso -o a.iso"),
        &said("BASE and PLAN"),
    );
    assert_refused(&scratch.run_kindling("iso verify --plan base.iso site.plan"), &said("ISO and --plan"));
    for command in ["create --full a.iso", "plan"] {
        let line = format!("discovery {command} --from-plan base.iso --base site.plan");
        assert_refused(&scratch.run_kindling(&line), &said("--base and --from-plan"));
    }
    let base = scratch.read("base.iso");
    let output = scratch.command(["discovery", "apply", "site.plan", "-", "-o", "a.iso"]).stdin(base).run();
    assert_refused(&output, &said("BASE and PLAN").replace("base.iso", "stdin"));
    assert_refused(
        &scratch.run_kindling("discovery apply site.plan site.plan -o a.iso"),
        "Error: site.plan: not a base image but a plan file; BASE comes before PLAN\n",
    );
    assert!(!scratch.has_file("a.iso"));
    let plan = scratch.read("site.plan");
    scratch
        .command(["discovery", "apply", "base.iso", "-", "-o", "a.iso"])
        .stdin(plan)
        .run()
        .expect_success();
}

/// A base image is about 1 GiB long. A plan file is a few KiB long, and its reader refuses larger files.
#[test]
fn swapped_arguments_are_recognised_with_a_large_image() {
    let scratch = Scratch::new();
    crate::base_recipe().rootfs_len(80 << 20).write_to(&scratch.path("base.iso")).unwrap();
    scratch.write("site.plan", "{}");
    let message = "Error: base.iso: not a plan file but an ISO image; did you swap BASE and PLAN?\n";
    assert_refused(&scratch.run_kindling("discovery apply site.plan base.iso -o a.iso"), message);
}

#[test]
fn other_files_are_not_plan_files() {
    let scratch = scratch_with_site("disconnected");
    scratch.write("site.plan", "kind: InfraEnv\n");
    let message =
        "Error: site.plan\n\nCaused by:\n    not a plan file\n    expected value at line 1 column 1\n";
    assert_refused(&scratch.run_kindling("discovery apply base.iso site.plan -o a.iso"), message);
}

#[test]
fn missing_directories_are_named_and_not_created() {
    let scratch = scratch_with_site("disconnected");
    scratch.command(["discovery", "plan", "-o", "site.plan"].iter().chain(&SOURCE)).run().expect_success();
    let before = scratch.names();
    let message = |option: &str, path: &str, directory: &str| {
        format!("Error: {option} {path}: the directory {directory} does not exist; create it first\n")
    };
    for option in ["--full", "--minimal", "--rootfs", "--pxe", "--per-host"] {
        let output = run_create(&scratch, &[option, "no/such/x.iso", "--rootfs-url", ROOTFS]);
        assert_refused(&output, &message(option, "no/such/x.iso", "no/such"));
    }
    // The error occurs before the download of a base image.
    let line = format!("--manifests manifests --base http://127.0.0.1:1/x.iso --service-url {SERVICE}");
    let output = scratch.run_kindling(&format!("discovery create {line} --full no/x.iso"));
    assert_refused(&output, &message("--full", "no/x.iso", "no"));
    let output = scratch.run_kindling(&format!("discovery plan {line} -o no/x.plan"));
    assert_refused(&output, &message("--output", "no/x.plan", "no"));
    let output = scratch.run_kindling("discovery apply base.iso site.plan -o no/x.iso");
    assert_refused(&output, &message("--output", "no/x.iso", "no"));
    let output =
        scratch.run_kindling("discovery create --from-plan site.plan --base base.iso --full no/x.iso");
    assert_refused(&output, &message("--full", "no/x.iso", "no"));
    let output = run_create(&scratch, &["--full", "base.iso/x.iso"]);
    assert_refused(&output, "Error: --full base.iso/x.iso: base.iso is not a directory\n");
    assert_eq!(scratch.names(), before);
    assert!(!scratch.has_file("no"));
}

#[test]
fn directories_of_several_files_are_created() {
    let scratch = scratch_with_site("bonded");
    let options = ["--pxe", "pxe/", "--per-host", "hosts", "--full", "pxe/full.iso", "--rootfs-url", ROOTFS];
    run_create(&scratch, &options).expect_success();
    for name in ["pxe/initrd.img", "pxe/full.iso", "hosts/master-0.iso"] {
        assert!(scratch.has_file(name), "{name}");
    }
}

#[test]
fn lists_of_images_that_are_not_json_are_refused() {
    let scratch = scratch_with_site("disconnected");
    scratch.write("list.json", "[");
    for (options, message) in [
        (
            "--os-images list.json",
            "--os-images: the text is not a JSON list, which starts with `[`; to read the file list.json, write @list.json",
        ),
        (
            "--os-images none.json",
            "--os-images: the text is not a JSON list, which starts with `[`; to read a file, write @FILE",
        ),
        (
            "--os-images {}",
            "--os-images: the text is not a JSON list, which starts with `[`; to read a file, write @FILE",
        ),
        (
            "--os-images @list.json",
            "--os-images: list.json: the text is not valid JSON: EOF while parsing a list at line 1 column 1",
        ),
        (
            "--os-images-file list.json",
            "--os-images-file: list.json: the text is not valid JSON: EOF while parsing a list at line 1 column 1",
        ),
        ("--os-images [1]", "--os-images: [0] must be an object"),
    ] {
        let line = format!(
            "discovery create --manifests manifests --service-url {SERVICE} --os-image 4.18 --full a.iso {options}"
        );
        assert_refused(&scratch.run_kindling(&line), &format!("Error: {message}\n"));
        assert_refused(
            &scratch.run_kindling(&format!("serve --listen 127.0.0.1:0 {options}")),
            &format!("Error: {message}\n"),
        );
    }
    for option in ["--release-images", "--ignored-openshift-versions"] {
        let output = scratch.run_kindling(&format!("serve --listen 127.0.0.1:0 {option} 4.18,4.19"));
        let message = format!(
            "Error: {option}: the text is not a JSON list, which starts with `[`; to read a file, write @FILE\n"
        );
        assert_refused(&output, &message);
    }
}

#[test]
fn errors_about_lists_name_the_variable_in_use() {
    let scratch = scratch_with_site("disconnected");
    scratch.write("list.json", "[1]");
    for (variable, value, said) in [
        (
            "RHCOS_VERSIONS",
            "4.18: x",
            "RHCOS_VERSIONS: the text is not a JSON list, which starts with `[`; to read a file, write @FILE",
        ),
        ("MYAPP_OS_IMAGES", "[1]", "MYAPP_OS_IMAGES: [0] must be an object"),
        ("KINDLING_OS_IMAGES_FILE", "list.json", "KINDLING_OS_IMAGES_FILE: list.json: [0] must be an object"),
    ] {
        let output = scratch.command(["serve", "--listen", "127.0.0.1:0"]).env(variable, value).run();
        assert_refused(&output, &format!("Error: {said}\n"));
    }
}

/// Lists contain the URLs of mirrors, which may include a password.
#[test]
fn errors_about_lists_do_not_repeat_their_content() {
    let scratch = Scratch::new();
    let object = r#"{"url": "http://me:secret@mirror/a.iso"}"#;
    scratch.write("object.json", object);
    for value in [
        "http://me:secret@mirror/list.json",
        object,
        "@object.json",
        r#""http://me:secret@mirror""#,
        r#"[{"url": "http://me:secret@mirror/a.iso",}]"#,
        r#"[{"url": "http://me:secret@mirror/a.iso"}"#,
    ] {
        for option in ["--os-images", "--release-images", "--ignored-openshift-versions"] {
            let output = scratch.command(["serve", "--listen", "127.0.0.1:0", option, value]).run();
            output.expect_failure("the text is not ");
            assert!(!output.stderr.contains("secret"), "{}", output.stderr);
        }
    }
    let broken = r#"[{"url": "a",}]"#;
    scratch
        .command(["serve", "--listen", "127.0.0.1:0", "--os-images", broken])
        .run()
        .expect_failure("the text is not valid JSON: key must be a string at line 1 column 14");
}

#[test]
fn misspelt_keys_of_lists_are_named_with_the_nearest_known_key() {
    let scratch = Scratch::new();
    let image =
        r#"{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://a/b", "version": "1"}"#;
    let list = |second: &str| format!("[{image}, {second}]");
    scratch.write("list.json", list(&image.replace("\"url\"", "\"ulr\"")));
    let message = "[1].ulr is not a known key (did you mean url?); known keys are openshift_version, ";
    for (options, source) in
        [("--os-images @list.json", "--os-images"), ("--os-images-file list.json", "--os-images-file")]
    {
        scratch
            .run_kindling(&format!("serve --listen 127.0.0.1:0 {options}"))
            .expect_failure(&format!("Error: {source}: list.json: {message}"));
    }
    let release =
        r#"{"openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "a/b", "version": "4.18.1"}"#;
    for (key, wrong) in [("\"url\"", "ulr"), ("\"version\"", "verison")] {
        let releases = format!("[{}]", release.replace(key, &format!("\"{wrong}\"")));
        let line =
            ["serve", "--listen", "127.0.0.1:0", "--os-images", &list(image), "--release-images", &releases];
        let suggestion = key.trim_matches('"');
        scratch.command(line).run().expect_failure(&format!(
            "Error: --release-images: [0].{wrong} is not a known key (did you mean {suggestion}?); known keys are "
        ));
    }
}

#[test]
fn misused_options_are_named_with_the_reason() {
    let scratch = scratch_with_site("disconnected");
    scratch.write("page.iso", format!("<!DOCTYPE html>{}", " ".repeat(40_000)));
    scratch.write("short.iso", &scratch.read("base.iso")[..300_000]);
    let id = "--infra-env-id 11111111-1111-1111-1111-111111111111";
    scratch.write("secret.json", r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#);
    scratch.write("broken.json", "{\"auths\":");
    let good = [
        ("--base", "base.iso"),
        ("--pull-secret", "secret.json"),
        ("--service-url", "http://192.0.2.1:8090"),
        ("--openshift-version", "4.18"),
    ];
    let run = |option: &str, value: &str| {
        let options =
            good.map(|(name, usual)| format!("{name} {}", if name == option { value } else { usual }));
        let extra = if good.iter().any(|(name, _)| *name == option) {
            String::new()
        } else {
            format!("{option} {value}")
        };
        let line = format!("discovery create {id} --full full.iso {} {extra}", options.join(" "));
        scratch.run_kindling(&line)
    };
    let missing = "No such file or directory";
    for (option, value, phrases) in [
        ("--base", "none.iso", &["--base: cannot use none.iso", missing][..]),
        ("--base", ".", &["--base: cannot use .", "is a directory"]),
        ("--base", "page.iso", &["--base: cannot use page.iso", "the file starts with `<`, like a web page"]),
        (
            "--base",
            "short.iso",
            &["--base: cannot use short.iso", "ISO image is incomplete", "download it again"],
        ),
        ("--pull-secret", "none.json", &["--pull-secret: cannot read none.json", missing]),
        (
            "--pull-secret",
            "broken.json",
            &["broken.json: error: pull secret: not valid JSON at line 1, column 9"],
        ),
        ("--pull-secret", "/dev/null", &["/dev/null: error: pull secret is empty"]),
        ("--ssh-key", "none.pub", &["--ssh-key: cannot read none.pub", missing]),
        ("--network", "none.yaml", &["--network", "none.yaml", missing]),
        (
            "--manifests",
            "none",
            &["--manifests: none does not exist; name a directory of manifests or one manifest file"],
        ),
        (
            "--openshift-version",
            "latest",
            &["--openshift-version: error: \"latest\" is not an OpenShift version such as 4.18"],
        ),
        (
            "--service-url",
            "192.0.2.1:8090",
            &["--service-url \"192.0.2.1:8090\": does not start with http:// or https://"],
        ),
        (
            "--service-url",
            "kindling.example",
            &["--service-url \"kindling.example\": does not start with http:// or https://"],
        ),
    ] {
        let output = run(option, value);
        for phrase in phrases {
            output.expect_failure(phrase);
        }
        assert!(!scratch.has_file("full.iso"), "{option} {value}");
    }
}

#[test]
fn unknown_or_missing_base_image_names_the_option() {
    let scratch = scratch_with_site("disconnected");
    scratch.write("secret.json", r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#);
    let id = "--infra-env-id 11111111-1111-1111-1111-111111111111";
    let list = r#"[{"openshift_version":"4.18","cpu_architecture":"x86_64","url":"http://127.0.0.1:1/","version":"1"}]"#;
    let line = format!(
        "discovery create {id} --full a.iso --pull-secret secret.json --service-url http://a --os-image latest"
    );
    let run = |line: &str| scratch.command(line.split(' ').chain(["--os-images", list])).run();
    run(&line)
        .expect_failure("--os-image: no base image for \"latest\" and x86_64; the list has 4.18 (x86_64)\n");
    run(&line.replace("latest", "4.18 --arch arm64"))
        .expect_failure("--os-image: no base image for \"4.18\" and arm64; the list has 4.18 (x86_64)\n");
    let line = format!("discovery create {id} --full a.iso --pull-secret secret.json --service-url http://a");
    scratch.run_kindling(&line).expect_usage_error("<--base <ISO|URL>|--os-image <VERSION>>");
}

#[test]
fn image_paths_that_are_not_utf8_are_printed_as_json() {
    let scratch = scratch_with_site("disconnected");
    scratch.command(["discovery", "plan", "-o", "site.plan"].iter().chain(&SOURCE)).run().expect_success();
    for (line, file) in [
        ("discovery apply base.iso site.plan --json -o", b"a\xFF"),
        ("discovery create --from-plan site.plan --base base.iso --json --full", b"b\xFF"),
    ] {
        let path = OsStr::from_bytes(file);
        let output = scratch.command(line.split(' ').map(OsStr::new).chain([path])).run();
        let printed: Value = serde_json::from_str(&output.expect_text()).unwrap();
        assert_eq!(printed["images"][0]["path"], path.to_string_lossy().as_ref(), "{line}");
        assert!(scratch.folder().join(path).is_file(), "{line}");
    }
}

#[test]
fn equal_findings_of_many_documents_are_one_group() {
    let scratch = scratch_with_site("bonded");
    let network = |number: usize| {
        format!(
            "apiVersion: agent-install.openshift.io/v1beta1\nkind: NMStateConfig\nmetadata:\n  name: host-{number}\n\
             spec:\n  interfaces:\n  - name: eth0\n    macAddress: 52:54:00:00:00:{number:02x}\n  config:\n    \
             interfaces:\n    - name: eth0\n      type: ethernet\n      state: up\n      mtu: nonsense\n"
        )
    };
    let documents: Vec<String> = (0..100).map(network).collect();
    scratch.write("hosts.yaml", documents.join("---\n"));
    let output = scratch.run_kindling("network check hosts.yaml");
    let text = output.stdout_text();
    assert!(text.contains(" and 96 more\n"), "{text}");
    assert!(text.ends_with("100 hosts, 100 errors, 0 warnings\n"), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    let json = scratch.run_kindling("network check --json hosts.yaml");
    let json: Value = serde_json::from_str(json.stdout_text()).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 100);
    for (number, document) in documents.iter().enumerate() {
        scratch.write(&format!("manifests/host-{number}.yaml"), document);
    }
    let output = run_create(&scratch, &["--full", "full.iso"]);
    assert!(output.stderr.contains(" and 96 more\n"), "{}", output.stderr);
    let left_out = "metadata.labels: warning: the InfraEnv's selector requires labels, and this host without labels is \
                    left out\n  the same at ";
    assert!(output.stderr.contains(left_out), "{}", output.stderr);
    let warnings = output.stderr.matches("metadata.labels: warning").count();
    assert!(warnings <= 4, "{}", output.stderr);
    output.expect_success();
}

#[test]
fn directories_that_cannot_be_used_name_the_option() {
    let scratch = scratch_with_site("bonded");
    scratch.write("file", "");
    std::os::unix::fs::symlink("nowhere", scratch.path("link")).unwrap();
    let file = "file is not a directory; remove it, or use another path for";
    let link =
        "link is a symbolic link whose target does not exist; create the target, or use another path for";
    for option in ["--pxe", "--per-host"] {
        for (path, reason) in [("file", file), ("link", link)] {
            let output = run_create(&scratch, &[option, path, "--rootfs-url", ROOTFS]);
            output.expect_failure(&format!("cannot use directory {path}: {reason} {option}"));
        }
    }
}

/// The goldens of the sites contain this text.
#[test]
fn private_files_are_reported_with_the_command_for_a_web_server() {
    let scratch = scratch_with_site("disconnected");
    let options = ["--full", "the full.iso", "--pxe", "net boot", "--rootfs-url", ROOTFS, "--json"];
    let summary: Value = serde_json::from_str(&run_create(&scratch, &options).expect_text()).unwrap();
    let private = |image: &&Value| image["private"].as_bool().unwrap();
    let images = summary["images"].as_array().unwrap();
    let names: Vec<&str> =
        images.iter().filter(private).map(|image| image["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["the full.iso", "net boot/initrd.img"]);
    for image in images {
        let mode = scratch.path(image["path"].as_str().unwrap()).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777 == 0o600, image["private"] == true, "{image}");
    }
    let files = "'the full.iso' 'net boot/initrd.img'";
    assert_eq!(
        summary["private_files"],
        json!({
            "mode": "0600",
            "reason": "they contain the pull secret",
            "share_with_group": format!("chgrp GROUP {files} && chmod 640 {files}"),
        })
    );
    let public = ["--rootfs", "rootfs.img", "--json"];
    let summary: Value = serde_json::from_str(&run_create(&scratch, &public).expect_text()).unwrap();
    assert_eq!(summary["private_files"], Value::Null);
    let many = crate::scratch_with_site("bonded");
    let text = run_create(&many, &["--per-host", "it's", "--rootfs-url", ROOTFS]).expect_text();
    let note = "\nFiles with mode 0600 can be read by their owner only: they contain the pull secret.\n\
                A web server that runs as another user returns 403 until its group can read them:\n  \
                chgrp GROUP 'it'\\''s/master-0.iso'";
    assert!(text.contains(note), "{text}");
}

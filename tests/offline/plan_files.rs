//! Plan files: another machine creates the same image from them.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use serde_json::{Value, json};

use crate::support::{RunOutput, Scratch, report_skipped, require_tool};
use crate::{BASE, ROOTFS, SOURCE, run_create, scratch_with_site};

fn run_plan(scratch: &Scratch, options: &[&str]) -> RunOutput {
    scratch.command(["discovery", "plan"].iter().chain(&SOURCE).chain(options)).run()
}

/// Creates a site with an image of each form, and their plan files.
fn scratch_with_plans() -> Scratch {
    let scratch = scratch_with_site("bonded");
    let images = ["--full", "full.iso", "--minimal", "minimal.iso", "--pxe", "pxe", "--rootfs-url", ROOTFS];
    run_create(&scratch, &images).expect_success();
    for form in ["full", "minimal", "initrd"] {
        let output =
            run_plan(&scratch, &["--image", form, "--rootfs-url", ROOTFS, "-o", &format!("{form}.plan")]);
        assert!(output.stderr.contains("the file contains secrets (mode 0600)"), "{}", output.stderr);
        output.expect_success();
        let plan = scratch.path(&format!("{form}.plan")).metadata().unwrap();
        assert_eq!(plan.permissions().mode() & 0o777, 0o600);
        assert!(plan.len() < 16 << 10, "{form}: {} bytes", plan.len());
    }
    scratch
}

#[test]
fn plan_creates_the_same_bytes_on_another_machine() {
    let here = scratch_with_plans();
    let there = Scratch::new();
    there.write("elsewhere/live.iso", &*BASE);
    for (form, image) in [("full", "full.iso"), ("minimal", "minimal.iso"), ("initrd", "pxe/initrd.img")] {
        let name = format!("{form}.plan");
        there.write(&name, here.read(&name));
        let line = format!("discovery apply elsewhere/live.iso {name} -o {form}.out");
        let text = there
            .command(line.split(' '))
            .env("TZ", "Pacific/Auckland")
            .env("LC_ALL", "de_DE.UTF-8")
            .env("HOME", "/nonexistent")
            .run()
            .expect_text();
        assert!(text.contains("as planned"), "{text}");
        assert!(there.read(&format!("{form}.out")) == here.read(image), "{form}");
    }
    let text = there.run_kindling("iso verify --plan minimal.plan minimal.out").expect_text();
    assert!(text.contains("plan               ok"), "{text}");
    let output = there.run_kindling("iso verify --plan full.plan minimal.out");
    assert!(output.stdout_text().contains("plan               WRONG"), "{}", output.stdout_text());
    assert_eq!(output.status.code(), Some(1));
    let create = "discovery create --from-plan minimal.plan --base elsewhere/live.iso --json --minimal";
    for (line, name) in
        [(create, "again.iso"), ("discovery apply elsewhere/live.iso minimal.plan --json -o", "a.iso")]
    {
        let text = there.run_kindling(&format!("{line} {name}")).expect_text();
        let bytes = there.read(name);
        assert!(bytes == here.read("minimal.iso"));
        let mut printed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(printed["images"][0]["sha256"].take().as_str().unwrap().len(), 64);
        let image = json!({"path": name, "what": "minimal ISO", "size": bytes.len(), "sha256": null, "private": true});
        assert_eq!(printed, json!({ "images": [image] }));
    }
    let text = there
        .run_kindling("discovery plan --from-plan full.plan --base elsewhere/live.iso --json")
        .expect_text();
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["image"]["what"], "full ISO");
}

#[test]
fn applied_plan_may_be_streamed() {
    let scratch = scratch_with_plans();
    let output = scratch.run_kindling("discovery apply base.iso minimal.plan -o -");
    assert!(
        output.stderr.contains("stdout: minimal ISO") && output.stderr.contains("as planned"),
        "{}",
        output.stderr
    );
    assert!(output.expect_success() == scratch.read("minimal.iso"));
    assert!(!scratch.has_file("-"));
    let text = String::from_utf8(scratch.read("minimal.plan")).unwrap();
    let sha256 =
        serde_json::from_str::<Value>(&text).unwrap()["result"]["sha256"].as_str().unwrap().to_owned();
    scratch.write("bad.plan", text.replacen(&sha256, &"0".repeat(64), 1));
    let output = scratch.run_kindling("discovery apply base.iso bad.plan -o -");
    output.expect_failure("whose layout differs");
    assert!(output.stdout.is_empty());
    run_plan(&scratch, &["-o", "-"]).expect_usage_error("plan files cannot be written to stdout");
    let line = "discovery create --from-plan full.plan --base base.iso --arch s390x --full other.iso";
    scratch.run_kindling(line).expect_failure("--arch: base image base.iso is for x86_64");
}

#[test]
fn output_is_independent_of_user_and_time() {
    let Some(faketime) = require_tool("faketime") else { return };
    let here = scratch_with_plans();
    // Makes the files readable for another user.
    let place = tempfile::TempDir::new().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    for name in ["base.iso", "minimal.plan"] {
        std::fs::copy(here.path(name), place.path().join(name)).unwrap();
        std::fs::set_permissions(place.path().join(name), PermissionsExt::from_mode(0o644)).unwrap();
    }
    let program = place.path().join("kindling");
    std::fs::copy(env!("CARGO_BIN_EXE_kindling"), &program).unwrap();
    let mut command = std::process::Command::new(faketime);
    command.arg("2031-02-03 04:05:06").arg(&program).current_dir(place.path());
    command.args(["discovery", "apply", "base.iso", "minimal.plan", "-o", "out.iso"]);
    if rustix::process::geteuid().is_root() {
        command.uid(65534);
    } else {
        report_skipped("not root, so images are applied as the same user");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read(place.path().join("out.iso")).unwrap() == here.read("minimal.iso"));
}

#[test]
fn plan_is_refused_for_another_base_image() {
    let scratch = scratch_with_plans();
    let mut other = BASE.clone();
    *other.last_mut().unwrap() ^= 1;
    scratch.write("other.iso", other);
    let output = scratch.run_kindling("discovery apply other.iso full.plan -o out.iso");
    output.expect_failure("other.iso is not the base image of this plan");
    assert!(!scratch.has_file("out.iso"));
}

#[test]
fn rejects_invalid_plan_files() {
    let scratch = scratch_with_plans();
    let text = String::from_utf8(scratch.read("minimal.plan")).unwrap();
    let sha256 =
        serde_json::from_str::<Value>(&text).unwrap()["result"]["sha256"].as_str().unwrap().to_owned();
    for (from, to, said) in [
        ("{", "[", "not a plan file"),
        ("\"kindling_plan\": 1", "\"kindling_plan\": 2", "plan file has format version 2"),
        ("\"made_by\"", "\"made_for\"", "not a plan file"),
        ("\"config\": \"", "\"config\": \"*", "config is not valid base64"),
        ("\"form\": \"minimal\"", "\"form\": \"maximal\"", "not a plan file"),
        (sha256.as_str(), &"0".repeat(64), "whose layout differs"),
        ("\"operation\": \"append\"", "\"operation\": \"guess\"", "not a plan file"),
        (ROOTFS, "http://192.0.2.9/rootfs.img", "whose layout differs"),
    ] {
        assert!(text.contains(from), "{from}");
        scratch.write("bad.plan", text.replacen(from, to, 1));
        scratch.run_kindling("discovery apply base.iso bad.plan -o out.iso").expect_failure(said);
        assert!(!scratch.has_file("out.iso"), "{to}");
    }
    scratch.run_kindling("discovery apply base.iso gone.plan -o out.iso").expect_failure("gone.plan");
    scratch
        .run_kindling("discovery create --from-plan full.plan --base base.iso --minimal out.iso")
        .expect_failure("the plan file is for a full ISO; use --full as the only output option");
}

#[test]
fn dry_run_writes_nothing() {
    let scratch = scratch_with_site("bonded");
    let before = scratch.names();
    let text = run_plan(&scratch, &["--image", "minimal", "--rootfs-url", ROOTFS]).expect_text();
    assert!(text.contains("minimal ISO") && text.contains("extents"), "{text}");
    assert_eq!(scratch.names(), before);
    run_plan(&scratch, &["--image", "minimal"]).expect_usage_error("--rootfs-url");
}

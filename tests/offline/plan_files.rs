//! Plan files: the same bytes elsewhere, and nothing else.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use serde_json::Value;

use crate::support::{Output, Scratch, require_tool};
use crate::{BASE, ROOTFS, SOURCE, create, scratch};

fn plan(scratch: &Scratch, options: &[&str]) -> Output {
    scratch.command(["discovery", "plan"].iter().chain(&SOURCE).chain(options)).output()
}

/// A site whose image of each form was made, with its plan file.
fn planned() -> Scratch {
    let scratch = scratch("bonded");
    let images = ["--full", "full.iso", "--minimal", "minimal.iso", "--pxe", "pxe", "--rootfs-url", ROOTFS];
    create(&scratch, &images).success();
    for form in ["full", "minimal", "initrd"] {
        let output =
            plan(&scratch, &["--image", form, "--rootfs-url", ROOTFS, "-o", &format!("{form}.plan")]);
        assert!(output.stderr.contains("the file contains secrets (mode 0600)"), "{}", output.stderr);
        output.success();
        let plan = scratch.path(&format!("{form}.plan")).metadata().unwrap();
        assert_eq!(plan.permissions().mode() & 0o777, 0o600);
        assert!(plan.len() < 16 << 10, "{form}: {} bytes", plan.len());
    }
    scratch
}

#[test]
fn a_plan_gives_the_same_bytes_elsewhere() {
    let here = planned();
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
            .output()
            .printed();
        assert!(text.contains("as planned"), "{text}");
        assert!(there.read(&format!("{form}.out")) == here.read(image), "{form}");
    }
    let text = there.kindling("iso verify --plan minimal.plan minimal.out").printed();
    assert!(text.contains("plan               ok"), "{text}");
    let output = there.kindling("iso verify --plan full.plan minimal.out");
    assert!(output.text().contains("plan               WRONG"), "{}", output.text());
    assert_eq!(output.status.code(), Some(1));
    let line = "discovery create --from-plan minimal.plan --base elsewhere/live.iso --minimal again.iso";
    there.kindling(line).success();
    assert!(there.read("again.iso") == here.read("minimal.iso"));
    let text =
        there.kindling("discovery plan --from-plan full.plan --base elsewhere/live.iso --json").printed();
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["image"]["what"], "full ISO");
}

#[test]
fn the_image_of_a_plan_may_be_a_stream() {
    let scratch = planned();
    let output = scratch.kindling("discovery apply base.iso minimal.plan -o -");
    assert!(
        output.stderr.contains("stdout: minimal ISO") && output.stderr.contains("as planned"),
        "{}",
        output.stderr
    );
    assert!(output.success() == scratch.read("minimal.iso"));
    assert!(!scratch.has("-"));
    let text = String::from_utf8(scratch.read("minimal.plan")).unwrap();
    let sha256 =
        serde_json::from_str::<Value>(&text).unwrap()["result"]["sha256"].as_str().unwrap().to_owned();
    scratch.write("bad.plan", text.replacen(&sha256, &"0".repeat(64), 1));
    let output = scratch.kindling("discovery apply base.iso bad.plan -o -");
    output.failure("lays the image out otherwise");
    assert!(output.stdout.is_empty());
    plan(&scratch, &["-o", "-"]).usage("plan files are not written to stdout");
    let line = "discovery create --from-plan full.plan --base base.iso --arch s390x --full other.iso";
    scratch.kindling(line).failure("--arch: the live image base.iso is for x86_64");
}

#[test]
fn another_user_at_another_time_gets_the_same_bytes() {
    let Some(faketime) = require_tool("faketime") else { return };
    let here = planned();
    // What another user may reach.
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
        eprintln!("NOTICE: not root; the same user is taken");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read(place.path().join("out.iso")).unwrap() == here.read("minimal.iso"));
}

#[test]
fn a_plan_is_for_one_live_image() {
    let scratch = planned();
    let mut other = BASE.clone();
    *other.last_mut().unwrap() ^= 1;
    scratch.write("other.iso", other);
    let output = scratch.kindling("discovery apply other.iso full.plan -o out.iso");
    output.failure("other.iso is not the live image of this plan");
    assert!(!scratch.has("out.iso"));
}

#[test]
fn what_is_no_plan_is_refused() {
    let scratch = planned();
    let text = String::from_utf8(scratch.read("minimal.plan")).unwrap();
    let sha256 =
        serde_json::from_str::<Value>(&text).unwrap()["result"]["sha256"].as_str().unwrap().to_owned();
    for (from, to, said) in [
        ("{", "[", "not a plan file"),
        ("\"kindling_plan\": 1", "\"kindling_plan\": 2", "it has version 2 of the format"),
        ("\"made_by\"", "\"made_for\"", "not a plan file"),
        ("\"config\": \"", "\"config\": \"*", "config is no base64"),
        ("\"form\": \"minimal\"", "\"form\": \"maximal\"", "not a plan file"),
        (sha256.as_str(), &"0".repeat(64), "lays the image out otherwise"),
        ("\"operation\": \"append\"", "\"operation\": \"guess\"", "not a plan file"),
        (ROOTFS, "http://192.0.2.9/rootfs.img", "lays the image out otherwise"),
    ] {
        assert!(text.contains(from), "{from}");
        scratch.write("bad.plan", text.replacen(from, to, 1));
        scratch.kindling("discovery apply base.iso bad.plan -o out.iso").failure(said);
        assert!(!scratch.has("out.iso"), "{to}");
    }
    scratch.kindling("discovery apply base.iso gone.plan -o out.iso").failure("gone.plan");
    scratch
        .kindling("discovery create --from-plan full.plan --base base.iso --minimal out.iso")
        .failure("the plan is one of a full ISO: with it, there is --full alone");
}

#[test]
fn a_dry_run_writes_nothing() {
    let scratch = scratch("bonded");
    let before = scratch.names();
    let text = plan(&scratch, &["--image", "minimal", "--rootfs-url", ROOTFS]).printed();
    assert!(text.contains("minimal ISO") && text.contains("extents"), "{text}");
    assert_eq!(scratch.names(), before);
    plan(&scratch, &["--image", "minimal"]).usage("--rootfs-url");
}

//! Contents of the images, and the findings in the output.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use isogen::{BaseImage, Source};
use serde_json::Value;

use crate::support::{Scratch, report_skipped};
use crate::{ROOTFS, SITES, SOURCE, run_create, scratch_with_site};

/// Returns the Ignition config of an image.
fn embedded_config(scratch: &Scratch, image: &str) -> Value {
    let text = scratch.run_kindling(&format!("iso ignition show {image}")).expect_text();
    serde_json::from_str(&text).unwrap()
}

/// Returns the sources of the files of a config, by path.
fn file_sources(config: &Value) -> BTreeMap<String, String> {
    let files = config["storage"]["files"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    files.map(|file| (text(&file["path"]), text(&file["contents"]["source"]))).collect()
}

/// Compares the output of a command with a golden file. The digests in the output cover every byte of the images.
fn assert_golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/offline/goldens").join(name);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    assert!(recorded == text, "{name} differs; if the change is intended, set UPDATE_GOLDEN=1\n{text}");
}

#[test]
fn every_site_matches_its_golden() {
    for site in SITES {
        let scratch = scratch_with_site(site);
        let all = ["--full", "full.iso", "--minimal", "minimal.iso", "--pxe", "pxe", "--rootfs-url", ROOTFS];
        assert_golden(&format!("{site}.txt"), &run_create(&scratch, &all).expect_text());
        let plan = ["discovery", "plan", "--json"];
        let text = scratch.command(plan.iter().chain(&SOURCE)).run().expect_text();
        assert_golden(&format!("{site}.json"), &text);
        let minimal =
            ["discovery", "plan", "--image", "minimal", "--rootfs-url", ROOTFS, "-o", "minimal.plan"];
        let text = scratch.command(minimal.iter().chain(&SOURCE)).run().expect_text();
        assert_golden(&format!("{site}-plan.txt"), &text);
        assert_golden(
            &format!("{site}-plan.json"),
            std::str::from_utf8(&scratch.read("minimal.plan")).unwrap(),
        );
        let text = scratch.run_kindling("discovery apply base.iso minimal.plan -o applied.iso").expect_text();
        assert_golden(&format!("{site}-apply.txt"), &text);
        let hosts = ["--per-host", "hosts", "--rootfs", "rootfs.img", "--rootfs-url", ROOTFS, "--json"];
        let hosts = if site == "disconnected" { &hosts[2..] } else { &hosts[..] };
        assert_golden(&format!("{site}-create.json"), &run_create(&scratch, hosts).expect_text());
        for image in ["full.iso", "minimal.iso"] {
            let report = scratch.run_kindling(&format!("iso verify {image}")).expect_text();
            assert!(!report.contains("WRONG"), "{site}: {image}: {report}");
        }
        let verdict = scratch.run_kindling("iso ignition show full.iso").expect_success();
        scratch.write("full.ign", verdict);
        scratch.run_kindling("ignition validate full.ign").expect_success();
    }
}

/// Summaries end up in logs.
#[test]
fn output_contains_no_password() {
    let scratch = scratch_with_site("disconnected");
    for command in ["create --full full.iso", "create --rootfs rootfs.img --json", "plan", "plan --json"] {
        let line = format!(
            "discovery {command} --manifests manifests --base base.iso --service-url http://u:HUNTER2@192.0.2.1:8090/a?b=HUNTER2"
        );
        let text = scratch.run_kindling(&line).expect_text();
        assert!(text.contains("http://*****@192.0.2.1:8090/a"), "{text}");
        assert!(!text.contains("HUNTER2"), "{text}");
    }
}

#[test]
fn image_contains_the_manifest_settings() {
    let scratch = scratch_with_site("single-node");
    run_create(&scratch, &["--full", "full.iso"]).expect_success();
    let config = embedded_config(&scratch, "full.iso");
    let keys = config["passwd"]["users"][0]["sshAuthorizedKeys"].to_string();
    assert!(keys.contains("core@example"), "{keys}");
    let files = file_sources(&config);
    assert!(files.contains_key("/etc/assisted/network/host0/nic0.nmconnection"), "{files:?}");
    assert!(files["/root/.docker/config.json"].contains("dXNlcjpwYXNz"), "{files:?}");
    assert_eq!(config["ignition"]["proxy"]["httpProxy"], "http://proxy.example.com:3128");
}

#[test]
fn image_contains_the_mirror_configuration() {
    let scratch = scratch_with_site("disconnected");
    run_create(&scratch, &["--full", "full.iso"]).expect_success();
    let files = file_sources(&embedded_config(&scratch, "full.iso"));
    assert!(files.contains_key("/etc/containers/registries.conf"), "{files:?}");
    assert!(files.contains_key("/etc/pki/ca-trust/source/anchors/domain.crt"), "{files:?}");
}

#[test]
fn hub_override_and_id_are_applied() {
    let scratch = scratch_with_site("dual-stack");
    let text = run_create(&scratch, &["--full", "full.iso", "--json"]).expect_text();
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["infra_env_id"], "7d3a1c2e-5b64-4f0a-9d5e-0c1b2a394857");
    assert_eq!(summary["hosts"], serde_json::json!(["node-0", "node-1"]));
    assert_eq!(summary["images"][0]["layout"], "in place");
    assert_eq!(file_sources(&embedded_config(&scratch, "full.iso"))["/etc/site"], "data:,dual%0A");
}

#[test]
fn options_override_manifests() {
    let scratch = scratch_with_site("single-node");
    scratch.write(
        "key.pub",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl other\n",
    );
    scratch.write("secret.json", r#"{"auths": {"other.example": {"auth": "dXNlcjpwYXNz"}}}"#);
    let id = "0f2a5d3c-1111-4222-8333-444455556666";
    let options = [
        "--full",
        "full.iso",
        "--ssh-key",
        "key.pub",
        "--pull-secret",
        "secret.json",
        "--infra-env-id",
        id,
        "--openshift-version",
        "4.20",
        "--karg-append",
        "quiet",
    ];
    let text = run_create(&scratch, &options).expect_text();
    assert!(text.contains(id) && text.contains("4.20") && text.contains("append quiet"), "{text}");
    let config = embedded_config(&scratch, "full.iso");
    assert!(config["passwd"].to_string().contains("other"));
    assert!(file_sources(&config)["/root/.docker/config.json"].contains("other.example"));
    let kargs = scratch.run_kindling("iso kargs show full.iso").expect_text();
    assert!(kargs.contains("quiet"), "{kargs}");
}

#[test]
fn options_alone_are_enough() {
    let scratch = Scratch::new();
    scratch.write("base.iso", &*crate::BASE);
    scratch.write("secret.json", r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#);
    let hosts = r#"[{"network_yaml": "interfaces: [{name: eth0, type: ethernet, state: up}]",
        "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}]}]"#;
    scratch.write("hosts.json", hosts);
    let line = format!(
        "discovery create --base base.iso --service-url {} --infra-env-id 0f2a5d3c-1111-4222-8333-444455556666 \
         --pull-secret secret.json --network hosts.json --openshift-version 4.16 --full full.iso",
        crate::SERVICE
    );
    let text = scratch.run_kindling(&line).expect_text();
    assert!(text.contains("hosts.json[0]") && text.contains("SHA-256"), "{text}");
    let report = scratch.run_kindling("iso inspect full.iso").expect_text();
    assert!(report.contains(&format!("\nService:       {}\n", crate::SERVICE)), "{report}");
    let files = file_sources(&embedded_config(&scratch, "full.iso"));
    assert!(files.contains_key("/etc/assisted/network/host0/eth0.nmconnection"), "{files:?}");
}

/// Hashing takes longer than writing, so large files are hashed only on request.
#[test]
fn digests_of_large_files_are_optional() {
    let scratch = scratch_with_site("disconnected");
    crate::base_recipe().rootfs_len(300 << 20).write_to(&scratch.path("large.iso")).unwrap();
    std::fs::rename(scratch.path("large.iso"), scratch.path("base.iso")).unwrap();
    let usual = run_create(&scratch, &["--full", "usual.iso"]).expect_text();
    assert!(!usual.contains("SHA-256"), "{usual}");
    let output = run_create(&scratch, &["--full", "asked.iso", "--sha256"]).expect_text();
    let digest = isogen::Digest::from_data(&scratch.read("asked.iso"));
    assert!(output.contains(&format!("SHA-256 {digest}")), "{output}");
}

#[test]
fn image_for_one_host_contains_only_that_host() {
    let scratch = scratch_with_site("bonded");
    run_create(&scratch, &["--per-host", "hosts", "--rootfs-url", ROOTFS]).expect_success();
    for (index, other) in [(0, 1), (1, 2), (2, 0)] {
        let bytes = scratch.read(&format!("hosts/master-{index}.iso"));
        let image = BaseImage::from_source(Source::from_bytes("host", bytes)).unwrap();
        let network = image.file("images/assisted_installer_custom.img").unwrap().read_all(1 << 20).unwrap();
        let archive =
            isogen::Archive::read(&network[..], isogen::initrd::ArchiveLimits::IGNITION_AREA).unwrap();
        let all: String =
            archive.iter().map(|(_, data)| String::from_utf8_lossy(data).into_owned()).collect();
        assert!(all.contains(&format!("10.4.100.1{index}")), "host {index}");
        assert!(!all.contains(&format!("10.4.100.1{other}")), "host {index}");
    }
}

#[test]
fn fifty_hosts_are_all_in_the_image() {
    let scratch = scratch_with_site("disconnected");
    let host = |number: usize| {
        format!(
            "---\nkind: NMStateConfig\nmetadata: {{name: node-{number}, namespace: cellar, labels: {{of: cellar}}}}\n\
             spec:\n  interfaces: [{{name: eth0, macAddress: \"52:54:00:05:00:{number:02x}\"}}]\n  config:\n    \
             interfaces:\n    - name: eth0\n      type: ethernet\n      state: up\n      ipv4:\n        enabled: true\n        \
             dhcp: false\n        address:\n        - ip: 10.5.0.{}\n          prefix-length: 24\n",
            number + 10
        )
    };
    scratch.write("manifests/nodes.yaml", (0..50).map(host).collect::<String>());
    let env = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    let selector = "spec:\n  nmStateConfigLabelSelector:\n    matchLabels: {of: cellar}\n";
    scratch.write("manifests/infraenv.yaml", env.replacen("spec:\n", selector, 1));
    let text = run_create(&scratch, &["--full", "full.iso", "--per-host", "hosts", "--rootfs-url", ROOTFS])
        .expect_text();
    assert!(text.contains("50 hosts"), "{text}");
    let hosts = file_sources(&embedded_config(&scratch, "full.iso"))
        .into_keys()
        .filter(|path| path.ends_with("nmconnection"))
        .count();
    assert_eq!(hosts, 50);
    assert_eq!(scratch.path("hosts").read_dir().unwrap().count(), 50);
}

#[test]
fn warnings_are_printed_without_stopping() {
    let scratch = scratch_with_site("single-node");
    let site = String::from_utf8(scratch.read("manifests/site.yml")).unwrap();
    scratch.write("manifests/site.yml", site.replace("  imageType:", "  imageTyp: x\n  imageType:"));
    let output = run_create(&scratch, &["--full", "full.iso"]);
    assert_eq!(output.stderr, "manifests/site.yml:20: spec.imageTyp: warning: unknown field\n");
    output.expect_success();
}

#[test]
fn version_with_a_cluster_reference_is_a_warning() {
    let scratch = scratch_with_site("bonded");
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    let both = text.replace("  clusterRef:\n", "  osImageVersion: \"4.18\"\n  clusterRef:\n");
    scratch.write("manifests/infraenv.yaml", both);
    let output = run_create(&scratch, &["--full", "full.iso"]);
    let warning = "manifests/infraenv.yaml:7: spec.osImageVersion: warning: the service accepts it together with \
                spec.clusterRef only if that cluster is installed\n";
    assert_eq!(output.stderr, warning);
    output.expect_success();
}

#[test]
fn unused_fields_are_reported_at_any_depth() {
    let change = |site: &str, file: &str, from: &str, to: &str| {
        let scratch = scratch_with_site(site);
        let text = String::from_utf8(scratch.read(file)).unwrap();
        assert!(text.contains(from), "{from}");
        scratch.write(file, text.replacen(from, to, 1));
        let output = run_create(&scratch, &["--full", "full.iso"]);
        let warnings = output.stderr.clone();
        output.expect_success();
        warnings
    };
    for (site, file, from, to, place) in [
        ("single-node", "site.yml", "httpProxy:", "http_proxy:", "17: spec.proxy.http_proxy"),
        ("bonded", "infraenv.yaml", "- operation:", "- op:", "17: spec.kernelArguments[0].op"),
        (
            "bonded",
            "infraenv.yaml",
            "  clusterRef:\n",
            "  clusterRef:\n    nam: x\n",
            "8: spec.clusterRef.nam",
        ),
        (
            "bonded",
            "infraenv.yaml",
            "  pullSecretRef:\n",
            "  pullSecretRef:\n    nam: x\n",
            "11: spec.pullSecretRef.nam",
        ),
    ] {
        let warnings = change(site, &format!("manifests/{file}"), from, to);
        assert_eq!(warnings, format!("manifests/{file}:{place}: warning: unknown field\n"));
    }
}

#[test]
fn yaml_byte_order_marks_and_directives_are_accepted() {
    let scratch = scratch_with_site("disconnected");
    run_create(&scratch, &["--full", "expected.iso"]).expect_success();
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    for (number, (before, between)) in [
        ("\u{feff}", "---\n"),
        ("\u{feff}", "\u{feff}---\n"),
        ("%YAML 1.2\n---\n", "---\n"),
        ("\u{feff}# of a generator\n%YAML 1.1\n# more\n---\n", "...\n%YAML 1.2\n---\n"),
        ("", "...\n---\n"),
    ]
    .into_iter()
    .enumerate()
    {
        scratch.write("manifests/infraenv.yaml", format!("{before}{}", text.replacen("---\n", between, 1)));
        let image = format!("{number}.iso");
        run_create(&scratch, &["--full", &image]).expect_success();
        assert!(scratch.read(&image) == scratch.read("expected.iso"), "{before:?} {between:?}");
    }
}

/// Writing the images takes long, so the exit code must show that they exist.
#[test]
fn failed_summary_keeps_the_images() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        report_skipped("/dev/full does not exist");
        return;
    };
    let scratch = scratch_with_site("disconnected");
    scratch.command(["discovery", "plan", "-o", "full.plan"].iter().chain(&SOURCE)).run().expect_success();
    let create = ["discovery", "create", "--full", "created.iso"];
    let applied = ["discovery", "apply", "base.iso", "full.plan", "-o", "applied.iso"];
    let plan = ["discovery", "plan", "-o", "again.plan"];
    for run in [
        scratch.command(create.iter().chain(&SOURCE)),
        scratch.command(applied),
        scratch.command(plan.iter().chain(&SOURCE)),
    ] {
        let mut command = run.command();
        command.stdin(std::process::Stdio::null()).stdout(full.try_clone().unwrap());
        let output = command.stderr(std::process::Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(
            stderr.contains("Error: all files are written, but the summary cannot be printed"),
            "{stderr}"
        );
        assert!(stderr.contains("No space left on device"), "{stderr}");
    }
    assert!(scratch.read("created.iso") == scratch.read("applied.iso"));
    assert!(scratch.read("again.plan") == scratch.read("full.plan"));
}

#[test]
fn host_without_a_name_names_no_file() {
    let scratch = scratch_with_site("single-node");
    let site = String::from_utf8(scratch.read("manifests/site.yml")).unwrap();
    scratch.write("manifests/site.yml", site.replace("{name: sno-0, namespace", "{namespace"));
    let output = run_create(&scratch, &["--per-host", "hosts", "--rootfs-url", ROOTFS]);
    output.expect_failure(
        "--per-host: manifests/site.yml:80: spec.config: host name \"\" cannot be used as a file name",
    );
}

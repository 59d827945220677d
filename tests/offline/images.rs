//! What is in the images, and what is said of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use isogen::{BaseImage, Source};
use serde_json::Value;

use crate::support::Scratch;
use crate::{ROOTFS, SITES, SOURCE, create, scratch};

/// The Ignition config of an image.
fn config(scratch: &Scratch, image: &str) -> Value {
    let text = scratch.kindling(&format!("iso ignition show {image}")).printed();
    serde_json::from_str(&text).unwrap()
}

/// The sources of the files of a config, by path.
fn files(config: &Value) -> BTreeMap<String, String> {
    let files = config["storage"]["files"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    files.map(|file| (text(&file["path"]), text(&file["contents"]["source"]))).collect()
}

/// What a command says, against what it was recorded to say. With the digests in it, this holds every byte.
fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/offline/goldens").join(name);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    assert!(recorded == text, "{name} is otherwise; if that is right, set UPDATE_GOLDEN=1\n{text}");
}

#[test]
fn every_site_gives_what_was_recorded() {
    for site in SITES {
        let scratch = scratch(site);
        let all = ["--full", "full.iso", "--minimal", "minimal.iso", "--pxe", "pxe", "--rootfs-url", ROOTFS];
        golden(&format!("{site}.txt"), &create(&scratch, &all).printed());
        let plan = ["discovery", "plan", "--json"];
        let text = scratch.command(plan.iter().chain(&SOURCE)).output().printed();
        golden(&format!("{site}.json"), &text);
        let minimal =
            ["discovery", "plan", "--image", "minimal", "--rootfs-url", ROOTFS, "-o", "minimal.plan"];
        let text = scratch.command(minimal.iter().chain(&SOURCE)).output().printed();
        golden(&format!("{site}-plan.txt"), &text);
        golden(&format!("{site}-plan.json"), std::str::from_utf8(&scratch.read("minimal.plan")).unwrap());
        let text = scratch.kindling("discovery apply base.iso minimal.plan -o applied.iso").printed();
        golden(&format!("{site}-apply.txt"), &text);
        let hosts = ["--per-host", "hosts", "--rootfs", "rootfs.img", "--rootfs-url", ROOTFS, "--json"];
        let hosts = if site == "disconnected" { &hosts[2..] } else { &hosts[..] };
        golden(&format!("{site}-create.json"), &create(&scratch, hosts).printed());
        for image in ["full.iso", "minimal.iso"] {
            let report = scratch.kindling(&format!("iso verify {image}")).printed();
            assert!(!report.contains("WRONG"), "{site}: {image}: {report}");
        }
        let verdict = scratch.kindling("iso ignition show full.iso").success();
        scratch.write("full.ign", verdict);
        scratch.kindling("ignition validate full.ign").success();
    }
}

/// Summaries go to logs.
#[test]
fn what_is_told_has_no_password() {
    let scratch = scratch("disconnected");
    for command in ["create --full full.iso", "create --rootfs rootfs.img --json", "plan", "plan --json"] {
        let line = format!(
            "discovery {command} --manifests manifests --base base.iso --service-url http://u:HUNTER2@192.0.2.1:8090/a?b=HUNTER2"
        );
        let text = scratch.kindling(&line).printed();
        assert!(text.contains("http://*****@192.0.2.1:8090/a"), "{text}");
        assert!(!text.contains("HUNTER2"), "{text}");
    }
}

#[test]
fn what_a_manifest_says_is_in_the_image() {
    let scratch = scratch("single-node");
    create(&scratch, &["--full", "full.iso"]).success();
    let config = config(&scratch, "full.iso");
    let keys = config["passwd"]["users"][0]["sshAuthorizedKeys"].to_string();
    assert!(keys.contains("core@example"), "{keys}");
    let files = files(&config);
    assert!(files.contains_key("/etc/assisted/network/host0/nic0.nmconnection"), "{files:?}");
    assert!(files["/root/.docker/config.json"].contains("dXNlcjpwYXNz"), "{files:?}");
    assert_eq!(config["ignition"]["proxy"]["httpProxy"], "http://proxy.example.com:3128");
}

#[test]
fn a_mirror_beside_the_manifests_is_in_the_image() {
    let scratch = scratch("disconnected");
    create(&scratch, &["--full", "full.iso"]).success();
    let files = files(&config(&scratch, "full.iso"));
    assert!(files.contains_key("/etc/containers/registries.conf"), "{files:?}");
    assert!(files.contains_key("/etc/pki/ca-trust/source/anchors/domain.crt"), "{files:?}");
}

#[test]
fn the_override_and_the_id_of_a_hub_count() {
    let scratch = scratch("dual-stack");
    let text = create(&scratch, &["--full", "full.iso", "--json"]).printed();
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["infra_env_id"], "7d3a1c2e-5b64-4f0a-9d5e-0c1b2a394857");
    assert_eq!(told["hosts"], serde_json::json!(["node-0", "node-1"]));
    assert_eq!(told["images"][0]["layout"], "in place");
    assert_eq!(files(&config(&scratch, "full.iso"))["/etc/site"], "data:,dual%0A");
}

#[test]
fn options_count_more_than_manifests() {
    let scratch = scratch("single-node");
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
    let text = create(&scratch, &options).printed();
    assert!(text.contains(id) && text.contains("4.20") && text.contains("append quiet"), "{text}");
    let config = config(&scratch, "full.iso");
    assert!(config["passwd"].to_string().contains("other"));
    assert!(files(&config)["/root/.docker/config.json"].contains("other.example"));
    let kargs = scratch.kindling("iso kargs show full.iso").printed();
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
    let text = scratch.kindling(&line).printed();
    assert!(text.contains("hosts.json[0]") && text.contains("SHA-256"), "{text}");
    let files = files(&config(&scratch, "full.iso"));
    assert!(files.contains_key("/etc/assisted/network/host0/eth0.nmconnection"), "{files:?}");
}

/// What takes longer to read than to write is read when somebody asks for it.
#[test]
fn large_files_have_digests_on_request() {
    let scratch = scratch("disconnected");
    crate::recipe().rootfs_len(300 << 20).write_to(&scratch.path("large.iso")).unwrap();
    std::fs::rename(scratch.path("large.iso"), scratch.path("base.iso")).unwrap();
    let usual = create(&scratch, &["--full", "usual.iso"]).printed();
    assert!(!usual.contains("SHA-256"), "{usual}");
    let asked = create(&scratch, &["--full", "asked.iso", "--sha256"]).printed();
    let digest = isogen::Digest::of(&scratch.read("asked.iso"));
    assert!(asked.contains(&format!("SHA-256 {digest}")), "{asked}");
}

#[test]
fn an_image_of_one_host_has_that_host_alone() {
    let scratch = scratch("bonded");
    create(&scratch, &["--per-host", "hosts", "--rootfs-url", ROOTFS]).success();
    for (index, other) in [(0, 1), (1, 2), (2, 0)] {
        let bytes = scratch.read(&format!("hosts/master-{index}.iso"));
        let image = BaseImage::from_source(Source::from_bytes("host", bytes)).unwrap();
        let network = image.file("images/assisted_installer_custom.img").unwrap().read_all(1 << 20).unwrap();
        let archive = isogen::Archive::read(&network[..], isogen::initrd::Limits::AREA).unwrap();
        let all: String =
            archive.iter().map(|(_, data)| String::from_utf8_lossy(data).into_owned()).collect();
        assert!(all.contains(&format!("10.4.100.1{index}")), "host {index}");
        assert!(!all.contains(&format!("10.4.100.1{other}")), "host {index}");
    }
}

#[test]
fn fifty_hosts_are_as_good_as_one() {
    let scratch = scratch("disconnected");
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
    let text =
        create(&scratch, &["--full", "full.iso", "--per-host", "hosts", "--rootfs-url", ROOTFS]).printed();
    assert!(text.contains("50 hosts"), "{text}");
    let hosts = files(&config(&scratch, "full.iso"))
        .into_keys()
        .filter(|path| path.ends_with("nmconnection"))
        .count();
    assert_eq!(hosts, 50);
    assert_eq!(scratch.path("hosts").read_dir().unwrap().count(), 50);
}

#[test]
fn warnings_are_told_and_do_not_stop() {
    let scratch = scratch("single-node");
    let site = String::from_utf8(scratch.read("manifests/site.yml")).unwrap();
    scratch.write("manifests/site.yml", site.replace("  imageType:", "  imageTyp: x\n  imageType:"));
    let output = create(&scratch, &["--full", "full.iso"]);
    assert_eq!(output.stderr, "manifests/site.yml:20: spec.imageTyp: warning: unknown field\n");
    output.success();
}

#[test]
fn a_version_beside_a_cluster_is_taken_with_a_word() {
    let scratch = scratch("bonded");
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    let both = text.replace("  clusterRef:\n", "  osImageVersion: \"4.18\"\n  clusterRef:\n");
    scratch.write("manifests/infraenv.yaml", both);
    let output = create(&scratch, &["--full", "full.iso"]);
    let told = "manifests/infraenv.yaml:7: spec.osImageVersion: warning: the service takes it beside spec.clusterRef only once \
                that cluster is installed\n";
    assert_eq!(output.stderr, told);
    output.success();
}

#[test]
fn fields_that_nobody_reads_are_told_of_wherever_they_stand() {
    let change = |site: &str, file: &str, from: &str, to: &str| {
        let scratch = scratch(site);
        let text = String::from_utf8(scratch.read(file)).unwrap();
        assert!(text.contains(from), "{from}");
        scratch.write(file, text.replacen(from, to, 1));
        let output = create(&scratch, &["--full", "full.iso"]);
        let told = output.stderr.clone();
        output.success();
        told
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
        let told = change(site, &format!("manifests/{file}"), from, to);
        assert_eq!(told, format!("manifests/{file}:{place}: warning: unknown field\n"));
    }
}

#[test]
fn marks_and_directives_of_yaml_are_read() {
    let scratch = scratch("disconnected");
    create(&scratch, &["--full", "expected.iso"]).success();
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
        create(&scratch, &["--full", &image]).success();
        assert!(scratch.read(&image) == scratch.read("expected.iso"), "{before:?} {between:?}");
    }
}

/// The images are what takes long. Whoever reads the exit code learns that they are there.
#[test]
fn a_summary_that_cannot_be_written_takes_no_image_away() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    };
    let scratch = scratch("disconnected");
    scratch.command(["discovery", "plan", "-o", "full.plan"].iter().chain(&SOURCE)).output().success();
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
            stderr.contains("Error: all files are written, and the summary cannot be printed"),
            "{stderr}"
        );
        assert!(stderr.contains("No space left on device"), "{stderr}");
    }
    assert!(scratch.read("created.iso") == scratch.read("applied.iso"));
    assert!(scratch.read("again.plan") == scratch.read("full.plan"));
}

#[test]
fn a_host_without_a_name_gives_no_file_a_name() {
    let scratch = scratch("single-node");
    let site = String::from_utf8(scratch.read("manifests/site.yml")).unwrap();
    scratch.write("manifests/site.yml", site.replace("{name: sno-0, namespace", "{namespace"));
    let output = create(&scratch, &["--per-host", "hosts", "--rootfs-url", ROOTFS]);
    output.failure(
        "--per-host: manifests/site.yml:80: spec.config: the name \"\" of the host makes no file name",
    );
}

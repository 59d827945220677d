//! Invalid inputs: the commands report each error and write no file.

use fixtures::OperatingSystem;

use crate::support::{ProgramRun, Scratch, check_each, report_skipped};
use crate::{ROOTFS, SERVICE, SOURCE, run_create, scratch_with_site};

/// A change to a manifest, and the line of output that reports it.
struct ManifestCase {
    site: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    said: &'static str,
}

const CASES: &[ManifestCase] = &[
    ManifestCase {
        site: "bonded",
        file: "pull-secret.yaml",
        from: "name: pull-secret",
        to: "name: pullsecret",
        said: "manifests/infraenv.yaml:10: spec.pullSecretRef: error: no Secret named \"pull-secret\" in manifests",
    },
    ManifestCase {
        site: "bonded",
        file: "pull-secret.yaml",
        from: "namespace: rack4",
        to: "namespace: rack5",
        said: "manifests/infraenv.yaml:10: spec.pullSecretRef: error: found Secret rack5/pull-secret, but it is not in namespace \"rack4\"",
    },
    ManifestCase {
        site: "bonded",
        file: "pull-secret.yaml",
        from: ".dockerconfigjson: ",
        to: "dockerconfigjson: ",
        said: "manifests/pull-secret.yaml:1: error: the Secret rack4/pull-secret has no \".dockerconfigjson\" in data or stringData",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  pullSecretRef:\n    name: pull-secret\n",
        to: "",
        said: "manifests/infraenv.yaml:6: spec.pullSecretRef: error: names no Secret",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "infraenv: rack4",
        to: "infraenv: rack-4",
        said: "manifests/infraenv.yaml:13: spec.nmStateConfigLabelSelector: error: selects no NMStateConfig; for example, rack4/master-0 has infraenv=rack4",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "AAAAC3NzaC1lZDI1NTE5",
        to: "AAAA",
        said: "manifests/infraenv.yaml:12: spec.sshAuthorizedKey: error: ",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "value: console=ttyS0",
        to: "value: a b",
        said: "manifests/infraenv.yaml:18: spec.kernelArguments[0].value: error: \"a b\" has a blank outside of double quotes",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "operation: append",
        to: "operation: prepend",
        said: "manifests/infraenv.yaml:17: spec.kernelArguments[0].operation: error: \"prepend\" is not append, replace or delete\nError: 1 error",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  - 192.0.2.123",
        to: "  - \"192.0.2.123 iburst\"",
        said: "manifests/infraenv.yaml:21: spec.additionalNTPSources[1]: error: \"192.0.2.123 iburst\" ",
    },
    ManifestCase {
        site: "bonded",
        file: "nmstate.yaml",
        from: "id: 100",
        to: "id: 5000",
        said: "manifests/nmstate.yaml:31: spec.config.interfaces[1].vlan.id: error: VLAN 5000 is not within 1 to 4094",
    },
    ManifestCase {
        site: "bonded",
        file: "nmstate.yaml",
        from: "52:54:00:04:00:01",
        to: "52:54:00:04:00:zz",
        said: "manifests/nmstate.yaml:11: spec.interfaces[0].macAddress: error: \"52:54:00:04:00:zz\" is not a MAC address such as",
    },
    ManifestCase {
        site: "bonded",
        file: "nmstate.yaml",
        from: "10.4.100.11",
        to: "10.4.100.10",
        said: "manifests/nmstate.yaml:91: spec.config.interfaces[1].ipv4.address[0].ip: error: 10.4.100.10 is also the address of bond0.100 in master-0",
    },
    ManifestCase {
        site: "bonded",
        file: "nmstate.yaml",
        from: "    interfaces:\n    - name: bond0\n",
        to: "    interfaces:\n    - name: bond0\n   bad\n",
        said: "Error: manifests/nmstate.yaml:17: is not valid YAML: ",
    },
    ManifestCase {
        site: "single-node",
        file: "site.yml",
        from: "httpProxy: http://proxy.example.com:3128",
        to: "httpProxy: proxy.example.com:3128",
        said: "manifests/site.yml:17: spec.proxy.httpProxy: error: ",
    },
    ManifestCase {
        site: "single-node",
        file: "site.yml",
        from: "imageType: full-iso",
        to: "imageType: huge-iso",
        said: "spec.imageType: error: \"huge-iso\" is neither full-iso nor minimal-iso",
    },
    ManifestCase {
        site: "dual-stack",
        file: "all.json",
        from: "\"x86_64\"",
        to: "\"aarch64\"",
        said: "items[0].spec.cpuArchitecture: error: the machines are aarch64, but the base image is for x86_64",
    },
    ManifestCase {
        site: "dual-stack",
        file: "all.json",
        from: "\\\"3.1.0\\\"",
        to: "\\\"2.1.0\\\"",
        said: "spec.ignitionConfigOverride: error: ",
    },
    ManifestCase {
        site: "disconnected",
        file: "mirror/registries.conf",
        from: "location = \"quay.io/openshift-release-dev/ocp-release\"",
        to: "location = \"https://quay.io\"",
        said: "manifests/mirror/registries.conf: error: ",
    },
    ManifestCase {
        site: "disconnected",
        file: "mirror/ca-bundle.crt",
        from: "BEGIN CERTIFICATE",
        to: "BEGIN CERTIFICAT",
        said: "manifests/mirror/ca-bundle.crt: error: ",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  pullSecretRef:\n    name: pull-secret\n",
        to: "  pullSecretRef: pull-secret\n",
        said: "manifests/infraenv.yaml:10: spec.pullSecretRef: error: has to be an object\nError: 1 error",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  pullSecretRef:\n    name: pull-secret\n",
        to: "  pullSecretRef:\n    name: 5\n",
        said: "manifests/infraenv.yaml:11: spec.pullSecretRef.name: error: has to be a string\nError: 1 error",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "    name: rack4\n    namespace: rack4\n",
        to: "    name: [a]\n    namespace: rack4\n",
        said: "manifests/infraenv.yaml:8: spec.clusterRef.name: error: has to be a string\nError: 1 error",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "value: console=ttyS0",
        to: "value: 5",
        said: "manifests/infraenv.yaml:18: spec.kernelArguments[0].value: error: has to be a string\nError: 1 error",
    },
    ManifestCase {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  - operation: append\n    value: console=ttyS0\n",
        to: "  - console=ttyS0\n",
        said: "manifests/infraenv.yaml:17: spec.kernelArguments[0]: error: has to be an object\nError: 1 error",
    },
    ManifestCase {
        site: "bonded",
        file: "cluster.yaml",
        from: "name: openshift-v4.18.3",
        to: "name: [4.18]",
        said: "manifests/cluster.yaml:29: spec.imageSetRef.name: warning: has to be a string\ninfra-env: error: OpenShift version",
    },
    ManifestCase {
        site: "single-node",
        file: "site.yml",
        from: "  proxy:\n    httpProxy: http://proxy.example.com:3128\n    httpsProxy: http://proxy.example.com:3128\n    noProxy: .example.com,10.0.0.0/8\n",
        to: "  proxy: http://proxy.example.com:3128\n",
        said: "manifests/site.yml:16: spec.proxy: error: has to be an object\nError: 1 error",
    },
    ManifestCase {
        site: "single-node",
        file: "site.yml",
        from: "[{name: nic0, macAddress: \"52:54:00:01:00:01\"}]",
        to: "nic0",
        said: "spec.interfaces: error: has to be a list\nError: 1 error",
    },
    ManifestCase {
        site: "single-node",
        file: "site.yml",
        from: "[{name: nic0, macAddress: \"52:54:00:01:00:01\"}]",
        to: "[{name: nic0, macAddress: 5}]",
        said: "spec.interfaces[0].macAddress: error: has to be a string\nError: 1 error",
    },
    ManifestCase {
        site: "disconnected",
        file: "infraenv.yaml",
        from: "spec:\n  pullSecretRef:\n    name: mirror-secret\n  osImageVersion: \"4.16\"\n  ntpSources:\n  - 10.3.0.1\n",
        to: "spec: []\n",
        said: "manifests/infraenv.yaml:6: spec: error: has to be an object\n",
    },
    ManifestCase {
        site: "disconnected",
        file: "infraenv.yaml",
        from: "metadata:\n  name: mirror-secret\n",
        to: "metadata:\n  name: mirror-secret\n  namespace: cellar\nstringData: {}\n---\nkind: Secret\nmetadata:\n  name: mirror-secret\n",
        said: "spec.pullSecretRef: error: duplicate Secret cellar/mirror-secret: see manifests/infraenv.yaml:16 and manifests/infraenv.yaml:22\n",
    },
];

#[test]
fn every_error_has_a_location_and_writes_nothing() {
    check_each(
        CASES,
        |case| format!("{}/{}: {}", case.site, case.file, case.to),
        |case| {
            let scratch = scratch_with_site(case.site);
            let path = format!("manifests/{}", case.file);
            let text = String::from_utf8(scratch.read(&path)).unwrap();
            assert!(text.contains(case.from), "{path} has no {:?}", case.from);
            scratch.write(&path, text.replacen(case.from, case.to, 1));
            let before = scratch.names();
            let output =
                run_create(&scratch, &["--full", "full.iso", "--pxe", "pxe", "--rootfs-url", ROOTFS]);
            output.expect_failure(case.said);
            assert!(output.stdout.is_empty());
            assert_eq!(scratch.names(), before);
            assert!(!scratch.has_file("pxe"));
        },
    );
}

#[test]
fn several_infra_envs_require_a_selection() {
    let scratch = scratch_with_site("disconnected");
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    let other = text.split("---").next().unwrap().replace("name: cellar\n", "name: attic\n");
    scratch.write("manifests/other.yaml", other);
    let output = run_create(&scratch, &["--full", "full.iso"]);
    output.expect_failure(
        "manifests/other.yaml:4: metadata.name: error: found several InfraEnvs: cellar/cellar \
         (manifests/infraenv.yaml:4), cellar/attic (manifests/other.yaml:4); choose one with --infra-env\n",
    );
    run_create(&scratch, &["--full", "a.iso", "--infra-env", "attic"]).expect_success();
    run_create(&scratch, &["--full", "b.iso", "--infra-env", "cellar/cellar"]).expect_success();
    assert_ne!(scratch.read("a.iso"), scratch.read("b.iso"));
    run_create(&scratch, &["--full", "c.iso", "--infra-env", "roof"])
        .expect_failure("no InfraEnv named \"roof\"");
}

#[test]
fn rejects_two_infra_envs_with_the_same_name() {
    let scratch = scratch_with_site("disconnected");
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    scratch.write("manifests/other.yaml", text.split("---").next().unwrap());
    for options in [&["--full", "full.iso"][..], &["--full", "full.iso", "--infra-env", "cellar"]] {
        run_create(&scratch, options).expect_failure(
            "manifests/other.yaml:4: metadata.name: error: duplicate InfraEnv cellar/cellar: see \
             manifests/infraenv.yaml:4 and manifests/other.yaml:4\n",
        );
    }
}

/// Opening a pipe blocks until a process opens it for writing.
#[test]
fn rejects_special_files_without_blocking() {
    for name in ["manifests/pipe.yaml", "manifests/mirror/ca-bundle.crt"] {
        let scratch = scratch_with_site("disconnected");
        let path = scratch.path(name);
        let _ = std::fs::remove_file(&path);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let run =
            scratch.command(["discovery", "create"].iter().chain(&SOURCE).chain(&["--full", "full.iso"]));
        let output = run.time_limit(std::time::Duration::from_secs(10)).run();
        output.expect_failure(&format!("{name}: not a regular file"));
    }
    let scratch = scratch_with_site("disconnected");
    std::fs::rename(scratch.path("manifests/infraenv.yaml"), scratch.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", scratch.path("manifests/link.yaml")).unwrap();
    run_create(&scratch, &["--full", "full.iso"]).expect_success();
}

#[test]
fn missing_manifests_are_reported() {
    let scratch = scratch_with_site("disconnected");
    scratch.remove("manifests/infraenv.yaml");
    run_create(&scratch, &["--full", "full.iso"]).expect_failure("manifests: error: no InfraEnv found");
    scratch.remove("manifests");
    run_create(&scratch, &["--full", "full.iso"])
        .expect_failure("--manifests: manifests does not exist; name a directory of manifests");
}

#[test]
fn version_is_required_if_the_base_image_has_none() {
    let scratch = scratch_with_site("disconnected");
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    scratch.write("manifests/infraenv.yaml", text.replace("  osImageVersion: \"4.16\"\n", ""));
    scratch.write("base.iso", crate::base_recipe().version("9.6.20251023-0").build());
    run_create(&scratch, &["--full", "full.iso"]).expect_failure(
        "infra-env: error: OpenShift version is missing, and the base image does not contain it: set \
         --openshift-version or spec.osImageVersion\n",
    );
    run_create(&scratch, &["--full", "full.iso", "--openshift-version", "later"])
        .expect_failure("--openshift-version: error: \"later\" is not an OpenShift version such as 4.18");
    run_create(&scratch, &["--full", "full.iso", "--openshift-version", "4.20"]).expect_success();
    let rhcos =
        crate::base_recipe().operating_system(OperatingSystem::Rhcos).version("416.94.202410010000-0");
    scratch.write("base.iso", rhcos.build());
    let text = run_create(&scratch, &["--full", "told.iso"]).expect_text();
    assert!(text.contains("OpenShift version: 4.16\n"), "{text}");
}

#[test]
fn release_named_by_digest_has_no_version() {
    let scratch = scratch_with_site("bonded");
    let text = String::from_utf8(scratch.read("manifests/cluster.yaml")).unwrap();
    scratch.write(
        "manifests/cluster.yaml",
        text.replace(":4.18.3-x86_64", &format!("@sha256:{}", "0".repeat(64))),
    );
    scratch.write("base.iso", crate::base_recipe().version("9.6.20251023-0").build());
    run_create(&scratch, &["--full", "full.iso"]).expect_failure(
        "manifests/cluster.yaml:45: spec.releaseImage: error: contains no OpenShift version, and neither does the \
         base image: set --openshift-version or spec.osImageVersion\n",
    );
    run_create(&scratch, &["--full", "full.iso", "--openshift-version", "4.18"]).expect_success();
}

#[test]
fn existing_outputs_are_kept() {
    let scratch = scratch_with_site("disconnected");
    scratch.write("full.iso", "mine");
    run_create(&scratch, &["--minimal", "minimal.iso", "--full", "full.iso", "--rootfs-url", ROOTFS])
        .expect_failure("cannot create full.iso: File exists; remove it, or use another path for --full");
    assert_eq!(scratch.read("full.iso"), b"mine");
    assert!(!scratch.has_file("minimal.iso"));
    let scratch = scratch_with_site("bonded");
    for (option, taken) in [("--pxe", "out/vmlinuz"), ("--per-host", "out/master-0.iso")] {
        scratch.write(taken, "mine");
        run_create(&scratch, &[option, "out", "--rootfs-url", ROOTFS])
            .expect_failure(&format!("{taken}: File exists; remove it, or use another path for {option}"));
    }
}

/// A base image may be a long download.
#[test]
fn existing_output_is_refused_before_the_base_image_is_opened() {
    let scratch = scratch_with_site("disconnected");
    scratch.write("full.iso", "mine");
    scratch.remove("base.iso");
    run_create(&scratch, &["--full", "full.iso"]).expect_failure("cannot create full.iso: File exists");
}

#[test]
fn wrong_usage_is_reported_as_a_usage_error() {
    let scratch = scratch_with_site("disconnected");
    run_create(&scratch, &[]).expect_usage_error("--full <FILE>|--minimal <FILE>");
    let line = format!("discovery create --base base.iso --service-url {SERVICE} --full full.iso");
    scratch.run_kindling(&line).expect_usage_error("--infra-env-id");
    for option in ["--minimal", "--pxe", "--per-host"] {
        run_create(&scratch, &[option, "out"]).expect_usage_error("--rootfs-url");
    }
    for option in ["--full", "--minimal", "--rootfs"] {
        run_create(&scratch, &[option, "-", "--rootfs-url", ROOTFS])
            .expect_usage_error("images cannot be written to stdout");
    }
    scratch.write("authority.pem", "none");
    let output = run_create(&scratch, &["--full", "full.iso", "--service-ca-file", "authority.pem"]);
    output.expect_failure("Error: authority.pem\n");
    output.expect_failure("    --service-ca-file");
    run_create(&scratch, &["--full", "full.iso", "--arch", "foo"])
        .expect_usage_error("no base images exist for CPU architecture");
    run_create(&scratch, &["--per-host", "hosts", "--rootfs-url", ROOTFS])
        .expect_failure("no host has a static network");
    run_create(&scratch, &["--full", "a.iso", "--minimal", "a.iso", "--rootfs-url", ROOTFS])
        .expect_failure("two outputs have the same path a.iso");
}

#[test]
fn rejects_invalid_base_image() {
    let scratch = scratch_with_site("disconnected");
    scratch.write("base.iso", "no image");
    run_create(&scratch, &["--full", "full.iso"]).expect_failure("base.iso");
    scratch.write("base.iso", &*crate::BASE);
    run_create(&scratch, &["--full", "full.iso"]).expect_success();
    scratch.remove("base.iso");
    std::fs::rename(scratch.path("full.iso"), scratch.path("base.iso")).unwrap();
    run_create(&scratch, &["--full", "full.iso"]).expect_failure("base.iso");
}

#[test]
fn rejects_base_image_with_another_digest() {
    let scratch = scratch_with_site("dual-stack");
    let digest = isogen::Digest::from_data(&crate::BASE);
    let other = isogen::Digest::from_data(b"another");
    run_create(&scratch, &["--full", "full.iso", "--base-sha256", &other.to_string()])
        .expect_failure(&format!("base.iso: SHA-256 digest is {digest}, expected {other}"));
    run_create(&scratch, &["--full", "full.iso", "--arch", "s390x"])
        .expect_failure("--arch: base image base.iso is for x86_64, not for s390x");
    assert!(!scratch.has_file("full.iso"));
    run_create(&scratch, &["--full", "full.iso", "--base-sha256", &digest.to_string()]).expect_success();
    // Options override manifests.
    let text = String::from_utf8(scratch.read("manifests/all.json")).unwrap();
    scratch.write("manifests/all.json", text.replace("\"x86_64\"", "\"aarch64\""));
    run_create(&scratch, &["--full", "other.iso"]).expect_failure("the machines are aarch64");
    run_create(&scratch, &["--full", "other.iso", "--arch", "x86_64"]).expect_success();
    assert!(scratch.read("other.iso") == scratch.read("full.iso"));
}

#[test]
fn unsupported_url_scheme_is_named() {
    let scratch = scratch_with_site("disconnected");
    for url in ["ftp://user:s3cret@h/x.iso?s3cret", "ftp://user:s3%63ret@h/x.iso"] {
        let line = format!(
            "discovery create --manifests manifests --base {url} --service-url {SERVICE} --full full.iso"
        );
        let output = scratch.run_kindling(&line);
        output.expect_failure("--base ftp://*****@h/x.iso");
        output.expect_failure("unsupported scheme \"ftp\"; use a path or an http, https, s3 or file URL");
        assert!(!output.stderr.contains("ret"), "{}", output.stderr);
    }
}

/// Runs a command line with a file length limit, in blocks of 512 bytes.
fn run_with_file_limit(scratch: &Scratch, blocks: usize, line: &str) -> ProgramRun {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {} {line}", env!("CARGO_BIN_EXE_kindling"));
    ProgramRun::new("sh", scratch.folder()).args(["-c", &script])
}

#[test]
fn insufficient_space_leaves_no_files() {
    let scratch = scratch_with_site("bonded");
    let before = scratch.names();
    // Small files fit below the limit, large files do not.
    let line = format!(
        "discovery create --manifests manifests --base base.iso --service-url {SERVICE} --pxe pxe --full full.iso \
         --per-host hosts --rootfs-url {ROOTFS}"
    );
    run_with_file_limit(&scratch, 1000, &line).run().expect_failure("File too large");
    assert_eq!(scratch.names(), before);
    assert!(!scratch.has_file("pxe") && !scratch.has_file("hosts"));
    run_create(&scratch, &["--full", "/proc/full.iso"]).expect_failure("/proc/full.iso");
}

/// A file system in memory, which is unmounted at the end. Not available if this user may not mount one.
struct MemoryDisk(std::path::PathBuf);

impl MemoryDisk {
    fn mount(scratch: &Scratch, name: &str, options: &str) -> Option<Self> {
        let path = scratch.path(name);
        std::fs::create_dir_all(&path).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&path)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(path));
        }
        assert!(
            !rustix::process::geteuid().is_root() || std::env::var_os("KINDLING_REQUIRE_TOOLS").is_none(),
            "no tmpfs"
        );
        report_skipped("cannot mount a tmpfs");
        None
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn full_and_read_only_disks_are_reported() {
    let scratch = scratch_with_site("bonded");
    let Some(_small) = MemoryDisk::mount(&scratch, "small", "size=1m") else { return };
    let options = ["--pxe", "small/pxe", "--full", "small/full.iso", "--rootfs-url", ROOTFS];
    run_create(&scratch, &options).expect_failure("no space left on the disk: the file needs ");
    assert_eq!(scratch.path("small").read_dir().unwrap().count(), 0);
    let Some(_fixed) = MemoryDisk::mount(&scratch, "fixed", "size=1m,ro") else { return };
    for (option, problem) in [("--full", "Read-only file system"), ("--pxe", "is on a read-only file system")]
    {
        run_create(&scratch, &[option, "fixed/new", "--rootfs-url", ROOTFS]).expect_failure(problem);
    }
}

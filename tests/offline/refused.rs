//! Inputs that are no good: what is said of them, and that nothing is written.

use fixtures::OperatingSystem;

use crate::support::{Run, Scratch, each};
use crate::{ROOTFS, SERVICE, SOURCE, create, scratch};

/// A change of a manifest, and the one line that is said of it.
struct Case {
    site: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    said: &'static str,
}

const CASES: &[Case] = &[
    Case {
        site: "bonded",
        file: "pull-secret.yaml",
        from: "name: pull-secret",
        to: "name: pullsecret",
        said: "manifests/infraenv.yaml:10: spec.pullSecretRef: error: there is no Secret of the name \"pull-secret\" in manifests",
    },
    Case {
        site: "bonded",
        file: "pull-secret.yaml",
        from: "namespace: rack4",
        to: "namespace: rack5",
        said: "manifests/infraenv.yaml:10: spec.pullSecretRef: error: there is a Secret rack5/pull-secret, which is in another namespace than \"rack4\"",
    },
    Case {
        site: "bonded",
        file: "pull-secret.yaml",
        from: ".dockerconfigjson: ",
        to: "dockerconfigjson: ",
        said: "manifests/pull-secret.yaml:1: error: the Secret rack4/pull-secret has no \".dockerconfigjson\" in data or stringData",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  pullSecretRef:\n    name: pull-secret\n",
        to: "",
        said: "manifests/infraenv.yaml:6: spec.pullSecretRef: error: names no Secret",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "infraenv: rack4",
        to: "infraenv: rack-4",
        said: "manifests/infraenv.yaml:13: spec.nmStateConfigLabelSelector: error: selects no NMStateConfig; for example, rack4/master-0 has infraenv=rack4",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "AAAAC3NzaC1lZDI1NTE5",
        to: "AAAA",
        said: "manifests/infraenv.yaml:12: spec.sshAuthorizedKey: error: ",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "value: console=ttyS0",
        to: "value: a b",
        said: "manifests/infraenv.yaml:18: spec.kernelArguments[0].value: error: \"a b\" has a blank outside of double quotes",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "operation: append",
        to: "operation: prepend",
        said: "manifests/infraenv.yaml:17: spec.kernelArguments[0].operation: error: \"prepend\" is not append, replace or delete\nError: 1 error",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  - 192.0.2.123",
        to: "  - \"192.0.2.123 iburst\"",
        said: "manifests/infraenv.yaml:21: spec.additionalNTPSources[1]: error: \"192.0.2.123 iburst\" ",
    },
    Case {
        site: "bonded",
        file: "nmstate.yaml",
        from: "id: 100",
        to: "id: 5000",
        said: "manifests/nmstate.yaml:31: spec.config.interfaces[1].vlan.id: error: VLAN 5000 is not within 1 to 4094",
    },
    Case {
        site: "bonded",
        file: "nmstate.yaml",
        from: "52:54:00:04:00:01",
        to: "52:54:00:04:00:zz",
        said: "manifests/nmstate.yaml:11: spec.interfaces[0].macAddress: error: \"52:54:00:04:00:zz\" is not a MAC address such as",
    },
    Case {
        site: "bonded",
        file: "nmstate.yaml",
        from: "10.4.100.11",
        to: "10.4.100.10",
        said: "manifests/nmstate.yaml:91: spec.config.interfaces[1].ipv4.address[0].ip: error: 10.4.100.10 is the address of bond0.100 in master-0 too",
    },
    Case {
        site: "bonded",
        file: "nmstate.yaml",
        from: "    interfaces:\n    - name: bond0\n",
        to: "    interfaces:\n    - name: bond0\n   bad\n",
        said: "Error: manifests/nmstate.yaml:17: is not valid YAML: ",
    },
    Case {
        site: "single-node",
        file: "site.yml",
        from: "httpProxy: http://proxy.example.com:3128",
        to: "httpProxy: proxy.example.com:3128",
        said: "manifests/site.yml:17: spec.proxy.httpProxy: error: ",
    },
    Case {
        site: "single-node",
        file: "site.yml",
        from: "imageType: full-iso",
        to: "imageType: huge-iso",
        said: "spec.imageType: error: \"huge-iso\" is neither full-iso nor minimal-iso",
    },
    Case {
        site: "dual-stack",
        file: "all.json",
        from: "\"x86_64\"",
        to: "\"aarch64\"",
        said: "items[0].spec.cpuArchitecture: error: the machines are aarch64, and the live image is for x86_64",
    },
    Case {
        site: "dual-stack",
        file: "all.json",
        from: "\\\"3.1.0\\\"",
        to: "\\\"2.1.0\\\"",
        said: "spec.ignitionConfigOverride: error: ",
    },
    Case {
        site: "disconnected",
        file: "mirror/registries.conf",
        from: "location = \"quay.io/openshift-release-dev/ocp-release\"",
        to: "location = \"https://quay.io\"",
        said: "manifests/mirror/registries.conf: error: ",
    },
    Case {
        site: "disconnected",
        file: "mirror/ca-bundle.crt",
        from: "BEGIN CERTIFICATE",
        to: "BEGIN CERTIFICAT",
        said: "manifests/mirror/ca-bundle.crt: error: ",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  pullSecretRef:\n    name: pull-secret\n",
        to: "  pullSecretRef: pull-secret\n",
        said: "manifests/infraenv.yaml:10: spec.pullSecretRef: error: has to be an object\nError: 1 error",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  pullSecretRef:\n    name: pull-secret\n",
        to: "  pullSecretRef:\n    name: 5\n",
        said: "manifests/infraenv.yaml:11: spec.pullSecretRef.name: error: has to be a string\nError: 1 error",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "    name: rack4\n    namespace: rack4\n",
        to: "    name: [a]\n    namespace: rack4\n",
        said: "manifests/infraenv.yaml:8: spec.clusterRef.name: error: has to be a string\nError: 1 error",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "value: console=ttyS0",
        to: "value: 5",
        said: "manifests/infraenv.yaml:18: spec.kernelArguments[0].value: error: has to be a string\nError: 1 error",
    },
    Case {
        site: "bonded",
        file: "infraenv.yaml",
        from: "  - operation: append\n    value: console=ttyS0\n",
        to: "  - console=ttyS0\n",
        said: "manifests/infraenv.yaml:17: spec.kernelArguments[0]: error: has to be an object\nError: 1 error",
    },
    Case {
        site: "bonded",
        file: "cluster.yaml",
        from: "name: openshift-v4.18.3",
        to: "name: [4.18]",
        said: "manifests/cluster.yaml:29: spec.imageSetRef.name: warning: has to be a string\ninfra-env: error: the version",
    },
    Case {
        site: "single-node",
        file: "site.yml",
        from: "  proxy:\n    httpProxy: http://proxy.example.com:3128\n    httpsProxy: http://proxy.example.com:3128\n    noProxy: .example.com,10.0.0.0/8\n",
        to: "  proxy: http://proxy.example.com:3128\n",
        said: "manifests/site.yml:16: spec.proxy: error: has to be an object\nError: 1 error",
    },
    Case {
        site: "single-node",
        file: "site.yml",
        from: "[{name: nic0, macAddress: \"52:54:00:01:00:01\"}]",
        to: "nic0",
        said: "spec.interfaces: error: has to be a list\nError: 1 error",
    },
    Case {
        site: "single-node",
        file: "site.yml",
        from: "[{name: nic0, macAddress: \"52:54:00:01:00:01\"}]",
        to: "[{name: nic0, macAddress: 5}]",
        said: "spec.interfaces[0].macAddress: error: has to be a string\nError: 1 error",
    },
    Case {
        site: "disconnected",
        file: "infraenv.yaml",
        from: "spec:\n  pullSecretRef:\n    name: mirror-secret\n  osImageVersion: \"4.16\"\n  ntpSources:\n  - 10.3.0.1\n",
        to: "spec: []\n",
        said: "manifests/infraenv.yaml:6: spec: error: has to be an object\n",
    },
    Case {
        site: "disconnected",
        file: "infraenv.yaml",
        from: "metadata:\n  name: mirror-secret\n",
        to: "metadata:\n  name: mirror-secret\n  namespace: cellar\nstringData: {}\n---\nkind: Secret\nmetadata:\n  name: mirror-secret\n",
        said: "spec.pullSecretRef: error: there are two of Secret cellar/mirror-secret: see manifests/infraenv.yaml:16 and manifests/infraenv.yaml:22\n",
    },
];

#[test]
fn every_mistake_has_its_place_and_nothing_is_written() {
    each(
        CASES,
        |case| format!("{}/{}: {}", case.site, case.file, case.to),
        |case| {
            let scratch = scratch(case.site);
            let path = format!("manifests/{}", case.file);
            let text = String::from_utf8(scratch.read(&path)).unwrap();
            assert!(text.contains(case.from), "{path} has no {:?}", case.from);
            scratch.write(&path, text.replacen(case.from, case.to, 1));
            let before = scratch.names();
            let output = create(&scratch, &["--full", "full.iso", "--pxe", "pxe", "--rootfs-url", ROOTFS]);
            output.failure(case.said);
            assert!(output.stdout.is_empty());
            assert_eq!(scratch.names(), before);
            assert!(!scratch.has("pxe"));
        },
    );
}

#[test]
fn one_infra_env_has_to_be_chosen() {
    let scratch = scratch("disconnected");
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    let other = text.split("---").next().unwrap().replace("name: cellar\n", "name: attic\n");
    scratch.write("manifests/other.yaml", other);
    let output = create(&scratch, &["--full", "full.iso"]);
    output.failure(
        "manifests/other.yaml:4: metadata.name: error: there are several InfraEnvs; choose one with --infra-env: cellar/cellar \
         (manifests/infraenv.yaml:4), cellar/attic (manifests/other.yaml:4)\n",
    );
    create(&scratch, &["--full", "a.iso", "--infra-env", "attic"]).success();
    create(&scratch, &["--full", "b.iso", "--infra-env", "cellar/cellar"]).success();
    assert_ne!(scratch.read("a.iso"), scratch.read("b.iso"));
    create(&scratch, &["--full", "c.iso", "--infra-env", "roof"]).failure("no InfraEnv of the name \"roof\"");
}

#[test]
fn two_infra_envs_of_one_name_cannot_be_chosen_between() {
    let scratch = scratch("disconnected");
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    scratch.write("manifests/other.yaml", text.split("---").next().unwrap());
    for options in [&["--full", "full.iso"][..], &["--full", "full.iso", "--infra-env", "cellar"]] {
        create(&scratch, options).failure(
            "manifests/other.yaml:4: metadata.name: error: there are two of InfraEnv cellar/cellar: see \
             manifests/infraenv.yaml:4 and manifests/other.yaml:4\n",
        );
    }
}

/// Who opens a pipe waits for somebody to write into it.
#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    for name in ["manifests/pipe.yaml", "manifests/mirror/ca-bundle.crt"] {
        let scratch = scratch("disconnected");
        let path = scratch.path(name);
        let _ = std::fs::remove_file(&path);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let run =
            scratch.command(["discovery", "create"].iter().chain(&SOURCE).chain(&["--full", "full.iso"]));
        let output = run.patience(std::time::Duration::from_secs(10)).output();
        output.failure(&format!("{name}: is no regular file"));
    }
    let scratch = scratch("disconnected");
    std::fs::rename(scratch.path("manifests/infraenv.yaml"), scratch.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", scratch.path("manifests/link.yaml")).unwrap();
    create(&scratch, &["--full", "full.iso"]).success();
}

#[test]
fn manifests_that_are_not_there_are_told_of() {
    let scratch = scratch("disconnected");
    scratch.remove("manifests/infraenv.yaml");
    create(&scratch, &["--full", "full.iso"]).failure("manifests: error: there is no InfraEnv in it");
    scratch.remove("manifests");
    create(&scratch, &["--full", "full.iso"]).failure("reading manifests");
}

#[test]
fn versions_that_nobody_tells_have_to_be_given() {
    let scratch = scratch("disconnected");
    let text = String::from_utf8(scratch.read("manifests/infraenv.yaml")).unwrap();
    scratch.write("manifests/infraenv.yaml", text.replace("  osImageVersion: \"4.16\"\n", ""));
    scratch.write("base.iso", crate::recipe().version("9.6.20251023-0").build());
    create(&scratch, &["--full", "full.iso"]).failure(
        "infra-env: error: the version of OpenShift is missing, and the live image does not tell it: give \
         --openshift-version or spec.osImageVersion\n",
    );
    create(&scratch, &["--full", "full.iso", "--openshift-version", "later"])
        .failure("--openshift-version: error: \"later\" is not an OpenShift version such as 4.18");
    create(&scratch, &["--full", "full.iso", "--openshift-version", "4.20"]).success();
    let rhcos = crate::recipe().operating_system(OperatingSystem::Rhcos).version("416.94.202410010000-0");
    scratch.write("base.iso", rhcos.build());
    let text = create(&scratch, &["--full", "told.iso"]).printed();
    assert!(text.contains("OpenShift version: 4.16\n"), "{text}");
}

#[test]
fn a_release_that_is_named_by_its_digest_tells_no_version() {
    let scratch = scratch("bonded");
    let text = String::from_utf8(scratch.read("manifests/cluster.yaml")).unwrap();
    scratch.write(
        "manifests/cluster.yaml",
        text.replace(":4.18.3-x86_64", &format!("@sha256:{}", "0".repeat(64))),
    );
    scratch.write("base.iso", crate::recipe().version("9.6.20251023-0").build());
    create(&scratch, &["--full", "full.iso"]).failure(
        "manifests/cluster.yaml:45: spec.releaseImage: error: it tells no version of OpenShift, and neither does the \
         live image: give --openshift-version or spec.osImageVersion\n",
    );
    create(&scratch, &["--full", "full.iso", "--openshift-version", "4.18"]).success();
}

#[test]
fn what_is_there_already_stays() {
    let scratch = scratch("disconnected");
    scratch.write("full.iso", "mine");
    create(&scratch, &["--minimal", "minimal.iso", "--full", "full.iso", "--rootfs-url", ROOTFS])
        .failure("full.iso is there already");
    assert_eq!(scratch.read("full.iso"), b"mine");
    assert!(!scratch.has("minimal.iso"));
}

#[test]
fn wrong_usage_is_told_as_such() {
    let scratch = scratch("disconnected");
    create(&scratch, &[]).usage("--full <FILE>|--minimal <FILE>");
    let line = format!("discovery create --base base.iso --service-url {SERVICE} --full full.iso");
    scratch.kindling(&line).usage("--infra-env-id");
    for option in ["--minimal", "--pxe", "--per-host"] {
        create(&scratch, &[option, "out"]).usage("--rootfs-url");
    }
    for option in ["--full", "--minimal", "--rootfs"] {
        create(&scratch, &[option, "-", "--rootfs-url", ROOTFS]).usage("images are not written to stdout");
    }
    scratch.write("authority.pem", "none");
    let output = create(&scratch, &["--full", "full.iso", "--service-ca-file", "authority.pem"]);
    output.failure("Error: authority.pem\n");
    output.failure("    --service-ca-file");
    create(&scratch, &["--full", "full.iso", "--arch", "foo"])
        .usage("no processor that there are live images for");
    create(&scratch, &["--per-host", "hosts", "--rootfs-url", ROOTFS])
        .failure("no host has a network of its own");
    create(&scratch, &["--full", "a.iso", "--minimal", "a.iso", "--rootfs-url", ROOTFS]).failure("twice");
}

#[test]
fn a_live_image_that_is_none_is_refused() {
    let scratch = scratch("disconnected");
    scratch.write("base.iso", "no image");
    create(&scratch, &["--full", "full.iso"]).failure("base.iso");
    scratch.write("base.iso", &*crate::BASE);
    create(&scratch, &["--full", "full.iso"]).success();
    scratch.remove("base.iso");
    std::fs::rename(scratch.path("full.iso"), scratch.path("base.iso")).unwrap();
    create(&scratch, &["--full", "full.iso"]).failure("base.iso");
}

#[test]
fn a_live_image_that_is_not_the_one_that_was_asked_for_is_refused() {
    let scratch = scratch("dual-stack");
    let digest = isogen::Digest::of(&crate::BASE);
    let other = isogen::Digest::of(b"another");
    create(&scratch, &["--full", "full.iso", "--base-sha256", &other.to_string()])
        .failure(&format!("base.iso has the SHA-256 {digest}, and not {other}"));
    create(&scratch, &["--full", "full.iso", "--arch", "s390x"])
        .failure("--arch: the live image base.iso is for x86_64, and not for s390x");
    assert!(!scratch.has("full.iso"));
    create(&scratch, &["--full", "full.iso", "--base-sha256", &digest.to_string()]).success();
    // Options count more than manifests.
    let text = String::from_utf8(scratch.read("manifests/all.json")).unwrap();
    scratch.write("manifests/all.json", text.replace("\"x86_64\"", "\"aarch64\""));
    create(&scratch, &["--full", "other.iso"]).failure("the machines are aarch64");
    create(&scratch, &["--full", "other.iso", "--arch", "x86_64"]).success();
    assert!(scratch.read("other.iso") == scratch.read("full.iso"));
}

#[test]
fn a_scheme_that_live_images_are_not_fetched_by_is_named() {
    let scratch = scratch("disconnected");
    for url in ["ftp://user:s3cret@h/x.iso?s3cret", "ftp://user:s3%63ret@h/x.iso"] {
        let line = format!(
            "discovery create --manifests manifests --base {url} --service-url {SERVICE} --full full.iso"
        );
        let output = scratch.kindling(&line);
        output.failure("--base ftp://*****@h/x.iso");
        output.failure("live images are at paths and at http, https, s3 and file URLs, not at ftp ones");
        assert!(!output.stderr.contains("ret"), "{}", output.stderr);
    }
}

/// Runs a command line with a limit to the length of files, in blocks of 512 bytes.
fn limited(scratch: &Scratch, blocks: usize, line: &str) -> Run {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {} {line}", env!("CARGO_BIN_EXE_kindling"));
    Run::new("sh", scratch.folder()).args(["-c", &script])
}

#[test]
fn without_room_nothing_is_left() {
    let scratch = scratch("bonded");
    let before = scratch.names();
    // The small files have room, the large ones have none.
    let line = format!(
        "discovery create --manifests manifests --base base.iso --service-url {SERVICE} --pxe pxe --full full.iso \
         --per-host hosts --rootfs-url {ROOTFS}"
    );
    limited(&scratch, 1000, &line).output().failure("File too large");
    assert_eq!(scratch.names(), before);
    assert!(!scratch.has("pxe") && !scratch.has("hosts"));
    create(&scratch, &["--full", "/proc/full.iso"]).failure("/proc/full.iso");
}

/// A file system in memory, gone at the end; nothing where this user may not have one.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn at(scratch: &Scratch, name: &str, options: &str) -> Option<Self> {
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
        eprintln!("SKIPPED: a tmpfs cannot be mounted here");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_and_one_that_is_only_read_are_told_of() {
    let scratch = scratch("bonded");
    let Some(_small) = Mounted::at(&scratch, "small", "size=1m") else { return };
    let options = ["--pxe", "small/pxe", "--full", "small/full.iso", "--rootfs-url", ROOTFS];
    create(&scratch, &options).failure("No space left on device");
    assert_eq!(scratch.path("small").read_dir().unwrap().count(), 0);
    let Some(_fixed) = Mounted::at(&scratch, "fixed", "size=1m,ro") else { return };
    for option in ["--full", "--pxe"] {
        create(&scratch, &[option, "fixed/new", "--rootfs-url", ROOTFS]).failure("Read-only file system");
    }
}

//! Runs the scripts of a discovery config with fake programs that record their calls.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod resources;
mod setups;
#[path = "../../tests/support/skip.rs"]
mod skip;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use ignition::config::Config;
use resources::contents;
use setups::{full_standalone, minimal};
use skip::report_missing;
use tempfile::TempDir;

/// A folder with a script and fake versions of the programs that it calls.
struct Stage {
    folder: TempDir,
}

impl Stage {
    /// Creates a stage. `programs` contains the names and shell code of fake programs. Each call is recorded before the
    /// code runs.
    fn new(script: &str, programs: &[(&str, &str)]) -> Self {
        Self::with(&minimal().compose().unwrap().config, script, programs)
    }

    /// Creates a stage like [`new`](Self::new), with a script of another config.
    fn with(config: &Config, script: &str, programs: &[(&str, &str)]) -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        stage.write("script", &contents(config, script).unwrap());
        for (name, lines) in programs {
            let text = format!("#!/bin/bash\necho \"{name} $*\" >>\"$STAGE/calls\"\n{lines}\n");
            stage.write(name, text.as_bytes());
        }
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &[u8]) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the script and returns its exit code. Returns `None` without running it if bash is missing.
    fn run(&self, argument: &str) -> Option<i32> {
        self.run_where(argument, &[])
    }

    /// Runs the script like [`run`](Self::run), with environment variables.
    fn run_where(&self, argument: &str, variables: &[(&str, &str)]) -> Option<i32> {
        let path = env::join_paths([self.folder.path(), "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
        let mut command = Command::new("/bin/bash");
        command.arg(self.path("script")).arg(argument).env("PATH", path).env("STAGE", self.folder.path());
        command.envs(variables.iter().copied());
        match command.output() {
            Ok(output) => Some(output.status.code().unwrap()),
            Err(error) => {
                report_missing(&format!("bash cannot be run ({error})"));
                None
            }
        }
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

#[test]
fn only_unlisted_image_is_removed() {
    let removed = |listed: &str, image: &str| {
        let podman = format!("[ \"$1\" != images ] || printf '%s\\n' {listed}; [ \"$1\" = images ]");
        let stage = Stage::new("/usr/local/bin/agent-fix-bz1964591", &[("podman", &podman)]);
        let status = stage.run(image)?;
        assert_eq!(status, 0, "the agent starts anyway");
        Some(stage.calls().contains(&format!("podman rmi --force {image}")))
    };
    for (listed, image, expected) in [
        ("quay.io/a/agent", "quay.io/a/agent:v1", false),
        ("quay.io/a/agent", "quay.io/a/agent@sha256:00", false),
        ("quay.io/a/agent", "quay.io/a/agent", false),
        ("lab:5000/a/agent", "lab:5000/a/agent:v1", false),
        // A reference with the same registry and port, but another name, is another image.
        ("lab:5000/a/other lab", "lab:5000/a/agent:v1", true),
        ("quay.io/a/agent-2 quay_io/a/agent", "quay.io/a/agent:v1", true),
        ("''", "quay.io/a/agent:v1", true),
    ] {
        let Some(removed) = removed(listed, image) else { return };
        assert_eq!(removed, expected, "{listed} {image}");
    }
}

#[test]
fn image_pull_retries_with_growing_delay() {
    let podman = "[ \"$1\" = pull ] && [ \"$(grep -c 'podman pull' \"$STAGE/calls\")\" -gt 8 ]";
    let stage = Stage::new("/usr/local/bin/agent-pull-image", &[("podman", podman), ("sleep", "")]);
    let Some(status) = stage.run("quay.io/a") else { return };
    assert_eq!(status, 0);
    let pauses: Vec<String> =
        stage.calls().iter().filter_map(|call| Some(call.strip_prefix("sleep ")?.to_owned())).collect();
    assert_eq!(pauses.join(" "), "5 10 20 40 80 160 300 300");
    assert_eq!(stage.calls()[0], "podman image exists quay.io/a");
    let there = Stage::new("/usr/local/bin/agent-pull-image", &[("podman", "exit 0")]);
    assert_eq!(there.run("quay.io/a"), Some(0));
    assert_eq!(there.calls(), ["podman image exists quay.io/a"]);
}

#[test]
fn user_data_is_run_on_oracle_cloud_only() {
    // The decoded script is: echo ran >"$STAGE/ran"
    let script = "echo ZWNobyByYW4gPiIkU1RBR0UvcmFuIgo=";
    let cases = [
        ("x86_64", "OracleCloud.com", script, 0, true),
        ("s390x", "OracleCloud.com", script, 0, false),
        ("x86_64", "Other", script, 0, false),
        ("x86_64", "OracleCloud.com", "echo '<h1>404 Not Found</h1>'", 0, false),
        ("x86_64", "OracleCloud.com", "exit 7", 1, false),
        ("x86_64", "OracleCloud.com", "echo '!'", 1, false),
    ];
    for (machine, tag, curl, expected, runs) in cases {
        let (machine, tag) = (format!("echo {machine}"), format!("echo {tag}"));
        let programs = [("uname", machine.as_str()), ("dmidecode", &tag), ("curl", curl)];
        let stage = Stage::new("/usr/local/bin/oci-eval-user-data.sh", &programs);
        let Some(status) = stage.run("") else { return };
        assert_eq!(status, expected, "{machine} {tag} {curl}");
        assert_eq!(stage.path("ran").exists(), runs, "{machine} {tag} {curl}");
    }
}

#[test]
fn host_without_its_own_name_gets_the_ironic_name() {
    let config = full_standalone().compose().unwrap().config;
    let known_as = Some(("--transient", "node-0.lab.example.com"));
    let from_dhcp = |name| Some(("--static --transient", name));
    let hostile = "a.b $(touch \"$STAGE/ran\"); c";
    for (kernel, dhcp, expected) in [
        ("localhost", "", known_as),
        ("localhost.localdomain", "", known_as),
        ("node-1", "", None),
        // A name that only contains the text must not match.
        ("my-localhost-1", "", None),
        ("node-1", "a.example.com", from_dhcp("a.example.com")),
        ("node-1", "a.example.com.", from_dhcp("a.example.com")),
        // A name without a domain is not fully qualified.
        ("localhost", "a", known_as),
        ("node-1", hostile, from_dhcp(hostile)),
    ] {
        let uname = format!("echo {kernel}");
        let programs = [("uname", uname.as_str()), ("hostnamectl", "echo \"last ${!#}\" >>\"$STAGE/calls\"")];
        let stage = Stage::with(&config, "/etc/NetworkManager/dispatcher.d/01-hostname", &programs);
        let Some(status) = stage.run_where("eno1", &[("DHCP6_FQDN_FQDN", dhcp)]) else { return };
        assert_eq!(status, 0, "{kernel} {dhcp}");
        let calls: Vec<String> = stage.calls().into_iter().filter(|call| call != "uname -n").collect();
        let expected = expected.map(|(options, name)| {
            [format!("hostnamectl set-hostname {options} -- {name}"), format!("last {name}")]
        });
        assert_eq!(calls, expected.into_iter().flatten().collect::<Vec<_>>(), "{kernel} {dhcp}");
        assert!(!stage.path("ran").exists(), "{dhcp}");
    }
}

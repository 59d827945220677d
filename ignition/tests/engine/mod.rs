//! Runs the real Ignition, version 2.14 from Debian: its validator, and its engine outside of an initrd.
//!
//! If a program is missing, its tests print a notice and are skipped. With `KINDLING_REQUIRE_TOOLS=1` they fail
//! instead.

#[path = "../../../tests/support/skip.rs"]
pub(crate) mod skip;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, iter};

use ignition::config::Config;
use ignition::spec::Spec;
use serde_json::Value;
use skip::report_missing;
use tempfile::TempDir;

/// The newest spec version that Ignition 2.14 reads. Ignition 2.14 merges configs in this version, the newest one that
/// is not experimental.
pub(crate) const NEWEST: Spec = Spec::V3_3;

const VALIDATOR: &str = "ignition-validate";
const ENGINE: &str = "/usr/lib/dracut/modules.d/30ignition/ignition";

/// The validator's report about a config.
pub(crate) struct Verdict {
    pub(crate) is_valid: bool,
    /// The severity and the pointer of each finding.
    pub(crate) findings: BTreeSet<String>,
    pub(crate) text: String,
}

pub(crate) struct Validator(PathBuf);

impl Validator {
    pub(crate) fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let program =
            env::split_paths(&path).map(|folder| folder.join(VALIDATOR)).find(|path| path.is_file());
        if program.is_none() {
            missing(VALIDATOR);
        }
        program.map(Self)
    }

    pub(crate) fn validate(&self, config: &str) -> Verdict {
        let mut command = Command::new(&self.0);
        command.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(config.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        Verdict { is_valid: output.status.success(), findings: findings(&text), text }
    }
}

/// Parses lines such as `error at $.storage.files.0.mode, line 1 col 2: illegal file mode`.
fn findings(text: &str) -> BTreeSet<String> {
    let finding = |line: &str| {
        let (severity, rest) = line.split_once(" at $")?;
        let (path, _) = rest.split_once(", line ")?;
        Some((severity.to_owned(), path.replace('.', "/")))
    };
    let all: Vec<(String, String)> = text.lines().filter_map(finding).collect();
    // Ignore repeated reports: the validator reports an error in a URL again for an enclosing object, or for a missing
    // field.
    let is_echo = |(severity, path): &(String, String)| {
        let deeper =
            |(other, below): &(String, String)| other == severity && below == &format!("{path}/source");
        path.ends_with("/keys") || all.iter().any(deeper)
    };
    all.iter().filter(|it| !is_echo(it)).map(|(severity, path)| format!("{severity} {path}")).collect()
}

pub(crate) struct Engine(());

impl Engine {
    pub(crate) fn find() -> Option<Self> {
        if !Path::new(ENGINE).is_file() {
            missing(ENGINE);
            return None;
        }
        Some(Self(()))
    }

    /// Lets the engine fetch a config on a new machine. Returns the machine, or the engine's error.
    pub(crate) fn fetch(&self, config: &str) -> Result<Machine, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("root/etc/selinux")).unwrap();
        // Disable SELinux. In the last step, the engine relabels all written files with `setfiles`, but the test has
        // neither that program nor an SELinux policy.
        fs::write(folder.path().join("root/etc/selinux/config"), "SELINUX=disabled\nSELINUXTYPE=none\n")
            .unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let setfiles = folder.path().join("bin/setfiles");
        fs::write(&setfiles, "#!/bin/sh\nexec cat\n").unwrap();
        fs::set_permissions(&setfiles, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("config.ign"), config).unwrap();
        let machine = Machine { folder };
        machine.stage("fetch").map(|()| machine)
    }
}

pub(crate) struct Machine {
    folder: TempDir,
}

impl Machine {
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(crate) fn stage(&self, stage: &str) -> Result<(), String> {
        let folder = self.folder.path();
        let mut command = Command::new(ENGINE);
        command.current_dir(folder).env("IGNITION_CONFIG_FILE", "config.ign");
        command.env("PATH", env::join_paths(programs(folder)).unwrap());
        command.args(["-platform", "file", "-log-to-stdout", "-stage", stage]).arg("-root").arg(self.root());
        command.args(["-config-cache", "cache", "-state-file", "state"]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(()) } else { Err(text) }
    }

    /// Returns the config that the engine will apply, in the newest spec version that is not experimental.
    pub(crate) fn config(&self) -> Config {
        let mut config: Value =
            serde_json::from_slice(&fs::read(self.folder.path().join("cache")).unwrap()).unwrap();
        config["ignition"]["version"] = NEWEST.as_str().into();
        config["ignition"]["config"] = Value::Null;
        let parsed = Config::parse(config.to_string().as_bytes()).unwrap();
        assert!(parsed.warnings.is_empty(), "{}", parsed.warnings.to_text("cache"));
        parsed.config
    }
}

/// Returns the engine's `PATH`: first the replacements of this test, then the programs that manage users.
fn programs(folder: &Path) -> [PathBuf; 5] {
    [folder.join("bin"), "/usr/sbin".into(), "/usr/bin".into(), "/sbin".into(), "/bin".into()]
}

/// Returns a config in the form in which the engine stores it: spec 3.3, without the special bits of modes, which its
/// experimental version clears.
pub(crate) fn as_stored(config: &Config) -> Config {
    let mut config = config.to_value();
    for list in ["files", "directories"] {
        let nodes = config["storage"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for mode in nodes.filter_map(|node| node.get_mut("mode")) {
            *mode = (mode.as_i64().unwrap() & 0o777).into();
        }
    }
    Config::parse(config.to_string().as_bytes()).unwrap().config
}

/// Returns a parent config that merges a child at boot.
pub(crate) fn with_merged_child(parent: &Config, child: &Config) -> String {
    let mut config = parent.to_value();
    let escaped: String = child.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
    config["ignition"]["config"]["merge"] =
        iter::once(serde_json::json!({"source": format!("data:,{escaped}")})).collect();
    config.to_string()
}

fn missing(program: &str) {
    report_missing(&format!("{program} is not installed"));
}

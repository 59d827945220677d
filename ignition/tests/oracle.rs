//! Compares this crate with the real Ignition, which shares no code with it: the validator for every config of the
//! cases, the engine for every merge, and the resulting files, units and users on a disk.
//!
//! Debian's Ignition 2.14 reads specs up to 3.3. If a program is missing, its tests print a notice and are skipped.
//! With `KINDLING_REQUIRE_TOOLS=1` they fail instead.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: what is not as expected must stop the test"
)]

mod accounts;
mod cases;
mod engine;
mod findings;
mod random;
mod resources;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use accounts::Accounts;
use engine::skip::report_skipped;
use engine::{Engine, NEWEST, Validator, as_stored, with_merged_child};
use ignition::config::Config;
use ignition::merge::merge;
use ignition::spec::Spec;
use ignition::summary::ConfigSummary;
use ignition::translate::translate;
use ignition::validate::validate;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::TestRunner;
use random::Shape;
use serde_json::{Value, json};

const PAIRS: usize = 300;

/// Number of random user pairs. The engine needs a while for each.
const USER_PAIRS: usize = 40;

fn old() -> Vec<Spec> {
    Spec::ALL.into_iter().filter(|spec| *spec <= NEWEST).collect()
}

/// Returns random values, which are the same in every run.
fn samples<T: std::fmt::Debug>(strategy: &impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..PAIRS).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn pairs() -> Vec<(Config, Config)> {
    samples(&(random::any_config(old(), Shape::ANY), random::any_config(old(), Shape::ANY)))
}

#[test]
fn validator_agrees_with_our_findings() {
    let Some(validator) = Validator::find() else { return };
    let cases: Vec<_> =
        findings::Case::all("validate").into_iter().filter(|case| case.config().spec() <= NEWEST).collect();
    assert!(cases.iter().filter(|case| !case.newer).count() > 40);
    for case in cases {
        let verdict = validator.validate(&case.text());
        let ours = validate(&case.config());
        if case.newer {
            assert_ne!(
                verdict.findings,
                findings::found(&ours),
                "{}: marked as newer, but Ignition has this rule",
                case.name
            );
            continue;
        }
        assert_eq!(verdict.findings, findings::found(&ours), "{}\n{}", case.name, verdict.text);
        assert_eq!(verdict.is_valid, !ours.is_fatal(), "{}", case.name);
    }
}

#[test]
fn validator_agrees_on_merged_configs() {
    let Some(validator) = Validator::find() else { return };
    let cases = cases::Case::all().into_iter().map(|case| (case.parent(), case.child()));
    let mut judged = [0_usize; 2];
    for (parent, child) in cases.chain(pairs()) {
        for config in [&parent, &child, &merge(&parent, &child)] {
            if config.spec() > NEWEST {
                continue;
            }
            let verdict = validator.validate(&config.to_string());
            let ours = validate(config);
            assert_eq!(
                verdict.is_valid,
                !ours.is_fatal(),
                "{config}\n{}\n{}",
                verdict.text,
                ours.to_text("ours")
            );
            judged[usize::from(verdict.is_valid)] += 1;
        }
    }
    assert!(judged.iter().all(|count| *count > 20), "both good and bad configs: {judged:?}");
}

/// The engine translates both configs to its newest version and merges them in that version.
#[test]
fn engine_merges_like_this_crate() {
    let Some(engine) = Engine::find() else { return };
    let cases = cases::Case::all().into_iter().filter(|case| case.engine);
    let cases = cases.map(|case| (case.name.clone(), case.parent(), case.child()));
    let random = pairs().into_iter().map(|(parent, child)| ("random".to_owned(), parent, child));
    let mut merged = 0;
    for (name, parent, child) in cases.chain(random) {
        if parent.spec().max(child.spec()) > NEWEST {
            continue;
        }
        let [new_parent, new_child] = [&parent, &child].map(|it| translate(it, NEWEST).unwrap());
        let ours = merge(&new_parent, &new_child);
        let is_bad = [&parent, &child, &ours].iter().any(|it| validate(it).is_fatal());
        match engine.fetch(&with_merged_child(&parent, &child)) {
            Ok(machine) => {
                assert!(!is_bad, "{name}: the engine accepts {parent} + {child}");
                let (theirs, ours) = (machine.config(), as_stored(&ours));
                assert_eq!(theirs.to_string(), ours.to_string(), "{name}: {parent} + {child}");
                merged += 1;
            }
            Err(text) => assert!(is_bad, "{name}: the engine refuses {parent} + {child}: {text}"),
        }
    }
    assert!(merged > 150, "only {merged} pairs could be merged");
}

#[test]
fn engine_writes_the_files_of_the_merged_config() {
    let Some(engine) = Engine::find() else { return };
    let machine = engine.fetch(&with_merged_child(&base(), &change())).unwrap();
    let root = machine.root();
    if !can_change_owners(&root) {
        return;
    }
    machine.stage("files").unwrap();
    let merged = merge(&base(), &change());
    let config = merged.to_value();
    let list = |path: &str| config.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    for file in list("/storage/files") {
        assert_file(&root, &file);
    }
    for directory in list("/storage/directories") {
        let metadata = fs::metadata(below(&root, directory["path"].as_str().unwrap())).unwrap();
        assert!(metadata.is_dir());
        assert_mode(&metadata, directory["mode"].as_u64().unwrap_or(0o755), &directory);
    }
    for link in list("/storage/links") {
        let target = fs::read_link(below(&root, link["path"].as_str().unwrap())).unwrap();
        assert_eq!(target.to_str(), link["target"].as_str());
    }
    assert_units(&root, &list("/systemd/units"));
}

/// Every form of a user works outside of an initrd: the engine calls `useradd` with `--root`, which needs only a few
/// files. Every form of a group works, too, except the change of an existing group, which `groupadd` always rejects.
#[test]
fn engine_creates_the_users_of_the_merged_config() {
    let Some(engine) = Engine::find() else { return };
    let forms = user_forms();
    let random =
        samples(&(random::makeable_passwd(), random::makeable_passwd())).into_iter().take(USER_PAIRS);
    for (base, change) in forms.into_iter().chain(random) {
        let [base, change] = [base, change].map(|it| cases::read(&json!({"passwd": it}), "3.2.0"));
        let merged = merge(&base, &change);
        assert!(!validate(&merged).is_fatal());
        let machine = engine.fetch(&with_merged_child(&base, &change)).unwrap();
        let root = machine.root();
        if !can_change_owners(&root) {
            return;
        }
        accounts::prepare(&root);
        let before = Accounts::read(&root);
        machine.stage("files").unwrap_or_else(|text| panic!("{merged}: {text}"));
        let after = Accounts::read(&root);
        let config = merged.to_value();
        after.assert_result_of(&before, &config["passwd"], &root);
        let parsed = Config::parse(merged.to_string().as_bytes()).unwrap();
        assert_summary(&ConfigSummary::from(&parsed), &before, &after);
    }
}

/// Asserts that the summary contains exactly the users that the config changes or removes.
fn assert_summary(summary: &ConfigSummary, before: &Accounts, after: &Accounts) {
    let [changed, gone] = after.changes_since(before);
    for (named, changed, there) in [(&summary.users, changed, true), (&summary.removed_users, gone, false)] {
        assert!(changed.iter().all(|name| named.contains(name)), "{summary:?}: {changed:?}");
        assert!(named.iter().all(|name| after.users.contains_key(name) == there), "{summary:?}");
    }
}

/// Errors that depend on the machine's users are not errors of the config, but the boot fails.
#[test]
fn engine_fails_on_invalid_users() {
    let Some(engine) = Engine::find() else { return };
    let bad = [
        (
            json!({"users": [{"name": "new", "groups": ["missing-group"]}]}),
            "group 'missing-group' does not exist",
        ),
        (
            json!({"users": [{"name": "new", "noCreateHome": true, "sshAuthorizedKeys": ["a b"]}]}),
            "permission denied",
        ),
        (json!({"users": [{"name": "new", "uid": 1000}]}), "UID 1000 is not unique"),
        (json!({"groups": [{"name": "wheel", "gid": 77}]}), "group 'wheel' already exists"),
        (json!({"groups": [{"name": "core", "shouldExist": false}]}), "cannot remove the primary group"),
    ];
    for (passwd, reason) in bad {
        let config = cases::read(&json!({"passwd": passwd}), "3.2.0");
        assert!(!validate(&config).is_fatal());
        let machine = engine.fetch(&config.to_string()).unwrap();
        if !can_change_owners(&machine.root()) {
            return;
        }
        accounts::prepare(&machine.root());
        let text = machine.stage("files").unwrap_err();
        assert!(text.contains(reason), "{config}: {text}");
    }
}

/// Returns pairs of a base config and a change, which together contain all fields of a user.
fn user_forms() -> Vec<(Value, Value)> {
    let only = |users: Value| json!({"users": users});
    vec![
        // The configs resemble a discovery config and its override.
        (
            only(
                json!([{"name": "core", "passwordHash": "!", "sshAuthorizedKeys": ["ssh-ed25519 AA me"], "groups": ["sudo"]}]),
            ),
            only(
                json!([{"name": "core", "passwordHash": "$6$salt$hash", "sshAuthorizedKeys": ["ssh-rsa BB"], "groups": ["adm"]}]),
            ),
        ),
        // An empty hash always locks the account.
        (
            only(json!([{"name": "core", "passwordHash": "$6$a$b"}])),
            only(json!([{"name": "core", "passwordHash": ""}])),
        ),
        // A few users are removed, one of them although the change sets other fields of it.
        (
            only(json!([{"name": "guest", "shouldExist": false}, {"name": "never", "shouldExist": false}])),
            only(json!([{"name": "other", "shouldExist": false}, {"name": "guest", "gecos": "a"}])),
        ),
        // All fields of a new user, in a group from the same config.
        (
            json!({"groups": [{"name": "staff", "gid": 1500, "passwordHash": "x"}, {"name": "old", "shouldExist": false}]}),
            json!({
                "groups": [{"name": "daemons", "system": true}, {"name": "old", "gid": 5}],
                "users": [
                    {"name": "op", "uid": 1600, "homeDir": "/srv/deep/op", "gecos": "An Operator", "shell": "/bin/sh",
                        "primaryGroup": "staff", "noUserGroup": true, "groups": ["wheel", "daemons"], "noLogInit": true,
                        "passwordHash": "$6$a$b", "sshAuthorizedKeys": ["ssh-ed25519 CC", "ssh-ed25519 DD"]},
                    {"name": "backup", "system": true, "noCreateHome": true},
                ],
            }),
        ),
        // An existing user moves to another home with all of its data.
        (
            only(
                json!([{"name": "core", "uid": 1700, "homeDir": "/srv/core", "sshAuthorizedKeys": ["ssh-ed25519 EE"]}]),
            ),
            only(json!([{"name": "core", "shell": "/bin/sh", "primaryGroup": "wheel", "gecos": "New"}])),
        ),
    ]
}

/// Returns `true` if this process may change file owners, which the engine does.
fn can_change_owners(root: &Path) -> bool {
    let may = fs::metadata(root).unwrap().uid() == 0;
    if !may {
        report_skipped("only root can change file owners");
    }
    may
}

fn below(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn assert_mode(metadata: &fs::Metadata, expected: u64, node: &Value) {
    assert_eq!(u64::from(metadata.permissions().mode() & 0o7777), expected, "{node}");
}

fn assert_file(root: &Path, file: &Value) {
    let path = below(root, file["path"].as_str().unwrap());
    let metadata = fs::symlink_metadata(&path).unwrap();
    assert!(metadata.is_file(), "{file}");
    assert_mode(&metadata, file["mode"].as_u64().unwrap_or(0o644), file);
    assert_eq!(u64::from(metadata.uid()), file["user"]["id"].as_u64().unwrap_or(0), "{file}");
    let parts = std::iter::once(&file["contents"]).chain(file["append"].as_array().into_iter().flatten());
    let parts = parts.filter_map(|part| Some((part["source"].as_str()?, part["compression"].as_str())));
    let expected: Vec<u8> =
        parts.flat_map(|(source, compression)| resources::decode(source, compression)).collect();
    assert_eq!(fs::read(&path).unwrap(), expected, "{file}");
}

fn assert_units(root: &Path, units: &[Value]) {
    let folder = root.join("etc/systemd/system");
    let mut presets = BTreeMap::new();
    for unit in units {
        let name = unit["name"].as_str().unwrap();
        if unit["mask"] == true {
            assert_eq!(fs::read_link(folder.join(name)).unwrap(), Path::new("/dev/null"));
        } else if let Some(contents) = unit["contents"].as_str() {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), contents);
        }
        for dropin in unit["dropins"].as_array().into_iter().flatten() {
            let path = folder.join(format!("{name}.d")).join(dropin["name"].as_str().unwrap());
            assert_eq!(fs::read_to_string(path).unwrap(), dropin["contents"].as_str().unwrap());
        }
        if let Some(enabled) = unit["enabled"].as_bool() {
            presets.insert(name, enabled);
        }
    }
    let actual = fs::read_to_string(root.join("etc/systemd/system-preset/20-ignition.preset")).unwrap();
    let actual = actual.lines().map(|line| line.split_once(' ').unwrap());
    let actual: BTreeMap<&str, bool> = actual.map(|(what, name)| (name, what == "enable")).collect();
    assert_eq!(actual, presets);
}

fn base() -> Config {
    let hello = json!({"compression": "gzip", "source": "data:;base64,H4sIAAAAAAAC/8tIzcnJ5wIAIDA6NgYAAAA="});
    let config = json!({
        "storage": {
            "files": [
                {"path": "/etc/motd", "mode": 420, "contents": {"source": "data:,old"}},
                {"path": "/var/lib/deep/file", "mode": 384, "contents": hello},
                {"path": "/etc/becomes-link"},
                {"path": "/etc/appended", "contents": {"source": "data:text/plain;base64,YQo="}, "append": [{"source": "data:,b%0A"}]},
            ],
            "directories": [{"path": "/d", "mode": 448}, {"path": "/e"}],
        },
        "systemd": {"units": [
            {"name": "a.service", "enabled": true, "contents": "[Service]\nExecStart=/a\n[Install]\nWantedBy=x\n"},
            {"name": "b.service", "enabled": true},
        ]},
    });
    cases::read(&config, "3.1.0")
}

fn change() -> Config {
    let config = json!({
        "storage": {
            "files": [
                {"path": "/etc/motd", "mode": 292, "contents": {"source": "data:,new%0A"}, "user": {"id": 7}},
                {"path": "/etc/appended", "append": [{"source": "data:;base64,Ywo="}]},
                {"path": "/usr/local/bin/tool", "mode": 493, "contents": {"source": "data:,%23!/bin/sh"}},
            ],
            "links": [{"path": "/etc/becomes-link", "target": "../var"}],
            "directories": [{"path": "/d", "mode": 493}],
        },
        "systemd": {"units": [
            {"name": "b.service", "enabled": false},
            {"name": "a.service", "dropins": [{"name": "x.conf", "contents": "[Service]\nEnvironment=A=b\n"}]},
            {"name": "c.service", "mask": true},
        ]},
    });
    cases::read(&config, "3.3.0")
}

//! Compares the help texts with `tests/goldens/help`; `UPDATE_GOLDEN=1 cargo test --test cli` rewrites these files.
//! Runs the examples of the help texts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{env, fs};

use fixtures::{Architecture, Era, Recipe};

use crate::support::{ProgramRun, Scratch, ScratchFile};

/// Commands that the help texts do not list.
const HIDDEN: &[&str] = &["dev", "iso embed", "iso show", "iso remove"];

/// Collects the help texts of a command and of all its subcommands, by name.
fn collect_help_texts(scratch: &Scratch, command: &str, texts: &mut BTreeMap<String, String>) {
    let text = scratch.run_kindling(&format!("{command} --help")).expect_text();
    let hidden = HIDDEN.iter().filter_map(|hidden| match hidden.rsplit_once(' ') {
        Some((parent, name)) => (parent == command).then_some(name),
        None => command.is_empty().then_some(hidden),
    });
    let children: BTreeSet<String> =
        listed_commands(&text).into_iter().chain(hidden.map(str::to_owned)).collect();
    for child in children {
        collect_help_texts(scratch, format!("{command} {child}").trim(), texts);
    }
    texts.insert(format!("kindling {command}").trim().replace(' ', "-"), text);
}

/// Returns the subcommands that a help text lists.
fn listed_commands(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn help_texts_match_the_goldens() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/help");
    let mut texts = BTreeMap::new();
    collect_help_texts(&Scratch::new(), "", &mut texts);
    assert!(texts.len() > 30);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in &texts {
            fs::write(folder.join(format!("{name}.txt")), text).unwrap();
        }
        return;
    }
    let recorded = fs::read_dir(&folder).into_iter().flatten().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    });
    let recorded: BTreeMap<String, String> = recorded.collect();
    for name in texts.keys().chain(recorded.keys()) {
        let (now, before) = (texts.get(name), recorded.get(name));
        assert!(
            now == before,
            "{name}: the help text has changed; if that is right, run UPDATE_GOLDEN=1 cargo test --test cli\n\
             before:\n{}\nnow:\n{}",
            before.map_or("nothing", String::as_str),
            now.map_or("nothing", String::as_str),
        );
    }
}

#[test]
fn summary_of_serve_fits_on_a_screen() {
    let summary = Scratch::new().command(["serve", "-h"]).env("COLUMNS", "80").run().expect_text();
    assert!(summary.lines().count() <= 40, "{} lines:\n{summary}", summary.lines().count());
    assert!(summary.lines().all(|line| line.len() <= 80), "{summary}");
    for part in ["--listen ", "--os-images ", "--auth-type", "--allow-open-access", "serve --help` shows all"]
    {
        assert!(summary.contains(part), "{part}:\n{summary}");
    }
}

/// Returns the examples of a command, each with all its lines.
fn examples_of(scratch: &Scratch, command: &str) -> Vec<String> {
    let text = scratch.run_kindling(&format!("{command} --help")).expect_text();
    let (_, examples) = text.split_once("Examples:\n").unwrap_or_else(|| panic!("{command}: no examples"));
    let examples = format!("\n{examples}");
    examples.split("\n  kindling ").skip(1).map(|example| format!("kindling {example}")).collect()
}

const EXAMPLE_CONFIG: &str = r#"{"ignition": {"version": "3.3.0"}}"#;
const EXAMPLE_KEYFILE: &str = "[connection]\nid=eth0\ntype=ethernet\n[ipv4]\nmethod=auto\n";
const EXAMPLE_SITE: &str = "kind: InfraEnv
metadata: {name: site, namespace: site}
spec: {pullSecretRef: {name: pull-secret}, osImageVersion: \"4.18\"}
---
kind: Secret
metadata: {name: pull-secret, namespace: site}
stringData: {.dockerconfigjson: '{\"auths\": {\"quay.io\": {\"auth\": \"dXNlcjpwYXNz\"}}}'}
";
const EXAMPLE_HOST: &str = "kind: NMStateConfig
metadata: {name: node-0}
spec:
  interfaces: [{name: eth0, macAddress: \"52:54:00:05:00:01\"}]
  config:
    interfaces: [{name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]
";
/// Commands that create the remaining input files of the examples.
const EXAMPLE_FILES: [&str; 9] = [
    "iso customize --live-ignition config.ign --network-keyfile eth0.nmconnection -o custom.iso base.iso",
    "iso kargs modify -a console=ttyS0 custom.iso",
    "iso extract pxe -o all base.iso",
    "pxe ignition wrap -i config.ign -o ignition.img",
    "pxe network wrap -k eth0.nmconnection -o network.img",
    "auth keys --out keys",
    "discovery plan --manifests site/ --base base.iso --service-url http://192.0.2.1 -o site.plan",
    "discovery apply base.iso site.plan -o discovery.iso",
    "ignition merge -o large.ign config.ign override.ign",
];

fn example_files() -> BTreeMap<String, ScratchFile> {
    let scratch = Scratch::new();
    for (name, text) in [
        ("config.ign", EXAMPLE_CONFIG),
        ("override.ign", EXAMPLE_CONFIG),
        ("eth0.nmconnection", EXAMPLE_KEYFILE),
        ("site/site.yaml", EXAMPLE_SITE),
        ("hosts.yaml", EXAMPLE_HOST),
        ("pull-secret.json", r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#),
    ] {
        scratch.write(name, text);
    }
    let base = Recipe::new(Architecture::X86_64, Era::E2024_12).with_program();
    base.write_to(&scratch.path("base.iso")).unwrap();
    for line in EXAMPLE_FILES {
        scratch.run_kindling(line).expect_success();
    }
    let initrd =
        scratch.names().into_iter().find(|name| name.starts_with("all/") && name.ends_with("initrd.img"));
    fs::rename(scratch.path(&initrd.unwrap()), scratch.path("initrd.img")).unwrap();
    scratch.files()
}

/// Removes the output files of an example, so that they do not conflict with the files of the next example.
fn remove_outputs(scratch: &Scratch, example: &str) {
    let words: Vec<&str> = example.split_whitespace().collect();
    for pair in words.windows(2) {
        if ["-o", "-C", "--full", "--out", "--per-host", "2024-12"].contains(&pair[0])
            && scratch.has_file(pair[1])
        {
            scratch.remove(pair[1]);
        }
    }
}

#[test]
fn examples_of_commands_on_files_work() {
    /// Commands that serve, need a URL or a cluster, or write to directories of the system.
    const NOT_RUN: &[&str] =
        &["serve", "demo", "simulate", "doctor", "boot-test", "crd", "completions", "man"];
    let is_not_run = |command: &str| NOT_RUN.contains(&command) || command.starts_with("infra-env-");
    let scratch = Scratch::new();
    let mut texts = BTreeMap::new();
    collect_help_texts(&scratch, "", &mut texts);
    let files = example_files();
    let mut run = 0;
    for (name, text) in &texts {
        let is_hidden = |hidden: &&str| name.starts_with(&format!("kindling-{}", hidden.replace(' ', "-")));
        let command = name.trim_start_matches("kindling").trim_start_matches('-');
        if text.contains("Commands:\n") || is_not_run(command) || HIDDEN.iter().any(is_hidden) {
            continue;
        }
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: kindling ")).unwrap();
        let words = usage.split_whitespace();
        let path: Vec<&str> =
            words.take(command.split('-').count()).take_while(|word| is_verb(word)).collect();
        let scratch = Scratch::new();
        for (name, file) in &files {
            scratch.write(name, &file.bytes);
        }
        for example in examples_of(&scratch, &path.join(" ")) {
            remove_outputs(&scratch, &example);
            let script = example.replacen("kindling", "\"$KINDLING\"", 1);
            let output = ProgramRun::new("sh", scratch.folder())
                .args(["-c", &script])
                .env("KINDLING", crate::support::KINDLING)
                .run();
            // A difference between images is not a failure.
            let is_fine = output.status.success() || example.starts_with("kindling iso diff");
            assert!(is_fine, "{example}\n{}{}", output.stdout_text(), output.stderr);
            run += 1;
        }
    }
    assert!(run > 35, "{run}");
}

/// Returns `true` if a word of a usage line is part of the command.
fn is_verb(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-')
}

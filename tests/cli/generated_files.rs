//! Shells and formatters accept the completions and manual pages, and their content does not depend on the machine.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{ProgramRun, Scratch, require_tool};

/// The verbs of `kindling iso`, as listed in its help text.
const VERBS: [&str; 10] =
    ["customize", "diff", "extract", "ignition", "inspect", "kargs", "network", "reset", "verify", "help"];

fn completion_script(scratch: &Scratch, shell: &str) -> Vec<u8> {
    scratch.run_kindling(&format!("completions {shell}")).expect_success()
}

#[test]
fn bash_completes_verbs_options_and_values() {
    let Some(bash) = require_tool("bash") else { return };
    let scratch = Scratch::new();
    scratch.write("kindling.bash", completion_script(&scratch, "bash"));
    for (words, expected) in [
        ("kindling i", "ignition infra-env iso"),
        ("kindling iso ver", "verify"),
        ("kindling iso verify --js", "--json"),
        ("kindling doctor --client q", "qemu"),
        ("kindling completions z", "zsh"),
        ("kindling serve --listen-t", "--listen-tls"),
    ] {
        let lines = format!(
            "source ./kindling.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             last=$((COMP_CWORD - 1)); _kindling kindling \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[last]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\" | sort | xargs"
        );
        let printed = ProgramRun::new(&bash, scratch.folder()).args(["-c", &lines]).run().expect_text();
        assert_eq!(printed.trim(), expected, "{words}");
    }
    let lines = "source ./kindling.bash; COMP_WORDS=(kindling iso ''); COMP_CWORD=2; _kindling kindling '' iso; \
                 printf '%s\\n' \"${COMPREPLY[@]}\"";
    let printed = ProgramRun::new(&bash, scratch.folder()).args(["-c", lines]).run().expect_text();
    let missing: Vec<_> =
        VERBS.iter().filter(|verb| **verb != "help" && !printed.lines().any(|line| line == **verb)).collect();
    assert!(missing.is_empty(), "{missing:?} not in {printed}");
}

#[test]
fn zsh_and_fish_accept_their_completion_scripts() {
    let scratch = Scratch::new();
    if let Some(zsh) = require_tool("zsh") {
        scratch.write("_kindling", completion_script(&scratch, "zsh"));
        ProgramRun::new(zsh, scratch.folder()).args(["-n", "_kindling"]).run().expect_success();
    }
    if let Some(fish) = require_tool("fish") {
        scratch.write("kindling.fish", completion_script(&scratch, "fish"));
        ProgramRun::new(&fish, scratch.folder()).args(["-n", "kindling.fish"]).run().expect_success();
        let line = "source kindling.fish; complete -C 'kindling iso ver'";
        let run =
            ProgramRun::new(&fish, scratch.folder()).env("HOME", scratch.folder()).args(["-N", "-c", line]);
        let printed = run.run().expect_text();
        assert!(printed.starts_with("verify"), "{printed}");
    }
}

fn manual_pages(scratch: &Scratch) -> BTreeMap<String, String> {
    let page =
        |name: &String| (name.clone(), String::from_utf8(scratch.read(&format!("man/{name}"))).unwrap());
    let names = fs::read_dir(scratch.path("man")).unwrap();
    let names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.iter().map(page).collect()
}

#[test]
fn every_command_has_a_valid_manual_page() {
    let scratch = Scratch::new();
    let program = scratch.run_kindling("man").expect_text();
    assert!(scratch.run_kindling("man man").expect_success().is_empty());
    let pages = manual_pages(&scratch);
    assert_eq!(pages["kindling.1"], program);
    assert!(pages.len() > 40, "{:?}", pages.keys());
    // Every page in a reference exists.
    for (name, text) in &pages {
        for line in text.lines().filter(|line| line.starts_with("kindling\\-") && line.ends_with("(1)")) {
            let file = line.replace('\\', "").replace("(1)", ".1");
            assert!(pages.contains_key(&file), "{name} refers to the missing page {file}");
        }
        assert!(!text.contains("kindling-dev"), "{name} shows a hidden command");
    }
    assert!(
        pages["kindling-iso-verify.1"].contains("kindling iso verify"),
        "{}",
        pages["kindling-iso-verify.1"]
    );
    assert!(pages["kindling-serve.1"].contains("KINDLING_LISTEN"), "variables are not in the page");
    let Some(groff) = require_tool("groff") else { return };
    for name in pages.keys() {
        let path = scratch.path(&format!("man/{name}"));
        let output =
            ProgramRun::new(&groff, scratch.folder()).args(["-man", "-ww", "-Tutf8"]).args([&path]).run();
        assert_eq!((output.status.code(), output.stderr.as_str()), (Some(0), ""), "{name}");
        assert!(output.stdout.len() > 300, "{name}");
    }
}

/// The output does not depend on environment variables, the working directory or the time.
#[test]
fn output_is_independent_of_the_machine() {
    let scratch = Scratch::new();
    let run = |arguments: &str, changed: bool| {
        let run = scratch.command(arguments.split(' '));
        let run = match changed {
            true => run
                .env("HOME", "/nowhere/home")
                .env("KINDLING_LISTEN", "192.0.2.77:7777")
                .env("LISTEN_PORT", "7777")
                .env("OS_IMAGES", "[\"elsewhere\"]")
                .env("MYAPP_LOG_LEVEL", "trace")
                .env("COLUMNS", "40"),
            false => run,
        };
        run.run().expect_text()
    };
    for arguments in ["man", "completions bash", "completions zsh", "completions fish"] {
        assert_eq!(run(arguments, false), run(arguments, true), "{arguments}");
    }
    let _ = (run("man one", false), run("man other", true));
    for entry in fs::read_dir(scratch.path("one")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (one, other) = (scratch.read(&format!("one/{name}")), scratch.read(&format!("other/{name}")));
        assert!(one == other, "{name}");
        let text = String::from_utf8(one).unwrap();
        let build = env!("CARGO_MANIFEST_DIR");
        assert!(!text.contains(build) && !text.contains("/home/") && !text.contains("/root/"), "{name}");
    }
}

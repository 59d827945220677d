//! The demonstration: what it says can be tried, and nothing of it is left.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

const KINDLING: &str = env!("CARGO_BIN_EXE_kindling");

/// Ends the program also where a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn demo(directory: &Path) -> Command {
    let mut command = Command::new(KINDLING);
    command.args(["demo", "--listen", "127.0.0.1:0"]).env("TMPDIR", directory);
    command
}

#[test]
fn every_command_that_it_prints_works() {
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(env::var_os("KINDLING_REQUIRE_TOOLS").is_none(), "there is no curl");
        eprintln!("NOTICE: no curl; not tested");
        return;
    }
    let (data, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut child = demo(data.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let running = Running(child);
    let told: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("Ctrl-C")).collect();
    let page = told.iter().find_map(|line| line.strip_prefix("In a browser: ")).unwrap();
    let commands: Vec<String> = told
        .iter()
        .filter_map(|line| line.strip_prefix("  ").map(str::to_owned))
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    let programs = Path::new(KINDLING).parent().unwrap();
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    let outputs = commands.iter().map(|command| {
        let output =
            Command::new("sh").args(["-c", command]).env("PATH", &path).current_dir(&place).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    });
    let outputs: Vec<String> = outputs.collect();
    let address = page;
    let page = Command::new("curl").args(["-fsS", address]).output().unwrap();
    assert!(String::from_utf8(page.stdout).unwrap().contains("<title>Kindling</title>"));
    for (output, part) in
        outputs.iter().zip(["", "console=ttyS0", "\"ignition\"", "\"etag\"", "\"complete\""])
    {
        assert!(output.contains(part), "{part}: {output}");
    }
    let id = running.0.id().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    signal("-HUP");
    assert!(
        Command::new("curl").args(["-fsS", address]).output().unwrap().status.success(),
        "SIGHUP ends it"
    );
    signal("-TERM");
    let mut running = running;
    assert!(running.0.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0, "something is left");
}

#[test]
fn it_is_for_this_machine_alone() {
    let output = Command::new(KINDLING).args(["demo", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("0.0.0.0:0 can be reached from other machines"), "{error}");
}

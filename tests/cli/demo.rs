//! `kindling demo` and `kindling fixture`. Every command that the demo prints works, its hosts read the image and
//! register, and it removes its files.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era, Recipe};
use tempfile::TempDir;

use crate::support::{Scratch, require_tool};

const KINDLING: &str = env!("CARGO_BIN_EXE_kindling");

/// A running demo, which is killed even if the test fails.
struct RunningDemo(Child);

impl Drop for RunningDemo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn demo_command(directory: &Path) -> Command {
    let mut command = Command::new(KINDLING);
    command.args(["demo", "--listen", "127.0.0.1:0"]).env("TMPDIR", directory);
    command
}

#[test]
fn every_printed_command_works() {
    if require_tool("curl").is_none() {
        return;
    }
    let (data, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut child = demo_command(data.path()).current_dir(&place).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let running = RunningDemo(child);
    let printed: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("Ctrl-C")).collect();
    let page = printed.iter().find_map(|line| line.strip_prefix("In a browser: ")).unwrap();
    let commands: Vec<String> = printed
        .iter()
        .filter_map(|line| line.strip_prefix("  ").map(str::to_owned))
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    let outputs = commands.iter().map(|command| {
        let output = Command::new("sh").args(["-c", command]).current_dir(&place).output().unwrap();
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
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0, "files were left");
}

#[test]
fn demo_names_the_option_of_a_port_in_use() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    Scratch::new().run_kindling(&format!("demo --listen {address}")).expect_failure(&format!(
        "cannot listen on {address}: the port is in use; choose another one with --listen"
    ));
}

#[test]
fn demo_rejects_host_name_without_address() {
    let label = "x".repeat(64);
    Scratch::new()
        .run_kindling(&format!("demo --listen {label}:0"))
        .expect_failure("--listen: cannot resolve host");
}

#[test]
fn demo_listens_on_the_addresses_of_a_host_name() {
    let data = TempDir::new().unwrap();
    let mut command = Command::new(KINDLING);
    command.args(["demo", "--hosts", "0", "--listen", "localhost:0"]).env("TMPDIR", data.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let _running = RunningDemo(child);
    let first = lines.next().unwrap();
    let address = first.strip_prefix("Listening on http://").unwrap().split(',').next().unwrap();
    assert!(get(address, "/").contains("<title>Kindling</title>"), "{first}");
}

#[test]
fn simulated_hosts_boot_without_the_proxy_of_the_environment() {
    let addresses = ["127.0.0.1:0", "[::1]:0"].into_iter();
    for address in addresses.filter(|address| std::net::TcpListener::bind(address).is_ok()) {
        let data = TempDir::new().unwrap();
        let mut command = Command::new(KINDLING);
        command.args(["demo", "--hosts", "1", "--listen", address]).env("TMPDIR", data.path());
        command.env("http_proxy", "http://127.0.0.1:1").env_remove("no_proxy").env_remove("NO_PROXY");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let _running = RunningDemo(child);
        let image =
            lines.find_map(|line| line.strip_prefix("  curl -fO http://").map(str::to_owned)).unwrap();
        let (origin, infra_env) = image.strip_suffix("/full.iso").unwrap().split_once("/i/").unwrap();
        let start = Instant::now();
        while get(origin, &format!("/api/assisted-install/v2/infra-envs/{infra_env}/hosts")).trim() == "[]" {
            assert!(start.elapsed() < Duration::from_secs(60), "no hosts at {address}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn demo_refuses_to_listen_beyond_loopback() {
    let output = Command::new(KINDLING).args(["demo", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("other machines can reach 0.0.0.0:0"), "{error}");
}

#[test]
fn fixture_writes_a_new_image() {
    let scratch = Scratch::new();
    let printed = scratch.run_kindling("fixture aarch64 2023-07 base.iso").expect_text();
    assert_eq!(printed, "base.iso\n");
    let expected = Recipe::new(Architecture::Aarch64, Era::E2023_07).with_program().build();
    assert!(scratch.read("base.iso") == expected);
    scratch.run_kindling("iso verify base.iso").expect_success();
    scratch
        .run_kindling("fixture x86_64 2024-12 base.iso")
        .expect_failure("cannot create base.iso: File exists; remove it, or use another path for ISO");
    assert!(scratch.read("base.iso") == expected, "an existing file was replaced");
    scratch.run_kindling("fixture x86_64 2019-01 a.iso").expect_usage_error("2020-09, 2021-01");
    scratch.run_kindling("fixture riscv64 2024-12 a.iso").expect_usage_error("x86_64, aarch64");
}

#[test]
fn simulated_hosts_read_the_image_register_and_become_known() {
    let data = TempDir::new().unwrap();
    let mut command = demo_command(data.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let _running = RunningDemo(child);
    let image = lines.find_map(|line| line.strip_prefix("  curl -fO ").map(str::to_owned)).unwrap();
    let (origin, infra_env) = image.strip_suffix("/full.iso").unwrap().split_once("/i/").unwrap();
    let address = origin.strip_prefix("http://").unwrap();
    let start = Instant::now();
    loop {
        let hosts = get(address, &format!("/api/assisted-install/v2/infra-envs/{infra_env}/hosts"));
        let hosts: Vec<serde_json::Value> = serde_json::from_str(&hosts).unwrap();
        if hosts.len() == 3 && hosts.iter().all(|host| host["status"] == "known-unbound") {
            assert!(hosts.iter().all(|host| host["requested_hostname"] != host["id"]), "{hosts:?}");
            let trace: serde_json::Value =
                serde_json::from_str(&get(address, &format!("/i/{infra_env}/boot-trace"))).unwrap();
            let mut readers: Vec<_> = trace["readers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|reader| (reader["client"].as_str().unwrap(), reader["state"].as_str().unwrap()))
                .collect();
            readers.sort_unstable();
            let expected = ["127.0.0.11", "127.0.0.12", "127.0.0.13"].map(|client| (client, "complete"));
            assert_eq!(readers, expected);
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{hosts:?}");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn demo_with_zero_hosts_registers_no_host() {
    let data = TempDir::new().unwrap();
    let mut command = demo_command(data.path());
    let mut child = command.args(["--hosts", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let _running = RunningDemo(child);
    let first = lines.next().unwrap();
    assert!(first.ends_with("one infra-env with no hosts."), "{first}");
}

/// Returns the body of a response.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

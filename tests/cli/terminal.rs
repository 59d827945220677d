//! Tests the progress bars and log lines on a terminal.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::{fs, thread};

use fixtures::{Architecture, Era, Recipe};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::full_featured_image;
use crate::serve::PATIENCE;
use crate::support::{KINDLING, ProgramRun, Scratch, require_tool};

/// Serves the first half of an image, and then keeps the connection open without sending.
fn serve_half(image: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", image.len());
            let _ = stream.write_all(&image[..image.len() / 2]);
            open.push(stream);
        }
    });
    address
}

struct TerminalProgram {
    script: Child,
    output: Receiver<Vec<u8>>,
    shown: String,
    id: PathBuf,
}

impl TerminalProgram {
    /// Starts Kindling on a pseudo-terminal. The shell writes Kindling's process id to a file.
    fn start(script: &std::path::Path, scratch: &Scratch, arguments: &[&str]) -> Self {
        let quoted: Vec<String> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
        let line = format!("stty cols 160; echo $$ > pid; exec {KINDLING} {}", quoted.join(" "));
        let run = ProgramRun::new(script, scratch.folder()).args(["-qec", &line, "/dev/null"]);
        let mut command = run.env("TERM", "xterm").env("SHELL", "/bin/sh").command();
        let mut script = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = script.stdout.take().unwrap();
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = stdout.read(&mut bytes) {
                let _ = sender.send(bytes[..len].to_vec());
            }
        });
        Self { script, output, shown: String::new(), id: scratch.path("pid") }
    }

    #[track_caller]
    fn wait_for(&mut self, phrase: &str) {
        while !self.shown.contains(phrase) {
            let Ok(bytes) = self.output.recv_timeout(PATIENCE) else { panic!("{phrase}: {}", self.shown) };
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn send(&self, signal: Signal) {
        let id = fs::read_to_string(&self.id).unwrap();
        kill_process(Pid::from_raw(id.trim().parse().unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for the end of the program, and returns the lines of the screen.
    fn end(mut self) -> Vec<String> {
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        self.script.wait().unwrap();
        screen_lines(&self.shown)
    }
}

/// Returns the lines on the screen of a terminal that supports line ends, cursor movements up, and erased lines.
fn screen_lines(output: &str) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![String::new()], 0, 0);
    let mut rest = output;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\n' => {
                row += 1;
                lines.resize(lines.len().max(row + 1), String::new());
            }
            '\r' => column = 0,
            '\u{1b}' => {
                let sequence = rest.strip_prefix('[').unwrap_or(rest);
                let end = sequence.find(|it: char| it.is_ascii_alphabetic()).unwrap();
                let (parameter, command) = (&sequence[..end], &sequence[end..=end]);
                rest = &sequence[end + 1..];
                match command {
                    "A" => row -= parameter.parse().unwrap_or(1).min(row),
                    "B" => row += parameter.parse().unwrap_or(1),
                    "K" => lines[row].clear(),
                    _ => {}
                }
            }
            character => {
                let mut line: Vec<char> = lines[row].chars().collect();
                line.resize(line.len().max(column + 1), ' ');
                line[column] = character;
                lines[row] = line.into_iter().collect();
                column += 1;
            }
        }
    }
    lines
}

#[test]
fn bars_and_lines_of_a_server_do_not_mix() {
    let Some(script) = require_tool("script") else { return };
    let scratch = Scratch::new();
    let address = serve_half(&full_featured_image().bytes);
    let images = json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "1",
        "url": format!("http://{address}/base.iso"),
    }]);
    let images = images.to_string();
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--fetch-images", "at-start", "--os-images", &images];
    let mut program = TerminalProgram::start(&script, &scratch, &arguments);
    program.wait_for(" downloaded, ");
    program.wait_for("listening on ");
    program.send(Signal::HUP);
    program.wait_for("nothing to reload");
    program.send(Signal::TERM);
    program.wait_for("shutting down");
    let lines = program.end();
    let is_alone = |line: &String| {
        line.trim().is_empty() || line.starts_with("listening on http://") || line.starts_with("20")
    };
    let mixed: Vec<&String> = lines.iter().filter(|line| !is_alone(line)).collect();
    assert!(mixed.is_empty(), "{mixed:#?}");
    assert!(lines.iter().all(|line| line.matches(" INFO ").count() <= 1), "{lines:#?}");
}

#[test]
fn message_of_an_interrupt_replaces_the_bar() {
    let Some(script) = require_tool("script") else { return };
    let scratch = Scratch::new();
    // A sparse file that takes seconds to hash, so that the bar stays on the screen.
    let recipe = Recipe::new(Architecture::X86_64, Era::E2024_12).rootfs_len(2 << 30);
    recipe.write_to(&scratch.path("base.iso")).unwrap();
    scratch.write("secret.json", r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#);
    let line = "discovery create --infra-env-id 11111111-1111-1111-1111-111111111111 --pull-secret secret.json \
                --service-url http://192.0.2.1 --openshift-version 4.18 --base base.iso --rootfs rootfs.img --sha256";
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let mut program = TerminalProgram::start(&script, &scratch, &arguments);
    program.wait_for(" GiB");
    program.send(Signal::INT);
    let lines = program.end();
    let screen: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    assert_eq!(screen, ["Interrupted: nothing was written"]);
    assert!(!scratch.has_file("rootfs.img"));
}

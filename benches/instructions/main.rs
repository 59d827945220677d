//! What the hot operations cost in instructions and system calls, held against what they cost before. Counts are nearly the
//! same on a busy machine and on an idle one, where times are not.
//!
//! `.ci/instructions` builds and runs it: it counts under callgrind, compares with `benches/instructions.txt`, and fails where
//! something grew. `.ci/instructions --update` writes that file anew, and `.ci/instructions NAME...` is for some operations.
//!
//! Every operation is run in a process of its own, a number of times and three times as often; what is counted is the
//! difference, so that the setup, which is the same both times, is none of it. Processors differ in the instructions that
//! libraries choose at run time; valgrind shows each program the same processor, wherever the real one has AVX2.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench over inputs of its own"
)]

mod baseline;
mod operations;
mod service;
#[path = "../../ignition/tests/setups/mod.rs"]
mod setups;

use std::env;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, OnceLock};
use std::thread;

use baseline::{Baseline, Cost, Counted};
use operations::{OPERATIONS, Operation};
use tempfile::TempDir;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.txt");
/// Has glibc keep what was freed at hand, by its size. Otherwise how long it looks for a place depends on how the rest of the heap
/// lies, which is a fortieth of a merge.
const HEAP: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.mxfast=0:glibc.malloc.tcache_count=1000");
/// The word that makes this program do an operation and nothing else.
const RUN: &str = "run";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [RUN, folder, name, times] = arguments[..] {
        run(Path::new(folder), operation(name), times.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    let (options, names): (Vec<&str>, Vec<&str>) =
        arguments.into_iter().partition(|word| word.starts_with('-'));
    assert!(
        options.iter().all(|option| *option == "--update"),
        "usage: .ci/instructions [--update] [NAME...]"
    );
    let Some(tools) = tools() else { return ExitCode::SUCCESS };
    if cfg!(debug_assertions) {
        eprintln!("this is not built to be counted: use .ci/instructions");
        return ExitCode::FAILURE;
    }
    let is_everything = names.is_empty();
    let chosen: Vec<Operation> =
        if is_everything { OPERATIONS.to_vec() } else { names.into_iter().map(operation).collect() };
    let counted = count(&chosen);
    let baseline = match fs::read_to_string(FILE) {
        Ok(text) => Baseline::parse(&text).unwrap_or_else(|error| panic!("{FILE}: {error}")),
        Err(_) => Baseline::default(),
    };
    if !options.is_empty() {
        fs::write(FILE, baseline.updated(&counted, is_everything, tools).to_string()).unwrap();
        return ExitCode::SUCCESS;
    }
    let differences = baseline.compare(&counted, is_everything);
    for difference in &differences {
        println!("{}{difference}", if difference.is_failure() { "FAILED: " } else { "" });
    }
    if differences.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("The baseline was counted with {}.\nThis is {tools}.", baseline.tools);
    println!("If it has to be so, `.ci/instructions --update` writes benches/instructions.txt anew.");
    if differences.iter().any(baseline::Difference::is_failure) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn operation(name: &str) -> Operation {
    let found = OPERATIONS.iter().find(|operation| operation.name == name);
    *found.unwrap_or_else(|| panic!("{name} is no operation"))
}

/// What of this machine counts depend on: the compiler and the counter. None where there is no counter, which
/// `KINDLING_REQUIRE_TOOLS=1` makes a failure.
fn tools() -> Option<String> {
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(valgrind) = version("valgrind") else {
        assert_ne!(
            env::var("KINDLING_REQUIRE_TOOLS").as_deref(),
            Ok("1"),
            "valgrind is not installed, but required"
        );
        eprintln!("SKIPPED: valgrind is not installed");
        return None;
    };
    Some(format!("{} on {}, {valgrind}", version("rustc").unwrap_or_default(), env::consts::ARCH))
}

/// The operation, done so often.
fn run(folder: &Path, operation: Operation, times: usize) {
    let mut ready = (operation.set_up)(folder);
    for _ in 0..times {
        ready();
    }
}

/// Counts operations, one on each processor.
fn count(operations: &[Operation]) -> Vec<Counted> {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    operations::prepare(folder.path());
    let counted: Vec<OnceLock<Counted>> = operations.iter().map(|_| OnceLock::new()).collect();
    let turns = Mutex::new(operations.iter().zip(&counted));
    let next = || turns.lock().unwrap().next();
    let work = || {
        while let Some((operation, place)) = next() {
            place.set(counted_one(folder.path(), operation)).unwrap();
        }
    };
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        (0..count).for_each(|_| _ = scope.spawn(work));
    });
    counted.into_iter().map(|one| one.into_inner().unwrap()).collect()
}

fn counted_one(folder: &Path, operation: &Operation) -> Counted {
    let (often, seldom) = (operation.times * 3, operation.times);
    let [more, less] = [often, seldom].map(|times| costs(folder, operation, times));
    let each = |more: u64, less: u64| {
        let times = u64::try_from(often - seldom).unwrap();
        (more.saturating_sub(less) + times / 2) / times
    };
    let cost = Cost {
        instructions: each(more.instructions, less.instructions),
        calls: each(more.calls, less.calls),
    };
    println!("{:<24} {:>10} instructions {:>6} system calls", operation.name, cost.instructions, cost.calls);
    Counted { name: operation.name.to_owned(), cost, tolerance: operation.tolerance }
}

/// What a process costs that does an operation so often.
fn costs(folder: &Path, operation: &Operation, times: usize) -> Cost {
    let report = folder.join(format!("callgrind.{}.{times}", operation.name));
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--collect-systime=yes"]);
    command.arg(format!("--callgrind-out-file={}", report.display())).arg(env::current_exe().unwrap());
    command.arg(RUN).arg(folder).arg(operation.name).arg(times.to_string()).env(HEAP.0, HEAP.1);
    // Valgrind does not know every call, and says so each time.
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} was not made:\n{said}", report.display());
    read(&fs::read_to_string(&report).unwrap()).unwrap_or_else(|| panic!("{}: no totals", report.display()))
}

/// The totals of a report of callgrind: each is of the event that has the same place in the line of events.
fn read(report: &str) -> Option<Cost> {
    let line = |start: &str| report.lines().find_map(|line| line.strip_prefix(start));
    let (events, totals) = (line("events: ")?, line("totals: ")?);
    let total = |name: &str| {
        let mut pairs = events.split_whitespace().zip(totals.split_whitespace());
        pairs.find(|(event, _)| *event == name).and_then(|(_, total)| total.parse().ok())
    };
    Some(Cost { instructions: total("Ir")?, calls: total("sysCount")? })
}

//! Compares the instructions and system calls of hot operations with a recorded baseline. Counts are nearly the same on
//! a busy and an idle machine; times are not.
//!
//! `.ci/instructions` builds and runs this program: it counts under callgrind, compares with the file of this compiler
//! in `benches/instructions/baselines`, and fails if a count grew. `.ci/instructions --update` rewrites that file;
//! `.ci/instructions NAME...` selects operations.
//!
//! Every operation runs in its own process, once N times and once 3 N times. The difference is the cost, so that the
//! setup, the same in both runs, does not count. Libraries select instructions for the processor at run time. Valgrind
//! emulates the same processor on every machine with AVX2.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench over its own inputs"
)]

mod baseline;
mod hosts;
mod operations;
mod service;
#[path = "../../ignition/tests/setups/mod.rs"]
mod setups;

use std::env;
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, OnceLock};
use std::thread;

use baseline::{Baseline, Cost, MeasuredOperation};
use operations::{OPERATIONS, Operation};
use tempfile::TempDir;

/// The folder with a baseline for each version of the compiler, because each version generates other instructions.
const BASELINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/baselines");
/// A setting that makes glibc cache freed memory by size. Otherwise the time of an allocation depends on the layout of
/// the rest of the heap, which varies the cost of a merge by 2.5 %.
const CHANGING_HEAP: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.malloc.mxfast=0:glibc.malloc.tcache_count=1000");
/// The argument that makes this program run one operation and nothing more.
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
    let Some(Tools { compiler, all: tools }) = tools() else { return ExitCode::SUCCESS };
    let file = format!("{BASELINES}/{compiler}.txt");
    if cfg!(debug_assertions) {
        eprintln!("not built for counting: use .ci/instructions");
        return ExitCode::FAILURE;
    }
    let is_everything = names.is_empty();
    let selected: Vec<Operation> =
        if is_everything { OPERATIONS.to_vec() } else { names.into_iter().map(operation).collect() };
    let counted = count(&selected);
    let is_update = !options.is_empty();
    let baseline = match fs::read_to_string(&file) {
        Ok(text) => Baseline::parse(&text).unwrap_or_else(|error| panic!("{file}: {error}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_update => Baseline::default(),
        Err(error) => panic!("{file}: {error}; `.ci/instructions --update` writes it for this compiler"),
    };
    if is_update {
        fs::write(file, baseline.updated(&counted, is_everything, tools).to_string()).unwrap();
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
    println!("If this is intended, `.ci/instructions --update` rewrites the baseline.");
    if differences.iter().any(baseline::Difference::is_failure) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn operation(name: &str) -> Operation {
    let operation = OPERATIONS.iter().find(|operation| operation.name == name);
    *operation.unwrap_or_else(|| panic!("{name} is not an operation"))
}

/// Versions of the programs that the counts depend on.
struct Tools {
    /// The compiler, for example `rustc-1.95.0`.
    compiler: String,
    /// The compiler with its commit, the processor, and valgrind.
    all: String,
}

/// Returns the versions, or `None` without valgrind, which is a failure with `KINDLING_REQUIRE_TOOLS=1`.
fn tools() -> Option<Tools> {
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(valgrind) = version("valgrind") else {
        assert_ne!(
            env::var("KINDLING_REQUIRE_TOOLS").as_deref(),
            Ok("1"),
            "valgrind is required but not installed"
        );
        eprintln!("SKIPPED: valgrind is not installed");
        return None;
    };
    let rustc = version("rustc").expect("rustc has built this program");
    let compiler = rustc.split(' ').take(2).collect::<Vec<_>>().join("-");
    Some(Tools { compiler, all: format!("{rustc} on {}, {valgrind}", env::consts::ARCH) })
}

/// Runs an operation this many times.
fn run(folder: &Path, operation: Operation, times: usize) {
    let mut ready = (operation.set_up)(folder);
    for _ in 0..times {
        ready();
    }
}

/// Counts operations in parallel, one per processor.
fn count(operations: &[Operation]) -> Vec<MeasuredOperation> {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    operations::prepare(folder.path());
    let counted: Vec<OnceLock<MeasuredOperation>> = operations.iter().map(|_| OnceLock::new()).collect();
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

fn counted_one(folder: &Path, operation: &Operation) -> MeasuredOperation {
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
    MeasuredOperation { name: operation.name.to_owned(), cost, tolerance: operation.tolerance }
}

fn costs(folder: &Path, operation: &Operation, times: usize) -> Cost {
    let report = folder.join(format!("callgrind.{}.{times}", operation.name));
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--collect-systime=yes"]);
    command.arg(format!("--callgrind-out-file={}", report.display())).arg(env::current_exe().unwrap());
    command
        .arg(RUN)
        .arg(folder)
        .arg(operation.name)
        .arg(times.to_string())
        .env(CHANGING_HEAP.0, CHANGING_HEAP.1);
    // Valgrind warns about every system call that it does not support.
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} was not written:\n{stderr}", report.display());
    read(&fs::read_to_string(&report).unwrap()).unwrap_or_else(|| panic!("{}: no totals", report.display()))
}

/// Reads the totals of a callgrind report, in the order of the events line.
fn read(report: &str) -> Option<Cost> {
    let line = |start: &str| report.lines().find_map(|line| line.strip_prefix(start));
    let (events, totals) = (line("events: ")?, line("totals: ")?);
    let total = |name: &str| {
        let mut pairs = events.split_whitespace().zip(totals.split_whitespace());
        pairs.find(|(event, _)| *event == name).and_then(|(_, total)| total.parse().ok())
    };
    Some(Cost { instructions: total("Ir")?, calls: total("sysCount")? })
}

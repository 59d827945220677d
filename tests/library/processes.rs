//! Processes that are killed, that share a directory, and that may not write all of an image.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use kindling::images::library::{NotReady, State};

use crate::server::{Gate, Reply, Server};
use crate::support::{NAME, Place, image, os_image, soon, until};

/// What a process of a test has to do.
const TASK: &str = "KINDLING_LIBRARY_TASK";

/// This program as another process, that does one of the ignored tests.
pub(crate) fn process(test: &str, task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]).env(TASK, task);
    command
}

/// The parts of the task of this process, without blanks in them.
pub(crate) fn task() -> Vec<String> {
    std::env::var(TASK).expect("a process of a test").split(' ').map(str::to_owned).collect()
}

/// Fetches an image into a directory, and tells how far it is.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that others start"]
async fn process_that_fetches() {
    let task = task();
    let os_image = os_image(&task[1]);
    let mut settings = Place::new().patient_settings();
    settings.directory = task[0].clone().into();
    let library = kindling::images::library::Library::open(settings, [os_image.clone()]).unwrap();
    let mut changes = library.changes();
    loop {
        match library.state(&os_image).unwrap() {
            State::Downloading { have, .. } => println!("have {have}"),
            State::Ready { digest, .. } => return println!("ready {digest}"),
            State::Failed { reason, .. } => return println!("failed {reason}"),
            _ => {}
        }
        changes.changed().await.unwrap();
    }
}

fn fetching(place: &Place, server: &Server) -> Command {
    let task = format!("{} {}", place.path().display(), server.url("a.iso"));
    process("processes::process_that_fetches", &task)
}

/// Starts a process and kills it without a warning once it has so many bytes.
fn killed_at(place: &Place, server: &Server, least: u64) {
    let mut child = fetching(place, server).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let have = |line: String| line.rsplit_once("have ").and_then(|(_, have)| have.parse::<u64>().ok());
    let reached = lines.map_while(Result::ok).filter_map(have).any(|have| have >= least);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(reached, "it ended by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_has_fetched_is_not_fetched_again() {
    let never = Gate::new();
    let held = never.clone();
    // The first download stalls, whatever is asked beside it.
    let server = Server::new(move |request, _| {
        let reply = Reply::file(request, image(), "\"one\"");
        match request.from() {
            None => reply.hold(600_000, &held),
            Some(from) if request.to().is_none() && from < 1_000_000 => reply.hold(500_000, &held),
            Some(_) => reply,
        }
    })
    .await;
    let place = Place::new();
    for least in [500_000, 1_000_000] {
        tokio::task::block_in_place(|| killed_at(&place, &server, least));
        assert!(!place.names().contains(NAME), "what is not whole does not bear the name");
    }
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    soon(library.wait_ready(&os_image)).await.unwrap();
    place.assert_holds(image());
    let downloads = server.downloads();
    assert_eq!((downloads.len(), downloads[0]), (3, None), "{downloads:?}");
    assert!(downloads[1] >= Some(500_000) && downloads[2] >= Some(1_000_000), "{downloads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_one_fetches_and_both_have_the_image() {
    let gate = Gate::new();
    let held = gate.clone();
    let server =
        Server::new(move |request, _| Reply::file(request, image(), "\"one\"").hold(400_000, &held)).await;
    let place = Place::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    until(&library, &os_image, |state| matches!(state, State::Downloading { have: 300_000.., .. })).await;

    let mut other = fetching(&place, &server).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let told = tokio::task::block_in_place(|| {
        let mut told = Vec::new();
        for line in lines.map_while(Result::ok) {
            // It sees how far the first one is.
            if line.contains("have ") && !line.ends_with("have 0") {
                gate.open();
            }
            told.push(line);
        }
        other.wait().unwrap();
        told
    });
    assert!(told.iter().any(|line| line.contains("ready ")), "{told:?}");
    soon(library.base(&os_image)).await.unwrap();
    place.assert_holds(image());
    assert_eq!(server.downloads(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_libraries_of_one_process_are_no_different() {
    let (server, place) = (Server::of(image()).await, Place::new());
    let os_image = os_image(&server.url("a.iso"));
    let libraries: Vec<_> = (0..8).map(|_| place.open([os_image.clone()])).collect();
    for library in &libraries {
        soon(library.wait_ready(&os_image)).await.unwrap();
    }
    place.assert_holds(image());
    assert_eq!(server.downloads(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_fetching_process_dies_another_one_goes_on() {
    let never = Gate::new();
    let server = Server::new(move |request, _| {
        let reply = Reply::file(request, image(), "\"one\"");
        if request.header("range").is_none() { reply.hold(600_000, &never) } else { reply }
    })
    .await;
    let place = Place::new();
    let mut child = fetching(&place, &server).stdout(Stdio::null()).spawn().unwrap();
    server.asked(1).await;
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    until(&library, &os_image, |state| matches!(state, State::Downloading { have: 500_000.., .. })).await;
    assert!(matches!(library.base_now(&os_image), Err(NotReady::OnItsWay { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    soon(library.wait_ready(&os_image)).await.unwrap();
    place.assert_holds(image());
}

/// A process that may not write files of the length of the image: as with a disk that turns out to be full.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_gets_full_meanwhile_leaves_nothing() {
    let (server, place) = (Server::of(image()).await, Place::new());
    let fetching = fetching(&place, &server);
    let blocks = 800_000 / 512;
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let mut limited = Command::new("sh");
    limited.args(["-c", &script, "sh"]).arg(fetching.get_program()).args(fetching.get_args());
    limited.envs(fetching.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = tokio::task::block_in_place(|| limited.output().unwrap());
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("failed ") && told.contains(".part failed: File too large"), "{told}");
    place.assert_empty();
}

//! Processes that get killed, share a directory, or cannot write a whole image.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use kindling::images::library::{BaseImageState, ImageNotReady};

use crate::server::{ImageFileServer, ImageReply, ReplyGate};
use crate::support::{LibraryFolder, NAME, first_image, os_image, wait_for_state, within_time_limit};

/// The variable with the task of a test process.
const TASK: &str = "KINDLING_LIBRARY_TASK";

/// Prepares another process of this program, which executes one of the ignored tests.
pub(crate) fn test_process(test: &str, task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]).env(TASK, task);
    command
}

/// Returns the parts of this process's task, which contain no spaces.
pub(crate) fn process_task() -> Vec<String> {
    std::env::var(TASK)
        .expect("run only as a child process of other tests")
        .split(' ')
        .map(str::to_owned)
        .collect()
}

/// Fetches an image into a directory and prints the progress.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that others start"]
async fn process_that_fetches() {
    let task = process_task();
    let os_image = os_image(&task[1]);
    let mut settings = LibraryFolder::new().patient_settings();
    settings.directory = task[0].clone().into();
    let library = kindling::images::library::Library::open(settings, [os_image.clone()]).unwrap();
    let mut changes = library.state_changes();
    loop {
        match library.state(&os_image).unwrap() {
            BaseImageState::Downloading { have, .. } => println!("have {have}"),
            BaseImageState::Ready { digest, .. } => return println!("ready {digest}"),
            BaseImageState::Failed { reason, .. } => return println!("failed {reason}"),
            _ => {}
        }
        changes.changed().await.unwrap();
    }
}

fn fetch_process(place: &LibraryFolder, server: &ImageFileServer) -> Command {
    let task = format!("{} {}", place.path().display(), server.url("a.iso"));
    test_process("processes::process_that_fetches", &task)
}

/// Starts a process, and kills it after it has received `bytes` bytes.
fn kill_after_bytes(place: &LibraryFolder, server: &ImageFileServer, least: u64) {
    let mut child = fetch_process(place, server).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let have = |line: String| line.rsplit_once("have ").and_then(|(_, have)| have.parse::<u64>().ok());
    let reached = lines.map_while(Result::ok).filter_map(have).any(|have| have >= least);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(reached, "the process ended before it was killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn download_of_a_killed_process_is_resumed() {
    let never = ReplyGate::new();
    let reply_gate = never.clone();
    // The first download stalls. Other requests get a response.
    let server = ImageFileServer::new(move |request, _| {
        let reply = ImageReply::from_file(request, first_image(), "\"one\"");
        match request.range_start() {
            None => reply.wait_after(600_000, &reply_gate),
            Some(from) if from < 1_000_000 => reply.wait_after(500_000, &reply_gate),
            Some(_) => reply,
        }
    })
    .await;
    let place = LibraryFolder::new();
    for least in [500_000, 1_000_000] {
        tokio::task::block_in_place(|| kill_after_bytes(&place, &server, least));
        assert!(!place.names().contains(NAME), "an incomplete file has the final name");
    }
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    within_time_limit(library.wait_ready(&os_image)).await.unwrap();
    place.assert_has_only_image(first_image());
    let downloads = server.download_offsets();
    assert_eq!((downloads.len(), downloads[0]), (3, None), "{downloads:?}");
    assert!(downloads[1] >= Some(500_000) && downloads[2] >= Some(1_000_000), "{downloads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_one_download() {
    let gate = ReplyGate::new();
    let reply_gate = gate.clone();
    let server = ImageFileServer::new(move |request, _| {
        ImageReply::from_file(request, first_image(), "\"one\"").wait_after(400_000, &reply_gate)
    })
    .await;
    let place = LibraryFolder::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    wait_for_state(&library, &os_image, |state| {
        matches!(state, BaseImageState::Downloading { have: 300_000.., .. })
    })
    .await;

    let mut other = fetch_process(&place, &server).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let lines_of_other = tokio::task::block_in_place(|| {
        let mut lines_of_other = Vec::new();
        for line in lines.map_while(Result::ok) {
            // The second process sees the progress of the first one.
            if line.contains("have ") && !line.ends_with("have 0") {
                gate.open();
            }
            lines_of_other.push(line);
        }
        other.wait().unwrap();
        lines_of_other
    });
    assert!(lines_of_other.iter().any(|line| line.contains("ready ")), "{lines_of_other:?}");
    within_time_limit(library.base(&os_image)).await.unwrap();
    place.assert_has_only_image(first_image());
    assert_eq!(server.download_offsets(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_libraries_of_one_process_share_one_download() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let os_image = os_image(&server.url("a.iso"));
    let libraries: Vec<_> = (0..8).map(|_| place.open([os_image.clone()])).collect();
    for library in &libraries {
        within_time_limit(library.wait_ready(&os_image)).await.unwrap();
    }
    place.assert_has_only_image(first_image());
    assert_eq!(server.download_offsets(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn download_of_a_dead_process_is_continued_by_another() {
    let never = ReplyGate::new();
    let server = ImageFileServer::new(move |request, _| {
        let reply = ImageReply::from_file(request, first_image(), "\"one\"");
        if request.header("range").is_none() { reply.wait_after(600_000, &never) } else { reply }
    })
    .await;
    let place = LibraryFolder::new();
    let mut child = fetch_process(&place, &server).stdout(Stdio::null()).spawn().unwrap();
    server.wait_for_requests(1).await;
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    wait_for_state(&library, &os_image, |state| {
        matches!(state, BaseImageState::Downloading { have: 500_000.., .. })
    })
    .await;
    assert!(matches!(library.base_now(&os_image), Err(ImageNotReady::OnItsWay { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    within_time_limit(library.wait_ready(&os_image)).await.unwrap();
    place.assert_has_only_image(first_image());
}

/// A file length limit below the image's length has the effect of a disk that fills up.
#[tokio::test(flavor = "multi_thread")]
async fn disk_filling_up_during_the_download_leaves_no_file() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let fetching = fetch_process(&place, &server);
    let blocks = 800_000 / 512;
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let mut limited = Command::new("sh");
    limited.args(["-c", &script, "sh"]).arg(fetching.get_program()).args(fetching.get_args());
    limited.envs(fetching.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = tokio::task::block_in_place(|| limited.output().unwrap());
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.contains("failed ") && output.contains(".part failed: File too large"), "{output}");
    place.assert_empty();
}

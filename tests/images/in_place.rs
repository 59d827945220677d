//! Processes that write to a base image in place, beside clients that read an image made from it: each body has the bytes that its
//! entity tag identifies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fixtures::{Architecture, Era, Recipe};
use kindling::inventory::auth::Policy;
use reqwest::Client;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::{Server, header, run};

/// What the writers change, within the root file system. In version `n`, all of it is the byte `n`.
const AT: u64 = 4 << 20;
const LEN: usize = 256 << 10;
const VERSIONS: u8 = 3;
const READERS: usize = 4;
/// How many bodies with a new tag end a round.
const BODIES: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that writes to the pages that it has mapped for as long as its input lasts.
const MAPPER: &str = r"
import mmap, sys
path, at, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as pages:
    for line in sys.stdin:
        pages[at:at + length] = bytes([int(line)]) * length
        print('written', flush=True)
";

/// A process that has the base image mapped, and changes it without a system call.
struct Mapper {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Mapper {
    fn start(path: &Path) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", MAPPER]).arg(path).args([AT.to_string(), LEN.to_string()]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// Waits until the version is written.
    fn write(&mut self, version: u8) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{version}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "written\n");
    }

    fn end(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
    }
}

#[derive(Clone, Copy, Debug)]
enum Writer {
    Plain,
    KeptTime,
    Mapped,
}

const WRITERS: [Writer; 3] = [Writer::KeptTime, Writer::Mapped, Writer::Plain];

impl Writer {
    fn write(self, path: &Path, version: u8) {
        match self {
            Self::Plain => write(path, version),
            Self::KeptTime => {
                let modified = fs::metadata(path).unwrap().modified().unwrap();
                write(path, version);
                File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
            }
            Self::Mapped => {
                let mut mapper = Mapper::start(path);
                for version in (0..VERSIONS).cycle().take(15).chain([version]) {
                    mapper.write(version);
                    // Nothing depends on how long the readers have.
                    std::thread::sleep(Duration::from_millis(5));
                }
                mapper.end();
            }
        }
    }
}

fn write(path: &Path, version: u8) {
    let bytes = vec![version; LEN];
    File::options().write(true).open(path).unwrap().write_all_at(&bytes, AT).unwrap();
}

/// What the readers know and have found.
#[derive(Default)]
struct Readers {
    versions: BTreeMap<String, u8>,
    /// How many bodies came of each version.
    bodies: [AtomicU64; VERSIONS as usize],
    refused: AtomicU64,
    is_over: AtomicBool,
}

struct Site {
    server: Server,
    url: String,
    path: PathBuf,
}

impl Site {
    async fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("base.iso");
        let recipe = Recipe::new(Architecture::X86_64, Era::E2024_12).rootfs_len(8 << 20);
        fs::write(&path, recipe.build()).unwrap();
        write(&path, 0);
        let url = format!("file://{}", path.display());
        let server = Server::start_in(directory, (Policy::Open, None), json!({"url": url}), None).await;
        let (_, id) = server.infra_env().await;
        let url = format!("{}/i/{id}/full.iso", server.base);
        Self { server, url, path }
    }

    /// Each version's tag, while nothing else is done.
    async fn versions(&self) -> BTreeMap<String, u8> {
        let mut versions = BTreeMap::new();
        for version in (0..VERSIONS).rev() {
            let path = self.path.clone();
            tokio::task::spawn_blocking(move || write(&path, version)).await.unwrap();
            let tag = async {
                loop {
                    match range(&self.server.client, &self.url, (AT, LEN)).await {
                        Some((tag, body)) if body.iter().all(|byte| *byte == version) => return tag,
                        _ => sleep(Duration::from_millis(5)).await,
                    }
                }
            };
            versions.insert(timeout(PATIENCE, tag).await.unwrap(), version);
        }
        assert_eq!(versions.len(), usize::from(VERSIONS));
        versions
    }
}

/// The entity tag and the bytes of a range, unless the server refuses it or the connection breaks.
async fn range(client: &Client, url: &str, (at, len): (u64, usize)) -> Option<(String, Vec<u8>)> {
    let range = format!("bytes={at}-{}", at + len as u64 - 1);
    let answer = client.get(url).header("range", range).send().await.ok()?;
    match answer.status().as_u16() {
        206 => {}
        500 | 503 => return None,
        other => panic!("{other}"),
    }
    let tag = header(&answer, "etag");
    let body = answer.bytes().await.ok()?;
    assert_eq!(body.len(), len);
    Some((tag, body.into()))
}

async fn read(readers: Arc<Readers>, url: String, lens: [usize; 2]) {
    let client = Client::new();
    for len in lens.into_iter().cycle() {
        if readers.is_over.load(Ordering::Relaxed) {
            return;
        }
        let Some((tag, body)) = range(&client, &url, (AT + 512, len)).await else {
            readers.refused.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(1)).await;
            continue;
        };
        let version = *readers.versions.get(&tag).unwrap_or_else(|| panic!("unknown tag {tag}"));
        let wrong = body.iter().filter(|byte| **byte != version).count();
        assert_eq!(wrong, 0, "of {len} bytes under the tag of version {version}, as {:?} were", body.first());
        readers.bodies[usize::from(version)].fetch_add(1, Ordering::Relaxed);
    }
}

/// Lets writers change the file one after another, and waits each time until the readers have the new version.
async fn attack(rounds: usize) {
    let site = Site::open().await;
    let readers = Arc::new(Readers { versions: site.versions().await, ..Readers::default() });
    let lens = [[2048, 2048], [2048, LEN - 512], [LEN - 512, 64 << 10], [4096, 100_000]];
    let tasks: Vec<_> =
        (0..READERS).map(|at| tokio::spawn(read(Arc::clone(&readers), site.url.clone(), lens[at]))).collect();
    for (writer, version) in WRITERS.into_iter().cycle().zip((1..VERSIONS).chain([0]).cycle()).take(rounds) {
        let path = site.path.clone();
        tokio::task::spawn_blocking(move || writer.write(&path, version)).await.unwrap();
        let bodies = &readers.bodies[usize::from(version)];
        let before = bodies.load(Ordering::Relaxed);
        let is_done = || {
            bodies.load(Ordering::Relaxed) >= before + BODIES || tasks.iter().any(|task| task.is_finished())
        };
        let served = async {
            while !is_done() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, served)
            .await
            .unwrap_or_else(|_| panic!("version {version} of {writer:?} is not served"));
    }
    readers.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let bodies = readers.bodies.each_ref().map(|bodies| bodies.load(Ordering::Relaxed));
    println!(
        "{rounds} rounds: {bodies:?} bodies compared, {} refused",
        readers.refused.load(Ordering::Relaxed)
    );
}

fn has_python() -> bool {
    let found =
        Command::new("python3").args(["-c", "import mmap"]).status().is_ok_and(|status| status.success());
    if !found {
        assert!(std::env::var_os("KINDLING_REQUIRE_TOOLS").is_none(), "python3 is not installed");
        eprintln!("SKIPPED: python3 is not installed");
    }
    found
}

#[test]
fn bodies_match_their_tags_beside_writers_in_place() {
    if has_python() {
        run(attack(6));
    }
}

#[test]
#[ignore = "takes minutes: run by .ci/full"]
fn bodies_match_their_tags_beside_writers_in_place_for_long() {
    if has_python() {
        run(attack(120));
    }
}

/// Whatever bytes it has, they may change without a sign.
#[test]
fn file_that_is_mapped_for_writing_is_refused_until_it_is_closed() {
    if !has_python() {
        return;
    }
    run(async {
        let site = Site::open().await;
        let versions = site.versions().await;
        let path = site.path.clone();
        let mapper = tokio::task::spawn_blocking(move || {
            let mut mapper = Mapper::start(&path);
            mapper.write(1);
            mapper
        });
        let mut mapper = mapper.await.unwrap();
        for version in (0..VERSIONS).cycle().take(30) {
            mapper.write(version);
            assert!(range(&site.server.client, &site.url, (AT, 2048)).await.is_none());
        }
        mapper.write(2);
        mapper.end();
        let served = async {
            loop {
                if let Some(answer) = range(&site.server.client, &site.url, (AT, 2048)).await {
                    return answer;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let (tag, body) = timeout(PATIENCE, served).await.unwrap();
        assert_eq!((versions[&tag], body), (2, vec![2; 2048]));
    });
}

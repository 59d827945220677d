//! Processes write to a base image in place while clients read a discovery image made from it. Each body has the bytes
//! that its entity tag identifies.

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

use super::skip::report_missing;
use super::{ImageTestServer, header, run};

/// Offset of the range that the writers change, within the root file system. In version `n`, every byte of the range is
/// `n`.
const AT: u64 = 4 << 20;
const LEN: usize = 256 << 10;
const VERSIONS: u8 = 3;
const READERS: usize = 4;
/// Number of bodies with a new tag that end a round.
const BODIES: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that writes to its mapping of the file until its input ends.
const MAPPER: &str = r"
import mmap, sys
path, at, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as pages:
    for line in sys.stdin:
        pages[at:at + length] = bytes([int(line)]) * length
        print('written', flush=True)
";

/// A process that has mapped the base image, and changes the image without a system call.
struct MappingProcess {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl MappingProcess {
    fn start(path: &Path) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", MAPPER]).arg(path).args([AT.to_string(), LEN.to_string()]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// Waits until the version is written.
    fn write_version(&mut self, version: u8) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{version}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "written\n");
    }

    fn stop(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
    }
}

#[derive(Clone, Copy, Debug)]
enum InPlaceWriter {
    Plain,
    KeptTime,
    Mapped,
}

const WRITERS: [InPlaceWriter; 3] = [InPlaceWriter::KeptTime, InPlaceWriter::Mapped, InPlaceWriter::Plain];

impl InPlaceWriter {
    fn write_version(self, path: &Path, version: u8) {
        match self {
            Self::Plain => overwrite_image(path, version),
            Self::KeptTime => {
                let modified = fs::metadata(path).unwrap().modified().unwrap();
                overwrite_image(path, version);
                File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
            }
            Self::Mapped => {
                let mut mapper = MappingProcess::start(path);
                for version in (0..VERSIONS).cycle().take(15).chain([version]) {
                    mapper.write_version(version);
                    // The pause is arbitrary: the result of the test does not depend on the readers' pace.
                    std::thread::sleep(Duration::from_millis(5));
                }
                mapper.stop();
            }
        }
    }
}

fn overwrite_image(path: &Path, version: u8) {
    let bytes = vec![version; LEN];
    File::options().write(true).open(path).unwrap().write_all_at(&bytes, AT).unwrap();
}

/// State that the readers share: the tags of all versions, and counts of responses.
#[derive(Default)]
struct ConcurrentReaders {
    versions: BTreeMap<String, u8>,
    /// Number of received bodies per version.
    bodies: [AtomicU64; VERSIONS as usize],
    refused: AtomicU64,
    is_over: AtomicBool,
}

struct InPlaceSite {
    server: ImageTestServer,
    url: String,
    path: PathBuf,
}

impl InPlaceSite {
    async fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("base.iso");
        let recipe = Recipe::new(Architecture::X86_64, Era::E2024_12).rootfs_len(8 << 20);
        fs::write(&path, recipe.build()).unwrap();
        overwrite_image(&path, 0);
        let url = format!("file://{}", path.display());
        let server =
            ImageTestServer::start_in_directory(directory, (Policy::Open, None), json!({"url": url}), None)
                .await;
        let (_, id) = server.create_infra_env().await;
        let url = format!("{}/i/{id}/full.iso", server.base);
        Self { server, url, path }
    }

    /// Reads the tag of each version without concurrent writes.
    async fn version_tags(&self) -> BTreeMap<String, u8> {
        let mut versions = BTreeMap::new();
        for version in (0..VERSIONS).rev() {
            let path = self.path.clone();
            tokio::task::spawn_blocking(move || overwrite_image(&path, version)).await.unwrap();
            let tag = async {
                loop {
                    match get_range(&self.server.client, &self.url, (AT, LEN)).await {
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

/// Returns the entity tag and the bytes of a range; `None` if the server refuses the request or the connection breaks.
async fn get_range(client: &Client, url: &str, (at, len): (u64, usize)) -> Option<(String, Vec<u8>)> {
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

async fn read_repeatedly(readers: Arc<ConcurrentReaders>, url: String, lens: [usize; 2]) {
    let client = Client::new();
    for len in lens.into_iter().cycle() {
        if readers.is_over.load(Ordering::Relaxed) {
            return;
        }
        let Some((tag, body)) = get_range(&client, &url, (AT + 512, len)).await else {
            readers.refused.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(1)).await;
            continue;
        };
        let version = *readers.versions.get(&tag).unwrap_or_else(|| panic!("unknown tag {tag}"));
        let wrong = body.iter().filter(|byte| **byte != version).count();
        assert_eq!(
            wrong,
            0,
            "wrong bytes: range of {len} bytes with the tag of version {version}: {:?}",
            body.first()
        );
        readers.bodies[usize::from(version)].fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs writers that change the file one after another. Waits each time until the readers have the new version.
async fn write_beside_readers(rounds: usize) {
    let site = InPlaceSite::open().await;
    let readers =
        Arc::new(ConcurrentReaders { versions: site.version_tags().await, ..ConcurrentReaders::default() });
    let lens = [[2048, 2048], [2048, LEN - 512], [LEN - 512, 64 << 10], [4096, 100_000]];
    let tasks: Vec<_> = (0..READERS)
        .map(|at| tokio::spawn(read_repeatedly(Arc::clone(&readers), site.url.clone(), lens[at])))
        .collect();
    for (writer, version) in WRITERS.into_iter().cycle().zip((1..VERSIONS).chain([0]).cycle()).take(rounds) {
        let path = site.path.clone();
        tokio::task::spawn_blocking(move || writer.write_version(&path, version)).await.unwrap();
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
    let has_mmap =
        Command::new("python3").args(["-c", "import mmap"]).status().is_ok_and(|status| status.success());
    if !has_mmap {
        report_missing("python3 is not installed");
    }
    has_mmap
}

#[test]
fn bodies_match_their_etags_during_in_place_writes() {
    if has_python() {
        run(write_beside_readers(6));
    }
}

#[test]
#[ignore = "takes minutes: run by .ci/full"]
fn bodies_match_their_etags_during_in_place_writes_for_long() {
    if has_python() {
        run(write_beside_readers(120));
    }
}

/// A mapping for writing can change the file without any notification.
#[test]
fn file_mapped_for_writing_is_refused_until_it_is_closed() {
    if !has_python() {
        return;
    }
    run(async {
        let site = InPlaceSite::open().await;
        let versions = site.version_tags().await;
        let path = site.path.clone();
        let mapper = tokio::task::spawn_blocking(move || {
            let mut mapper = MappingProcess::start(&path);
            mapper.write_version(1);
            mapper
        });
        let mut mapper = mapper.await.unwrap();
        for version in (0..VERSIONS).cycle().take(30) {
            mapper.write_version(version);
            assert!(get_range(&site.server.client, &site.url, (AT, 2048)).await.is_none());
        }
        mapper.write_version(2);
        mapper.stop();
        let served = async {
            loop {
                if let Some(answer) = get_range(&site.server.client, &site.url, (AT, 2048)).await {
                    return answer;
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let (tag, body) = timeout(PATIENCE, served).await.unwrap();
        assert_eq!((versions[&tag], body), (2, vec![2; 2048]));
    });
}

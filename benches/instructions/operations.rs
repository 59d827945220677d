//! Lists the counted operations by name, and prepares their data.

use std::fs::File;
use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::http::{HeaderMap, HeaderValue, Method, Version, header};
use chrono::{TimeDelta, Utc};
use discovery::representation::Representation;
use fixtures::{Architecture, Era, Recipe};
use http_body_util::BodyExt;
use ignition::config::Config;
use ignition::discovery::Override;
use ignition::network::{HostNetwork, HostNetworkFiles, KeyfileCache, NetworkGeneration};
use isogen::{Archive, BaseImage, Digest, Edits, Encoding, KargsEdit, KargsOperations, Plan};
use kindling::http::{BodyMode, ServedFile};

use super::baseline::Tolerance;
use super::setups::{self, host::host};
use super::{hosts, service};

/// Long enough for whole frames. No counted operation depends on this length.
const ROOTFS_LEN: u64 = 8 << 20;
const CONFIG_LEN: usize = 100 << 10;
/// Length of a config that is too big for the embed area and needs a re-layout.
const LARGE_CONFIG_LEN: usize = 300 << 10;
/// Number of ranges that count as one operation.
const LOOKUPS: usize = 100;

/// A prepared operation that can be repeated.
pub(crate) type Ready = Box<dyn FnMut()>;

#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// Repetitions: enough to exceed the variation of the setup between runs.
    pub(crate) times: usize,
    pub(crate) tolerance: Tolerance,
    pub(crate) set_up: fn(&Path) -> Ready,
}

/// Single-threaded: the count is the same each time, except for hash seeds.
const SINGLE_THREADED: Tolerance = Tolerance { instructions: 2, calls: 0 };
/// Single-threaded with a changing heap: the number of system calls of the allocator depends on its initial state.
const WITH_LARGE_HEAP: Tolerance = Tolerance { instructions: 2, calls: 100 };
/// Multi-threaded: instructions depend on scheduling, and system calls even more.
const AMONG_THREADS: Tolerance = Tolerance { instructions: 5, calls: 100 };
/// Over a connection, repeated so often that scheduling matters less.
const OVER_A_CONNECTION: Tolerance = Tolerance { instructions: 3, calls: 5 };
/// On several threads that wait for each other in turn.
const IN_TURNS: Tolerance = Tolerance { instructions: 5, calls: 5 };
/// A database returns row by row, and chance decides which rows the reader waits for. The tolerance shows only large
/// increases of system calls.
const ROW_BY_ROW: Tolerance = Tolerance { instructions: 5, calls: 400 };

const fn counted(
    name: &'static str,
    times: usize,
    tolerance: Tolerance,
    set_up: fn(&Path) -> Ready,
) -> Operation {
    Operation { name, times, tolerance, set_up }
}

pub(crate) const OPERATIONS: &[Operation] = &[
    counted("open", 20, SINGLE_THREADED, opening),
    counted("plan-in-place", 200, SINGLE_THREADED, |folder| planning(folder, CONFIG_LEN, Encoding::Gzip)),
    counted("plan-relayout", 50, SINGLE_THREADED, |folder| {
        planning(folder, LARGE_CONFIG_LEN, Encoding::Stored)
    }),
    counted("plan-minimal", 100, SINGLE_THREADED, minimal),
    counted("lookup-of-100-ranges", 100, SINGLE_THREADED, looking_up),
    counted("body-2KiB", 500, SINGLE_THREADED, |folder| body(folder, BodyMode::Mapped, 2 << 10)),
    counted("body-1MiB", 500, SINGLE_THREADED, |folder| body(folder, BodyMode::Mapped, 1 << 20)),
    counted("body-read-1MiB", 100, SINGLE_THREADED, |folder| body(folder, BodyMode::Read, 1 << 20)),
    counted("sha256-shared-prefix", 1, SINGLE_THREADED, digesting),
    counted("pack-gzip", 2, WITH_LARGE_HEAP, |_| packing(Encoding::Gzip)),
    counted("pack-xz", 1, WITH_LARGE_HEAP, |_| packing(Encoding::Xz)),
    counted("discovery-config", 3, WITH_LARGE_HEAP, |_| composing()),
    counted("merge", 10, SINGLE_THREADED, |_| merging()),
    counted("keyfiles-1-host", 20, AMONG_THREADS, |_| keyfiles(1)),
    counted("keyfiles-100-hosts", 1, AMONG_THREADS, |_| keyfiles(100)),
    counted("request-image-2KiB", 2500, IN_TURNS, service::image_range),
    counted("connection-image-2KiB", 10_000, OVER_A_CONNECTION, service::connection_range),
    counted("connection-2KiB-hyper", 10_000, OVER_A_CONNECTION, service::connection_range_without_fast_path),
    counted("request-infra-env", 1500, AMONG_THREADS, service::infra_env),
    counted("request-100-infra-envs", 10, ROW_BY_ROW, service::infra_envs),
    counted("steps-of-a-host", 1500, AMONG_THREADS, hosts::steps),
    counted("unchanged-report", 500, AMONG_THREADS, hosts::unchanged_report),
    counted("changed-report", 200, AMONG_THREADS, hosts::changed_report),
];

/// Writes the data of the operations into their folder: an image and an inventory.
pub(crate) fn prepare(folder: &Path) {
    let recipe = Recipe::new(Architecture::X86_64, Era::E2024_12).rootfs_len(ROOTFS_LEN);
    recipe.write_to(&image_path(folder)).unwrap();
    service::prepare(folder);
}

pub(crate) fn image_path(folder: &Path) -> std::path::PathBuf {
    folder.join("image.iso")
}

fn open(folder: &Path) -> BaseImage {
    BaseImage::open(image_path(folder)).unwrap()
}

fn opening(folder: &Path) -> Ready {
    let path = image_path(folder);
    Box::new(move || drop(BaseImage::open(black_box(&path)).unwrap()))
}

/// Returns a config that is mostly base64, like real ones: it compresses to three quarters of its length.
fn config(len: usize) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut next = numbers();
    std::iter::repeat_with(|| LETTERS[usize::try_from(next() % 64).unwrap()]).take(len).collect()
}

/// Returns a generator of pseudo-random numbers, which are the same each time.
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

fn edits(len: usize, encoding: Encoding) -> Edits {
    let mut archive = Archive::new();
    archive.insert("config.ign", config(len));
    let append = vec!["console=ttyS0".to_owned()];
    let kargs = KargsEdit::Default(KargsOperations { append, ..KargsOperations::default() });
    Edits::new().archive(archive.pack(encoding).unwrap()).kargs(kargs)
}

fn planning(folder: &Path, len: usize, encoding: Encoding) -> Ready {
    let (image, edits) = (open(folder), edits(len, encoding));
    Box::new(move || drop(image.plan(black_box(&edits)).unwrap()))
}

fn minimal(folder: &Path) -> Ready {
    let (image, edits) = (open(folder), Edits::new().minimal(None));
    // The description is verified once per base image.
    image.verify_minimal().unwrap();
    Box::new(move || drop(image.plan(black_box(&edits)).unwrap()))
}

fn plan(folder: &Path) -> Plan {
    open(folder).plan(&edits(CONFIG_LEN, Encoding::Gzip)).unwrap()
}

fn looking_up(folder: &Path) -> Ready {
    let (plan, mut next) = (plan(folder), numbers());
    Box::new(move || {
        for _ in 0..LOOKUPS {
            let at = next() % plan.len();
            black_box(plan.segments(at..at + (64 << 10)).map(|segment| segment.len()).sum::<u64>());
        }
    })
}

/// Sends a range of the root file system and reads all frames. The bytes are in memory, so nothing waits.
fn body(folder: &Path, mode: BodyMode, len: u64) -> Ready {
    let plan = plan(folder);
    // Reads all bytes once, so that they are in memory.
    std::io::copy(&mut File::open(image_path(folder)).unwrap(), &mut std::io::sink()).unwrap();
    // A whole frame, in the middle of the root file system.
    let at = (plan.len() / 2).next_multiple_of(1 << 20);
    let mut headers = HeaderMap::new();
    let range = HeaderValue::try_from(format!("bytes={at}-{}", at + len - 1)).unwrap();
    headers.insert(header::RANGE, range);
    let changed_at = Utc::now() - TimeDelta::days(1);
    let etag = "\"0\"".to_owned();
    let content =
        Representation::new(Arc::new(plan), etag, changed_at, "application/octet-stream", None).unwrap();
    let content = ServedFile::from(content);
    Box::new(move || {
        let mut body = content.respond_with_mode(mode, &Method::GET, &headers, Version::HTTP_11).into_body();
        let mut sent_len = 0;
        while let Some(frame) = at_once(body.frame()) {
            sent_len += black_box(frame.unwrap().into_data().unwrap()).len() as u64;
        }
        assert_eq!(sent_len, len);
    })
}

/// Returns the result of a future that never waits. A wait would take few instructions but much time, so the counts
/// would not show it.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a body waits for bytes that are in memory"),
    }
}

fn digesting(folder: &Path) -> Ready {
    let plan = open(folder).plan(&edits(LARGE_CONFIG_LEN, Encoding::Stored)).unwrap();
    // The base image is hashed once.
    plan.sha256().unwrap();
    Box::new(move || assert_ne!(black_box(&plan).sha256().unwrap(), Digest::from_data(b"")))
}

fn packing(encoding: Encoding) -> Ready {
    let mut archive = Archive::new();
    archive.insert("config.ign", config(CONFIG_LEN));
    Box::new(move || drop(black_box(&archive).pack(encoding).unwrap()))
}

/// Prepares a discovery config with all options of an infra-env, and with an override of 20 KiB that must be merged and
/// validated.
fn composing() -> Ready {
    let mut discovery = setups::full();
    discovery.infra_env.config_override = Some(Override::new(setups::override_text()));
    Box::new(move || drop(black_box(&discovery).compose().unwrap().config.to_string()))
}

fn merging() -> Ready {
    let read = |text: &str| Config::parse(text.as_bytes()).unwrap().config;
    let parent = read(&setups::full().compose().unwrap().config.to_string());
    let child = read(&setups::override_text());
    Box::new(move || drop(ignition::merge::merge(black_box(&parent), black_box(&child))))
}

fn keyfiles(hosts: usize) -> Ready {
    let hosts: Vec<HostNetwork> = (0..hosts).map(host).collect();
    Box::new(move || {
        let cache = KeyfileCache::default();
        drop(HostNetworkFiles::generate(black_box(&hosts), NetworkGeneration::Keyfiles, &cache).unwrap());
    })
}

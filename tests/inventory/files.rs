//! Files beside the records, in a directory and, where there is a server for it, in a bucket.
//!
//! `KINDLING_TEST_S3` is the URL of a server that speaks S3 and takes any credentials. Without it, the test says so, and
//! fails with `KINDLING_REQUIRE_TOOLS=1`.

use std::convert::Infallible;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use kindling::inventory::files::{FileError, FilePath, FileStore};
use tempfile::TempDir;
use uuid::Uuid;

use crate::store::{block_on, process, task};

fn path(text: &str) -> FilePath {
    FilePath::of(text.split('/')).unwrap()
}

fn whole(content: &[u8]) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
    // Chunks as they come from a socket.
    let chunks: Vec<_> = content.chunks(60_000).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    stream::iter(chunks)
}

async fn put(files: &FileStore, name: &str, content: &[u8]) {
    let most = content.len() as u64;
    assert_eq!(files.put(&path(name), whole(content), most).await.unwrap(), most);
}

async fn read(files: &FileStore, name: &str) -> Option<Vec<u8>> {
    let file = files.get(&path(name)).await.unwrap()?;
    let content: Vec<Bytes> = file.content.try_collect().await.unwrap();
    let content = content.concat();
    assert_eq!((file.info.path, file.info.len), (path(name), content.len() as u64));
    Some(content)
}

async fn names(files: &FileStore, folder: &str) -> Vec<String> {
    files.list(&path(folder)).await.unwrap().iter().map(|file| file.path.to_string()).collect()
}

/// Content that is not the same anywhere.
fn content(len: usize) -> Vec<u8> {
    (0..len.div_ceil(8) as u64)
        .flat_map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes())
        .take(len)
        .collect()
}

/// What every place has to do.
async fn conforms(files: &FileStore) {
    assert_eq!(read(files, "a/none").await, None);
    assert!(names(files, "a").await.is_empty());
    files.delete(&path("a/none")).await.unwrap();
    // Nothing, something, and several parts.
    for len in [0, 1, 100_000, (8 << 20) - 1, 8 << 20, (20 << 20) + 5] {
        let content = content(len);
        put(files, "a/file.tar.gz", &content).await;
        assert!(read(files, "a/file.tar.gz").await.unwrap() == content, "{len}");
    }
    for name in ["a/b/two", "a/b/one", "ab/other", "a/c"] {
        put(files, name, name.as_bytes()).await;
    }
    assert_eq!(names(files, "a").await, ["a/b/one", "a/b/two", "a/c", "a/file.tar.gz"]);
    assert_eq!(names(files, "a/b").await, ["a/b/one", "a/b/two"]);
    assert_eq!(files.list(&path("a/b")).await.unwrap()[0].len, 7);
    files.delete(&path("a/b/one")).await.unwrap();
    assert_eq!(names(files, "a/b").await, ["a/b/two"]);
    files.delete_folder(&path("a")).await.unwrap();
    assert!(names(files, "a").await.is_empty());
    assert_eq!(names(files, "ab").await, ["ab/other"]);
    keeps_what_was_there_when_the_new_one_fails(files).await;
}

async fn keeps_what_was_there_when_the_new_one_fails(files: &FileStore) {
    put(files, "kept/file", b"old").await;
    for len in [10, 20 << 20] {
        let long = whole(&content(len));
        let error = files.put(&path("kept/file"), long, len as u64 - 1).await.unwrap_err();
        assert!(matches!(error, FileError::TooLong { most, .. } if most == len as u64 - 1), "{error}");
        let parts = whole(&content(len)).map(|part| part.map_err(|never| match never {}));
        let broken = parts.chain(stream::iter([Err("the line is dead")]));
        let error = files.put(&path("kept/file"), broken, u64::MAX).await.unwrap_err();
        assert!(matches!(error, FileError::BrokenOff { received, .. } if received == len as u64), "{error}");
        // Nobody waits any more.
        let slow =
            whole(&content(len)).map(Ok::<_, Infallible>).map(|part| part.unwrap()).chain(stream::pending());
        let file = path("kept/file");
        let put = files.put(&file, slow, u64::MAX);
        assert!(tokio::time::timeout(Duration::from_millis(300), put).await.is_err());
        assert_eq!(read(files, "kept/file").await.unwrap(), b"old");
        assert_eq!(names(files, "kept").await, ["kept/file"]);
    }
}

#[test]
fn a_directory_keeps_files() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let root = directory.path().join("new/files");
        let files = FileStore::open(root.to_str().unwrap()).unwrap();
        assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        conforms(&files).await;
        // Nothing is left beside it of those that failed.
        for _ in 0..50 {
            if fs::read_dir(root.join("kept")).unwrap().count() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let left: Vec<_> =
            fs::read_dir(root.join("kept")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["file"]);
    });
}

#[test]
fn a_reader_goes_on_with_the_file_that_it_opened() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let files = FileStore::in_directory(directory.path()).unwrap();
        let old = content(3 << 20);
        put(&files, "file", &old).await;
        let mut open = files.get(&path("file")).await.unwrap().unwrap();
        let first = open.content.next().await.unwrap().unwrap();
        put(&files, "file", b"new").await;
        files.delete(&path("file")).await.unwrap();
        let rest: Vec<Bytes> = open.content.try_collect().await.unwrap();
        assert!([first.to_vec(), rest.concat()].concat() == old);
    });
}

#[test]
fn what_others_put_there_is_not_listed() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let files = FileStore::in_directory(directory.path()).unwrap();
        put(&files, "logs/one", b"1").await;
        for name in [".hidden", "a b", "half#7", "ü"] {
            fs::write(directory.path().join("logs").join(name), "").unwrap();
        }
        assert_eq!(names(&files, "logs").await, ["logs/one"]);
    });
}

#[test]
fn no_path_leads_elsewhere() {
    let long = "x".repeat(201);
    for name in
        ["", ".", "..", "a/b", "/", r"a\b", "a\0b", "a b", "%2e%2e", ".hidden", "ü", "a#1", "~", "a\n", &long]
    {
        let error = FilePath::of(["logs", name]).unwrap_err();
        assert!(matches!(&error, FileError::Name { name: found } if found == name), "{error}");
    }
    assert!(FilePath::of(Vec::<String>::new()).is_err());
    assert!(FilePath::of(vec!["x".repeat(200); 5]).is_err());
    let path = FilePath::of(["logs", "a..b", "-_.9Z"]).unwrap();
    assert_eq!((path.as_str(), path.name()), ("logs/a..b/-_.9Z", "-_.9Z"));
}

#[test]
fn places_that_are_none_are_refused() {
    let message = |place: &str| FileStore::open(place).unwrap_err().to_string();
    assert!(message("https://me:hidden@host/x").contains("s3://BUCKET/PREFIX"));
    assert!(!message("https://me:hidden@host/x").contains("hidden"));
    assert!(message("s3://bucket/../other").contains("\"..\""));
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(FileStore::in_directory(file.path()), Err(FileError::Directory { .. })));
}

#[test]
fn a_bucket_keeps_files() {
    let Ok(server) = env::var("KINDLING_TEST_S3") else {
        assert!(env::var_os("KINDLING_REQUIRE_TOOLS").is_none(), "KINDLING_TEST_S3 names no server");
        eprintln!("NOTICE: no server in KINDLING_TEST_S3; files are not tested in a bucket");
        return;
    };
    let bucket = format!("kindling-{}", Uuid::new_v4().simple());
    block_on(async {
        let made = reqwest::Client::new().put(format!("{server}/{bucket}")).send().await.unwrap();
        assert!(made.status().is_success(), "{made:?}");
    });
    // The settings of a bucket are variables, which a process cannot change for itself safely.
    let output = process("files::process_on_a_bucket", &bucket)
        .env("S3_ENDPOINT_URL", &server)
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "the process of a_bucket_keeps_files"]
fn process_on_a_bucket() {
    let bucket = task();
    block_on(async {
        let files = FileStore::open(&format!("s3://{bucket}/some/prefix/")).unwrap();
        conforms(&files).await;
        let root = FileStore::open(&format!("s3://{bucket}")).unwrap();
        assert_eq!(names(&root, "some/prefix/ab").await, ["some/prefix/ab/other"]);
        assert_eq!(read(&root, "some/prefix/kept/file").await.unwrap(), b"old");
        let elsewhere = FileStore::open(&format!("s3://{bucket}-none")).unwrap();
        assert!(matches!(elsewhere.list(&path("a")).await, Err(FileError::Failed { .. })));
    });
}

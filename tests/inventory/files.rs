//! Files next to the records: in a directory, or in a bucket if a server is available.
//!
//! `KINDLING_TEST_S3` is the URL of an S3 server that accepts any credentials. Without it, the test prints a notice, or
//! fails with `KINDLING_REQUIRE_TOOLS=1`.

use std::convert::Infallible;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use kindling::inventory::files::{FileError, FilePath, FileStore};
use tempfile::TempDir;
use uuid::Uuid;

use crate::skip::report_missing;
use crate::store::{block_on, process_task, test_process};

fn file_path(text: &str) -> FilePath {
    FilePath::from_names(text.split('/')).unwrap()
}

fn one_chunk_stream(
    content: &[u8],
) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
    // Chunks as they arrive from a socket.
    let chunks: Vec<_> = content.chunks(60_000).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    stream::iter(chunks)
}

async fn put_file(files: &FileStore, name: &str, content: &[u8]) {
    let most = content.len() as u64;
    assert_eq!(files.put(&file_path(name), one_chunk_stream(content), most).await.unwrap(), most);
}

async fn read_file(files: &FileStore, name: &str) -> Option<Vec<u8>> {
    let file = files.get(&file_path(name)).await.unwrap()?;
    let content: Vec<Bytes> = file.content.try_collect().await.unwrap();
    let content = content.concat();
    assert_eq!((file.info.path, file.info.len), (file_path(name), content.len() as u64));
    Some(content)
}

async fn file_names(files: &FileStore, folder: &str) -> Vec<String> {
    files.list(&file_path(folder)).await.unwrap().iter().map(|file| file.path.to_string()).collect()
}

/// Returns content without repetition.
fn content_of_len(len: usize) -> Vec<u8> {
    (0..len.div_ceil(8) as u64)
        .flat_map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes())
        .take(len)
        .collect()
}

/// Tests the behaviour that every file store must have.
async fn assert_conforms(files: &FileStore) {
    assert_eq!(read_file(files, "a/none").await, None);
    assert!(file_names(files, "a").await.is_empty());
    files.delete(&file_path("a/none")).await.unwrap();
    // Empty, short, and several parts long.
    for len in [0, 1, 100_000, (8 << 20) - 1, 8 << 20, (20 << 20) + 5] {
        let content = content_of_len(len);
        put_file(files, "a/file.tar.gz", &content).await;
        assert!(read_file(files, "a/file.tar.gz").await.unwrap() == content, "{len}");
    }
    for name in ["a/b/two", "a/b/one", "ab/other", "a/c"] {
        put_file(files, name, name.as_bytes()).await;
    }
    assert_eq!(file_names(files, "a").await, ["a/b/one", "a/b/two", "a/c", "a/file.tar.gz"]);
    assert_eq!(file_names(files, "a/b").await, ["a/b/one", "a/b/two"]);
    assert_eq!(files.list(&file_path("a/b")).await.unwrap()[0].len, 7);
    files.delete(&file_path("a/b/one")).await.unwrap();
    assert_eq!(file_names(files, "a/b").await, ["a/b/two"]);
    files.delete_folder(&file_path("a")).await.unwrap();
    assert!(file_names(files, "a").await.is_empty());
    assert_eq!(file_names(files, "ab").await, ["ab/other"]);
    assert_failed_write_keeps_the_old_file(files).await;
}

async fn assert_failed_write_keeps_the_old_file(files: &FileStore) {
    put_file(files, "kept/file", b"old").await;
    for len in [10, 20 << 20] {
        let long = one_chunk_stream(&content_of_len(len));
        let error = files.put(&file_path("kept/file"), long, len as u64 - 1).await.unwrap_err();
        assert!(matches!(error, FileError::TooLong { most, .. } if most == len as u64 - 1), "{error}");
        let parts = one_chunk_stream(&content_of_len(len)).map(|part| part.map_err(|never| match never {}));
        let broken = parts.chain(stream::iter([Err("the line is dead")]));
        let error = files.put(&file_path("kept/file"), broken, u64::MAX).await.unwrap_err();
        assert!(matches!(error, FileError::BrokenOff { received, .. } if received == len as u64), "{error}");
        // The caller drops the upload.
        let slow = one_chunk_stream(&content_of_len(len))
            .map(Ok::<_, Infallible>)
            .map(|part| part.unwrap())
            .chain(stream::pending());
        let file = file_path("kept/file");
        let upload = files.put(&file, slow, u64::MAX);
        assert!(tokio::time::timeout(Duration::from_millis(300), upload).await.is_err());
        assert_eq!(read_file(files, "kept/file").await.unwrap(), b"old");
        assert_eq!(file_names(files, "kept").await, ["kept/file"]);
    }
}

#[test]
fn directory_stores_files() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let root = directory.path().join("new/files");
        let files = FileStore::open(root.to_str().unwrap()).unwrap();
        assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        assert_conforms(&files).await;
        // Failed writes leave no files.
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
fn open_file_stays_readable_after_replacement() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let files = FileStore::in_directory(directory.path()).unwrap();
        let old = content_of_len(3 << 20);
        put_file(&files, "file", &old).await;
        let mut open = files.get(&file_path("file")).await.unwrap().unwrap();
        let first = open.content.next().await.unwrap().unwrap();
        put_file(&files, "file", b"new").await;
        files.delete(&file_path("file")).await.unwrap();
        let rest: Vec<Bytes> = open.content.try_collect().await.unwrap();
        assert!([first.to_vec(), rest.concat()].concat() == old);
    });
}

#[test]
fn foreign_files_are_not_listed() {
    block_on(async {
        let directory = TempDir::new().unwrap();
        let files = FileStore::in_directory(directory.path()).unwrap();
        put_file(&files, "logs/one", b"1").await;
        for name in [".hidden", "a b", "half#7", "ü"] {
            fs::write(directory.path().join("logs").join(name), "").unwrap();
        }
        assert_eq!(file_names(&files, "logs").await, ["logs/one"]);
    });
}

#[test]
fn rejects_path_traversal() {
    let long = "x".repeat(201);
    for name in
        ["", ".", "..", "a/b", "/", r"a\b", "a\0b", "a b", "%2e%2e", ".hidden", "ü", "a#1", "~", "a\n", &long]
    {
        let error = FilePath::from_names(["logs", name]).unwrap_err();
        assert!(matches!(&error, FileError::Name { name: found } if found == name), "{error}");
    }
    assert!(FilePath::from_names(Vec::<String>::new()).is_err());
    assert!(FilePath::from_names(vec!["x".repeat(200); 5]).is_err());
    let path = FilePath::from_names(["logs", "a..b", "-_.9Z"]).unwrap();
    assert_eq!((path.as_str(), path.name()), ("logs/a..b/-_.9Z", "-_.9Z"));
}

#[test]
fn rejects_invalid_locations() {
    let message = |place: &str| FileStore::open(place).unwrap_err().to_string();
    assert!(message("https://me:hidden@host/x").contains("s3://BUCKET/PREFIX"));
    assert!(!message("https://me:hidden@host/x").contains("hidden"));
    assert!(message("s3://bucket/../other").contains("\"..\""));
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(FileStore::in_directory(file.path()), Err(FileError::Directory { .. })));
}

/// Returns the sorted values of an XML element in the list of all incomplete uploads of a bucket.
async fn in_list_of_uploads(bucket: &str, element: &str) -> Vec<String> {
    let server = env::var("S3_ENDPOINT_URL").unwrap();
    let list = reqwest::get(format!("{server}/{bucket}?uploads")).await.unwrap().text().await.unwrap();
    let start = format!("<{element}>");
    let values = list.split(&start).skip(1).map(|rest| rest.split('<').next().unwrap().to_owned());
    let mut values: Vec<_> = values.collect();
    values.sort();
    values
}

async fn incomplete_uploads(bucket: &str) -> Vec<String> {
    in_list_of_uploads(bucket, "Key").await
}

/// Returns the start time of the newest incomplete upload of a bucket.
async fn newest_upload_time(bucket: &str) -> DateTime<Utc> {
    in_list_of_uploads(bucket, "Initiated").await.last().unwrap().parse().unwrap()
}

async fn assert_incomplete_uploads_are_removed(files: &FileStore, bucket: &str) {
    // The store removes the uploads of callers that have disconnected or sent too much, without a further call.
    for _ in 0..500 {
        if incomplete_uploads(bucket).await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(incomplete_uploads(bucket).await.is_empty());
    let server = env::var("S3_ENDPOINT_URL").unwrap();
    for key in ["some/prefix/clusters/a/logs", "some/prefix/.other", "elsewhere/file"] {
        let response = reqwest::Client::new().post(format!("{server}/{bucket}/{key}?uploads")).send().await;
        assert!(response.unwrap().status().is_success());
    }
    assert_eq!(incomplete_uploads(bucket).await.len(), 3);
    // The server's clock may differ from the clock of this machine.
    let begun_at = newest_upload_time(bucket).await;
    assert_eq!(files.remove_abandoned_uploads(begun_at + TimeDelta::hours(23)).await.unwrap(), 0);
    assert_eq!(files.remove_abandoned_uploads(begun_at + TimeDelta::hours(25)).await.unwrap(), 1);
    assert_eq!(incomplete_uploads(bucket).await, ["elsewhere/file", "some/prefix/.other"]);
    assert_eq!(files.remove_incomplete_uploads(Duration::ZERO, Utc::now()).await.unwrap(), 0);
}

#[test]
fn bucket_stores_files() {
    let Ok(server) = env::var("KINDLING_TEST_S3") else {
        report_missing("KINDLING_TEST_S3 is not set");
        return;
    };
    let bucket = format!("kindling-{}", Uuid::new_v4().simple());
    block_on(async {
        let response = reqwest::Client::new().put(format!("{server}/{bucket}")).send().await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
    });
    // The settings of a bucket are environment variables, which a process cannot safely change for itself.
    let output = test_process("files::process_on_a_bucket", &bucket)
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
    let bucket = process_task();
    block_on(async {
        let files = FileStore::open(&format!("s3://{bucket}/some/prefix/")).unwrap();
        assert_conforms(&files).await;
        let root = FileStore::open(&format!("s3://{bucket}")).unwrap();
        assert_eq!(file_names(&root, "some/prefix/ab").await, ["some/prefix/ab/other"]);
        assert_eq!(read_file(&root, "some/prefix/kept/file").await.unwrap(), b"old");
        let elsewhere = FileStore::open(&format!("s3://{bucket}-none")).unwrap();
        files.check().await.unwrap();
        for missing in [
            elsewhere.list(&file_path("a")).await.map(drop),
            elsewhere.get(&file_path("a")).await.map(drop),
            elsewhere.check().await,
            elsewhere.put(&file_path("a"), one_chunk_stream(b"a"), 1).await.map(drop),
        ] {
            let error = missing.unwrap_err();
            assert!(
                matches!(&error, FileError::MissingBucket { bucket: name, .. } if *name == format!("{bucket}-none")),
                "{error}"
            );
        }
        assert_incomplete_uploads_are_removed(&files, &bucket).await;
    });
}

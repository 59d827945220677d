//! Files that exist before the library is opened.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use isogen::Digest;
use kindling::images::library::{BaseImageState, UnknownFiles};
use kindling::inventory::catalogue::OsImage;

use crate::server::{ImageFileServer, ImageReply};
use crate::support::{
    LibraryFolder, NAME, first_image, os_image, second_image, wait_for_state, with_digest, within_time_limit,
};

/// Starts a server that must not receive any request.
async fn unused_server() -> ImageFileServer {
    ImageFileServer::new(|_, _| ImageReply::new(500, "")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_file_is_adopted_and_hashed_once() {
    let (server, place) = (unused_server().await, LibraryFolder::new());
    let path = place.write(NAME, first_image());
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.base(&os_image)).await.unwrap();
    assert_eq!(base.digest(), Digest::from_data(first_image()));
    place.assert_has_only_image(first_image());
    drop((library, base));

    // A record is trusted while the file's metadata is unchanged.
    let record = place.read(RECORD);
    let false_digest = Digest::from_data(b"").to_string();
    let edited = String::from_utf8(record)
        .unwrap()
        .replace(&Digest::from_data(first_image()).to_string(), &false_digest);
    place.write(RECORD, edited.as_bytes());
    let library = place.open([os_image.clone()]);
    assert_eq!(within_time_limit(library.base(&os_image)).await.unwrap().digest(), Digest::from_data(b""));
    drop(library);

    // A change to the ctime alone causes another hash of the file.
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let library = place.open([os_image.clone()]);
    assert_eq!(
        within_time_limit(library.base(&os_image)).await.unwrap().digest(),
        Digest::from_data(first_image())
    );
    assert!(server.requests().is_empty());
}

const RECORD: &str = "rhcos-full-iso-414.92.1-x86_64.iso.json";

fn file_mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Writes other bytes of the same length, and restores the `mtime`.
fn write_with_restored_time(path: &Path, bytes: &[u8]) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    let mut file = File::options().write(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
    file.set_modified(modified).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn write_with_restored_mtime_is_detected_at_the_next_start() {
    let (server, place) = (unused_server().await, LibraryFolder::new());
    let path = place.write(NAME, first_image());
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    within_time_limit(library.base(&os_image)).await.unwrap();
    drop(library);
    write_with_restored_time(&path, second_image());
    let library = place.open([os_image.clone()]);
    assert_eq!(
        within_time_limit(library.base(&os_image)).await.unwrap().digest(),
        Digest::from_data(second_image())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn write_with_restored_mtime_is_detected_immediately() {
    let (server, place) = (unused_server().await, LibraryFolder::new());
    let path = place.write(NAME, first_image());
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let before = within_time_limit(library.base(&os_image)).await.unwrap();
    tokio::task::spawn_blocking(move || write_with_restored_time(&path, second_image())).await.unwrap();
    assert!(!before.is_unchanged(), "the writer did not wait until the image was no longer served");
    let digest = Digest::from_data(second_image());
    wait_for_state(
        &library,
        &os_image,
        |state| matches!(state, BaseImageState::Ready { digest: now, .. } if *now == digest),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn record_without_ctime_and_inode_is_not_trusted() {
    let (server, place) = (unused_server().await, LibraryFolder::new());
    let path = place.write(NAME, first_image());
    let metadata = fs::metadata(&path).unwrap();
    let stamp = format!(
        r#"{{"len": {}, "seconds": {}, "nanoseconds": {}}}"#,
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec()
    );
    let record = format!(
        r#"{{"file": "{}", "stamp": {stamp}, "sha256": "{}", "url": ""}}"#,
        path.display(),
        Digest::from_data(b"")
    );
    place.write(RECORD, record.as_bytes());
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    assert_eq!(
        within_time_limit(library.base(&os_image)).await.unwrap().digest(),
        Digest::from_data(first_image())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_library_are_read_only() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let os_image = os_image(&server.url("a.iso"));
    // The library makes a downloaded file read-only.
    let library = place.open([os_image.clone()]);
    within_time_limit(library.base(&os_image)).await.unwrap();
    assert_eq!(file_mode(&place.file(NAME)), 0o400);
    drop(library);
    // The library makes a file that an administrator has copied into its directory read-only.
    fs::remove_file(place.file(NAME)).unwrap();
    fs::set_permissions(place.write(NAME, second_image()), Permissions::from_mode(0o644)).unwrap();
    let library = place.open([os_image.clone()]);
    assert_eq!(
        within_time_limit(library.base(&os_image)).await.unwrap().digest(),
        Digest::from_data(second_image())
    );
    assert_eq!(file_mode(&place.file(NAME)), 0o400);
    drop(library);
    // The library can replace this read-only file, because its digest is not the digest in the catalogue.
    let verified_image = with_digest(os_image);
    let library = place.open([verified_image.clone()]);
    within_time_limit(library.base(&verified_image)).await.unwrap();
    place.assert_has_only_image(first_image());
    assert_eq!(file_mode(&place.file(NAME)), 0o400);
}

#[tokio::test(flavor = "multi_thread")]
async fn file_with_another_name_keeps_its_mode() {
    let (server, elsewhere) = (unused_server().await, LibraryFolder::new());
    let os_image = os_image(&server.url("a.iso"));
    let path = elsewhere.write("mine.iso", first_image());
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    for link in [|from: &Path, to: &Path| fs::hard_link(from, to), |from: &Path, to: &Path| symlink(from, to)]
    {
        let place = LibraryFolder::new();
        link(&path, &place.file(NAME)).unwrap();
        let library = place.open([os_image.clone()]);
        assert_eq!(
            within_time_limit(library.base(&os_image)).await.unwrap().digest(),
            Digest::from_data(first_image())
        );
        assert_eq!(file_mode(&path), 0o644);
        fs::remove_file(place.file(NAME)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_is_open_for_writing_is_not_used() {
    let (server, place) = (unused_server().await, LibraryFolder::new());
    let path = place.write(NAME, first_image());
    let os_image = os_image(&server.url("a.iso"));
    let writer = File::options().write(true).open(&path).unwrap();
    let library = place.open([os_image.clone()]);
    wait_for_state(&library, &os_image, |state| {
        matches!(state, BaseImageState::Failed { reason, .. } if reason.contains("has") && reason.contains("open for writing"))
    })
    .await;
    drop(writer);
    assert_eq!(
        within_time_limit(library.wait_ready(&os_image)).await.unwrap().digest(),
        Digest::from_data(first_image())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_file_is_replaced() {
    // Only partition tables may be missing after the end of the volume.
    let cut = &first_image()[..1_300_000];
    let page = b"<html>".repeat(10_000);
    for bad in [b"".as_slice(), cut, &page] {
        let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
        place.write(NAME, bad);
        let os_image = os_image(&server.url("a.iso"));
        let library = place.open([os_image.clone()]);
        within_time_limit(library.base(&os_image)).await.unwrap();
        place.assert_has_only_image(first_image());
    }
    // A valid image, but not the image with the digest in the catalogue.
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    place.write(NAME, second_image());
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open([os_image.clone()]);
    within_time_limit(library.base(&os_image)).await.unwrap();
    place.assert_has_only_image(first_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_file_is_kept_until_its_replacement_is_downloaded() {
    let (server, place) = (unused_server().await, LibraryFolder::new());
    place.write(NAME, second_image());
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open_patiently([os_image.clone()]);
    wait_for_state(&library, &os_image, |state| matches!(state, BaseImageState::Failed { .. })).await;
    assert!(place.read(NAME) == second_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_record_is_rewritten() {
    for record in [b"".as_slice(), b"{}", b"\xFF", &b"[".repeat(100_000)] {
        let (server, place) = (unused_server().await, LibraryFolder::new());
        place.write(NAME, first_image());
        place.write(&format!("{NAME}.json"), record);
        let os_image = os_image(&server.url("a.iso"));
        let library = place.open([os_image.clone()]);
        within_time_limit(library.base(&os_image)).await.unwrap();
        let text = String::from_utf8(place.read(&format!("{NAME}.json"))).unwrap();
        assert!(text.contains(&Digest::from_data(first_image()).to_string()), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_file_is_detected_and_open_readers_keep_the_old_one() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let old = within_time_limit(library.base(&os_image)).await.unwrap();

    let new = place.write("new", second_image());
    fs::rename(&new, place.file(NAME)).unwrap();
    let digest = Digest::from_data(second_image());
    wait_for_state(
        &library,
        &os_image,
        |state| matches!(state, BaseImageState::Ready { digest: now, .. } if *now == digest),
    )
    .await;
    assert_eq!(within_time_limit(library.base(&os_image)).await.unwrap().digest(), digest);
    assert_eq!(old.digest(), Digest::from_data(first_image()));
    let whole = isogen::Extent::new(0, first_image().len() as u64).unwrap();
    assert!(old.image().source().read_extent(whole).unwrap() == first_image());

    fs::remove_file(place.file(NAME)).unwrap();
    let digest = Digest::from_data(first_image());
    wait_for_state(
        &library,
        &os_image,
        |state| matches!(state, BaseImageState::Ready { digest: now, .. } if *now == digest),
    )
    .await;
    place.assert_has_only_image(first_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_files_are_deleted_on_request() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let ours = [
        "rhcos-full-iso-1-x86_64.iso",
        "rhcos-full-iso-1-x86_64.iso.part",
        "nmstatectl-full-iso-1-x86_64",
        "nmstatectl-414.92.1-x86_64",
        ".kindling-x1",
    ];
    let others = ["kindling.db", "rhcos", "notes.txt"];
    for name in ours.iter().chain(&others) {
        place.write(name, b"");
    }
    fs::create_dir(place.file("rhcos-directory")).unwrap();
    let locked = File::create(place.file("rhcos-full-iso-2-x86_64.iso.part")).unwrap();
    locked.lock().unwrap();
    place.write("nmstatectl-full-iso-414.92.1-x86_64", b"");
    let all = place.names();

    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    within_time_limit(library.wait_all_ready()).await;
    assert!(place.names().is_superset(&all), "no file is deleted without the option");
    drop(library);

    let mut settings = place.settings();
    settings.unknown = UnknownFiles::Prune;
    let library = kindling::images::library::Library::open(settings, [os_image]).unwrap();
    within_time_limit(library.wait_all_ready()).await;
    let left = place.names();
    assert!(ours.iter().all(|name| !left.contains(*name)), "{left:?}");
    assert!(others.iter().all(|name| left.contains(*name)), "{left:?}");
    for name in
        ["rhcos-directory", "rhcos-full-iso-2-x86_64.iso.part", "nmstatectl-full-iso-414.92.1-x86_64", NAME]
    {
        assert!(left.contains(name), "{name}: {left:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_existing_images_are_ready_within_200_ms() {
    let (server, place) = (unused_server().await, LibraryFolder::new());
    let images: Vec<OsImage> = (0..20)
        .map(|number| OsImage { version: format!("414.{number}"), ..os_image(&server.url("a.iso")) })
        .collect();
    for image in &images {
        place.write(&format!("rhcos-full-iso-{}-x86_64.iso", image.version), self::first_image());
    }
    let library = place.open(images.clone());
    within_time_limit(library.wait_all_ready()).await;
    drop(library);
    let times: Vec<Duration> = {
        let mut times = Vec::new();
        for _ in 0..5 {
            let start = Instant::now();
            let library = place.open(images.clone());
            within_time_limit(library.wait_all_ready()).await;
            times.push(start.elapsed());
        }
        times
    };
    let best = times.iter().min().unwrap();
    println!("20 images are ready after {best:?} (of {times:?})");
    // The limit applies to the best of five runs, because other tests run at the same time.
    assert!(*best < Duration::from_millis(200), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hashing_reports_its_progress() {
    // Large enough to observe the progress, and sparse, so that it takes no disk space.
    let recipe = fixtures::Recipe::new(fixtures::Architecture::X86_64, fixtures::Era::E2024_12);
    let place = LibraryFolder::new();
    recipe.rootfs_len(600 << 20).write_to(&place.file(NAME)).unwrap();
    let len = fs::metadata(place.file(NAME)).unwrap().len();
    let os_image = os_image(&unused_server().await.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let state = wait_for_state(&library, &os_image, |state| {
        matches!(state, BaseImageState::Verifying { have: 1.., .. })
    })
    .await;
    let BaseImageState::Verifying { have, total } = state else { unreachable!() };
    assert!(total == len && have < total, "{have} of {total}");
    assert!(!library.is_ready());
    within_time_limit(library.wait_all_ready()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_directory_is_accepted() {
    let place = LibraryFolder::new();
    place.write(NAME, first_image());
    let os_image = os_image(&unused_server().await.url("a.iso"));
    // Root ignores file modes. A directory with the name of the record prevents writing it.
    fs::create_dir(place.file(&format!("{NAME}.json"))).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let library = place.open([os_image.clone()]);
    let second = place.open([os_image.clone()]);
    for library in [&library, &second] {
        assert_eq!(
            within_time_limit(library.base(&os_image)).await.unwrap().digest(),
            Digest::from_data(first_image())
        );
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

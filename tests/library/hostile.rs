//! Servers with wrong responses, and full disks: the library reports the error and leaves no file.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era, Recipe};
use isogen::Digest;
use kindling::images::library::{
    BaseImageState, ImageNotReady, Library, LibraryError, LibrarySettings, ServerTrust,
};
use kindling::inventory::catalogue::OsImage;
use serde_json::json;
use tokio::net::TcpListener;

use crate::server::{ImageFileServer, ImageReply, ReceivedRequest, ReplyGate};
use crate::skip::report_missing;
use crate::support::{
    LibraryFolder, NAME, arm_image, first_image, os_image, second_image, unavailability_reason,
    wait_for_state, with_digest, within_time_limit,
};

/// Fetches an image from a server with this reply. Returns the reason why this fails.
async fn refusal_reason(
    place: &LibraryFolder,
    answer: impl Fn(&ReceivedRequest, usize) -> ImageReply + Send + Sync + 'static,
) -> String {
    let server = ImageFileServer::new(answer).await;
    let url = server.url("a.iso");
    let os_image = os_image(&url.replace("http://", "http://anna:s3cret@").replace(".iso", ".iso?t=s3cret"));
    let library = place.open_patiently([os_image.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&os_image)).await);
    assert!(!place.names().contains(NAME));
    assert!(!reason.contains("s3cret"), "{reason}");
    reason.strip_prefix(&format!("{NAME} from {url}: ")).unwrap_or_else(|| panic!("{reason}")).to_owned()
}

async fn assert_reply_refused(reply: ImageReply, phrase: &str) {
    let place = LibraryFolder::new();
    let reason = refusal_reason(&place, move |_, _| reply.clone()).await;
    assert!(reason.contains(phrase), "no {phrase:?} in: {reason}");
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_files_that_are_not_images() {
    let page = b"<!DOCTYPE html>\n<html><body>Sign in</body></html>";
    assert_reply_refused(
        ImageReply::new(200, page),
        "the downloaded file is not an ISO image: it begins with \"<!DOCTYPE html> <html>",
    )
    .await;
    assert_reply_refused(ImageReply::new(200, ""), "not an ISO image: it begins with \"\"").await;
    assert_reply_refused(ImageReply::new(200, vec![0; 200_000]), "not an ISO image").await;
    assert_reply_refused(ImageReply::new(404, page), "the server responded with status 404").await;
    assert_reply_refused(ImageReply::new(204, "").without_header("content-length"), "status 204").await;
    assert_reply_refused(
        ImageReply::new(206, first_image()).with_header("content-range", "bytes 0-9/10"),
        "status 206",
    )
    .await;
    assert_reply_refused(ImageReply::new(503, page), "status 503").await;
    // A volume of another system, and a CoreOS volume without a required file.
    let mut other = first_image().to_vec();
    other[16 * 2048 + 40..][..6].copy_from_slice(b"debian");
    assert_reply_refused(ImageReply::new(200, other), "is not from a CoreOS live ISO").await;
    let master = Recipe::new(Architecture::X86_64, Era::E2024_12).master();
    let mut without = master.image.to_vec();
    for name in [b"ROOTFS.IMG", b"rootfs.img"] {
        while let Some(at) = without.windows(name.len()).position(|window| window == name) {
            without[at] = b'x';
        }
    }
    let place = LibraryFolder::new();
    let reason = refusal_reason(&place, move |_, _| ImageReply::new(200, &without[..])).await;
    assert!(reason.contains("the downloaded file is not a usable base image: "), "{reason}");
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn long_error_page_is_detected_early() {
    let (never, start) = (ReplyGate::new(), Instant::now());
    let place = LibraryFolder::new();
    let reason = refusal_reason(&place, move |_, _| {
        ImageReply::new(200, vec![b'x'; 4 << 20]).wait_after(100_000, &never)
    })
    .await;
    assert!(start.elapsed() < place.settings().stall, "the error came only after the stall time");
    assert!(reason.contains("it begins with \"xxxx"), "{reason}");
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_missing_or_wrong_content_length() {
    assert_reply_refused(
        ImageReply::new(200, first_image()).without_header("content-length"),
        "sends no Content-Length",
    )
    .await;
    let chunked = ImageReply::new(200, "5\r\nabcde\r\n0\r\n\r\n").without_header("content-length");
    assert_reply_refused(chunked.with_header("transfer-encoding", "chunked"), "sends no Content-Length")
        .await;
    assert_reply_refused(
        ImageReply::new(200, first_image()).with_header("content-encoding", "gzip"),
        "encoded as \"gzip\"",
    )
    .await;
    // A proxy truncates the file and declares the shorter length.
    let shorter = &first_image()[..1_300_000];
    assert_reply_refused(ImageReply::new(200, shorter), "ISO image is incomplete").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_always_disconnects_leaves_only_a_partial_file() {
    let place = LibraryFolder::new();
    let total = first_image().len();
    let reason = refusal_reason(&place, |request, _| {
        ImageReply::from_file(request, first_image(), "\"one\"").close_after(50_000)
    })
    .await;
    assert!(reason.starts_with(&format!("the connection ended after 50000 of {total} bytes")), "{reason}");
    assert_eq!(place.names(), [format!("{NAME}.part"), format!("{NAME}.part.json")].into());
    let record = String::from_utf8(place.read(&format!("{NAME}.part.json"))).unwrap();
    assert!(!record.contains("s3cret"), "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_after_the_content_length_are_ignored() {
    let longer = [first_image(), b"and more"].concat();
    let server = ImageFileServer::new(move |_, _| {
        ImageReply::new(200, &longer[..]).with_header("content-length", &first_image().len().to_string())
    })
    .await;
    let place = LibraryFolder::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    within_time_limit(library.base(&os_image)).await.unwrap();
    place.assert_has_only_image(first_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_digest_mismatch() {
    let server = ImageFileServer::new(|request, number| {
        let bytes = if number < 1 { second_image() } else { first_image() };
        ImageReply::from_file(request, bytes, if number < 1 { "\"bad\"" } else { "\"good\"" })
    })
    .await;
    let place = LibraryFolder::new();
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open_patiently([os_image.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&os_image)).await);
    let (actual, expected) = (Digest::from_data(second_image()), Digest::from_data(first_image()));
    assert!(
        reason.ends_with(&format!("SHA-256 digest is {actual}, but the catalogue has {expected}")),
        "{reason}"
    );
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_download_for_another_architecture() {
    let (server, place) = (ImageFileServer::with_file(arm_image()).await, LibraryFolder::new());
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open_patiently([os_image.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&os_image)).await);
    assert!(reason.contains("the image is for CPU architecture arm64, expected x86_64"), "{reason}");
    place.assert_empty();
}

/// Settings with short pauses. A URL with another image is retried after about two seconds, and other failures
/// immediately.
fn settings_with_short_pauses(place: &LibraryFolder) -> LibrarySettings {
    let mut settings = place.settings();
    settings.retry.longest_pause = Duration::from_millis(7);
    settings
}

#[tokio::test(flavor = "multi_thread")]
async fn url_with_another_image_is_rarely_downloaded_again() {
    let server = ImageFileServer::new(|request, number| {
        let file = if number == 0 { arm_image() } else { first_image() };
        ImageReply::from_file(request, file, "\"one\"")
    })
    .await;
    let place = LibraryFolder::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = Library::open(settings_with_short_pauses(&place), [os_image.clone()]).unwrap();
    unavailability_reason(within_time_limit(library.base(&os_image)).await);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(server.requests().len(), 1);
    within_time_limit(library.wait_ready(&os_image)).await.unwrap();
    assert_eq!(server.requests().len(), 2);
    place.assert_has_only_image(first_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_replaces_another_image_is_used_immediately() {
    let (server, place) = (ImageFileServer::with_file(arm_image()).await, LibraryFolder::new());
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open_patiently([os_image.clone()]);
    unavailability_reason(within_time_limit(library.base(&os_image)).await);
    fs::rename(place.write("copy", first_image()), place.file(NAME)).unwrap();
    within_time_limit(library.wait_ready(&os_image)).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}

/// Writes an image for another architecture with a record, like earlier releases, which did not check the architecture.
fn write_recorded_arm_image(place: &LibraryFolder, url: &str) {
    let path = place.write(NAME, arm_image());
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    let record = json!({
        "file": path,
        "stamp": {
            "len": metadata.len(),
            "seconds": metadata.mtime(),
            "nanoseconds": metadata.mtime_nsec(),
            "changed": [metadata.ctime(), metadata.ctime_nsec()],
            "inode": metadata.ino(),
        },
        "sha256": Digest::from_data(arm_image()).to_string(),
        "minimal_verified": true,
        "url": url,
    });
    place.write(&format!("{NAME}.json"), record.to_string().as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_image_of_another_architecture_is_not_downloaded_at_start() {
    let server = ImageFileServer::with_file(first_image()).await;
    let place = LibraryFolder::new();
    let os_image = os_image(&server.url("a.iso"));
    write_recorded_arm_image(&place, &os_image.url);
    let library = Library::open(settings_with_short_pauses(&place), [os_image.clone()]).unwrap();
    let reason = unavailability_reason(within_time_limit(library.base(&os_image)).await);
    assert!(reason.contains("the image is for CPU architecture arm64, expected x86_64"), "{reason}");
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(server.requests().len(), 0);
    within_time_limit(library.wait_ready(&os_image)).await.unwrap();
    place.assert_has_only_image(first_image());
    drop(library);

    // Another URL, or another digest in the catalogue, may belong to the right image.
    for (url, entry) in
        [(server.url("old.iso"), os_image.clone()), (os_image.url.clone(), with_digest(os_image))]
    {
        let place = LibraryFolder::new();
        write_recorded_arm_image(&place, &url);
        let library = place.open_patiently([entry.clone()]);
        within_time_limit(library.base(&entry)).await.unwrap();
        place.assert_has_only_image(first_image());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_limited_in_number_and_scheme() {
    for (location, phrase) in [
        (Some("/again"), "redirects more than 10 times"),
        (Some("file:///etc/passwd"), "redirects to file:"),
        (Some("http://"), "redirects to an invalid URL"),
        (None, "redirects without a Location header"),
    ] {
        let reply = ImageReply::new(302, "");
        let reply = location.map_or(reply.clone(), |location| reply.with_header("location", location));
        assert_reply_refused(reply, phrase).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_from_unreachable_and_silent_servers_fail() {
    let place = LibraryFolder::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let os = os_image(&format!("http://{address}/a.iso"));
    let library = place.open_patiently([os.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&os)).await);
    assert!(reason.contains("the request failed: ") && reason.contains("refused"), "{reason}");
    place.assert_empty();
    drop(library);

    let mut settings = place.patient_settings();
    settings.stall = Duration::from_millis(200);
    // The kernel accepts the connection, but no process sends a response.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let os = os_image(&format!("http://{}/a.iso", listener.local_addr().unwrap()));
    let library = Library::open(settings.clone(), [os.clone()]).unwrap();
    let reason = unavailability_reason(within_time_limit(library.base(&os)).await);
    assert!(reason.contains("the request failed: ") && reason.contains("timed out"), "{reason}");
    place.assert_empty();
    drop(library);

    let never = ReplyGate::new();
    let server =
        ImageFileServer::new(move |_, _| ImageReply::new(200, first_image()).wait_after(60_000, &never))
            .await;
    let os = os_image(&server.url("a.iso"));
    let library = Library::open(settings, [os.clone()]).unwrap();
    let reason = unavailability_reason(within_time_limit(library.base(&os)).await);
    assert!(
        reason.contains("the connection ended after 60000 of") && reason.contains("timed out"),
        "{reason}"
    );
}

/// The server does not use HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn server_that_does_not_speak_http_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let server = std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.write_all(b"SSH-2.0-OpenSSH_9.6\r\n");
        }
    });
    let place = LibraryFolder::new();
    let os_image = os_image(&format!("http://{address}/a.iso"));
    let library = place.open_patiently([os_image.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&os_image)).await);
    assert!(reason.contains("the request failed: "), "{reason}");
    place.assert_empty();
    is_over.store(true, Ordering::Relaxed);
    let _ = std::net::TcpStream::connect(address);
    server.join().unwrap();
}

/// A file system of 1 MiB, which only root may mount.
struct SmallLibraryDisk(LibraryFolder);

impl SmallLibraryDisk {
    fn new() -> Option<Self> {
        let place = LibraryFolder::new();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(place.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(place)),
            other => {
                report_missing(&format!("cannot mount a tmpfs ({other:?})"));
                None
            }
        }
    }
}

impl Drop for SmallLibraryDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_is_reported_before_the_download_starts() {
    let Some(disk) = SmallLibraryDisk::new() else { return };
    assert!(first_image().len() > 1 << 20);
    let (never, start) = (ReplyGate::new(), Instant::now());
    let reason =
        refusal_reason(&disk.0, move |_, _| ImageReply::new(200, first_image()).wait_after(10, &never)).await;
    assert!(start.elapsed() < disk.0.settings().stall, "the error came only after the stall time");
    assert!(
        reason.starts_with("reserving space for ")
            && reason.contains("no space left on the disk: the file needs "),
        "{reason}"
    );
    disk.0.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn unwritable_directory_is_reported() {
    let server = ImageFileServer::with_file(first_image()).await;
    let place = LibraryFolder::new();
    // Root ignores file modes, so a directory blocks the file name instead.
    fs::create_dir(place.file(&format!("{NAME}.part"))).unwrap();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open_patiently([os_image.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&os_image)).await);
    assert!(reason.contains("opening ") && reason.contains(".part failed: Is a directory"), "{reason}");
    assert!(matches!(library.state(&os_image), Some(BaseImageState::Failed { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_invalid_settings() {
    let place = LibraryFolder::new();
    let good = os_image("/a.iso");
    let open = |change: &dyn Fn(&mut kindling::images::library::LibrarySettings), image| {
        let mut settings = place.settings();
        change(&mut settings);
        Library::open(settings, [image]).unwrap_err()
    };
    let nothing = |_: &mut _| {};
    for version in ["", "../../etc/passwd", "1/2", "ü", "a b", &"9".repeat(151)] {
        let mut image = good.clone();
        image.version = version.to_owned();
        assert!(matches!(open(&nothing, image), LibraryError::Version { .. }), "{version}");
    }
    let mut elsewhere = good.clone();
    elsewhere.url = "ftp://anna:s3cret@host/a.iso".to_owned();
    let error = open(&nothing, elsewhere);
    assert!(matches!(&error, LibraryError::Location { .. }) && !format!("{error:?}").contains("s3cret"));
    for (name, value) in [("a b", "x"), ("x", "s3cret\n")] {
        let header = [(name.to_owned(), value.to_owned())];
        let error = open(&|settings| settings.request_headers = header.clone().into(), good.clone());
        assert!(matches!(&error, LibraryError::Header { .. }) && !format!("{error:?}").contains("s3cret"));
    }
    let none = place.write("none.pem", b"no certificate");
    for path in [place.file("missing.pem"), none] {
        let error = open(&|settings| settings.trust = ServerTrust::SystemAnd(path.clone()), good.clone());
        assert!(matches!(error, LibraryError::Certificates { .. }));
    }
    let file = place.write("file", b"");
    let error = open(&|settings| settings.directory = file.clone(), good.clone());
    assert!(matches!(error, LibraryError::Directory { .. }));
    let outside = std::thread::spawn({
        let settings = place.settings();
        move || Library::open(settings, []).unwrap_err()
    });
    assert!(matches!(outside.join().unwrap(), LibraryError::NoRuntime));
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_reports_the_next_attempt() {
    let server = ImageFileServer::new(|_, _| ImageReply::new(404, "")).await;
    let place = LibraryFolder::new();
    let os_image = os_image(&server.url("a.iso"));
    let before = chrono::Utc::now();
    let library = place.open_patiently([os_image.clone()]);
    let state =
        wait_for_state(&library, &os_image, |state| matches!(state, BaseImageState::Failed { .. })).await;
    let BaseImageState::Failed { retry_at, .. } = state else { unreachable!() };
    let pause = (retry_at - before).num_seconds();
    assert!((3599..3660).contains(&pause), "{pause}");
}

/// Entries with the same version share one file.
#[tokio::test(flavor = "multi_thread")]
async fn digest_of_any_entry_is_checked() {
    let (first, second) =
        (ImageFileServer::with_file(first_image()).await, ImageFileServer::with_file(second_image()).await);
    let place = LibraryFolder::new();
    let old = OsImage { openshift_version: "4.13".to_owned(), ..with_digest(os_image(&first.url("a.iso"))) };
    // The URL of the newest entry is used.
    let new = os_image(&second.url("a.iso"));
    let library = place.open_patiently([old.clone(), new.clone()]);
    for os_image in [&old, &new] {
        let reason = unavailability_reason(within_time_limit(library.base(os_image)).await);
        assert!(reason.contains("the catalogue has"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_entries_of_one_image_with_different_digests() {
    let place = LibraryFolder::new();
    let old =
        OsImage { openshift_version: "4.13".to_owned(), ..with_digest(os_image("http://127.0.0.1:1/a.iso")) };
    let new = OsImage { sha256: Some(Digest::from_data(second_image())), ..os_image(&old.url) };
    for images in [[old.clone(), new.clone()], [new, old]] {
        let error = Library::open(place.settings(), images).unwrap_err();
        assert!(matches!(&error, LibraryError::ContradictoryDigest { image } if image == NAME), "{error}");
        let reason = error.to_string();
        assert!(reason.contains(NAME) && reason.contains("same version, architecture and type"), "{reason}");
    }
}

/// An added image uses the file of the configured image with the same version.
#[tokio::test(flavor = "multi_thread")]
async fn added_entry_with_another_digest_is_refused() {
    let server = ImageFileServer::with_file(first_image()).await;
    let place = LibraryFolder::new();
    let configured = os_image(&server.url("a.iso"));
    let [expected, found] = [second_image(), first_image()].map(Digest::from_data);
    let added =
        OsImage { openshift_version: "4.13".to_owned(), sha256: Some(expected), ..configured.clone() };
    let library = Library::open_with_added(place.settings(), [configured.clone()], [added.clone()]).unwrap();
    within_time_limit(library.base(&configured)).await.unwrap();
    let refusal = ImageNotReady::OtherDigest { image: NAME.to_owned(), expected, found };
    assert_eq!(within_time_limit(library.base(&added)).await.unwrap_err(), refusal);
    assert_eq!(within_time_limit(library.wait_ready(&added)).await.unwrap_err(), refusal);
    assert_eq!(library.base_now(&added).unwrap_err(), refusal);
}

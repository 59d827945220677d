//! Servers that send something else, disks that are full: what is told, and that nothing is left of it.

use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fixtures::{Architecture, Era, Recipe};
use isogen::Digest;
use kindling::images::library::{Library, LibraryError, State, Trust};
use tokio::net::TcpListener;

use crate::server::{Gate, Reply, Request, Server};
use crate::support::{NAME, Place, image, os_image, other_image, reason, soon, until, with_digest};

/// Why an image cannot be had from a server that answers so.
async fn refused(place: &Place, answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> String {
    let server = Server::new(answer).await;
    let url = server.url("a.iso");
    let os_image = os_image(&url.replace("http://", "http://anna:s3cret@").replace(".iso", ".iso?t=s3cret"));
    let library = place.open_patiently([os_image.clone()]);
    let told = reason(soon(library.base(&os_image)).await);
    assert!(!place.names().contains(NAME));
    assert!(!told.contains("s3cret"), "{told}");
    told.strip_prefix(&format!("{NAME} from {url}: ")).unwrap_or_else(|| panic!("{told}")).to_owned()
}

async fn assert_refused(reply: Reply, phrase: &str) {
    let place = Place::new();
    let told = refused(&place, move |_, _| reply.clone()).await;
    assert!(told.contains(phrase), "no {phrase:?} in: {told}");
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_image_is_not_taken_for_one() {
    let page = b"<!DOCTYPE html>\n<html><body>Sign in</body></html>";
    assert_refused(
        Reply::new(200, page),
        "the downloaded file is not an ISO image: it begins with \"<!DOCTYPE html> <html>",
    )
    .await;
    assert_refused(Reply::new(200, ""), "not an ISO image: it begins with \"\"").await;
    assert_refused(Reply::new(200, vec![0; 200_000]), "not an ISO image").await;
    assert_refused(Reply::new(404, page), "the server answered with status 404").await;
    assert_refused(Reply::new(204, "").without("content-length"), "status 204").await;
    assert_refused(Reply::new(206, image()).header("content-range", "bytes 0-9/10"), "status 206").await;
    assert_refused(Reply::new(503, page), "status 503").await;
    // A volume of something else, and one of CoreOS that lacks what is needed.
    let mut other = image().to_vec();
    other[16 * 2048 + 40..][..6].copy_from_slice(b"debian");
    assert_refused(Reply::new(200, other), "is that of no CoreOS live image").await;
    let master = Recipe::new(Architecture::X86_64, Era::E2024_12).master();
    let mut without = master.image.to_vec();
    for name in [b"ROOTFS.IMG", b"rootfs.img"] {
        while let Some(at) = without.windows(name.len()).position(|window| window == name) {
            without[at] = b'x';
        }
    }
    let place = Place::new();
    let told = refused(&place, move |_, _| Reply::new(200, &without[..])).await;
    assert!(told.contains("the downloaded file is not a usable base image: "), "{told}");
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_page_as_long_as_an_image_is_told_at_once() {
    let (never, start) = (Gate::new(), Instant::now());
    let place = Place::new();
    let told = refused(&place, move |_, _| Reply::new(200, vec![b'x'; 4 << 20]).hold(100_000, &never)).await;
    assert!(start.elapsed() < place.settings().stall, "it was told when nothing came any more");
    assert!(told.contains("it begins with \"xxxx"), "{told}");
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn lengths_have_to_be_told_and_kept() {
    assert_refused(Reply::new(200, image()).without("content-length"), "does not tell the length").await;
    let chunked = Reply::new(200, "5\r\nabcde\r\n0\r\n\r\n").without("content-length");
    assert_refused(chunked.header("transfer-encoding", "chunked"), "does not tell the length").await;
    assert_refused(Reply::new(200, image()).header("content-encoding", "gzip"), "encoded as \"gzip\"").await;
    // A proxy that cuts, and says so.
    let shorter = &image()[..1_300_000];
    assert_refused(Reply::new(200, shorter), "ISO image is incomplete").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_always_breaks_off_leaves_only_a_part() {
    let place = Place::new();
    let total = image().len();
    let told = refused(&place, |request, _| Reply::file(request, image(), "\"one\"").cut(50_000)).await;
    assert!(told.starts_with(&format!("the connection ended after 50000 of {total} bytes")), "{told}");
    assert_eq!(place.names(), [format!("{NAME}.part"), format!("{NAME}.part.json")].into());
    let record = String::from_utf8(place.read(&format!("{NAME}.part.json"))).unwrap();
    assert!(!record.contains("s3cret"), "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_past_the_promised_end_are_not_part_of_the_image() {
    let longer = [image(), b"and more"].concat();
    let server = Server::new(move |_, _| {
        Reply::new(200, &longer[..]).header("content-length", &image().len().to_string())
    })
    .await;
    let place = Place::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    soon(library.base(&os_image)).await.unwrap();
    place.assert_holds(image());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_digest_than_that_of_the_catalogue_is_refused() {
    let server = Server::new(|request, number| {
        let bytes = if number < 1 { other_image() } else { image() };
        match request.to() {
            Some(_) => Reply::new(503, ""),
            None => Reply::file(request, bytes, if number < 1 { "\"bad\"" } else { "\"good\"" }),
        }
    })
    .await;
    let place = Place::new();
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open_patiently([os_image.clone()]);
    let told = reason(soon(library.base(&os_image)).await);
    let (found, expected) = (Digest::of(other_image()), Digest::of(image()));
    assert!(
        told.ends_with(&format!("the SHA-256 is {found}, and the catalogue asks for {expected}")),
        "{told}"
    );
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_end_and_do_not_leave_the_web() {
    for (location, phrase) in [
        (Some("/again"), "redirects more than 10 times"),
        (Some("file:///etc/passwd"), "redirects to file:"),
        (Some("http://"), "redirects to what is no URL"),
        (None, "redirects to nowhere"),
    ] {
        let reply = Reply::new(302, "");
        let reply = location.map_or(reply.clone(), |location| reply.header("location", location));
        assert_refused(reply, phrase).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_are_gone_or_silent_are_given_up() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let os = os_image(&format!("http://{address}/a.iso"));
    let library = place.open_patiently([os.clone()]);
    let told = reason(soon(library.base(&os)).await);
    assert!(told.contains("the request failed: ") && told.contains("refused"), "{told}");
    place.assert_empty();
    drop(library);

    let mut settings = place.patient_settings();
    settings.stall = Duration::from_millis(200);
    // The system takes the connection, and nobody answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let os = os_image(&format!("http://{}/a.iso", listener.local_addr().unwrap()));
    let library = Library::open(settings.clone(), [os.clone()]).unwrap();
    let told = reason(soon(library.base(&os)).await);
    assert!(told.contains("the request failed: ") && told.contains("timed out"), "{told}");
    place.assert_empty();
    drop(library);

    let never = Gate::new();
    let server = Server::new(move |_, _| Reply::new(200, image()).hold(60_000, &never)).await;
    let os = os_image(&server.url("a.iso"));
    let library = Library::open(settings, [os.clone()]).unwrap();
    let told = reason(soon(library.base(&os)).await);
    assert!(told.contains("the connection ended after 60000 of") && told.contains("timed out"), "{told}");
}

/// Bytes that are no HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_something_else_are_told() {
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
    let place = Place::new();
    let os_image = os_image(&format!("http://{address}/a.iso"));
    let library = place.open_patiently([os_image.clone()]);
    let told = reason(soon(library.base(&os_image)).await);
    assert!(told.contains("the request failed: "), "{told}");
    place.assert_empty();
    is_over.store(true, Ordering::Relaxed);
    let _ = std::net::TcpStream::connect(address);
    server.join().unwrap();
}

/// A file system of one mebibyte, which only root may mount.
struct SmallDisk(Place);

impl SmallDisk {
    fn new() -> Option<Self> {
        let place = Place::new();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(place.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(place)),
            other => {
                assert_ne!(
                    std::env::var("KINDLING_REQUIRE_TOOLS").as_deref(),
                    Ok("1"),
                    "no tmpfs: {other:?}"
                );
                eprintln!("SKIPPED: a tmpfs cannot be mounted here");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_is_told_before_the_bytes_come_and_left_empty() {
    let Some(disk) = SmallDisk::new() else { return };
    assert!(image().len() > 1 << 20);
    let (never, start) = (Gate::new(), Instant::now());
    let told = refused(&disk.0, move |_, _| Reply::new(200, image()).hold(10, &never)).await;
    assert!(start.elapsed() < disk.0.settings().stall, "it was told when nothing came any more");
    assert!(
        told.starts_with("reserving the length of the image for ") && told.contains("No space left"),
        "{told}"
    );
    disk.0.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_written_is_told() {
    let server = Server::of(image()).await;
    let place = Place::new();
    // Root may write anywhere, but not to where a directory is.
    std::fs::create_dir(place.file(&format!("{NAME}.part"))).unwrap();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open_patiently([os_image.clone()]);
    let told = reason(soon(library.base(&os_image)).await);
    assert!(told.contains("opening ") && told.contains(".part failed: Is a directory"), "{told}");
    assert!(matches!(library.state(&os_image), Some(State::Failed { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_make_no_sense_are_refused_at_once() {
    let place = Place::new();
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
        let error = open(&|settings| settings.trust = Trust::SystemAnd(path.clone()), good.clone());
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
async fn a_failure_tells_when_it_is_tried_again() {
    let server = Server::new(|_, _| Reply::new(404, "")).await;
    let place = Place::new();
    let os_image = os_image(&server.url("a.iso"));
    let before = chrono::Utc::now();
    let library = place.open_patiently([os_image.clone()]);
    let state = until(&library, &os_image, |state| matches!(state, State::Failed { .. })).await;
    let State::Failed { retry_at, .. } = state else { unreachable!() };
    let pause = (retry_at - before).num_seconds();
    assert!((3599..3660).contains(&pause), "{pause}");
}

//! Images that users add while the library is open, and the servers from which they may come.

use std::collections::BTreeSet;

use kindling::images::library::{
    AddedImageServers, BaseImageState, DownloadTiming, ImageNotReady, Library, LibrarySettings, UnknownFiles,
};
use kindling::inventory::catalogue::OsImage;

use crate::server::{ImageFileServer, ImageReply, ReplyGate};
use crate::support::{
    LibraryFolder, NAME, arm_image, first_image, os_image, second_image, unavailability_reason,
    wait_for_state, within_time_limit,
};

/// Settings that allow the test servers.
fn settings(place: &LibraryFolder) -> LibrarySettings {
    let mut settings = place.patient_settings();
    settings.added_from = AddedImageServers::Listed(BTreeSet::from(["127.0.0.1".to_owned()]));
    settings
}

fn other_image(url: &str) -> OsImage {
    OsImage { openshift_version: "4.15".to_owned(), version: "415.1".to_owned(), ..os_image(url) }
}

/// Returns the bytes of the files of [`other_image`]. The names of their directories depend on the name and the URL of
/// the image.
fn added_files(place: &LibraryFolder) -> Vec<Vec<u8>> {
    let Ok(directories) = std::fs::read_dir(place.file("added")) else { return Vec::new() };
    let file = |directory: std::fs::DirEntry| directory.path().join("rhcos-full-iso-415.1-x86_64.iso");
    directories.map(|directory| std::fs::read(file(directory.unwrap())).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn added_image_is_downloaded_immediately_and_removed_with_its_files() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let configured = place.write("configured.iso", second_image());
    let configured = os_image(configured.to_str().unwrap());
    let mut settings = settings(&place);
    settings.when = DownloadTiming::OnFirstUse;
    settings.request_headers = [("X-Key".to_owned(), "s3cret".to_owned())].into();
    settings.request_query = [("key".to_owned(), "s3cret".to_owned())].into();
    let library = Library::open(settings, [configured.clone()]).unwrap();
    let added = other_image(&server.url("a.iso"));
    assert!(matches!(library.base_now(&added), Err(ImageNotReady::Unknown { .. })));

    library.set_added([added.clone()]);
    wait_for_state(&library, &added, BaseImageState::is_ready).await;
    let base = within_time_limit(library.base(&added)).await.unwrap();
    assert!(added_files(&place) == [first_image()]);
    let states: Vec<_> = library.states().into_iter().map(|state| (state.image, state.is_added)).collect();
    assert_eq!(states, [(configured.clone(), false), (added.clone(), true)]);
    // A repetition of the same list changes nothing.
    library.set_added([added.clone()]);
    assert_eq!(server.download_offsets(), [None]);
    for request in server.requests() {
        assert!(request.header("x-key").is_none() && !request.target.contains("s3cret"), "{request:?}");
    }

    library.set_added([]);
    assert!(matches!(library.base_now(&added), Err(ImageNotReady::Unknown { .. })));
    assert!(added_files(&place).is_empty());
    // Open readers of a removed image can continue.
    assert!(base.image().source().digest().is_ok());
    within_time_limit(library.base(&configured)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_reader_of_a_removed_image_gets_an_error() {
    let place = LibraryFolder::new();
    let gate = ReplyGate::new();
    let server =
        ImageFileServer::new(move |_, _| ImageReply::new(200, first_image()).wait_after(1000, &gate)).await;
    let library = Library::open(settings(&place), []).unwrap();
    let added = other_image(&server.url("a.iso"));
    library.set_added([added.clone()]);
    wait_for_state(&library, &added, |state| matches!(state, BaseImageState::Downloading { .. })).await;
    let waiting = tokio::spawn({
        let (library, added) = (library.clone(), added.clone());
        async move { library.base(&added).await.map(drop) }
    });
    tokio::task::yield_now().await;
    library.set_added([]);
    let outcome = within_time_limit(waiting).await.unwrap();
    assert!(matches!(outcome, Err(ImageNotReady::Unknown { .. })), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_url_is_another_image() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let second = ImageFileServer::with_file(second_image()).await;
    let library = Library::open(settings(&place), []).unwrap();
    for (url, expected) in [(server.url("a.iso"), first_image()), (second.url("a.iso"), second_image())] {
        let added = other_image(&url);
        library.set_added([added.clone()]);
        within_time_limit(library.base(&added)).await.unwrap();
        assert!(added_files(&place) == [expected]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_added_image_does_not_make_the_library_unready() {
    let place = LibraryFolder::new();
    let server = ImageFileServer::new(|_, _| ImageReply::new(404, "")).await;
    let library = Library::open(settings(&place), []).unwrap();
    let added = other_image(&server.url("a.iso"));
    library.set_added([added.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&added)).await);
    assert!(reason.contains("the server responded with status 404"), "{reason}");
    assert!(library.is_ready());
    // A URL of a local file, and a version that cannot be part of a file name.
    let path = place.write("local.iso", first_image());
    let invalid = [
        other_image(path.to_str().unwrap()),
        other_image(&format!("file://{}", path.display())),
        other_image("s3://bucket/live.iso"),
        OsImage { version: "../a".to_owned(), ..added.clone() },
    ];
    library.set_added(invalid);
    assert!(library.states().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_this_machine_are_refused_also_after_redirects() {
    let place = LibraryFolder::new();
    let server = ImageFileServer::with_file(first_image()).await;
    let mut near = place.patient_settings();
    let port = server.url("").rsplit_once(':').unwrap().1.to_owned();
    let library = Library::open(near.clone(), []).unwrap();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let added = other_image(&format!("http://{host}:{port}a.iso"));
        library.set_added([added.clone()]);
        let reason = unavailability_reason(within_time_limit(library.base(&added)).await);
        assert!(reason.contains("images must not be added from "), "{reason}");
    }
    assert_eq!(server.requests().len(), 0);
    drop(library);

    // Only the first server is allowed.
    let target = server.url("a.iso").replace("127.0.0.1", "127.0.0.2");
    let redirecting =
        ImageFileServer::new(move |_, _| ImageReply::new(302, "").with_header("location", &target)).await;
    near.added_from = AddedImageServers::Listed(BTreeSet::from(["127.0.0.1".to_owned()]));
    let library = Library::open(near, []).unwrap();
    let added = other_image(&redirecting.url("a.iso"));
    library.set_added([added.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&added)).await);
    assert!(reason.contains("images must not be added from 127.0.0.2"), "{reason}");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn added_images_survive_a_restart_with_pruning() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let added = other_image(&server.url("a.iso"));
    let mut settings = settings(&place);
    settings.unknown = UnknownFiles::Prune;
    for _ in 0..2 {
        let library = Library::open_with_added(settings.clone(), [], [added.clone()]).unwrap();
        within_time_limit(library.base(&added)).await.unwrap();
    }
    assert_eq!(server.download_offsets(), [None]);
    drop(Library::open(settings, []).unwrap());
    assert!(added_files(&place).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_image_takes_precedence() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let path = place.write("configured.iso", second_image());
    let configured = os_image(path.to_str().unwrap());
    let library = Library::open(settings(&place), [configured.clone()]).unwrap();
    library.set_added([os_image(&server.url("a.iso"))]);
    let [state] = &library.states()[..] else { panic!("not one image") };
    assert_eq!((&state.image, state.is_added), (&configured, false));
    library.set_added([]);
    within_time_limit(library.base(&configured)).await.unwrap();
    assert!(!place.file(NAME).exists() && server.requests().is_empty());
}

/// Two records share one file, so the removal of one record keeps the file.
#[tokio::test(flavor = "multi_thread")]
async fn file_of_another_added_image_is_kept() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let library = Library::open(settings(&place), []).unwrap();
    let one = other_image(&server.url("a.iso"));
    let two = OsImage { openshift_version: "4.16".to_owned(), ..one.clone() };
    library.set_added([one.clone(), two.clone()]);
    within_time_limit(library.base(&two)).await.unwrap();
    library.set_added([two.clone()]);
    library.base_now(&two).unwrap();
    assert!(added_files(&place) == [first_image()]);
    assert_eq!(server.download_offsets(), [None]);
}

/// The reason of a failure is public, so it must not contain any part of the response.
#[tokio::test(flavor = "multi_thread")]
async fn failure_of_an_added_image_shows_nothing_of_the_response() {
    let (place, secret) = (LibraryFolder::new(), b"{\"password\": \"s3cret\"}");
    let server = ImageFileServer::new(|_, _| ImageReply::new(200, &secret[..])).await;
    let library = Library::open(settings(&place), []).unwrap();
    let added = other_image(&server.url("a.iso"));
    library.set_added([added.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&added)).await);
    assert!(reason.ends_with(": the file is not an ISO image"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_added_image_for_another_architecture() {
    let (place, server) = (LibraryFolder::new(), ImageFileServer::with_file(arm_image()).await);
    let library = Library::open(settings(&place), []).unwrap();
    let added = other_image(&server.url("a.iso"));
    library.set_added([added.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&added)).await);
    assert!(reason.ends_with(": the image is for another CPU architecture than its entry"), "{reason}");
    assert!(library.is_ready());
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_added_image_of_more_than_eight_gibibytes() {
    let place = LibraryFolder::new();
    let len = (8_u64 << 30) + 1;
    let server = ImageFileServer::new(move |_, _| {
        ImageReply::new(200, first_image()).with_header("content-length", &len.to_string())
    })
    .await;
    let library = Library::open(settings(&place), []).unwrap();
    let added = other_image(&server.url("a.iso"));
    library.set_added([added.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&added)).await);
    assert!(
        reason.contains("the file is 8589934593 bytes long; an added image may have 8589934592"),
        "{reason}"
    );
}

/// Two versions of an image have the same URL, and the removal of one version keeps the files of the other.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_another_version_with_the_same_url_are_kept() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let library = Library::open(settings(&place), []).unwrap();
    let one = OsImage { version: "416.1".to_owned(), ..other_image(&server.url("a.iso")) };
    let two = other_image(&server.url("a.iso"));
    library.set_added([one.clone(), two.clone()]);
    for image in [&one, &two] {
        within_time_limit(library.base(image)).await.unwrap();
    }
    library.set_added([two.clone()]);
    library.base_now(&two).unwrap();
    assert!(added_files(&place) == [first_image()]);
}

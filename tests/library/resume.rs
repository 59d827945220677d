//! Interrupted downloads that the library resumes, and downloads that it must not resume.

use kindling::images::library::BaseImageState;
use kindling::inventory::catalogue::OsImage;

use crate::server::{ImageFileServer, ImageReply, ReceivedRequest, ReplyGate};
use crate::support::{
    LibraryFolder, NAME, first_image, os_image, second_image, unavailability_reason, wait_for_state,
    with_digest, within_time_limit,
};

/// Starts a server that disconnects after 700,000 bytes of the first reply, and sends the given replies afterwards.
async fn disconnecting_server(
    then: impl Fn(&ReceivedRequest, usize) -> ImageReply + Send + Sync + 'static,
) -> ImageFileServer {
    ImageFileServer::new(move |request, number| match number {
        0 => ImageReply::from_file(request, first_image(), "\"one\"").close_after(700_000),
        _ => then(request, number),
    })
    .await
}

async fn assert_fetches(server: &ImageFileServer, place: &LibraryFolder) {
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    within_time_limit(library.base(&os_image)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_download_resumes() {
    let server = disconnecting_server(|request, _| {
        let reply = ImageReply::from_file(request, first_image(), "\"one\"");
        if request.range_start() < Some(1_000_000) { reply.close_after(100_000) } else { reply }
    })
    .await;
    let place = LibraryFolder::new();
    assert_fetches(&server, &place).await;
    place.assert_has_only_image(first_image());
    let starts = server.download_offsets();
    assert_eq!(starts[..2], [None, Some(700_000)]);
    assert!(starts.len() > 2 && starts.windows(2).all(|pair| pair[0] < pair[1]), "{starts:?}");
    let resumed = &server.requests()[..];
    let resumed = resumed.iter().find(|request| request.range_start() == Some(700_000)).unwrap();
    assert_eq!(resumed.header("if-range"), Some("\"one\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_version_is_fetched_from_the_start() {
    // If If-Range does not match, the server sends the whole file (RFC 9110).
    let server =
        disconnecting_server(|request, _| ImageReply::from_file(request, second_image(), "\"two\"")).await;
    let place = LibraryFolder::new();
    assert_fetches(&server, &place).await;
    place.assert_has_only_image(second_image());
    assert_eq!(server.download_offsets(), [None, Some(700_000)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_of_another_version_is_detected() {
    let server = disconnecting_server(|request, _| {
        let etag = request.header("if-range").unwrap_or("\"two\"").to_owned();
        ImageReply::from_file(request, second_image(), &etag).with_header("etag", "\"two\"")
    })
    .await;
    let place = LibraryFolder::new();
    assert_fetches(&server, &place).await;
    place.assert_has_only_image(second_image());
    assert_eq!(server.download_offsets(), [None, Some(700_000), None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shorter_version_is_fetched_from_the_start() {
    let server = disconnecting_server(|request, _| match request.range_start() {
        Some(_) => ImageReply::new(416, "").with_header("content-range", "bytes */1000"),
        None => ImageReply::from_file(request, second_image(), "\"two\""),
    })
    .await;
    let place = LibraryFolder::new();
    assert_fetches(&server, &place).await;
    place.assert_has_only_image(second_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_ranges_restarts_the_download() {
    let server =
        disconnecting_server(|_, _| ImageReply::new(200, first_image()).with_header("etag", "\"one\"")).await;
    let place = LibraryFolder::new();
    assert_fetches(&server, &place).await;
    place.assert_has_only_image(first_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_ranges_that_were_not_requested() {
    for range in ["bytes 0-99/1000", "bytes 700001-800000/9", "", "bytes"] {
        let server = disconnecting_server(move |request, _| match request.range_start() {
            Some(_) => ImageReply::new(206, first_image())
                .with_header("etag", "\"one\"")
                .with_header("content-range", range),
            None => ImageReply::from_file(request, first_image(), "\"one\""),
        })
        .await;
        let place = LibraryFolder::new();
        assert_fetches(&server, &place).await;
        place.assert_has_only_image(first_image());
        assert_eq!(server.download_offsets(), [None, Some(700_000), None], "{range:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn download_without_validators_resumes_only_with_a_digest() {
    for (etag, last_modified, sha256, can_resume) in [
        ("", "", false, false),
        ("W/\"one\"", "", false, false),
        ("W/\"one\"", "Tue, 02 Apr 2024 10:00:00 GMT", false, true),
        ("", "", true, true),
    ] {
        let server = ImageFileServer::new(move |request, number| {
            let reply = match request.range_start() {
                Some(from) if number > 0 => {
                    let len = first_image().len();
                    ImageReply::new(206, &first_image()[from..])
                        .with_header("content-range", &format!("bytes {from}-{}/{len}", len - 1))
                }
                _ => ImageReply::new(200, first_image()),
            };
            let reply = if etag.is_empty() { reply } else { reply.with_header("etag", etag) };
            let reply = if last_modified.is_empty() {
                reply
            } else {
                reply.with_header("last-modified", last_modified)
            };
            if number == 0 { reply.close_after(700_000) } else { reply }
        })
        .await;
        let place = LibraryFolder::new();
        let os_image = os_image(&server.url("a.iso"));
        let os_image = if sha256 { with_digest(os_image) } else { os_image };
        let library = place.open([os_image.clone()]);
        within_time_limit(library.base(&os_image)).await.unwrap();
        place.assert_has_only_image(first_image());
        assert_eq!(
            server.download_offsets(),
            [None, can_resume.then_some(700_000)],
            "{etag:?} {last_modified:?} {sha256}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_library_leaves_a_resumable_partial_file() {
    let gate = ReplyGate::new();
    let reply_gate = gate.clone();
    let server = ImageFileServer::new(move |request, number| {
        let reply = ImageReply::from_file(request, first_image(), "\"one\"");
        if number == 0 { reply.wait_after(500_000, &reply_gate) } else { reply }
    })
    .await;
    let place = LibraryFolder::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    wait_for_state(&library, &os_image, |state| {
        matches!(state, BaseImageState::Downloading { have: 400_000.., .. })
    })
    .await;
    drop(library);
    let library = place.open([os_image.clone()]);
    within_time_limit(library.wait_ready(&os_image)).await.unwrap();
    place.assert_has_only_image(first_image());
    assert!(
        server.download_offsets().last().unwrap().is_some_and(|from| from >= 400_000),
        "{:?}",
        server.download_offsets()
    );
}

/// Leaves the partial file of a process that dies during a download.
async fn leave_partial_file(place: &LibraryFolder, url: &str, library: impl Fn(&LibraryFolder, OsImage)) {
    let os_image = os_image(url);
    let opened = place.open_patiently([os_image.clone()]);
    unavailability_reason(within_time_limit(opened.base(&os_image)).await);
    drop(opened);
    assert_eq!(place.read(&format!("{NAME}.part")).len(), 700_000);
    library(place, os_image);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_partial_file_is_not_resumed() {
    let record = format!("{NAME}.part.json");
    let part = format!("{NAME}.part");
    type PartialFileDamage<'a> = (&'a str, Box<dyn Fn(&LibraryFolder) + Send + 'a>);
    let damages: [PartialFileDamage<'_>; 5] = [
        ("no record", Box::new(|place| std::fs::remove_file(place.file(&record)).unwrap())),
        ("damaged record", Box::new(|place| drop(place.write(&record, b"{\"url\":")))),
        ("endless record", Box::new(|place| drop(place.write(&record, &vec![b'['; 1 << 20])))),
        (
            "longer than the image",
            Box::new(|place| drop(place.write(&part, &vec![0; first_image().len() + 1]))),
        ),
        (
            "of another start of the system",
            Box::new(|place| {
                let text = String::from_utf8(place.read(&record)).unwrap();
                let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
                value["boot"] = "an earlier one".into();
                place.write(&record, value.to_string().as_bytes());
            }),
        ),
    ];
    for (name, damage) in &damages {
        let server =
            disconnecting_server(|request, _| ImageReply::from_file(request, first_image(), "\"one\"")).await;
        let place = LibraryFolder::new();
        leave_partial_file(&place, &server.url("a.iso"), |place, _| damage(place)).await;
        assert_fetches(&server, &place).await;
        place.assert_has_only_image(first_image());
        assert_eq!(server.download_offsets(), [None, None], "{name}");
    }
    // An undamaged partial file is used for the same URL, but not for another URL.
    for (path, from) in [("a.iso", Some(700_000)), ("b.iso", None)] {
        let server =
            disconnecting_server(|request, _| ImageReply::from_file(request, first_image(), "\"one\"")).await;
        let place = LibraryFolder::new();
        leave_partial_file(&place, &server.url("a.iso"), |_, _| {}).await;
        let os_image = os_image(&server.url(path));
        let library = place.open([os_image.clone()]);
        within_time_limit(library.wait_ready(&os_image)).await.unwrap();
        place.assert_has_only_image(first_image());
        assert_eq!(server.download_offsets(), [None, from], "{path}");
    }
}

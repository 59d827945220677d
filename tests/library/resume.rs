//! Downloads that break off and go on, and those that must not.

use kindling::images::OsImage;
use kindling::images::library::State;

use crate::server::{Gate, Reply, Request, Server};
use crate::support::{NAME, Place, image, os_image, other_image, reason, soon, until, with_digest};

/// Breaks off after 700,000 bytes the first time, and answers as told from then on.
async fn breaks_off(then: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Server {
    // Requests out of order are of readers, not of the download.
    Server::new(move |request, number| match number {
        0 => Reply::file(request, image(), "\"one\"").cut(700_000),
        _ if request.to().is_some() => Reply::new(503, ""),
        _ => then(request, number),
    })
    .await
}

async fn fetched(server: &Server, place: &Place) {
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    soon(library.base(&os_image)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_where_it_broke_off() {
    let server = breaks_off(|request, _| {
        let reply = Reply::file(request, image(), "\"one\"");
        if request.from() < Some(1_000_000) { reply.cut(100_000) } else { reply }
    })
    .await;
    let place = Place::new();
    fetched(&server, &place).await;
    place.assert_holds(image());
    let starts = server.downloads();
    assert_eq!(starts[..2], [None, Some(700_000)]);
    assert!(starts.len() > 2 && starts.windows(2).all(|pair| pair[0] < pair[1]), "{starts:?}");
    let resumed = &server.requests()[..];
    let resumed = resumed.iter().find(|request| request.from() == Some(700_000)).unwrap();
    assert_eq!(resumed.header("if-range"), Some("\"one\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_version_is_fetched_from_the_start() {
    // As the standard says: If-Range does not match, all is sent.
    let server = breaks_off(|request, _| Reply::file(request, other_image(), "\"two\"")).await;
    let place = Place::new();
    fetched(&server, &place).await;
    place.assert_holds(other_image());
    assert_eq!(server.downloads(), [None, Some(700_000)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sends_the_rest_of_another_version_is_caught() {
    let server = breaks_off(|request, _| {
        let etag = request.header("if-range").unwrap_or("\"two\"").to_owned();
        Reply::file(request, other_image(), &etag).header("etag", "\"two\"")
    })
    .await;
    let place = Place::new();
    fetched(&server, &place).await;
    place.assert_holds(other_image());
    assert_eq!(server.downloads(), [None, Some(700_000), None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_version_is_fetched_from_the_start() {
    let server = breaks_off(|request, _| match request.from() {
        Some(_) => Reply::new(416, "").header("content-range", "bytes */1000"),
        None => Reply::file(request, other_image(), "\"two\""),
    })
    .await;
    let place = Place::new();
    fetched(&server, &place).await;
    place.assert_holds(other_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_ranges_sends_all_of_it_again() {
    let server = breaks_off(|_, _| Reply::new(200, image()).header("etag", "\"one\"")).await;
    let place = Place::new();
    fetched(&server, &place).await;
    place.assert_holds(image());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_ranges_than_the_one_that_was_asked_for_are_refused() {
    for range in ["bytes 0-99/1000", "bytes 700001-800000/9", "", "bytes"] {
        let server = breaks_off(move |request, _| match request.from() {
            Some(_) => Reply::new(206, image()).header("etag", "\"one\"").header("content-range", range),
            None => Reply::file(request, image(), "\"one\""),
        })
        .await;
        let place = Place::new();
        fetched(&server, &place).await;
        place.assert_holds(image());
        assert_eq!(server.downloads(), [None, Some(700_000), None], "{range:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anything_to_tell_versions_apart_by_only_the_digest_allows_to_go_on() {
    for (etag, last_modified, sha256, can_resume) in [
        ("", "", false, false),
        ("W/\"one\"", "", false, false),
        ("W/\"one\"", "Tue, 02 Apr 2024 10:00:00 GMT", false, true),
        ("", "", true, true),
    ] {
        let server = Server::new(move |request, number| {
            let reply = match request.from() {
                Some(from) if number > 0 => {
                    let len = image().len();
                    Reply::new(206, &image()[from..])
                        .header("content-range", &format!("bytes {from}-{}/{len}", len - 1))
                }
                _ => Reply::new(200, image()),
            };
            let reply = if etag.is_empty() { reply } else { reply.header("etag", etag) };
            let reply =
                if last_modified.is_empty() { reply } else { reply.header("last-modified", last_modified) };
            match (number, request.to()) {
                (0, _) => reply.cut(700_000),
                (_, Some(_)) => Reply::new(503, ""),
                _ => reply,
            }
        })
        .await;
        let place = Place::new();
        let os_image = os_image(&server.url("a.iso"));
        let os_image = if sha256 { with_digest(os_image) } else { os_image };
        let library = place.open([os_image.clone()]);
        soon(library.base(&os_image)).await.unwrap();
        place.assert_holds(image());
        assert_eq!(
            server.downloads(),
            [None, can_resume.then_some(700_000)],
            "{etag:?} {last_modified:?} {sha256}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_library_that_is_closed_leaves_what_the_next_one_goes_on_with() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::new(move |request, number| {
        let reply = Reply::file(request, image(), "\"one\"");
        if number == 0 { reply.hold(500_000, &held) } else { reply }
    })
    .await;
    let place = Place::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    until(&library, &os_image, |state| matches!(state, State::Downloading { have: 400_000.., .. })).await;
    drop(library);
    let library = place.open([os_image.clone()]);
    soon(library.wait_ready(&os_image)).await.unwrap();
    place.assert_holds(image());
    assert!(
        server.downloads().last().unwrap().is_some_and(|from| from >= 400_000),
        "{:?}",
        server.downloads()
    );
}

/// What is left of a download when a process dies.
async fn left_over(place: &Place, url: &str, library: impl Fn(&Place, OsImage)) {
    let os_image = os_image(url);
    let opened = place.open_patiently([os_image.clone()]);
    reason(soon(opened.base(&os_image)).await);
    drop(opened);
    assert_eq!(place.read(&format!("{NAME}.part")).len(), 700_000);
    library(place, os_image);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_only_used_for_what_it_is_a_part_of() {
    let record = format!("{NAME}.part.json");
    let part = format!("{NAME}.part");
    type Damage<'a> = (&'a str, Box<dyn Fn(&Place) + Send + 'a>);
    let damages: [Damage<'_>; 5] = [
        ("no record", Box::new(|place| std::fs::remove_file(place.file(&record)).unwrap())),
        ("damaged record", Box::new(|place| drop(place.write(&record, b"{\"url\":")))),
        ("endless record", Box::new(|place| drop(place.write(&record, &vec![b'['; 1 << 20])))),
        ("longer than the image", Box::new(|place| drop(place.write(&part, &vec![0; image().len() + 1])))),
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
        let server = breaks_off(|request, _| Reply::file(request, image(), "\"one\"")).await;
        let place = Place::new();
        left_over(&place, &server.url("a.iso"), |place, _| damage(place)).await;
        fetched(&server, &place).await;
        place.assert_holds(image());
        assert_eq!(server.downloads(), [None, None], "{name}");
    }
    // And without any damage, it is used; from elsewhere it is not.
    for (path, from) in [("a.iso", Some(700_000)), ("b.iso", None)] {
        let server = breaks_off(|request, _| Reply::file(request, image(), "\"one\"")).await;
        let place = Place::new();
        left_over(&place, &server.url("a.iso"), |_, _| {}).await;
        let os_image = os_image(&server.url(path));
        let library = place.open([os_image.clone()]);
        soon(library.wait_ready(&os_image)).await.unwrap();
        place.assert_holds(image());
        assert_eq!(server.downloads(), [None, from], "{path}");
    }
}

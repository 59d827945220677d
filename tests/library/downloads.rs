//! Downloads that end well, what is asked of servers, and what is told meanwhile.

use std::time::Duration;

use isogen::Digest;
use kindling::images::library::{Library, NotReady, State, When};
use kindling::images::{CpuArchitecture, OsImage};

use crate::server::{Gate, Reply, Server};
use crate::support::{NAME, Place, image, os_image, reason, soon, until, with_digest};

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_fetched_once_and_known_from_then_on() {
    let (server, place) = (Server::of(image()).await, Place::new());
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open([os_image.clone()]);
    let base = soon(library.base(&os_image)).await.unwrap();
    assert_eq!(base.digest(), Some(Digest::of(image())));
    assert_eq!(base.image().source().digest().unwrap(), Digest::of(image()));
    assert!(base.is_complete() && base.changed_at().is_some() && library.is_ready());
    assert!(base.image().source().as_file().is_some(), "it can be mapped");
    let ready = State::Ready { len: image().len() as u64, digest: Digest::of(image()) };
    assert_eq!(library.state(&os_image), Some(ready.clone()));
    let states = library.states();
    assert_eq!((states.len(), &states[0].name[..], &states[0].state), (1, NAME, &ready));
    place.assert_holds(image());

    drop(library);
    let library = place.open([os_image.clone()]);
    soon(library.ready()).await;
    assert_eq!(library.state(&os_image), Some(ready));
    assert_eq!(server.downloads(), [None], "one download, nothing asked to know it again");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_parameters_go_to_the_server_of_the_catalogue_alone() {
    let storage = Server::of(image()).await;
    let target = storage.url("blob?signature=1");
    let mirror = Server::new(move |request, _| match &request.target[..] {
        "/a.iso?x=1&key=k%26%26&user=me" => Reply::new(302, "").header("location", "/moved.iso"),
        "/moved.iso" => Reply::new(307, "").header("location", &target),
        other => Reply::new(400, other),
    })
    .await;
    let place = Place::new();
    let mut settings = place.settings();
    settings.request_headers = [("X-Key".to_owned(), "s3cret".to_owned())].into();
    settings.request_query =
        [("key".to_owned(), "k&&".to_owned()), ("user".to_owned(), "me".to_owned())].into();
    let url = mirror.url("a.iso?x=1").replace("http://", "http://anna:s3cret@");
    let os_image = os_image(&url);
    let library = Library::open(settings, [os_image.clone()]).unwrap();
    soon(library.base(&os_image)).await.unwrap();

    let asked = mirror.requests();
    assert_eq!(mirror.downloads(), [None, None]);
    assert!(asked.iter().all(|request| request.header("x-key") == Some("s3cret")));
    assert_eq!(asked[0].header("authorization"), Some("Basic YW5uYTpzM2NyZXQ="));
    assert_eq!(asked[0].header("accept-encoding"), Some("identity"));
    let asked = storage.requests();
    assert_eq!((storage.downloads(), &asked[0].target[..]), (vec![None], "/blob?signature=1"));
    assert_eq!((asked[0].header("x-key"), asked[0].header("authorization")), (None, None));
    let record = String::from_utf8(place.read(&format!("{NAME}.json"))).unwrap();
    assert!(!record.contains("s3cret") && !record.contains("x=1") && !record.contains("k%26"), "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_told_and_those_who_wait_are_served_by_one_download() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::new(move |request, number| {
        let reply = Reply::file(request, image(), "\"one\"");
        if number == 0 { reply.hold(600_000, &held) } else { Reply::new(503, "") }
    })
    .await;
    let place = Place::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let total = image().len() as u64;
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (library, os_image) = (library.clone(), os_image.clone());
            tokio::spawn(async move { library.base(&os_image).await })
        })
        .collect();
    let state =
        until(&library, &os_image, |state| matches!(state, State::Downloading { have: 1.., .. })).await;
    let State::Downloading { have, total: told } = state else { unreachable!() };
    assert_eq!(told, Some(total));
    assert!(have <= 600_000);
    assert!(!library.is_ready());
    assert_eq!(library.base_now(&os_image).unwrap_err(), NotReady::OnItsWay { image: NAME.to_owned() });
    assert!(!place.names().contains(NAME), "what is not whole does not bear the name");
    gate.open();
    for waiting in waiting {
        assert_eq!(soon(waiting).await.unwrap().unwrap().digest(), Some(Digest::of(image())));
    }
    library.base_now(&os_image).unwrap();
    assert_eq!(server.downloads(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_fails_holds_up_no_other() {
    let good = Server::of(image()).await;
    let bad = Server::new(|_, _| Reply::new(404, "")).await;
    let never = Gate::new();
    let silent = Server::new(move |_, _| Reply::new(200, image()).hold(0, &never)).await;
    let place = Place::new();
    let of = |version: &str, url: String| OsImage { version: version.to_owned(), ..os_image(&url) };
    let mut images = vec![of("1", bad.url("a")), of("2", silent.url("b")), of("3", bad.url("c"))];
    images.push(of("4", good.url("d")));
    let mut settings = place.settings();
    settings.parallel_downloads = 2;
    settings.stall = Duration::from_millis(200);
    let library = Library::open(settings, images.clone()).unwrap();
    soon(library.wait_ready(&images[3])).await.unwrap();
    assert!(!library.is_ready());
    let told = reason(soon(library.base(&images[0])).await);
    assert!(told.contains("status 404"), "{told}");
    let of_nobody = of("5", good.url("e"));
    assert_eq!(library.state(&of_nobody), None);
    let image = "rhcos-full-iso-5-x86_64.iso".to_owned();
    assert_eq!(library.base_now(&of_nobody).unwrap_err(), NotReady::Unknown { image });
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_are_fetched_at_a_time_than_may_be() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::new(move |request, _| match request.header("range") {
        None => Reply::file(request, image(), "\"one\"").hold(10_000, &held),
        Some(_) => Reply::new(503, ""),
    })
    .await;
    let place = Place::new();
    let images: Vec<OsImage> = (0..7)
        .map(|number| OsImage { version: format!("{number}"), ..os_image(&server.url(&number.to_string())) })
        .collect();
    let library = place.open(images.clone());
    server.asked(3).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.requests().len(), 3);
    gate.open();
    soon(library.ready()).await;
    assert_eq!(library.states().len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_first_use_nothing_is_fetched_before_somebody_asks() {
    let (server, place) = (Server::of(image()).await, Place::new());
    let mut settings = place.settings();
    settings.when = When::OnFirstUse;
    let wanted = os_image(&server.url("a.iso"));
    let other = OsImage { cpu_architecture: CpuArchitecture::Arm64, ..wanted.clone() };
    let library = Library::open(settings, [wanted.clone(), other.clone()]).unwrap();
    soon(library.ready()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((server.requests().len(), library.state(&wanted)), (0, Some(State::Absent)));
    assert!(matches!(library.base_now(&wanted), Err(NotReady::OnItsWay { .. })));
    soon(library.base(&wanted)).await.unwrap();
    assert_eq!((server.downloads(), library.state(&other)), (vec![None], Some(State::Absent)));
    assert!(library.is_ready());
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_the_same_image_are_one() {
    let (old, new) = (Server::of(image()).await, Server::of(image()).await);
    let place = Place::new();
    let of = |version: &str, server: &Server| OsImage {
        openshift_version: version.to_owned(),
        ..os_image(&server.url("a.iso"))
    };
    let images = [of("4.9", &old), of("4.10", &new), of("4.8", &old)];
    let library = place.open(images.clone());
    soon(library.ready()).await;
    assert_eq!(library.states().len(), 1);
    assert_eq!(library.states()[0].image, images[1]);
    for image in &images {
        library.base_now(image).unwrap();
    }
    assert_eq!((old.requests().len(), new.downloads()), (0, vec![None]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_not_there_yet_is_fetched_when_it_is() {
    let server = Server::new(|request, number| match number {
        0..3 => Reply::new(404, "not yet"),
        3..5 => Reply::new(503, "busy"),
        _ => Reply::file(request, image(), "\"one\""),
    })
    .await;
    let place = Place::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let told = reason(soon(library.base(&os_image)).await);
    assert_eq!(told, format!("{NAME} from {}: the server answered with status 404", server.url("a.iso")));
    soon(library.wait_ready(&os_image)).await.unwrap();
    place.assert_holds(image());
}

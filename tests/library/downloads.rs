//! Successful downloads: the requests to servers, and the reported progress.

use std::time::Duration;

use isogen::Digest;
use kindling::images::library::{BaseImageState, DownloadTiming, ImageNotReady, Library};
use kindling::inventory::catalogue::{CpuArchitecture, OsImage};

use crate::server::{ImageFileServer, ImageReply, ReplyGate};
use crate::support::{
    LibraryFolder, NAME, first_image, os_image, unavailability_reason, wait_for_state, with_digest,
    within_time_limit,
};

#[tokio::test(flavor = "multi_thread")]
async fn image_is_fetched_once() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.base(&os_image)).await.unwrap();
    assert_eq!(base.digest(), Digest::from_data(first_image()));
    assert_eq!(base.image().source().digest().unwrap(), Digest::from_data(first_image()));
    assert!(base.changed_at().is_some() && library.is_ready());
    assert!(base.image().source().as_file().is_some(), "the file can be mapped");
    let ready =
        BaseImageState::Ready { len: first_image().len() as u64, digest: Digest::from_data(first_image()) };
    assert_eq!(library.state(&os_image), Some(ready.clone()));
    let states = library.states();
    assert_eq!((states.len(), &states[0].name[..], &states[0].state), (1, NAME, &ready));
    place.assert_has_only_image(first_image());

    drop(library);
    let library = place.open([os_image.clone()]);
    within_time_limit(library.wait_all_ready()).await;
    assert_eq!(library.state(&os_image), Some(ready));
    assert_eq!(server.download_offsets(), [None], "expected one request: the restart needs none");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_query_go_only_to_the_configured_server() {
    let storage = ImageFileServer::with_file(first_image()).await;
    let target = storage.url("blob?signature=1");
    let mirror = ImageFileServer::new(move |request, _| match &request.target[..] {
        "/a.iso?x=1&key=k%26%26&user=me" => ImageReply::new(302, "").with_header("location", "/moved.iso"),
        "/moved.iso" => ImageReply::new(307, "").with_header("location", &target),
        other => ImageReply::new(400, other),
    })
    .await;
    let place = LibraryFolder::new();
    let mut settings = place.settings();
    settings.request_headers = [("X-Key".to_owned(), "s3cret".to_owned())].into();
    settings.request_query =
        [("key".to_owned(), "k&&".to_owned()), ("user".to_owned(), "me".to_owned())].into();
    let url = mirror.url("a.iso?x=1").replace("http://", "http://anna:s3cret@");
    let os_image = os_image(&url);
    let library = Library::open(settings, [os_image.clone()]).unwrap();
    within_time_limit(library.base(&os_image)).await.unwrap();

    let requests = mirror.requests();
    assert_eq!(mirror.download_offsets(), [None, None]);
    assert!(requests.iter().all(|request| request.header("x-key") == Some("s3cret")));
    assert_eq!(requests[0].header("authorization"), Some("Basic YW5uYTpzM2NyZXQ="));
    assert_eq!(requests[0].header("accept-encoding"), Some("identity"));
    let requests = storage.requests();
    assert_eq!((storage.download_offsets(), &requests[0].target[..]), (vec![None], "/blob?signature=1"));
    assert_eq!((requests[0].header("x-key"), requests[0].header("authorization")), (None, None));
    let record = String::from_utf8(place.read(&format!("{NAME}.json"))).unwrap();
    assert!(!record.contains("s3cret") && !record.contains("x=1") && !record.contains("k%26"), "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_callers_share_one_download_with_progress() {
    let gate = ReplyGate::new();
    let reply_gate = gate.clone();
    let server = ImageFileServer::new(move |request, number| {
        let reply = ImageReply::from_file(request, first_image(), "\"one\"");
        if number == 0 { reply.wait_after(600_000, &reply_gate) } else { ImageReply::new(503, "") }
    })
    .await;
    let place = LibraryFolder::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let total = first_image().len() as u64;
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (library, os_image) = (library.clone(), os_image.clone());
            tokio::spawn(async move { library.base(&os_image).await })
        })
        .collect();
    let state = wait_for_state(&library, &os_image, |state| {
        matches!(state, BaseImageState::Downloading { have: 1.., .. })
    })
    .await;
    let BaseImageState::Downloading { have, total: total_len } = state else { unreachable!() };
    assert_eq!(total_len, Some(total));
    assert!(have <= 600_000);
    assert!(!library.is_ready());
    assert_eq!(library.base_now(&os_image).unwrap_err(), ImageNotReady::OnItsWay { image: NAME.to_owned() });
    assert!(!place.names().contains(NAME), "an incomplete file has the final name");
    gate.open();
    for waiting in waiting {
        assert_eq!(
            within_time_limit(waiting).await.unwrap().unwrap().digest(),
            Digest::from_data(first_image())
        );
    }
    library.base_now(&os_image).unwrap();
    assert_eq!(server.download_offsets(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_image_does_not_delay_others() {
    let good = ImageFileServer::with_file(first_image()).await;
    let bad = ImageFileServer::new(|_, _| ImageReply::new(404, "")).await;
    let never = ReplyGate::new();
    let silent =
        ImageFileServer::new(move |_, _| ImageReply::new(200, first_image()).wait_after(0, &never)).await;
    let place = LibraryFolder::new();
    let of = |version: &str, url: String| OsImage { version: version.to_owned(), ..os_image(&url) };
    let mut images = vec![of("1", bad.url("a")), of("2", silent.url("b")), of("3", bad.url("c"))];
    images.push(of("4", good.url("d")));
    let mut settings = place.settings();
    settings.parallel_downloads = 2;
    settings.stall = Duration::from_millis(200);
    let library = Library::open(settings, images.clone()).unwrap();
    within_time_limit(library.wait_ready(&images[3])).await.unwrap();
    assert!(!library.is_ready());
    let reason = unavailability_reason(within_time_limit(library.base(&images[0])).await);
    assert!(reason.contains("status 404"), "{reason}");
    let of_nobody = of("5", good.url("e"));
    assert_eq!(library.state(&of_nobody), None);
    let image = "rhcos-full-iso-5-x86_64.iso".to_owned();
    assert_eq!(library.base_now(&of_nobody).unwrap_err(), ImageNotReady::Unknown { image });
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_downloads_are_limited() {
    let gate = ReplyGate::new();
    let reply_gate = gate.clone();
    let server = ImageFileServer::new(move |request, _| match request.header("range") {
        None => ImageReply::from_file(request, first_image(), "\"one\"").wait_after(10_000, &reply_gate),
        Some(_) => ImageReply::new(503, ""),
    })
    .await;
    let place = LibraryFolder::new();
    let images: Vec<OsImage> = (0..7)
        .map(|number| OsImage { version: format!("{number}"), ..os_image(&server.url(&number.to_string())) })
        .collect();
    let library = place.open(images.clone());
    server.wait_for_requests(3).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.requests().len(), 3);
    gate.open();
    within_time_limit(library.wait_all_ready()).await;
    assert_eq!(library.states().len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_first_use_fetches_on_the_first_request() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let mut settings = place.settings();
    settings.when = DownloadTiming::OnFirstUse;
    let requested_image = os_image(&server.url("a.iso"));
    let other = OsImage { cpu_architecture: CpuArchitecture::Arm64, ..requested_image.clone() };
    let library = Library::open(settings, [requested_image.clone(), other.clone()]).unwrap();
    within_time_limit(library.wait_all_ready()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((server.requests().len(), library.state(&requested_image)), (0, Some(BaseImageState::Absent)));
    assert!(matches!(library.base_now(&requested_image), Err(ImageNotReady::OnItsWay { .. })));
    within_time_limit(library.base(&requested_image)).await.unwrap();
    assert_eq!(
        (server.download_offsets(), library.state(&other)),
        (vec![None], Some(BaseImageState::Absent))
    );
    assert!(library.is_ready());
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_the_same_image_share_one_file() {
    let (old, new) =
        (ImageFileServer::with_file(first_image()).await, ImageFileServer::with_file(first_image()).await);
    let place = LibraryFolder::new();
    let of = |version: &str, server: &ImageFileServer| OsImage {
        openshift_version: version.to_owned(),
        ..os_image(&server.url("a.iso"))
    };
    let images = [of("4.9", &old), of("4.10", &new), of("4.8", &old)];
    let library = place.open(images.clone());
    within_time_limit(library.wait_all_ready()).await;
    assert_eq!(library.states().len(), 1);
    assert_eq!(library.states()[0].image, images[1]);
    for image in &images {
        library.base_now(image).unwrap();
    }
    assert_eq!((old.requests().len(), new.download_offsets()), (0, vec![None]));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_image_is_fetched_after_its_publication() {
    let server = ImageFileServer::new(|request, number| match number {
        0..3 => ImageReply::new(404, "not yet"),
        3..5 => ImageReply::new(503, "busy"),
        _ => ImageReply::from_file(request, first_image(), "\"one\""),
    })
    .await;
    let place = LibraryFolder::new();
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&os_image)).await);
    assert_eq!(reason, format!("{NAME} from {}: the server responded with status 404", server.url("a.iso")));
    within_time_limit(library.wait_ready(&os_image)).await.unwrap();
    place.assert_has_only_image(first_image());
}

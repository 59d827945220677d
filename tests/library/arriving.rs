//! Images that are used while they come.

use isogen::{Digest, Extent, Plan};
use kindling::images::library::State;

use crate::server::{Gate, Reply, Server};
use crate::support::{Place, image, os_image, other_image, reason, soon, until, with_digest};

/// A server that stops after 300,000 bytes until the gate opens, with or without ranges.
async fn slow(bytes: &'static [u8], has_ranges: bool, gate: &Gate) -> Server {
    let held = gate.clone();
    Server::new(move |request, _| match (request.to(), has_ranges) {
        (Some(_), true) => Reply::file(request, bytes, "\"one\""),
        (Some(_), false) => Reply::new(501, ""),
        (None, _) => Reply::file(request, bytes, "\"one\"").hold(300_000, &held),
    })
    .await
}

fn read(plan: &Plan, offset: usize, len: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut read = 0;
    while read < len {
        match plan.read_at(&mut bytes[read..], (offset + read) as u64)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            more => read += more,
        }
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_opened_before_it_is_there_and_read_as_it_comes() {
    let (gate, place) = (Gate::new(), Place::new());
    let server = slow(image(), true, &gate).await;
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open([os_image.clone()]);
    let base = soon(library.early_base(&os_image)).await.unwrap();
    assert!(!base.is_complete() && !library.is_ready());
    assert_eq!(base.digest(), Some(Digest::of(image())), "the catalogue tells it");
    assert!(base.image().source().as_file().is_none(), "nothing maps what is not there");
    let plan = base.image().plan(&isogen::Edits::new()).unwrap();
    plan.identity().unwrap();
    assert!(read(&plan, 0, 200_000).unwrap() == image()[..200_000]);

    let len = image().len();
    let whole = tokio::task::spawn_blocking(move || read(&plan, 0, len));
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(!whole.is_finished());
    gate.open();
    assert!(soon(whole).await.unwrap().unwrap() == image());
    assert!(soon(library.base(&os_image)).await.unwrap().is_complete());
    assert!(soon(library.early_base(&os_image)).await.unwrap().is_complete());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_ranges_is_waited_for() {
    let (gate, place) = (Gate::new(), Place::new());
    let server = slow(image(), false, &gate).await;
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    until(&library, &os_image, |state| matches!(state, State::Downloading { have: 200_000.., .. })).await;
    let waiting = {
        let (library, os_image) = (library.clone(), os_image.clone());
        tokio::spawn(async move { library.early_base(&os_image).await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(!waiting.is_finished());
    gate.open();
    soon(waiting).await.unwrap().unwrap();
    soon(library.base(&os_image)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reader_gets_all_of_an_image_that_turns_out_bad() {
    let (gate, place) = (Gate::new(), Place::new());
    let server = slow(other_image(), true, &gate).await;
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open_patiently([os_image.clone()]);
    let base = soon(library.early_base(&os_image)).await.unwrap();
    let last = Extent::new(image().len() as u64 - 1, 1).unwrap();
    let end = std::sync::Arc::clone(base.image().source());
    let end = tokio::task::spawn_blocking(move || end.read_extent(last));
    gate.open();
    let error = soon(end).await.unwrap().unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("the image"), "{error}");
    let told = reason(soon(library.base(&os_image)).await);
    assert!(told.contains("the catalogue asks for"), "{told}");
    assert!(base.image().source().read_extent(Extent::new(0, 1).unwrap()).is_err());
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_fail_with_the_library() {
    let (gate, place) = (Gate::new(), Place::new());
    let server = slow(image(), true, &gate).await;
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = soon(library.early_base(&os_image)).await.unwrap();
    assert_eq!(base.digest(), None, "nobody knows it yet");
    let source = std::sync::Arc::clone(base.image().source());
    let digest = tokio::task::spawn_blocking(move || source.digest());
    drop((library, base));
    let error = soon(digest).await.unwrap().unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("given up"), "{error}");
}

//! Images that are used while they come.

use std::sync::Arc;

use isogen::{Digest, Extent};
use kindling::images::library::{Base, State};

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

/// Reads what there is already, and waits for everything else.
async fn read(base: &Base, extent: Extent) -> isogen::Result<Vec<u8>> {
    loop {
        match base.image().source().read_extent(extent) {
            Err(error) if error.would_block_at().is_some() => {
                if let Some(available) = base.available(extent) {
                    available.await;
                }
            }
            outcome => return outcome,
        }
    }
}

fn extent(offset: usize, len: usize) -> Extent {
    Extent::new(offset as u64, len as u64).unwrap()
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
    base.image().plan(&isogen::Edits::new()).unwrap().identity().unwrap();
    let source = Arc::clone(base.image().source());
    assert!(source.read_extent(extent(0, 200_000)).unwrap() == image()[..200_000]);

    let whole = tokio::spawn(async move { read(&base, extent(0, image().len())).await });
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
    let reader = Arc::clone(&base);
    let end = tokio::spawn(async move { read(&reader, extent(image().len() - 1, 1)).await });
    gate.open();
    let error = soon(end).await.unwrap().unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("the image"), "{error}");
    let told = reason(soon(library.base(&os_image)).await);
    assert!(told.contains("the catalogue asks for"), "{told}");
    assert!(base.image().source().read_extent(extent(0, 1)).is_err());
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
    let source = Arc::clone(base.image().source());
    assert!(source.digest().unwrap_err().would_block_at().is_some());
    let all = base.available(extent(0, image().len())).unwrap();
    drop((library, base));
    soon(all).await;
    let error = source.digest().unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("given up"), "{error}");
}

//! Images that are read during their download.

use std::sync::Arc;

use isogen::{Digest, Extent};
use kindling::images::library::{BaseImageState, OpenBaseImage};

use crate::server::{ImageFileServer, ImageReply, ReplyGate};
use crate::support::{
    LibraryFolder, first_image, os_image, second_image, unavailability_reason, wait_for_state, with_digest,
    within_time_limit,
};

/// A server that stops after 300,000 bytes until the gate opens, with or without ranges.
async fn stopping_server(bytes: &'static [u8], has_ranges: bool, gate: &ReplyGate) -> ImageFileServer {
    let held = gate.clone();
    ImageFileServer::new(move |request, _| match (request.range_end(), has_ranges) {
        (Some(_), true) => ImageReply::from_file(request, bytes, "\"one\""),
        (Some(_), false) => ImageReply::new(501, ""),
        (None, _) => ImageReply::from_file(request, bytes, "\"one\"").wait_after(300_000, &held),
    })
    .await
}

/// Reads the available bytes, and waits for all others.
async fn read_when_available(base: &OpenBaseImage, extent: Extent) -> isogen::Result<Vec<u8>> {
    loop {
        match base.image().source().read_extent(extent) {
            Err(error) if error.would_block_at().is_some() => {
                if let Some(available) = base.when_available(extent) {
                    available.await;
                }
            }
            outcome => return outcome,
        }
    }
}

fn extent_at(offset: usize, len: usize) -> Extent {
    Extent::new(offset as u64, len as u64).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn image_is_opened_and_read_during_its_download() {
    let (gate, place) = (ReplyGate::new(), LibraryFolder::new());
    let server = stopping_server(first_image(), true, &gate).await;
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.early_base(&os_image)).await.unwrap();
    assert!(!base.is_complete() && !library.is_ready());
    assert_eq!(base.digest(), Some(Digest::from_data(first_image())), "the catalogue has the digest");
    assert!(base.image().source().as_file().is_none(), "missing bytes are not mapped");
    base.image().plan(&isogen::Edits::new()).unwrap().identity().unwrap();
    let source = Arc::clone(base.image().source());
    assert!(source.read_extent(extent_at(0, 200_000)).unwrap() == first_image()[..200_000]);

    let whole =
        tokio::spawn(async move { read_when_available(&base, extent_at(0, first_image().len())).await });
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(!whole.is_finished());
    gate.open();
    assert!(within_time_limit(whole).await.unwrap().unwrap() == first_image());
    assert!(within_time_limit(library.base(&os_image)).await.unwrap().is_complete());
    assert!(within_time_limit(library.early_base(&os_image)).await.unwrap().is_complete());
}

#[tokio::test(flavor = "multi_thread")]
async fn reader_waits_for_a_server_without_ranges() {
    let (gate, place) = (ReplyGate::new(), LibraryFolder::new());
    let server = stopping_server(first_image(), false, &gate).await;
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    wait_for_state(&library, &os_image, |state| {
        matches!(state, BaseImageState::Downloading { have: 200_000.., .. })
    })
    .await;
    let waiting = {
        let (library, os_image) = (library.clone(), os_image.clone());
        tokio::spawn(async move { library.early_base(&os_image).await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(!waiting.is_finished());
    gate.open();
    within_time_limit(waiting).await.unwrap().unwrap();
    within_time_limit(library.base(&os_image)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_never_get_all_bytes_of_a_bad_image() {
    let (gate, place) = (ReplyGate::new(), LibraryFolder::new());
    let server = stopping_server(second_image(), true, &gate).await;
    let os_image = with_digest(os_image(&server.url("a.iso")));
    let library = place.open_patiently([os_image.clone()]);
    let base = within_time_limit(library.early_base(&os_image)).await.unwrap();
    let reader = Arc::clone(&base);
    let end =
        tokio::spawn(
            async move { read_when_available(&reader, extent_at(first_image().len() - 1, 1)).await },
        );
    gate.open();
    let error = within_time_limit(end).await.unwrap().unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("the image"), "{error}");
    let told = unavailability_reason(within_time_limit(library.base(&os_image)).await);
    assert!(told.contains("the catalogue has"), "{told}");
    assert!(base.image().source().read_extent(extent_at(0, 1)).is_err());
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_fail_when_the_library_closes() {
    let (gate, place) = (ReplyGate::new(), LibraryFolder::new());
    let server = stopping_server(first_image(), true, &gate).await;
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.early_base(&os_image)).await.unwrap();
    assert_eq!(base.digest(), None, "the digest is not known yet");
    let source = Arc::clone(base.image().source());
    assert!(source.digest().unwrap_err().would_block_at().is_some());
    let all = base.when_available(extent_at(0, first_image().len())).unwrap();
    drop((library, base));
    within_time_limit(all).await;
    let error = source.digest().unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("cancelled"), "{error}");
}

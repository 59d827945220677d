//! `miniso.dat` of base images, which the library verifies once. The record contains the result, next to the SHA-256
//! digest.

use std::fs;

use fixtures::{Architecture, Era, Recipe};
use isogen::{Digest, Edits, LayoutStrategy};
use kindling::images::library::OpenBaseImage;
use serde_json::{Value, json};

use crate::server::{ImageFileServer, ImageReply};
use crate::support::{LibraryFolder, NAME, first_image, os_image, within_time_limit};

const RECORD: &str = "rhcos-full-iso-414.92.1-x86_64.iso.json";
const UNDESCRIBED: LayoutStrategy = LayoutStrategy::Relayout("the image does not describe its minimal form");
const WRONG: LayoutStrategy =
    LayoutStrategy::Relayout("the image's description of its minimal form is wrong");

/// Changes one byte of the image's initrd, which is also part of the minimal ISO.
fn image_with_wrong_description() -> Vec<u8> {
    let initrd = Recipe::new(Architecture::X86_64, Era::E2024_12).master().files["images/pxeboot/initrd.img"];
    let mut bytes = first_image().to_vec();
    bytes[usize::try_from(initrd.offset).unwrap() + 200] ^= 1;
    bytes
}

fn image_without_description() -> Vec<u8> {
    Recipe::new(Architecture::X86_64, Era::E2021_01).build()
}

/// Returns the layout of a base image's minimal ISO.
fn minimal_layout(base: &OpenBaseImage) -> LayoutStrategy {
    base.image().layout_strategy(&Edits::new().minimal(Some("http://192.0.2.1/rootfs.img"))).unwrap()
}

/// Opens the image in a directory or at a server.
async fn open_image(place: &LibraryFolder, server: &ImageFileServer) -> (LayoutStrategy, Digest) {
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.base(&os_image)).await.unwrap();
    (minimal_layout(&base), base.digest())
}

fn read_record(place: &LibraryFolder) -> Value {
    serde_json::from_slice(&place.read(RECORD)).unwrap()
}

fn change_record(place: &LibraryFolder, key: &str, value: Value) {
    let mut record = read_record(place);
    record[key] = value;
    place.write(RECORD, &serde_json::to_vec(&record).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn minimal_description_is_checked_while_hashing_and_recorded() {
    for (bytes, strategy) in [
        (first_image().to_vec(), LayoutStrategy::DescribedMinimal),
        (image_with_wrong_description(), WRONG),
        (image_without_description(), UNDESCRIBED),
    ] {
        let server = ImageFileServer::with_file(&bytes).await;
        for is_downloaded in [true, false] {
            let place = LibraryFolder::new();
            if !is_downloaded {
                place.write(NAME, &bytes);
            }
            assert_eq!(
                open_image(&place, &server).await,
                (strategy, Digest::from_data(&bytes)),
                "{is_downloaded}"
            );
            assert_eq!(
                read_record(&place)["minimal_verified"],
                json!(strategy == LayoutStrategy::DescribedMinimal),
                "{strategy}"
            );
        }
    }
}

/// A false result in the record shows that the library uses the record.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_result_is_used_at_the_next_start() {
    let server = ImageFileServer::new(|_, _| ImageReply::new(500, "")).await;
    for (bytes, lie, strategy) in [
        (first_image().to_vec(), false, WRONG),
        (image_with_wrong_description(), true, LayoutStrategy::DescribedMinimal),
    ] {
        let place = LibraryFolder::new();
        place.write(NAME, &bytes);
        open_image(&place, &server).await;
        assert_eq!(read_record(&place)["minimal_verified"], json!(!lie));
        change_record(&place, "minimal_verified", json!(lie));
        let before = place.read(RECORD);
        assert_eq!(open_image(&place, &server).await.0, strategy);
        assert!(place.read(RECORD) == before, "the record was written again");
    }
}

/// A false SHA-256 digest shows that the library does not hash the file again.
#[tokio::test(flavor = "multi_thread")]
async fn record_of_an_earlier_release_is_completed_without_hashing() {
    let server = ImageFileServer::new(|_, _| ImageReply::new(500, "")).await;
    for (bytes, strategy) in
        [(first_image().to_vec(), LayoutStrategy::DescribedMinimal), (image_with_wrong_description(), WRONG)]
    {
        let place = LibraryFolder::new();
        place.write(NAME, &bytes);
        open_image(&place, &server).await;
        let mut earlier = read_record(&place);
        earlier.as_object_mut().unwrap().remove("minimal_verified").unwrap();
        place.write(RECORD, &serde_json::to_vec(&earlier).unwrap());
        change_record(&place, "sha256", json!(Digest::from_data(b"").to_string()));
        for _ in 0..2 {
            assert_eq!(open_image(&place, &server).await, (strategy, Digest::from_data(b"")));
            assert_eq!(
                read_record(&place)["minimal_verified"],
                json!(strategy == LayoutStrategy::DescribedMinimal)
            );
        }
    }
}

/// A change to the file invalidates both parts of the record.
#[tokio::test(flavor = "multi_thread")]
async fn changed_file_is_checked_again() {
    let (server, place) = (ImageFileServer::new(|_, _| ImageReply::new(500, "")).await, LibraryFolder::new());
    let path = place.write(NAME, first_image());
    assert_eq!(open_image(&place, &server).await.0, LayoutStrategy::DescribedMinimal);
    fs::remove_file(&path).unwrap();
    place.write(NAME, &image_with_wrong_description());
    assert_eq!(
        open_image(&place, &server).await,
        (WRONG, Digest::from_data(&image_with_wrong_description()))
    );
    assert_eq!(read_record(&place)["minimal_verified"], json!(false));
}

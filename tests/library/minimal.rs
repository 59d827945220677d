//! `miniso.dat` of base images: whether it is right is found out once, and recorded beside the SHA-256.

use std::fs;

use fixtures::{Architecture, Era, Recipe};
use isogen::{Digest, Edits, LayoutStrategy};
use kindling::images::library::Base;
use serde_json::{Value, json};

use crate::server::{Reply, Server};
use crate::support::{NAME, Place, image, os_image, soon};

const RECORD: &str = "rhcos-full-iso-414.92.1-x86_64.iso.json";
const UNDESCRIBED: LayoutStrategy = LayoutStrategy::Relayout("the image does not describe its minimal form");
const WRONG: LayoutStrategy =
    LayoutStrategy::Relayout("the image's description of its minimal form is wrong");

/// The image with one byte of its initrd changed, which is in the minimal ISO as well.
fn wrong() -> Vec<u8> {
    let initrd = Recipe::new(Architecture::X86_64, Era::E2024_12).master().files["images/pxeboot/initrd.img"];
    let mut bytes = image().to_vec();
    bytes[usize::try_from(initrd.offset).unwrap() + 200] ^= 1;
    bytes
}

fn undescribed() -> Vec<u8> {
    Recipe::new(Architecture::X86_64, Era::E2021_01).build()
}

/// The layout of minimal ISOs of a base.
fn layout(base: &Base) -> LayoutStrategy {
    base.image().layout_strategy(&Edits::new().minimal(Some("http://192.0.2.1/rootfs.img"))).unwrap()
}

/// Opens the image that is in a directory or at a server.
async fn opened(place: &Place, server: &Server) -> (LayoutStrategy, Option<Digest>) {
    let os_image = os_image(&server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = soon(library.base(&os_image)).await.unwrap();
    (layout(&base), base.digest())
}

fn record(place: &Place) -> Value {
    serde_json::from_slice(&place.read(RECORD)).unwrap()
}

fn change_record(place: &Place, key: &str, value: Value) {
    let mut record = record(place);
    record[key] = value;
    place.write(RECORD, &serde_json::to_vec(&record).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn base_is_checked_when_it_is_hashed_and_the_result_recorded() {
    for (bytes, strategy) in
        [(image().to_vec(), LayoutStrategy::DescribedMinimal), (wrong(), WRONG), (undescribed(), UNDESCRIBED)]
    {
        let server = Server::of(&bytes).await;
        for is_downloaded in [true, false] {
            let place = Place::new();
            if !is_downloaded {
                place.write(NAME, &bytes);
            }
            assert_eq!(
                opened(&place, &server).await,
                (strategy, Some(Digest::of(&bytes))),
                "{is_downloaded}"
            );
            assert_eq!(
                record(&place)["minimal_verified"],
                json!(strategy == LayoutStrategy::DescribedMinimal),
                "{strategy}"
            );
        }
    }
}

/// A record that lies shows that the result comes from there.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_result_is_used_at_the_next_start() {
    let server = Server::new(|_, _| Reply::new(500, "")).await;
    for (bytes, lie, strategy) in
        [(image().to_vec(), false, WRONG), (wrong(), true, LayoutStrategy::DescribedMinimal)]
    {
        let place = Place::new();
        place.write(NAME, &bytes);
        opened(&place, &server).await;
        assert_eq!(record(&place)["minimal_verified"], json!(!lie));
        change_record(&place, "minimal_verified", json!(lie));
        let before = place.read(RECORD);
        assert_eq!(opened(&place, &server).await.0, strategy);
        assert!(place.read(RECORD) == before, "the record was written again");
    }
}

/// The false SHA-256 shows that the file is not hashed again.
#[tokio::test(flavor = "multi_thread")]
async fn record_of_an_earlier_release_is_completed_without_hashing() {
    let server = Server::new(|_, _| Reply::new(500, "")).await;
    for (bytes, strategy) in [(image().to_vec(), LayoutStrategy::DescribedMinimal), (wrong(), WRONG)] {
        let place = Place::new();
        place.write(NAME, &bytes);
        opened(&place, &server).await;
        let mut earlier = record(&place);
        earlier.as_object_mut().unwrap().remove("minimal_verified").unwrap();
        place.write(RECORD, &serde_json::to_vec(&earlier).unwrap());
        change_record(&place, "sha256", json!(Digest::of(b"").to_string()));
        for _ in 0..2 {
            assert_eq!(opened(&place, &server).await, (strategy, Some(Digest::of(b""))));
            assert_eq!(
                record(&place)["minimal_verified"],
                json!(strategy == LayoutStrategy::DescribedMinimal)
            );
        }
    }
}

/// A change of the file makes both parts of the record void.
#[tokio::test(flavor = "multi_thread")]
async fn changed_file_is_checked_again() {
    let (server, place) = (Server::new(|_, _| Reply::new(500, "")).await, Place::new());
    let path = place.write(NAME, image());
    assert_eq!(opened(&place, &server).await.0, LayoutStrategy::DescribedMinimal);
    fs::remove_file(&path).unwrap();
    place.write(NAME, &wrong());
    assert_eq!(opened(&place, &server).await, (WRONG, Some(Digest::of(&wrong()))));
    assert_eq!(record(&place)["minimal_verified"], json!(false));
}

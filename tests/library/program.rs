//! `nmstatectl`, taken out of images once.

use std::time::SystemTime;

use fixtures::erofs::Erofs;
use fixtures::{Architecture, Era, Filesystem, Recipe};
use isogen::BaseImage;
use kindling::images::library::Base;
use kindling::images::{CpuArchitecture, OsImage};

use crate::server::Server;
use crate::support::{Place, image, os_image, soon};

const KEPT: &str = "nmstatectl-418.94.1-arm64";

fn image_with(program: &[u8]) -> Vec<u8> {
    let path = "ostree/deploy/fedora-coreos/deploy/4a2b.0/usr/bin/nmstatectl";
    let filesystem = Erofs::RELEASE.image([(path, program)]);
    Recipe::new(Architecture::Aarch64, Era::E2024_12)
        .filesystem_contents(Filesystem::Erofs, filesystem)
        .build()
}

fn program(seed: u32) -> Vec<u8> {
    (0..50_000_u32).flat_map(|number| (number / 3 + seed).to_le_bytes()).collect()
}

fn arm(version: &str, url: &str) -> OsImage {
    OsImage {
        openshift_version: version.to_owned(),
        cpu_architecture: CpuArchitecture::Arm64,
        version: "418.94.1".to_owned(),
        ..os_image(url)
    }
}

async fn taken(base: &Base) -> Vec<u8> {
    soon(base.nmstatectl()).await.unwrap().unwrap().as_bytes().to_vec()
}

fn modified(place: &Place) -> SystemTime {
    std::fs::metadata(place.file(KEPT)).unwrap().modified().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_taken_out_once_and_kept_beside_the_image() {
    let bytes = image_with(&program(0));
    let (server, place) = (Server::of(&bytes).await, Place::new());
    let expected = BaseImage::from_source(isogen::Source::from_bytes("image", bytes)).unwrap();
    let expected = expected.root_filesystem().unwrap().pack_nmstatectl().unwrap().as_bytes().to_vec();

    let os_image = arm("4.18", &server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = soon(library.base(&os_image)).await.unwrap();
    assert!(!place.names().contains(KEPT), "nobody has asked for it");
    let (one, other) = tokio::join!(taken(&base), taken(&base));
    assert!(one == expected && other == expected);
    assert!(place.read(KEPT) == expected);
    let (first, _) = (modified(&place), drop((library, base)));

    let library = place.open([os_image.clone()]);
    let base = soon(library.base(&os_image)).await.unwrap();
    assert!(taken(&base).await == expected);
    assert_eq!(modified(&place), first, "it was not taken out again");
    drop((library, base));

    // Damaged, it is taken out again.
    place.write(KEPT, &expected[..expected.len() - 4]);
    let library = place.open([os_image.clone()]);
    let base = soon(library.base(&os_image)).await.unwrap();
    assert!(taken(&base).await == expected);
    assert!(place.read(KEPT) == expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn that_of_another_image_is_not_used() {
    let place = Place::new();
    let mut packed = Vec::new();
    for seed in [0, 1] {
        let bytes = image_with(&program(seed));
        let path = place.write("rhcos-full-iso-418.94.1-arm64.iso", &bytes);
        let os_image = arm("4.18.0-ec.0", path.to_str().unwrap());
        let library = place.open([os_image.clone()]);
        packed.push(taken(&soon(library.base(&os_image)).await.unwrap()).await);
    }
    assert!(packed[0] != packed[1]);
    assert!(place.read(KEPT) == packed[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_before_it_need_none() {
    let (server, place) = (Server::of(&image_with(&program(0))).await, Place::new());
    let os_image = arm("4.17.9", &server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = soon(library.base(&os_image)).await.unwrap();
    assert!(base.nmstatectl().await.unwrap().is_none());
    assert!(!place.names().contains(KEPT));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_it_says_so() {
    let (server, place) = (Server::of(image()).await, Place::new());
    let os_image = OsImage { openshift_version: "4.19".to_owned(), ..os_image(&server.url("a.iso")) };
    let library = place.open([os_image.clone()]);
    let base = soon(library.base(&os_image)).await.unwrap();
    let error = soon(base.nmstatectl()).await.unwrap_err().to_string();
    assert_eq!(error, "nmstatectl cannot be taken out of rhcos-full-iso-414.92.1-x86_64.iso");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_it_cannot_be_kept_it_is_given_all_the_same() {
    let (server, place) = (Server::of(&image_with(&program(0))).await, Place::new());
    std::fs::create_dir(place.file(KEPT)).unwrap();
    let os_image = arm("4.18", &server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    assert!(!taken(&soon(library.base(&os_image)).await.unwrap()).await.is_empty());
}

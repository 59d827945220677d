//! `nmstatectl`, which is extracted once from each image.

use std::time::SystemTime;

use fixtures::erofs::Erofs;
use fixtures::{Architecture, Era, Filesystem, Recipe};
use isogen::BaseImage;
use kindling::images::library::OpenBaseImage;
use kindling::inventory::catalogue::{CpuArchitecture, ImageType, OsImage};

use crate::server::ImageFileServer;
use crate::support::{LibraryFolder, first_image, os_image, within_time_limit};

const KEPT: &str = "nmstatectl-full-iso-418.94.1-arm64";

fn image_with_program(program: &[u8]) -> Vec<u8> {
    let path = "ostree/deploy/fedora-coreos/deploy/4a2b.0/usr/bin/nmstatectl";
    let filesystem = Erofs::RELEASE.image([(path, program)]);
    Recipe::new(Architecture::Aarch64, Era::E2024_12)
        .filesystem_contents(Filesystem::Erofs, filesystem)
        .build()
}

fn fake_program(seed: u32) -> Vec<u8> {
    (0..50_000_u32).flat_map(|number| (number / 3 + seed).to_le_bytes()).collect()
}

fn arm_os_image(version: &str, url: &str) -> OsImage {
    OsImage {
        openshift_version: version.to_owned(),
        cpu_architecture: CpuArchitecture::Arm64,
        version: "418.94.1".to_owned(),
        ..os_image(url)
    }
}

async fn extract_nmstatectl(base: &OpenBaseImage) -> Vec<u8> {
    within_time_limit(base.nmstatectl()).await.unwrap().unwrap().as_bytes().to_vec()
}

fn modification_time(place: &LibraryFolder) -> SystemTime {
    std::fs::metadata(place.file(KEPT)).unwrap().modified().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nmstatectl_is_extracted_once_and_cached() {
    let bytes = image_with_program(&fake_program(0));
    let (server, place) = (ImageFileServer::with_file(&bytes).await, LibraryFolder::new());
    let expected = BaseImage::from_source(isogen::Source::from_bytes("image", bytes)).unwrap();
    let expected = expected.root_filesystem().unwrap().pack_nmstatectl().unwrap().as_bytes().to_vec();

    let os_image = arm_os_image("4.18", &server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.base(&os_image)).await.unwrap();
    assert!(!place.names().contains(KEPT), "nmstatectl was not requested yet");
    let (one, other) = tokio::join!(extract_nmstatectl(&base), extract_nmstatectl(&base));
    assert!(one == expected && other == expected);
    assert!(place.read(KEPT) == expected);
    let (first, _) = (modification_time(&place), drop((library, base)));

    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.base(&os_image)).await.unwrap();
    assert!(extract_nmstatectl(&base).await == expected);
    assert_eq!(modification_time(&place), first, "nmstatectl was extracted again");
    drop((library, base));

    // A damaged copy is extracted again.
    place.write(KEPT, &expected[..expected.len() - 4]);
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.base(&os_image)).await.unwrap();
    assert!(extract_nmstatectl(&base).await == expected);
    assert!(place.read(KEPT) == expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn nmstatectl_of_another_image_is_not_used() {
    let place = LibraryFolder::new();
    let mut packed = Vec::new();
    for seed in [0, 1] {
        let bytes = image_with_program(&fake_program(seed));
        let path = place.write("rhcos-full-iso-418.94.1-arm64.iso", &bytes);
        let os_image = arm_os_image("4.18.0-ec.0", path.to_str().unwrap());
        let library = place.open([os_image.clone()]);
        packed.push(extract_nmstatectl(&within_time_limit(library.base(&os_image)).await.unwrap()).await);
    }
    assert!(packed[0] != packed[1]);
    assert!(place.read(KEPT) == packed[1]);
}

/// A full and a disconnected image may have the same version.
#[tokio::test(flavor = "multi_thread")]
async fn images_of_two_types_keep_their_own_nmstatectl() {
    let place = LibraryFolder::new();
    let image = |image_type: ImageType, seed| {
        let name = format!("rhcos-{}-418.94.1-arm64.iso", image_type.as_str());
        let path = place.write(&name, &image_with_program(&fake_program(seed)));
        OsImage { image_type, ..arm_os_image("4.18", path.to_str().unwrap()) }
    };
    let images = [image(ImageType::Full, 0), image(ImageType::Disconnected, 1)];
    let library = place.open(images.clone());
    for os_image in &images {
        let packed = extract_nmstatectl(&within_time_limit(library.base(os_image)).await.unwrap()).await;
        let name = format!("nmstatectl-{}-418.94.1-arm64", os_image.image_type.as_str());
        assert!(place.read(&name) == packed, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn older_versions_need_no_nmstatectl() {
    let (server, place) =
        (ImageFileServer::with_file(&image_with_program(&fake_program(0))).await, LibraryFolder::new());
    let os_image = arm_os_image("4.17.9", &server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.base(&os_image)).await.unwrap();
    assert!(base.nmstatectl().await.unwrap().is_none());
    assert!(!place.names().contains(KEPT));
}

#[tokio::test(flavor = "multi_thread")]
async fn image_without_nmstatectl_is_reported() {
    let (server, place) = (ImageFileServer::with_file(first_image()).await, LibraryFolder::new());
    let os_image = OsImage { openshift_version: "4.19".to_owned(), ..os_image(&server.url("a.iso")) };
    let library = place.open([os_image.clone()]);
    let base = within_time_limit(library.base(&os_image)).await.unwrap();
    let error = within_time_limit(base.nmstatectl()).await.unwrap_err().to_string();
    assert_eq!(error, "cannot extract nmstatectl from rhcos-full-iso-414.92.1-x86_64.iso");
}

#[tokio::test(flavor = "multi_thread")]
async fn nmstatectl_is_returned_when_it_cannot_be_cached() {
    let (server, place) =
        (ImageFileServer::with_file(&image_with_program(&fake_program(0))).await, LibraryFolder::new());
    std::fs::create_dir(place.file(KEPT)).unwrap();
    let os_image = arm_os_image("4.18", &server.url("a.iso"));
    let library = place.open([os_image.clone()]);
    assert!(!extract_nmstatectl(&within_time_limit(library.base(&os_image)).await.unwrap()).await.is_empty());
}

//! Images on the local machine, which the library uses in place.

use isogen::Digest;
use kindling::images::library::BaseImageState;
use kindling::inventory::catalogue::OsImage;

use crate::support::{
    LibraryFolder, NAME, arm_image, first_image, image_without_architecture, os_image, second_image,
    unavailability_reason, wait_for_state, with_digest, within_time_limit,
};

#[tokio::test(flavor = "multi_thread")]
async fn local_images_are_opened_in_place() {
    let (elsewhere, place) = (LibraryFolder::new(), LibraryFolder::new());
    let path = elsewhere.write("my image.iso", first_image());
    let by_path = os_image(path.to_str().unwrap());
    let by_url = OsImage {
        version: "2".to_owned(),
        ..os_image(&format!("file://{}", path.to_str().unwrap().replace(' ', "%20")))
    };
    let library = place.open([by_path.clone(), by_url.clone()]);
    for os_image in [&by_path, &by_url] {
        assert_eq!(
            within_time_limit(library.base(os_image)).await.unwrap().digest(),
            Digest::from_data(first_image())
        );
    }
    // The library directory contains only records. The images stay in their own directory.
    assert_eq!(place.names(), [format!("{NAME}.json"), "rhcos-full-iso-2-x86_64.iso.json".to_owned()].into());
    assert_eq!(elsewhere.names().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_local_images_are_reported_and_kept() {
    let (elsewhere, place) = (LibraryFolder::new(), LibraryFolder::new());
    let bad = elsewhere.write("bad.iso", &vec![0; 100_000]);
    let other = elsewhere.write("other.iso", second_image());
    let missing = elsewhere.file("missing.iso");
    let of = |version: &str, path: &std::path::Path| OsImage {
        version: version.to_owned(),
        ..os_image(path.to_str().unwrap())
    };
    let cases = [
        (of("1", &bad), "not a usable base image"),
        (with_digest(of("2", &other)), "but the catalogue has"),
        (of("3", &missing), "missing.iso failed: No such file"),
        (of("4", elsewhere.path()), "not a regular file"),
    ];
    let library = place.open_patiently(cases.iter().map(|(image, _)| image.clone()));
    for (image, phrase) in &cases {
        let reason = unavailability_reason(within_time_limit(library.base(image)).await);
        assert!(reason.contains(phrase) && reason.contains(&image.url), "no {phrase:?} in: {reason}");
    }
    assert_eq!(elsewhere.names().len(), 2);
    assert!(elsewhere.read("other.iso") == second_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_local_image_for_another_architecture() {
    let (elsewhere, place) = (LibraryFolder::new(), LibraryFolder::new());
    let arm = os_image(elsewhere.write("arm.iso", arm_image()).to_str().unwrap());
    let unknown = elsewhere.write("unknown.iso", &image_without_architecture());
    let unknown = OsImage { version: "2".to_owned(), ..os_image(unknown.to_str().unwrap()) };
    let library = place.open_patiently([arm.clone(), unknown.clone()]);
    let reason = unavailability_reason(within_time_limit(library.base(&arm)).await);
    let problem = "the image is for CPU architecture arm64, expected x86_64";
    assert!(reason.contains(problem) && reason.contains(&arm.url), "{reason}");
    let base = within_time_limit(library.base(&unknown)).await.unwrap();
    assert_eq!(base.image().architecture(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn local_image_created_later_is_used() {
    let (elsewhere, place) = (LibraryFolder::new(), LibraryFolder::new());
    let os_image = os_image(elsewhere.file("late.iso").to_str().unwrap());
    let library = place.open([os_image.clone()]);
    wait_for_state(&library, &os_image, |state| matches!(state, BaseImageState::Failed { .. })).await;
    elsewhere.write("new", first_image());
    std::fs::rename(elsewhere.file("new"), elsewhere.file("late.iso")).unwrap();
    within_time_limit(library.wait_ready(&os_image)).await.unwrap();
}

//! Images that are on this machine already: used where they are.

use isogen::Digest;
use kindling::images::OsImage;
use kindling::images::library::State;

use crate::support::{NAME, Place, image, os_image, other_image, reason, soon, until, with_digest};

#[tokio::test(flavor = "multi_thread")]
async fn they_are_opened_where_they_are() {
    let (elsewhere, place) = (Place::new(), Place::new());
    let path = elsewhere.write("my image.iso", image());
    let by_path = os_image(path.to_str().unwrap());
    let by_url = OsImage {
        version: "2".to_owned(),
        ..os_image(&format!("file://{}", path.to_str().unwrap().replace(' ', "%20")))
    };
    let library = place.open([by_path.clone(), by_url.clone()]);
    for os_image in [&by_path, &by_url] {
        assert_eq!(soon(library.base(os_image)).await.unwrap().digest(), Some(Digest::of(image())));
    }
    // Only what is known of them is in the directory.
    assert_eq!(place.names(), [format!("{NAME}.json"), "rhcos-full-iso-2-x86_64.iso.json".to_owned()].into());
    assert_eq!(elsewhere.names().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_them_is_told_and_they_are_left_alone() {
    let (elsewhere, place) = (Place::new(), Place::new());
    let bad = elsewhere.write("bad.iso", &vec![0; 100_000]);
    let other = elsewhere.write("other.iso", other_image());
    let missing = elsewhere.file("missing.iso");
    let of = |version: &str, path: &std::path::Path| OsImage {
        version: version.to_owned(),
        ..os_image(path.to_str().unwrap())
    };
    let cases = [
        (of("1", &bad), "not a usable base image"),
        (with_digest(of("2", &other)), "and the catalogue asks for"),
        (of("3", &missing), "missing.iso failed: No such file"),
        (of("4", elsewhere.path()), "it is no regular file"),
    ];
    let library = place.open_patiently(cases.iter().map(|(image, _)| image.clone()));
    for (image, phrase) in &cases {
        let told = reason(soon(library.base(image)).await);
        assert!(told.contains(phrase) && told.contains(&image.url), "no {phrase:?} in: {told}");
    }
    assert_eq!(elsewhere.names().len(), 2);
    assert!(elsewhere.read("other.iso") == other_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_comes_later_is_used_then() {
    let (elsewhere, place) = (Place::new(), Place::new());
    let os_image = os_image(elsewhere.file("late.iso").to_str().unwrap());
    let library = place.open([os_image.clone()]);
    until(&library, &os_image, |state| matches!(state, State::Failed { .. })).await;
    elsewhere.write("new", image());
    std::fs::rename(elsewhere.file("new"), elsewhere.file("late.iso")).unwrap();
    soon(library.wait_ready(&os_image)).await.unwrap();
}

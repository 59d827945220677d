//! Images in a bucket: of a server that speaks as much of S3 as it takes to read an object.

use kindling::images::library::{Library, Trust};

use crate::certificates::{of_an_authority, server_with};
use crate::processes::{process, task};
use crate::server::{Reply, Request, Server};
use crate::support::{Place, image, os_image, other_image, soon};

/// The credentials are in variables, so that each test has a process of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that others start"]
async fn process_that_fetches() {
    let task = task();
    let os_image = os_image(&task[1]);
    let mut settings = Place::new().settings();
    settings.directory = task[0].clone().into();
    if let Some(certificates) = task.get(2) {
        settings.trust = Trust::SystemAnd(certificates.into());
    }
    let library = Library::open(settings, [os_image.clone()]).unwrap();
    match soon(library.base(&os_image)).await {
        Ok(base) => println!("ready {}", base.digest().unwrap()),
        Err(error) => println!("failed {error}"),
    }
}

fn fetched(place: &Place, server: &Server, key: &str) -> String {
    fetched_with(server, &format!("{} s3://images/{key}", place.path().display()))
}

fn fetched_with(server: &Server, task: &str) -> String {
    let output = process("bucket::process_that_fetches", task)
        .env("S3_ENDPOINT_URL", server.url("").trim_end_matches('/'))
        .envs([
            ("AWS_ACCESS_KEY_ID", "anna"),
            ("AWS_SECRET_ACCESS_KEY", "s3cret"),
            ("AWS_REGION", "us-east-1"),
        ])
        .output();
    let output = tokio::task::block_in_place(|| output.unwrap());
    String::from_utf8(output.stdout).unwrap()
}

fn object(request: &Request, bytes: &[u8], etag: &str) -> Reply {
    match request.header("if-match") {
        Some(wanted) if wanted != etag => Reply::new(412, ""),
        _ => Reply::file(request, bytes, etag).header("last-modified", "Tue, 02 Apr 2024 10:00:00 GMT"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_fetched_as_a_file_is() {
    let server = Server::new(|request, _| match &request.target[..] {
        "/images/a/b.iso" => object(request, image(), "\"one\""),
        _ => Reply::new(404, ""),
    })
    .await;
    let place = Place::new();
    let told = fetched(&place, &server, "a/b.iso");
    assert!(told.contains("ready "), "{told}");
    place.assert_holds(image());
    let asked = server.requests();
    assert!(asked[0].header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256 Credential=anna/"));

    let place = Place::new();
    let told = fetched(&place, &server, "missing.iso");
    assert!(told.contains("failed ") && told.contains("from s3://images/missing.iso: "), "{told}");
    assert!(told.contains("status 404"), "{told}");
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_replaced_meanwhile_is_fetched_from_the_start() {
    let server = Server::new(|request, number| match number {
        0 => object(request, image(), "\"one\"").cut(700_000),
        _ => object(request, other_image(), "\"two\""),
    })
    .await;
    let place = Place::new();
    let told = fetched(&place, &server, "a.iso");
    assert!(told.contains("ready "), "{told}");
    place.assert_holds(other_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_behind_a_certificate_that_signs_itself_is_trusted_where_it_is_given() {
    let (server, pem) = server_with(of_an_authority("127.0.0.1"), None).await;
    let place = Place::new();
    let told = fetched(&place, &server, "a.iso");
    assert!(told.contains("failed ") && told.contains("certificate"), "{told}");
    let keys = Place::new();
    let given = keys.write("ca.pem", pem.as_bytes());
    let task = format!("{} s3://images/a.iso {}", place.path().display(), given.display());
    let told = fetched_with(&server, &task);
    assert!(told.contains("ready "), "{told}");
    place.assert_holds(image());
}

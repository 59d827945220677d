//! Images in a bucket. The server implements the part of S3 that reading an object needs.

use kindling::images::library::{Library, ServerTrust};

use crate::certificates::{authority_params, server_with_params};
use crate::processes::{process_task, test_process};
use crate::server::{ImageFileServer, ImageReply, ReceivedRequest};
use crate::support::{LibraryFolder, first_image, os_image, second_image, within_time_limit};

/// The credentials are in environment variables, so each test runs in its own process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that others start"]
async fn process_that_fetches() {
    let task = process_task();
    let os_image = os_image(&task[1]);
    let mut settings = LibraryFolder::new().settings();
    settings.directory = task[0].clone().into();
    if let Some(certificates) = task.get(2) {
        settings.trust = ServerTrust::SystemAnd(certificates.into());
    }
    let library = Library::open(settings, [os_image.clone()]).unwrap();
    match within_time_limit(library.base(&os_image)).await {
        Ok(base) => println!("ready {}", base.digest()),
        Err(error) => println!("failed {error}"),
    }
}

fn fetch_in_process(place: &LibraryFolder, server: &ImageFileServer, key: &str) -> String {
    run_fetch_process(server, &format!("{} s3://images/{key}", place.path().display()))
}

fn run_fetch_process(server: &ImageFileServer, task: &str) -> String {
    let output = test_process("bucket::process_that_fetches", task)
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

fn object_reply(request: &ReceivedRequest, bytes: &[u8], etag: &str) -> ImageReply {
    match request.header("if-match") {
        Some(expected) if expected != etag => ImageReply::new(412, ""),
        _ => ImageReply::from_file(request, bytes, etag)
            .with_header("last-modified", "Tue, 02 Apr 2024 10:00:00 GMT"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn object_is_fetched_like_a_file() {
    let server = ImageFileServer::new(|request, _| match &request.target[..] {
        "/images/a/b.iso" => object_reply(request, first_image(), "\"one\""),
        _ => ImageReply::new(404, ""),
    })
    .await;
    let place = LibraryFolder::new();
    let output = fetch_in_process(&place, &server, "a/b.iso");
    assert!(output.contains("ready "), "{output}");
    place.assert_has_only_image(first_image());
    let requests = server.requests();
    assert!(requests[0].header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256 Credential=anna/"));

    let place = LibraryFolder::new();
    let output = fetch_in_process(&place, &server, "missing.iso");
    assert!(output.contains("failed ") && output.contains("from s3://images/missing.iso: "), "{output}");
    assert!(output.contains("status 404"), "{output}");
    place.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn object_replaced_during_the_download_is_fetched_from_the_start() {
    let server = ImageFileServer::new(|request, number| match number {
        0 => object_reply(request, first_image(), "\"one\"").close_after(700_000),
        _ => object_reply(request, second_image(), "\"two\""),
    })
    .await;
    let place = LibraryFolder::new();
    let output = fetch_in_process(&place, &server, "a.iso");
    assert!(output.contains("ready "), "{output}");
    place.assert_has_only_image(second_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_with_a_self_signed_certificate_needs_it_configured() {
    let (server, pem) = server_with_params(authority_params("127.0.0.1"), None).await;
    let place = LibraryFolder::new();
    let output = fetch_in_process(&place, &server, "a.iso");
    assert!(output.contains("failed ") && output.contains("certificate"), "{output}");
    let keys = LibraryFolder::new();
    let ca_file = keys.write("ca.pem", pem.as_bytes());
    let task = format!("{} s3://images/a.iso {}", place.path().display(), ca_file.display());
    let output = run_fetch_process(&server, &task);
    assert!(output.contains("ready "), "{output}");
    place.assert_has_only_image(first_image());
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_bucket_have_the_problem_and_not_the_body() {
    for (status, code, expected) in
        [(404, "NoSuchBucket", "the bucket does not exist"), (403, "AccessDenied", "status 403")]
    {
        let body = format!("<Error><Code>{code}</Code><Token>s3cret</Token>{}</Error>", "x".repeat(1 << 20));
        let server = ImageFileServer::new(move |_, _| ImageReply::new(status, body.clone())).await;
        let place = LibraryFolder::new();
        let output = fetch_in_process(&place, &server, "a.iso");
        assert!(output.contains("failed ") && output.contains(expected), "{output}");
        assert!(!output.contains("s3cret"), "{output}");
    }
}

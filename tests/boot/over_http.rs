//! Boots from the server: QEMU's HTTP client reads the image in ranges, like a BMC.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::routing::get;
use chrono::Utc;
use discovery::representation::Representation;
use isogen::BaseImage;
use kindling::http::ServedFile;
use tokio::net::TcpListener;

use crate::machine::{StartMethod, boot_image};
use crate::products;
use crate::support::{Scratch, has_http_client};
use crate::{expected_command_line, sha256_hex, x86_64_base};

fn check_boot_over_http(start: StartMethod) {
    let Some(base) = x86_64_base().filter(|base| has_http_client(&base.programs.qemu)) else { return };
    let scratch = Scratch::new();
    let image = BaseImage::open(scratch.write("base.iso", base.recipe.build())).unwrap();
    let product = products::edited_in_place(&image);
    let etag = format!("\"{}\"", product.plan.identity().unwrap());
    let len = product.plan.len();
    let plan = Arc::new(product.plan.clone());
    let content = Representation::new(plan, etag, Utc::now(), "application/x-iso9660-image", None);
    let content = ServedFile::from(content.unwrap());
    let ranges = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ranges);
    let answer = move |request: Request| {
        if request.headers().contains_key("range") {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        std::future::ready(content.respond(request.method(), request.headers(), request.version()))
    };
    let app = Router::new().route("/image.iso", get(answer));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/image.iso", listener.local_addr().unwrap());
    runtime.spawn(kindling::http::serve(listener, app, std::future::pending()));

    let boot = boot_image(&base.programs, Path::new(&url), start);
    assert_eq!(boot.facts.command_line, expected_command_line(&product, start.boot_loader()));
    let mut files = base.files.clone();
    files.extend(product.files.iter().map(|(name, bytes)| (name.clone(), sha256_hex(bytes))));
    assert_eq!(boot.facts.files, files);
    let ranges = ranges.load(Ordering::Relaxed);
    assert!(ranges > 10, "{ranges} ranges of an image of {len} bytes");
}

#[test]
#[ignore = "of the whole matrix"]
fn bios_disc_boots_over_http() {
    check_boot_over_http(StartMethod::BiosDisc);
}

#[test]
#[ignore = "of the whole matrix"]
fn uefi_disc_boots_over_http() {
    check_boot_over_http(StartMethod::UefiDisc);
}

//! Booting off the server itself: QEMU's own HTTP client reads the image in ranges, as a BMC does.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::routing::get;
use chrono::Utc;
use isogen::BaseImage;
use kindling::http::Content;
use tokio::net::TcpListener;

use crate::machine::{Start, boot};
use crate::products;
use crate::support::Scratch;
use crate::{base, command_line, digest};

/// Whether this QEMU has an HTTP client, which comes in a package of its own.
pub(crate) fn has_client(qemu: &Path) -> bool {
    let nowhere = "file=http://127.0.0.1:1/none,format=raw,if=none";
    let output = Command::new(qemu).args(["-display", "none", "-drive", nowhere]).output().unwrap();
    let has_client = !String::from_utf8_lossy(&output.stderr).contains("Unknown protocol");
    if !has_client {
        assert!(std::env::var_os("KINDLING_REQUIRE_TOOLS").is_none(), "qemu-block-extra is not installed");
        eprintln!("NOTICE: QEMU has no HTTP client (qemu-block-extra); not tested");
    }
    has_client
}

fn check(start: Start) {
    let Some(base) = base().filter(|base| has_client(&base.programs.qemu)) else { return };
    let scratch = Scratch::new();
    let image = BaseImage::open(scratch.write("base.iso", base.recipe.build())).unwrap();
    let product = products::edited_in_place(&image);
    let etag = format!("\"{}\"", product.plan.identity().unwrap());
    let len = product.plan.len();
    let content =
        Content::new(Arc::new(product.plan.clone()), etag, Utc::now(), "application/x-iso9660-image", None);
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

    let boot = boot(&base.programs, Path::new(&url), start);
    assert_eq!(boot.facts.command_line, command_line(&product, start.loader()));
    let mut files = base.files.clone();
    files.extend(product.files.iter().map(|(name, bytes)| (name.clone(), digest(bytes))));
    assert_eq!(boot.facts.files, files);
    let ranges = ranges.load(Ordering::Relaxed);
    assert!(ranges > 10, "{ranges} ranges of an image of {len} bytes");
}

#[test]
fn bios_disc() {
    check(Start::BiosDisc);
}

#[test]
fn uefi_disc() {
    check(Start::UefiDisc);
}

//! Cost of building the response for an image, and of streaming the image without the network: the response to a
//! request, and all frames of a 1 GiB body.
//!
//! The base is 64 MiB long, in memory, and occurs sixteen times in the image, so that the bench needs little memory. No
//! code reads the mapped bytes: the bench measures what our code does around the kernel's copy. Reading into buffers is
//! a copy itself.
//!
//! `cargo bench -p kindling --bench body -- --quick` takes a few seconds once built.

#![allow(clippy::unwrap_used, missing_docs, reason = "a bench over its own inputs")]

use std::hint::black_box;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, Response, Version, header};
use chrono::{TimeDelta, Utc};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use discovery::representation::Representation;
use http_body_util::BodyExt;
use isogen::{Extent, Plan, Segment, Source};
use kindling::http::{BodyMode, ServedFile};

const BASE_LEN: u64 = 64 << 20;
const COPIES: usize = 16;

fn content(segments: impl IntoIterator<Item = Segment>, source: &Arc<Source>) -> ServedFile {
    let plan = Arc::new(Plan::new(Arc::clone(source), segments));
    let changed_at = Utc::now() - TimeDelta::days(1);
    let name = "5e1d0e0b-51d1-4f1a-a4b1-2a5c9e7e3c55-discovery.iso".to_owned();
    let etag = format!("\"{}\"", "0".repeat(64));
    Representation::new(plan, etag, changed_at, "application/octet-stream", Some(name)).unwrap().into()
}

fn image(source: &Arc<Source>) -> ServedFile {
    let base = Extent::new(0, BASE_LEN - (128 << 10)).unwrap();
    let copy =
        || [Segment::Base(base), Segment::Bytes(Bytes::from(vec![1; 64 << 10])), Segment::Zero(64 << 10)];
    content((0..COPIES).flat_map(|_| copy()), source)
}

async fn len(response: Response<Body>) -> u64 {
    let mut body = response.into_body();
    let mut len = 0;
    while let Some(frame) = body.frame().await {
        len += black_box(frame.unwrap().into_data().unwrap()).len() as u64;
    }
    len
}

fn ask(content: &ServedFile, mode: BodyMode, range: Option<&'static str>) -> Response<Body> {
    let mut headers = HeaderMap::new();
    if let Some(range) = range {
        headers.insert(header::RANGE, HeaderValue::from_static(range));
    }
    content.respond_with_mode(mode, &Method::GET, &headers, Version::HTTP_11)
}

fn benches(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _entered = runtime.enter();
    let file = tempfile::tempfile().unwrap();
    file.set_len(BASE_LEN).unwrap();
    let source = Arc::new(Source::from_file(file, "base").unwrap());
    source.digest().unwrap();
    let image = image(&source);
    assert_eq!(image.representation().plan().len(), 1 << 30);

    let mut group = criterion.benchmark_group("body");
    group.throughput(Throughput::Bytes(image.representation().plan().len()));
    for (name, mode) in [("mapped, 1 GiB", BodyMode::Mapped), ("read, 1 GiB", BodyMode::Read)] {
        let whole = || {
            assert_eq!(runtime.block_on(len(ask(&image, mode, None))), image.representation().plan().len())
        };
        group.bench_function(name, |b| b.iter(whole));
    }
    let zeros = content([Segment::Zero(1 << 30)], &source);
    let whole = || assert_eq!(runtime.block_on(len(ask(&zeros, BodyMode::Mapped, None))), 1 << 30);
    group.bench_function("zeros, 1 GiB", |b| b.iter(whole));
    group.finish();

    let mut group = criterion.benchmark_group("answer");
    for (name, range) in [
        ("whole", None),
        ("one range", Some("bytes=500000000-500016383")),
        ("eight ranges", Some("bytes=0-1,10-11,20-21,30-31,40-41,50-51,60-61,70-71")),
        ("range outside the image", Some("bytes=2000000000-")),
    ] {
        group.bench_function(name, |b| b.iter(|| ask(black_box(&image), BodyMode::Mapped, range)));
    }
    let range = || {
        assert_eq!(
            runtime.block_on(len(ask(&image, BodyMode::Mapped, Some("bytes=5000000-5016383")))),
            16_384
        )
    };
    group.bench_function("one range and its 16 KiB", |b| b.iter(range));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);

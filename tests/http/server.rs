//! A server of some contents, and what they are.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::sync::{Arc, LazyLock, RwLock};

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, Version};
use axum::routing::{get, post};
use axum::{Extension, Router};
use chrono::{DateTime, Utc};
use fixtures::{Architecture, Era};
use isogen::{Archive, BaseImage, Edits, Encoding, Extent, Plan, Segment, Source};
use kindling::http::{BodyMode, Certificate, Content, Limits, ListenAddr, Listener, Peer};
use tokio::runtime::Runtime;

use crate::connection::Connection;
use crate::support::{Scratch, image};

/// When all contents changed, unless a test says otherwise.
pub(crate) const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
pub(crate) const ETAG: &str = "\"image-1\"";
pub(crate) const MEDIA_TYPE: &str = "application/octet-stream";

/// The ways in which base bytes are sent.
pub(crate) const MODES: [&str; 2] = ["mapped", "read"];

type Contents = Arc<RwLock<HashMap<String, Content>>>;

/// A server on a port of its own. `/mapped/{name}` and `/read/{name}` are a content in either mode, `/fit/{name}` in that
/// of the connection.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) contents: Contents,
    runtime: Option<Runtime>,
}

impl Server {
    pub(crate) fn start(workers: usize) -> Self {
        Self::within(workers, Limits { head_bytes: 16 << 10, ..Limits::default() }, None)
    }

    /// One that copies everything.
    pub(crate) fn copying(workers: usize) -> Self {
        Self::of(workers, kindling::http::Server::new(Limits::default()).copying(), None)
    }

    /// A server with limits of its own, and with a certificate perhaps.
    pub(crate) fn within(workers: usize, limits: Limits, certificate: Option<&Certificate>) -> Self {
        Self::of(workers, kindling::http::Server::new(limits), certificate)
    }

    fn of(workers: usize, server: kindling::http::Server, certificate: Option<&Certificate>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
        let listener = runtime.block_on(Listener::tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let ListenAddr::Address(address) = *listener.addr() else { panic!("{listener}") };
        let listener = match certificate {
            Some(certificate) => listener.with_tls(certificate),
            None => listener,
        };
        let contents = Contents::default();
        let router = Router::new().route("/{mode}/{name}", get(answer)).with_state(Arc::clone(&contents));
        let router = router.route("/client", get(client)).route("/echo", post(async |body: Bytes| body));
        runtime.spawn(async move {
            server.serve(listener, router, std::future::pending()).await;
        });
        Self { address, contents, runtime: Some(runtime) }
    }

    pub(crate) fn put(&self, name: &str, content: Content) {
        self.contents.write().unwrap().insert(name.to_owned(), content);
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::new(self.address)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

async fn answer(
    State(contents): State<Contents>,
    Path((mode, name)): Path<(String, String)>,
    (method, version, of_connection): (Method, Version, BodyMode),
    headers: HeaderMap,
) -> Response<Body> {
    let content = contents.read().unwrap().get(&name).cloned();
    let Some(content) = content else {
        return Response::builder().status(StatusCode::NOT_FOUND).body(Body::empty()).unwrap();
    };
    match mode.as_str() {
        "mapped" => content.respond(&method, &headers, version),
        "fit" => content.respond_in(of_connection, &method, &headers, version),
        _ => content.respond_in(BodyMode::Read, &method, &headers, version),
    }
}

/// What the server knows of the other end.
async fn client(Extension(peer): Extension<Peer>, mode: BodyMode) -> String {
    format!("{peer} {:?} {mode:?}", peer.transport)
}

/// A content as tests have it.
pub(crate) fn content(plan: Plan) -> Content {
    content_of(plan, ETAG, DateTime::parse_from_rfc2822(MODIFIED).unwrap().with_timezone(&Utc))
}

/// A content with a tag and a time of its own.
pub(crate) fn content_of(plan: Plan, etag: &str, changed_at: DateTime<Utc>) -> Content {
    Content::new(Arc::new(plan), etag.to_owned(), changed_at, MEDIA_TYPE, Some("image.iso".to_owned()))
}

/// Bytes without zeros and without repetition within pages.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&(state | 0x0101_0101_0101_0101).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A file as it is.
pub(crate) fn file(path: &FilePath) -> Content {
    content(Plan::whole(Arc::new(Source::open(path).unwrap())))
}

/// What the server of most tests serves, and its bytes.
pub(crate) struct Shown {
    pub(crate) server: Server,
    pub(crate) bytes: HashMap<&'static str, Vec<u8>>,
    _scratch: Scratch,
}

impl Shown {
    fn start() -> Self {
        let scratch = Scratch::new();
        let server = Server::start(2);
        let base = Arc::new(Source::open(scratch.write("base", noise(2_500_000))).unwrap());
        let memory = Source::from_bytes("memory", noise(500_000));
        let extent = |offset, len| Segment::Base(Extent::new(offset, len).unwrap());
        let layered = [
            extent(1000, 700_000),
            Segment::Bytes(Bytes::from(noise(5000))),
            Segment::Zero(300_000),
            extent(1, 1_500_000),
            Segment::Zero(1),
            extent(2_400_000, 100_000),
            Segment::Bytes(Bytes::from_static(b"end")),
        ];
        let mut archive = Archive::new();
        archive.insert("config.ign", crate::support::CONFIG);
        let edits = Edits::new().archive(archive.pack(Encoding::Gzip).unwrap());
        let fixture = scratch.write("image.iso", &image(Architecture::X86_64, Era::E2024_12).bytes);
        let fixture = BaseImage::open(fixture).unwrap();
        let minimal = edits.clone().minimal(Some("http://127.0.0.1/rootfs.img"));
        let plans = [
            ("plain", Plan::whole(Arc::clone(&base))),
            ("layered", Plan::of(Arc::clone(&base), layered)),
            ("small", Plan::of(Arc::clone(&base), [extent(7, 1000)])),
            ("empty", Plan::of(base, [])),
            ("memory", Plan::whole(Arc::new(memory))),
            ("full", fixture.plan(&edits).unwrap()),
            ("minimal", fixture.plan(&minimal).unwrap()),
        ];
        let mut bytes = HashMap::new();
        for (name, plan) in plans {
            bytes.insert(name, plan.read_all(100 << 20).unwrap());
            server.put(name, content(plan));
        }
        Self { server, bytes, _scratch: scratch }
    }
}

/// The server that tests share which change nothing.
pub(crate) fn shown() -> &'static Shown {
    static SHOWN: LazyLock<Shown> = LazyLock::new(Shown::start);
    &SHOWN
}
